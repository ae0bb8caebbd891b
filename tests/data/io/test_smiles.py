import builtins
import gzip

import numpy as np
import pytest

import gcaps
from gcaps.cli.app import main
from gcaps.data import Columns, GraphSet, read_smiles, write_graphs
from gcaps.data.io.smiles import molecule_chunks
from gcaps.errors import DataError

TABLE = """name,SMILES,Class
ethanol,CCO,1
phenol,c1ccccc1O,0
nitrogen,N#N,1
"table salt, solid",[Na+].[Cl-],0
heavy water,[2H]O[2H],1
methane,C,0
ethylene,C=C,1
"""
needs_rdkit = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("rdkit") is None, reason="needs RDKit: pip install 'gcaps[chem]'"
)


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path):
    return written(tmp_path / "drugs.csv", TABLE)


@needs_rdkit
def test_atoms_and_bonds_become_labelled_nodes_and_edges(table):
    graphs = gcaps.load(table)
    assert (graphs.name, len(graphs), graphs.num_classes) == ("drugs", 7, 2)
    assert graphs.y.tolist() == [1, 0, 1, 0, 1, 0, 1]
    ethanol, phenol, nitrogen, salt, water, methane, ethylene = graphs
    assert ethanol.node_labels[:, 0].tolist() == [6, 6, 8]
    assert ethanol.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert ethanol.edge_labels[:, 0].tolist() == [1, 1, 1, 1]
    assert sorted(phenol.edge_labels[:, 0].tolist()) == [1, 1] + [4] * 12
    assert nitrogen.edge_labels[:, 0].tolist() == [3, 3]
    assert (salt.node_labels[:, 0].tolist(), salt.edge_index.size) == ([11, 17], 0)
    assert water.node_labels[:, 0].tolist() == [1, 8, 1]
    assert (methane.num_nodes, methane.edge_labels.shape) == (1, (0, 1))
    assert ethylene.edge_labels[:, 0].tolist() == [2, 2]
    assert graphs.notes["one_way_arcs"] == graphs.notes["duplicate_arcs"] == 0


