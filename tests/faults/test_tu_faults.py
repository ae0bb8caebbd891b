"""Every way in which a TU data set can be broken ends in one line that names file, line and remedy."""

import struct
import zipfile
from contextlib import suppress

import pytest

from gcaps.cli.app import main
from gcaps.data.io.tu import read_tu
from gcaps.errors import DataError
from tests.tu_files import TWO_GRAPHS, write_folder, zipped

A = TWO_GRAPHS["A"]
# what is changed, the file at fault, its line, and a part of the message
FAULTS = {
    "edge across two graphs": ({"A": A.replace("5, 6", "3, 6")}, "A", 9, "node 3 of graph 1 and node 6 of graph 2"),
    "index out of range": ({"A": A.replace("2, 3", "2, 99")}, "A", 3, "names node 99; there are nodes 1 to 6"),
    "index zero": ({"A": A.replace("4, 5", "0, 5")}, "A", 7, "names node 0"),
    "negative index": ({"A": A.replace("4, 5", "-4, 5")}, "A", 7, "names node -4"),
    "index beyond 64 bits": ({"A": A.replace("4, 5", f"{2**70}, 5")}, "A", 7, "is not an integer"),
    "edge of 64 bits": ({"node_labels": f"-{2**63}\n1\n2\n0\n1\n2\n"}, "node_labels", 1, "is not an integer"),
    "not an integer": ({"A": A.replace("5, 4", "5, 4.5")}, "A", 8, "'4.5' is not an integer"),
    "words": ({"graph_labels": "1\nmutagenic\n"}, "graph_labels", 2, "'mutagenic' is not an integer"),
    "three columns": ({"A": A.replace("5, 4", "5, 4, 1")}, "A", 8, "has 3 columns, expected 2"),
    "one column": ({"A": A.replace("5, 4", "5")}, "A", 8, "has 1 columns, expected 2"),
    "columns vary": ({"node_attributes": "1, 2\n1, 2\n1\n"}, "node_attributes", 3, "has 1 columns, expected 2"),
    "two numbers in a field": ({"A": A.replace("5, 4", "5 4")}, "A", 8, "'5 4' is not an integer"),
    "empty field": ({"A": A.replace("5, 4", "5,")}, "A", 8, "'' is not an integer"),
    "NaN": ({"node_attributes": "1\n2\nnan\n4\n5\n6\n"}, "node_attributes", 3, "'nan' is not a finite number"),
    "infinity": ({"node_attributes": "1\n2\n3\n-inf\n5\n6\n"}, "node_attributes", 4, "'-inf' is not a finite number"),
    "overflow": ({"node_attributes": "1\n2\n3\n4\n1e999\n6\n"}, "node_attributes", 5, "'1e999' is not a finite number"),
    "blank line": ({"graph_indicator": "1\n1\n1\n\n2\n2\n2\n"}, "graph_indicator", 4, "blank line between rows"),
    "binary garbage": ({"A": b"\x00\x01\x02\xff\n"}, "A", 1, "is not an integer"),
    "not UTF-8": ({"graph_labels": b"1\n\xe9\n"}, "graph_labels", 2, "is not an integer"),
    "byte order mark": ({"graph_labels": b"\xef\xbb\xbf1\n2\n"}, "graph_labels", 1, "is not an integer"),
    "too few node labels": ({"node_labels": "0\n1\n2\n"}, "node_labels", None, "has 3 rows, but"),
    "too many node attributes": ({"node_attributes": "1\n" * 7}, "node_attributes", None, "has 7 rows, but"),
    "too few edge labels": ({"edge_labels": "1\n"}, "edge_labels", None, "has 1 rows, but"),
    "too few edge attributes": ({"edge_attributes": "0.5\n"}, "edge_attributes", None, "has 1 rows, but"),
    "graph not there": ({"graph_indicator": "1\n1\n1\n2\n2\n3\n"}, "graph_indicator", 6, "there are graphs 1 to 2"),
    "graph zero": ({"graph_indicator": "0\n1\n1\n2\n2\n2\n"}, "graph_indicator", 1, "names graph 0"),
    "graph without nodes": ({"graph_labels": "1\n-1\n1\n"}, "graph_labels", 3, "graph 3 has no nodes"),
    "more graphs than nodes": ({"graph_labels": "1\n-1\n" * 9}, "graph_labels", None, "one graph would be empty"),
    "single class": ({"graph_labels": "5\n5\n"}, "graph_labels", None, "needs at least two classes"),
    "no graph labels": ({"graph_labels": None}, "graph_labels", None, "is missing"),
    "no graph indicator": ({"graph_indicator": None}, "graph_indicator", None, "is missing"),
    "empty graph labels": ({"graph_labels": ""}, "graph_labels", None, "is empty"),
    "empty graph indicator": ({"graph_indicator": "\n \n"}, "graph_indicator", None, "is empty"),
    "empty node labels": ({"node_labels": ""}, "node_labels", None, "is empty"),
    "edge labels without edges": ({"A": ""}, "edge_labels", None, "has 10 rows, but"),
}


@pytest.mark.parametrize(("changes", "part", "line", "message"), FAULTS.values(), ids=FAULTS)
def test_fault_is_named_with_file_and_line(tmp_path, changes, part, line, message):
    folder = write_folder(tmp_path / "DS", **changes)
    with pytest.raises(DataError) as caught:
        read_tu(folder)
    assert caught.value.file == str(folder / f"DS_{part}.txt")
    assert caught.value.line == line
    assert message in caught.value.problem


