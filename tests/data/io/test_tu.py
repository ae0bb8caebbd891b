import importlib.util
from pathlib import Path

import numpy as np
import pytest

import gcaps
from gcaps.data.io.tu import read_tu
from gcaps.errors import DataError
from tests.tu_files import TWO_GRAPHS, write_folder, zipped

CUNEIFORM = Path(importlib.util.find_spec("grakel").submodule_search_locations[0]) / "tests" / "data" / "Cuneiform"


@pytest.fixture
def expected(tmp_path):
    return read_tu(write_folder(tmp_path / "plain"))


def test_well_formed_folder_is_read_as_written(expected):
    assert expected.name == "DS"
    assert expected.ptr.tolist() == [0, 3, 6]
    assert expected.rowptr.tolist() == [0, 2, 4, 6, 7, 9, 10]
    assert expected.col.tolist() == [1, 2, 0, 2, 0, 1, 1, 0, 2, 1]
    assert (expected.y.tolist(), expected.y.dtype) == ([1, -1], np.int64)
    assert expected.node_labels[:, 0].tolist() == [0, 1, 2, 0, 1, 2]
    assert expected.x[:3].tolist() == [[0.5, 1], [1e-3, 2], [-1, 3]]
    assert expected.edge_labels[:, 0].tolist() == [7, 9, 7, 8, 9, 8, 7, 7, 8, 8]
    assert expected.notes == {
        "rows": 10, "duplicate_arcs": 0, "conflicting_duplicates": 0, "one_way_arcs": 0, "self_loops": 0
    }  # fmt: skip


def test_zip_gives_the_same_set_as_its_folder(expected, tmp_path):
    archive = zipped(write_folder(tmp_path / "DS"), tmp_path / "DS.zip")
    assert read_tu(archive).fingerprint() == expected.fingerprint()


def test_zip_made_on_macos_is_read(expected, tmp_path):
    import zipfile

    archive = zipped(write_folder(tmp_path / "DS"), tmp_path / "DS.zip")
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("__MACOSX/DS/._DS_A.txt", b"\x00\x05\x16\x07")
    assert read_tu(archive).fingerprint() == expected.fingerprint()


@pytest.mark.parametrize(
    "rewrite",
    [
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(lambda text: text.rstrip("\n"), id="no final newline"),
        pytest.param(lambda text: text + "\n\n", id="blank lines at the end"),
        pytest.param(lambda text: text.replace(", ", ","), id="no spaces"),
        pytest.param(lambda text: text.replace(", ", " ,\t"), id="other spaces"),
    ],
)
def test_ways_of_writing_do_not_matter(expected, tmp_path, rewrite):
    rewritten = {part: rewrite(text) for part, text in TWO_GRAPHS.items()}
    assert read_tu(write_folder(tmp_path / "other", **rewritten)).fingerprint() == expected.fingerprint()


def test_order_of_edge_rows_does_not_matter(expected, tmp_path):
    order = [9, 2, 0, 5, 7, 1, 8, 3, 6, 4]
    parts = {key: TWO_GRAPHS[key].splitlines() for key in ("A", "edge_labels")}
    shuffled = {key: "\n".join(lines[i] for i in order) for key, lines in parts.items()}
    assert read_tu(write_folder(tmp_path / "other", **shuffled)).fingerprint() == expected.fingerprint()


def test_unsorted_graph_indicator_is_sorted_with_everything_that_belongs_to_its_nodes(tmp_path):
    graphs = read_tu(
        write_folder(
            tmp_path / "mixed",
            A="1, 3\n3, 1\n2, 4\n4, 2\n",
            graph_indicator="2\n1\n2\n1\n",
            node_labels="20\n10\n21\n11\n",
            node_attributes="2.0\n1.0\n2.1\n1.1\n",
            edge_labels="5\n5\n6\n6\n",
        )
    )
    assert graphs.node_labels[:, 0].tolist() == [10, 11, 20, 21]
    assert graphs.x[:, 0].tolist() == [1.0, 1.1, 2.0, 2.1]
    assert graphs[0].edge_labels[:, 0].tolist() == [6, 6]
    assert graphs[1].edge_index.tolist() == [[0, 1], [1, 0]]


def test_duplicates_one_way_edges_and_loops_are_settled_and_counted(tmp_path):
    graphs = read_tu(
        write_folder(tmp_path / "raw", A="1, 2\n1, 2\n2, 3\n3, 3\n5, 4\n4, 5\n", edge_labels="1\n2\n3\n4\n5\n6\n")
    )
    assert graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graphs[0].edge_labels[:, 0].tolist() == [1, 1, 3, 3], "of two rows the first counts; a reverse is a copy"
    assert graphs[1].edge_labels[:, 0].tolist() == [6, 5], "both directions are there and keep their own labels"
    assert graphs.loops.node.tolist() == [2]
    assert graphs.loops.labels.tolist() == [[4]]
    assert graphs.notes == {
        "rows": 6, "duplicate_arcs": 1, "conflicting_duplicates": 1, "one_way_arcs": 2, "self_loops": 1
    }  # fmt: skip