@needs_rdkit
@pytest.mark.parametrize("molecules", [1, 3, 4096])
def test_chunks_of_any_size_give_the_set_that_is_loaded(table, tmp_path, molecules):
    told = []
    chunks = molecule_chunks(table, molecules=molecules, progress=lambda done, total: told.append(done <= total))
    opened = write_graphs(chunks, tmp_path / "drugs.gset")
    assert opened.fingerprint() == gcaps.load(table).fingerprint()
    assert (opened.name, opened.notes) == ("drugs", gcaps.load(table).notes)
    assert told == [True] * ((7 - 1) // molecules)


@needs_rdkit
@pytest.mark.parametrize(
    ("name", "rewrite"),
    [
        ("a.tsv", lambda text: text.replace('"', "").replace("salt, solid", "salt").replace(",", "\t").encode()),
        ("a.csv", lambda text: text.replace('"', "").replace("salt, solid", "salt").replace(",", ";").encode()),
        ("a.csv", lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()),
        ("a.csv", lambda text: text.replace("\nphenol", "\n\nphenol").encode()),
        ("a.csv", lambda text: text.replace(",1\n", ",1.0\n").replace(",0\n", ", 0\n").encode()),
        ("A.CSV.GZ", lambda text: gzip.compress(text.encode())),
    ],
    ids=["tabs", "semicolons", "from a spreadsheet", "blank line", "labels as floats", "gzipped"],
)
def test_ways_of_writing_a_table_do_not_matter(table, tmp_path, name, rewrite):
    other = tmp_path / "other" / name
    other.parent.mkdir()
    other.write_bytes(rewrite(TABLE))
    assert gcaps.load(other).fingerprint() == gcaps.load(table).fingerprint()


@needs_rdkit
@pytest.mark.parametrize(
    ("header", "columns", "labels"),
    [
        ("smiles,y", None, [3, 4]),
        ("mol,Target", None, [3, 4]),
        ("Canonical_SMILES,toxic", None, [3, 4]),
        ("smiles,toxic", Columns(label="toxic"), [3, 4]),
        ("drug,toxic", Columns(smiles="drug"), [3, 4]),
    ],
)
def test_columns_are_guessed_from_their_names_or_given(tmp_path, header, columns, labels):
    path = written(tmp_path / "t.csv", f"{header}\nCC,3\nCCC,4\n")
    graphs = read_smiles(path, columns)
    assert graphs.y.tolist() == labels


@needs_rdkit
def test_one_of_several_columns_can_be_named(tmp_path):
    path = written(tmp_path / "t.csv", "id,smiles,p_np,activity\n1,CC,0,1\n2,CCC,1,1\n")
    assert read_smiles(path, Columns(label="p_np")).y.tolist() == [0, 1]


@needs_rdkit
@pytest.mark.parametrize(
    ("labels", "dtype"),
    [(["toxic", " fine", "toxic"], "<U5"), (["0.5", "-1", "2e-3"], "<f8"), (["1.0", "-1", "3"], "<i8")],
    ids=["strings", "numbers", "integers"],
)
@pytest.mark.parametrize("molecules", [1, None])
def test_labels_are_of_the_type_of_the_first(tmp_path, labels, dtype, molecules):
    rows = "".join(f"{'C' * (n + 1)},{label}\n" for n, label in enumerate(labels))
    chunks = molecule_chunks(written(tmp_path / "t.csv", "smiles,y\n" + rows), molecules=molecules)
    graphs = write_graphs(chunks, tmp_path / "t.gset")
    assert graphs.y.dtype.str == dtype
    expected = [label.strip() for label in labels] if dtype.startswith("<U") else [float(label) for label in labels]
    assert graphs.y.tolist() == expected


FAULTS = {
    "not a SMILES": (TABLE + "x,C1CC,1\n", 9, "'C1CC' is not a SMILES"),
    "impossible valence": (TABLE + "x,CC(C)(C)(C)C,1\n", 9, "Explicit valence for atom # 1 C, 5, is greater"),
    "no SMILES": (TABLE + "x,,1\n", 9, "'' has no atoms"),
    "no label": (TABLE + "x,CC,\n", 9, "has no label"),
    "words for labels": (TABLE + "x,CC,toxic\n", 9, "the label 'toxic' is not an integer"),
    "regression": (TABLE + "x,CC,0.5\n", 9, "the label '0.5' is not an integer"),
    "not a number": (TABLE + "x,CC,nan\n", 9, "the label 'nan' is not an integer"),
    "words after numbers": ("smiles,y\nC,0.5\nCC,toxic\n", 3, "the label 'toxic' is not a finite number"),
    "not finite": ("smiles,y\nC,nan\nCC,1\n", 2, "the label 'nan' is not a finite number"),
    "short row": (TABLE + "x,CC\n", 9, "has 2 columns, expected 3"),
    "after a value of two lines": (TABLE + '"x\ny",CC,1\nz,?,0\n', 11, "'?' is not a SMILES"),
    "no such columns": ("a,b,c\n1,2,3\n", 1, "has no column called smiles; name one (--smiles NAME) of a, b, c"),
    "no label column": ("smiles,b,c\nC,2,3\n", 1, "name one (--label NAME) of smiles, b, c"),
    "one class": ("smiles,y\nC,1\nCC,1\n", None, "all molecules have the label 1"),
    "only a header": ("smiles,y\n", None, "holds no molecule"),
    "empty": ("", None, "is empty"),
    "open quote": ('smiles,y\n"CC,1\n', 2, "is not a table"),
}


@needs_rdkit
@pytest.mark.parametrize(("text", "line", "message"), FAULTS.values(), ids=FAULTS)
def test_fault_is_one_line_that_names_file_and_line(tmp_path, capfd, text, line, message):
    path = written(tmp_path / "t.csv", text)
    with pytest.raises(SystemExit) as left:
        main(["data", "convert", str(path), str(tmp_path / "t.gset")])
    assert left.value.code == DataError.exit_code
    err = capfd.readouterr().err
    assert err.startswith(f"error: {path}:" + ("" if line is None else f"{line}:"))
    assert message in err
    assert err.count("\n") == 1, "RDKit's own words do not reach the terminal"
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


@needs_rdkit
@pytest.mark.parametrize(
    ("raw", "message"), [(b"smiles,y\nC\xff,1\n", "is not UTF-8"), (b"\x1f\x8b broken", "cannot be read")]
)
def test_files_that_are_not_text_are_data_errors(tmp_path, raw, message):
    path = tmp_path / ("t.csv.gz" if raw.startswith(b"\x1f") else "t.csv")
    path.write_bytes(raw)
    with pytest.raises(DataError, match=message):
        gcaps.load(path)


@needs_rdkit
def test_bad_rows_are_skipped_and_counted_when_asked_for(tmp_path, capsys):
    path = written(tmp_path / "t.csv", TABLE.replace("N#N", "N#") + "x,CC,\ny,CC,1,1\nz,???,0\n")
    graphs = read_smiles(path, Columns(skip_bad=True))
    assert (len(graphs), graphs.notes["skipped_rows"]) == (6, 4)
    one_by_one = molecule_chunks(path, Columns(skip_bad=True), molecules=1)
    assert [one.notes.get("skipped_rows", 0) for one in one_by_one] == [0, 1, 0, 0, 0, 3]
    main_ok(["data", "convert", str(path), str(tmp_path / "t.gset"), "--skip-bad"])
    assert capsys.readouterr().out.endswith("4 rows skipped\n")
    assert GraphSet.open(tmp_path / "t.gset").fingerprint() == graphs.fingerprint()


def main_ok(arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 0


@needs_rdkit
def test_tables_for_prediction_need_no_labels(tmp_path):
    assert gcaps.load(written(tmp_path / "a.csv", "smiles\nC\nCC\n"), labelled=False).y is None
    assert gcaps.load(written(tmp_path / "b.csv", "smiles,y\nC,\nCC,1\n"), labelled=False).y is None
    assert gcaps.load(written(tmp_path / "c.csv", "smiles,y\nC,1\nCC,1\n"), labelled=False).y.tolist() == [1, 1]
    assert gcaps.load(written(tmp_path / "d.csv", "smiles,id\nC,1\nCC,2\n"), labelled=False).y is None


def test_without_rdkit_the_error_says_what_to_install(table, monkeypatch):
    imported = builtins.__import__

    def without_rdkit(name, *rest):
        if name.startswith("rdkit"):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_rdkit)
    with pytest.raises(DataError, match=r"pip install 'gcaps\[chem\]'"):
        gcaps.load(table)


def test_a_table_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        gcaps.load(tmp_path / "none.csv")


@needs_rdkit
def test_dtypes_are_those_of_every_other_reader(table):
    graphs = gcaps.load(table)
    assert (graphs.col.dtype, graphs.node_labels.dtype) == (np.int32, np.int64)