@pytest.mark.parametrize(("changes", "part", "line", "message"), FAULTS.values(), ids=FAULTS)
def test_fault_leaves_the_command_line_as_one_line(tmp_path, monkeypatch, capsys, changes, part, line, message):
    folder = write_folder(tmp_path / "DS", **changes)
    error = _checked(folder, monkeypatch, capsys)
    where = f"{folder}/DS_{part}.txt:" + ("" if line is None else f"{line}:")
    assert error.startswith(f"error: {where} ")
    assert message in error


def _checked(path, monkeypatch, capsys) -> str:
    """Standard error of ``gcaps data check PATH``, which must fail properly."""
    monkeypatch.setattr("sys.argv", ["gcaps", "data", "check", str(path)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == DataError.exit_code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


def test_folder_without_data_set(tmp_path, monkeypatch, capsys):
    assert "expected NAME_A.txt (TU)" in _checked(tmp_path, monkeypatch, capsys)


def test_folder_with_two_data_sets(tmp_path, monkeypatch, capsys):
    write_folder(tmp_path, "ONE")
    write_folder(tmp_path, "TWO")
    assert "holds 2 data sets (ONE, TWO)" in _checked(tmp_path, monkeypatch, capsys)


def test_path_that_is_not_there(tmp_path, monkeypatch, capsys):
    assert "nowhere.zip: does not exist" in _checked(tmp_path / "nowhere.zip", monkeypatch, capsys)


@pytest.fixture
def archive(tmp_path):
    return zipped(write_folder(tmp_path / "DS", node_attributes=None), tmp_path / "DS.zip")


def test_fault_inside_a_zip_names_the_member(tmp_path, monkeypatch, capsys):
    broken = zipped(write_folder(tmp_path / "DS", graph_labels="1\nx\n"), tmp_path / "DS.zip")
    assert "DS.zip/DS/DS_graph_labels.txt:2: 'x' is not an integer" in _checked(broken, monkeypatch, capsys)


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_truncated_zip(archive, monkeypatch, capsys, kept):
    raw = archive.read_bytes()
    archive.write_bytes(raw[: int(len(raw) * kept)])
    assert "is not a complete zip archive" in _checked(archive, monkeypatch, capsys)


def test_flipped_bit_in_a_member(archive, monkeypatch, capsys):
    raw = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as file:
        member = file.getinfo("DS/DS_A.txt")
    raw[member.header_offset + 30 + len(member.filename) + member.compress_size // 2] ^= 0x10
    archive.write_bytes(bytes(raw))
    error = _checked(archive, monkeypatch, capsys)
    assert "DS/DS_A.txt: the archive is damaged" in error
    assert "fetch it again" in error


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_no_flipped_bit_gives_other_data_or_another_error(tmp_path, compression):
    """One bit of every ninth byte in turn: the same graphs come out, or a DataError; nothing else."""
    path = zipped(write_folder(tmp_path / "DS"), tmp_path / "DS.zip", compression)
    expected, raw = read_tu(path).fingerprint(), path.read_bytes()
    for position in range(compression % 9, len(raw), 9):
        damaged = bytearray(raw)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(bytes(damaged))
        with suppress(DataError):
            assert read_tu(path).fingerprint() == expected


@pytest.mark.parametrize("name", ["../DS_A.txt", "/etc/DS_A.txt", "DS/../../x.txt", "..\\DS_A.txt", "C:\\DS_A.txt"])
def test_member_that_leaves_the_archive(archive, monkeypatch, capsys, name):
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(name, "1, 2\n")
    assert "points outside the archive; refused" in _checked(archive, monkeypatch, capsys)


def test_encrypted_member(archive, monkeypatch, capsys):
    raw = bytearray(archive.read_bytes())
    directory = raw.index(b"PK\x01\x02")
    raw[directory + 8] |= 1
    archive.write_bytes(bytes(raw))
    assert "is encrypted; unpack it first" in _checked(archive, monkeypatch, capsys)


def test_zip_bomb_is_refused_unread(archive, monkeypatch, capsys):
    raw = bytearray(archive.read_bytes())
    directory = raw.index(b"PK\x01\x02")
    raw[directory + 24 : directory + 28] = struct.pack("<I", 0xFFFFFFF0)
    archive.write_bytes(bytes(raw))
    assert "compressed more than 1100 times; refused" in _checked(archive, monkeypatch, capsys)


def test_zip_that_unpacks_beyond_the_limit(archive, monkeypatch, capsys):
    monkeypatch.setattr("gcaps.data.io.archive.max_unpacked", lambda packed: 60)
    assert "unpacks to" in _checked(archive, monkeypatch, capsys)


def test_unknown_compression(archive, monkeypatch, capsys):
    raw = bytearray(archive.read_bytes())
    directory = raw.index(b"PK\x01\x02")
    raw[directory + 10] = 9
    archive.write_bytes(bytes(raw))
    assert "the archive is damaged" in _checked(archive, monkeypatch, capsys)


def test_two_members_of_one_name(archive, monkeypatch, capsys):
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("other/DS_A.txt", "1, 2\n")
    assert "holds two files called 'DS_A.txt'" in _checked(archive, monkeypatch, capsys)


def test_file_that_is_no_zip(tmp_path, monkeypatch, capsys):
    (tmp_path / "DS.zip").write_text("<html>not found</html>")
    assert "is not a complete zip archive" in _checked(tmp_path / "DS.zip", monkeypatch, capsys)
