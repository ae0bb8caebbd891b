"""A source that turns out broken halfway: the same words as when it is read at once, and nothing left on disk."""

import zipfile
from contextlib import suppress

import pytest

from gcaps.cli.app import main
from gcaps.data.io.tu import read_tu
from gcaps.data.io.tu_stream import convert_tu
from gcaps.errors import DataError
from tests.data.folders import contents
from tests.faults.test_tu_faults import FAULTS
from tests.tu_files import write_folder, zipped

MORE = {
    "graph zero without labels": {"graph_labels": None, "graph_indicator": "1\n1\n0\n2\n2\n99\n"},
    "no graph at all": {"graph_labels": None, "graph_indicator": "0\n0\n0\n-1\n-1\n-1\n"},
    "more graphs than nodes without labels": {"graph_labels": None, "graph_indicator": "1\n1\n2\n2\n9\n9\n"},
    "graph without nodes and labels": {"graph_labels": None, "graph_indicator": "1\n1\n1\n3\n3\n3\n"},
    "nodes out of order, labels too few": {"graph_indicator": "2\n1\n2\n1\n1\n2\n", "A": "", "node_labels": "1\n2\n"},
    "nodes out of order, labels too many": {"graph_indicator": "2\n1\n2\n1\n1\n2\n", "A": "", "node_labels": "1\n" * 9},
    "edge labels too many": {"edge_labels": "1\n" * 12},
    "edge labels too few and an edge outside": {"edge_labels": "1\n", "A": "1, 2\n" * 8 + "1, 9\n"},
    "edges out of order, then an edge across": {"A": "4, 5\n1, 2\n" * 40 + "1, 6\n", "edge_labels": None},
}
ALL = {**{what: changes for what, (changes, *_) in FAULTS.items()}, **MORE}


@pytest.mark.parametrize("pieces", [(1 << 20, 1 << 24), (1, 8)], ids=["at once", "in strides"])
@pytest.mark.parametrize("what", ALL)
def test_converting_says_what_reading_says(tmp_path, monkeypatch, what, pieces):
    folder = write_folder(tmp_path / "DS", **ALL[what])
    labelled = what in FAULTS or "graph_labels" not in ALL[what]
    with pytest.raises(DataError) as in_memory:
        read_tu(folder, labelled=labelled)
    monkeypatch.setattr("gcaps.data.io.tu_stream.BLOCK", pieces[0])
    monkeypatch.setattr("gcaps.data.io.tu.STRIDE", pieces[1])
    with pytest.raises(DataError) as streamed:
        convert_tu(folder, tmp_path / "out" / "DS.gset", labelled=labelled)
    assert str(streamed.value) == str(in_memory.value)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_fault_leaves_the_command_line_as_one_line(tmp_path, capsys):
    folder = write_folder(tmp_path / "DS", graph_labels="1\nmutagenic\n")
    with pytest.raises(SystemExit) as left:
        main(["data", "convert", str(folder), str(tmp_path / "DS.gset")])
    assert left.value.code == DataError.exit_code
    captured = capsys.readouterr()
    assert captured.err == f"error: {folder}/DS_graph_labels.txt:2: 'mutagenic' is not an integer\n"
    assert captured.out == ""


def test_no_flipped_bit_of_a_zip_gives_other_data_or_half_a_folder(tmp_path):
    path = zipped(write_folder(tmp_path / "DS"), tmp_path / "DS.zip", zipfile.ZIP_STORED)
    convert_tu(path, tmp_path / "good.gset")
    expected, raw = contents(tmp_path / "good.gset"), path.read_bytes()
    for position in range(0, len(raw), 23):
        damaged = bytearray(raw)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(bytes(damaged))
        with suppress(DataError):
            convert_tu(path, tmp_path / "out.gset")
            assert contents(tmp_path / "out.gset") == expected
    assert {p.name for p in tmp_path.iterdir()} <= {"DS", "DS.zip", "good.gset", "out.gset"}
