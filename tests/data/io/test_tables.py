"""Tables of text: separators, encodings, lists and frames."""

import gzip

import pytest

from gcaps.data.io.tables import (
    SmilesList,
    TextTable,
    ending,
    frame_table,
    open_table,
    parquet_table,
    separator_of,
    stem,
)
from gcaps.errors import DataError, DataWarning
from gcaps.files import require_file


def rows(table):
    return [cells for _, cells in table.rows()]


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a\tb\n1,5\t2,5\n", "\t"),
        ("a;b\n1,5;2,5\n", ";"),
        ("a|b\n1|2\n", "|"),
        ("a\n1\n", ","),
        ('a,"b;c;d;e"\n1,2\n', ","),
        ("name;smiles;y\n1,2-x;C;1\n3,4,5-y;CC;0\n", ";"),
    ],
)
def test_separator_is_the_one_that_keeps_rows_as_wide_as_the_header(text, separator):
    assert separator_of(text) == separator


def test_names_of_sets_and_endings_do_not_count_gz(tmp_path):
    assert (stem(tmp_path / "HIV.csv.gz"), ending(tmp_path / "HIV.CSV.GZ")) == ("HIV", ".csv")
    assert (stem(tmp_path / "a.b.smi"), ending(tmp_path / "a.b.smi")) == ("a.b", ".smi")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_unicode_is_found_without_a_note(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes("größe,y\nü,1\n".encode(encoding))
    table = TextTable(tmp_path / "t.csv")
    assert (table.names, rows(table)) == (["größe", "y"], [["ü", "1"]])


def test_other_encodings_are_read_as_latin_1_with_a_note(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe,y\nü,1\n".encode("latin-1"))
    with pytest.warns(DataWarning, match="is not UTF-8 text; read as Latin-1"):
        assert TextTable(tmp_path / "t.csv").names == ["größe", "y"]


def test_gzip_is_found_by_content(tmp_path):
    (tmp_path / "t.csv").write_bytes(gzip.compress(b"a,y\n1,2\n"))
    assert rows(TextTable(tmp_path / "t.csv")) == [["1", "2"]]


def test_lines_are_counted_with_blank_ones_and_breaks_in_quotes(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n\n1,"x\ny"\n2,z\n')
    assert [line for line, _ in TextTable(tmp_path / "t.csv").rows()] == [4, 5]


@pytest.mark.parametrize(
    ("text", "names", "first"),
    [
        ("CCO\nCC\n", ["smiles", "name"], ["CCO", ""]),
        ("CCO ethyl alcohol\nCC\n", ["smiles", "name"], ["CCO", "ethyl alcohol"]),
        ("CCO\tethanol\t1\nCC\tethane\t0\n", ["smiles", "name", "column 3"], ["CCO", "ethanol", "1"]),
        ("SMILES ID\nCCO 7\n", ["SMILES", "ID"], ["CCO", "7"]),
        ("smiles,y\nCCO,1\n", ["smiles", "y"], ["CCO", "1"]),
    ],
)
def test_lists_of_smiles_have_names_or_a_header_or_neither(tmp_path, text, names, first):
    (tmp_path / "t.smi").write_text(text)
    table = open_table(tmp_path / "t.smi")
    assert isinstance(table, SmilesList)
    assert table.names == names
    assert rows(table)[0] == first


def test_unpacked_size_is_limited_too(tmp_path, monkeypatch):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"smiles,y\n" + b"C,1\n" * 10_000))
    monkeypatch.setenv("GCAPS_MAX_BYTES", "5000")
    with pytest.raises(DataError, match="beyond the limit of 5,000"):
        TextTable(tmp_path / "t.csv.gz")


def test_folder_where_a_file_is_expected(tmp_path):
    with pytest.raises(DataError, match="is a folder where a file is expected"):
        require_file(tmp_path)


def test_frames_keep_the_types_of_their_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"smiles": ["C", None], "y": [1.5, float("nan")], "z": ["1", "2"]})
    assert rows(frame_table(frame, "t")) == [["C", 1.5, "1"], ["", "", "2"]]
    assert frame_table(frame["smiles"], "t").names == ["smiles"]


def test_parquet_is_a_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"smiles": ["C", "CC"], "y": [1, None]}).to_parquet(tmp_path / "t.parquet")
    table = parquet_table(tmp_path / "t.parquet")
    assert (table.names, rows(table)) == (["smiles", "y"], [["C", 1.0], ["CC", ""]])
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataError, match="is not a parquet file"):
        parquet_table(tmp_path / "bad.parquet")
