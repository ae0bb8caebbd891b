"""Tables of edges, nodes and graphs."""

import numpy as np
import pytest

import gcaps
from gcaps.data.io.edge_tables import is_edge_table
from gcaps.errors import DataError

EDGES = "graph_id,source,target,weight,type\nb,x,y,2,single\nb,y,z,1.5,double\na,1,2,1,single\n"
NODES = "graph_id,node_id,element,charge\na,1,C,0.5\na,2,N,0\na,3,C,1\nb,x,C,0\nb,y,O,0\nb,z,C,0.25\n"
GRAPHS = "graph_id,active,fold\na,yes,1\nb,no,2\n"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "mine"
    made.mkdir()
    for name, text in (("edges", EDGES), ("nodes", NODES), ("graphs", GRAPHS)):
        (made / f"{name}.csv").write_text(text)
    return made


def test_a_folder_of_tables_is_a_set(folder):
    graphs = gcaps.load(folder, target="active", columns=["fold"])
    assert (graphs.name, graphs.ids.tolist(), graphs.y.tolist()) == ("mine", ["a", "b"], ["yes", "no"])
    assert graphs.columns["fold"].tolist() == [1, 2]
    assert graphs.sizes.tolist() == [3, 3], "node 3 of a has no edge"
    assert [graphs.label_names[code] for code in graphs.node_labels[:, 0].tolist()] == ["C", "N", "C", "C", "O", "C"]
    assert graphs.x[:, 0].tolist() == [0.5, 0, 1, 0, 0, 0.25]
    assert graphs.edge_weight.tolist() == [1, 1, 2, 2, 1.5, 1.5]
    assert [graphs.label_names[code] for code in graphs[1].edge_labels[::2, 0].tolist()] == ["single", "double"]
    named = gcaps.load(folder / "edges.csv", nodes=folder / "nodes.csv", labels=folder / "graphs.csv", target="active")
    assert named.fingerprint() == graphs.fingerprint()


def test_parquet_and_text_give_the_same_set(folder, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    other = tmp_path / "parquet"
    other.mkdir()
    for file in folder.iterdir():
        pandas.read_csv(file).to_parquet(other / f"{file.stem}.parquet")
    both = [gcaps.load(place, target="active") for place in (folder, other)]
    assert both[0].fingerprint() == both[1].fingerprint()


def test_edges_alone_are_enough_and_may_carry_the_target(tmp_path):
    path = tmp_path / "e.tsv"
    path.write_text("graph\tfrom\tto\ty\n0\t5\t6\t1\n0\t6\t7\t1\n1\t5\t6\t0\n")
    graphs = gcaps.load(path, target="y")
    assert (graphs.sizes.tolist(), graphs.y.tolist(), graphs.edge_attr) == ([3, 2], [1, 0], None)
    assert gcaps.load(path, labelled=False).edge_attr is not None, "without a target the column describes edges"
    path.write_text("graph\tfrom\tto\ty\n0\t5\t6\t1\n0\t6\t7\t2\n")
    with pytest.raises(DataError, match=r"e.tsv:3: column 'y' changes within a graph"):
        gcaps.load(path, target="y")


def test_integers_are_labels_under_usual_names_and_attributes_elsewhere(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("graph_id,source,target,type,length\n0,1,2,7,3\n")
    graphs = gcaps.load(path, labelled=False)
    assert (graphs.edge_labels.tolist(), graphs.edge_attr.tolist()) == ([[7]] * 2, [[3.0]] * 2)


def test_graphs_without_nodes_are_those_that_only_the_labels_name(folder):
    (folder / "graphs.csv").write_text(GRAPHS + "c,no,1\n")
    with pytest.raises(DataError, match="graph c: has no nodes"):
        gcaps.load(folder, target="active")
    graphs = gcaps.load(folder, target="active", empty="drop")
    assert (graphs.ids.tolist(), [one.id for one in graphs.skipped]) == (["a", "b"], ["c"])


def test_graphs_without_a_label_have_a_missing_one(folder):
    (folder / "graphs.csv").write_text("graph_id,logp\na,0.5\n")
    graphs = gcaps.load(folder, labelled=False)
    assert graphs.ids.tolist() == ["a", "b"]
    assert np.array_equal(graphs.y, [0.5, np.nan], equal_nan=True)


FAULTS = {
    "no graph": ("edges", "source,target\n1,2\n", "edges.csv:1: has no column for the graph: call it graph_id"),
    "short row": ("edges", "graph_id,source,target\na,1\n", "edges.csv:2: has 2 columns, expected 3"),
    "no rows": ("edges", "graph_id,source,target\n", "edges.csv: has no rows"),
    "unknown node": ("edges", "graph_id,source,target\na,1,7\n", "edges.csv:2: names node '7' of graph 'a'"),
    "weight": ("edges", "graph_id,source,target,weight\na,1,2,0\n", "edges.csv:2: has weight 0"),
    "missing": ("edges", "graph_id,source,target,length\na,1,2,3\na,2,3,\n", "edges.csv:3: has no value in column"),
    "node twice": ("nodes", NODES + "a,1,C,0\n", "nodes.csv:8: node '1' of graph 'a' has two rows"),
    "graph twice": ("graphs", GRAPHS + "a,no,1\n", "graphs.csv:4: graph 'a' has two rows"),
    "other ids": ("graphs", "id,active\nq,1\n", "has no nodes"),
    "no target": ("graphs", "graph_id,p,q\na,1,2\nb,2,1\n", "choose with --target NAME among p, q"),
}


@pytest.mark.parametrize(("table", "text", "message"), FAULTS.values(), ids=FAULTS)
def test_fault_names_table_and_line(folder, table, text, message):
    (folder / f"{table}.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        gcaps.load(folder, target=None if table == "graphs" and "p,q" in text else "active")
    assert message in str(caught.value)


def test_tables_of_molecules_are_no_tables_of_edges():
    assert is_edge_table(["graph", "source", "target"])
    assert not is_edge_table(["smiles", "source", "target"])
    assert not is_edge_table(["smiles", "target"])