def test_set_without_any_edge_is_read(tmp_path):
    graphs = read_tu(write_folder(tmp_path / "bare", A="", edge_labels=None))
    assert graphs.num_edges == 0
    assert len(graphs) == 2


def test_unlabelled_graphs_are_read_when_asked_for(tmp_path):
    assert read_tu(write_folder(tmp_path / "new", graph_labels=None), labelled=False).y is None
    assert read_tu(write_folder(tmp_path / "one", graph_labels="3\n3\n"), labelled=False).y.tolist() == [3, 3]


def test_labels_beyond_32_bits_are_exact(tmp_path):
    graphs = read_tu(write_folder(tmp_path / "wide", node_labels=f"{2**53 + 1}\n-{2**53 + 1}\n0\n1\n2\n3\n"))
    assert graphs.node_labels[:2, 0].tolist() == [2**53 + 1, -(2**53) - 1]


def test_cuneiform_has_two_label_columns_and_edge_attributes():
    graphs = read_tu(CUNEIFORM)
    assert (len(graphs), graphs.num_classes, graphs.num_nodes) == (267, 30, 5680)
    assert graphs.node_labels.shape == (5680, 2)
    assert graphs.x.shape == (5680, 3)
    assert graphs.edge_attr.shape == (len(graphs.col), 2)
    rows = np.loadtxt(CUNEIFORM / "Cuneiform_A.txt", delimiter=",", dtype=np.int64) - 1
    attributes = np.loadtxt(CUNEIFORM / "Cuneiform_edge_attributes.txt", delimiter=",")
    first = np.repeat(graphs.ptr[:-1], graphs.arc_counts)
    stored = np.stack([np.repeat(np.arange(graphs.num_nodes), graphs.degrees), graphs.col + first], axis=1)
    order = np.lexsort(rows.T[::-1])
    assert np.array_equal(rows[order], stored)
    assert np.array_equal(attributes[order], graphs.edge_attr)


def test_chunks_of_a_large_table_join_seamlessly(tmp_path, monkeypatch):
    expected = read_tu(CUNEIFORM)
    monkeypatch.setattr("gcaps.data.io.tu.STRIDE", 1000)
    assert read_tu(CUNEIFORM).fingerprint() == expected.fingerprint()


@pytest.mark.parametrize(
    ("name", "graphs", "nodes", "edges"),
    [("PTC", 344, 25.56, 25.96), ("PROTEINS", 1113, 39.06, 72.82), ("ENZYMES", 600, 32.63, 62.14)],
)
def test_paper_sets_have_the_published_size(data_folder, name, graphs, nodes, edges):
    found = read_tu(data_folder / f"{name}.zip")
    assert len(found) == graphs
    assert found.num_nodes / graphs == pytest.approx(nodes, abs=0.005)
    assert found.num_edges / graphs == pytest.approx(edges, abs=0.005)


EMPTY = {"graph_indicator": "1\n1\n1\n3\n3\n3\n", "graph_labels": "1\n-1\n-1\n2\n"}


def test_graphs_without_nodes_are_dropped_when_asked_for_in_memory_and_in_strides(tmp_path):
    folder = write_folder(tmp_path / "DS", **EMPTY)
    with pytest.raises(DataError, match=r"graph 2 has no nodes in .*graph_indicator.txt \(nor have graphs 4\); remove"):
        gcaps.load(folder)
    graphs = gcaps.load(folder, empty="drop")
    assert (graphs.y.tolist(), graphs.ids.tolist(), graphs.sizes.tolist()) == ([1, -1], [0, 2], [3, 3])
    assert [(one.row, one.id, one.reason) for one in graphs.skipped] == [
        (1, "1", "has no nodes"),
        (3, "3", "has no nodes"),
    ]
    streamed = gcaps.data.convert(folder, tmp_path / "DS.gset", empty="drop")
    assert streamed.fingerprint() == graphs.fingerprint()
    assert (streamed.ids.tolist(), streamed.skipped) == (graphs.ids.tolist(), graphs.skipped)


def test_graph_attributes_are_targets_where_there_are_no_labels(tmp_path):
    folder = write_folder(tmp_path / "DS", graph_labels=None, graph_attributes="0.5, 1\n-2, 3e-1\n")
    graphs = gcaps.load(folder)
    assert graphs.y.tolist() == [[0.5, 1.0], [-2.0, 0.3]]
    assert gcaps.data.convert(folder, tmp_path / "DS.gset").fingerprint() == graphs.fingerprint()


@pytest.mark.parametrize("name", ["AIDS", "BZR", "Letter-high", "Mutagenicity", "Synthie", "MSRC_9"])
def test_zips_with_double_slashes_are_read(data_folder, name):
    assert len(gcaps.load(data_folder / "more" / f"{name}.zip")) > 200
