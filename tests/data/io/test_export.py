"""What is written in another format is read again as the same set."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import gcaps
from gcaps.data import convert, from_networkx
from gcaps.errors import DataError
from gcaps.testing import hostile_graphs


def molecules(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("smiles,id,logp,split\nCCO,a,0.5,train\nC[NH3+],b,,test\nc1ccccc1,c,2,train\n")
    return gcaps.load(path, target="logp", columns=["split"])


def labelled_graphs():
    graphs = [nx.cycle_graph(4), nx.star_graph(3), nx.path_graph(5)]
    for i, graph in enumerate(graphs):
        nx.set_node_attributes(graph, {n: "C" if n % 2 else "N" for n in graph}, "label")
        nx.set_node_attributes(graph, {n: (0.1 * n, 1.0 * i) for n in graph}, "attributes")
        nx.set_edge_attributes(graph, {edge: f"bond {edge[0] % 2}" for edge in graph.edges}, "label")
    return from_networkx(graphs, ["x", "y", "x"])


@pytest.mark.parametrize("ending", [".json", ".graphml", ".edges", ".gset"])
def test_labels_attributes_and_classes_survive(tmp_path, ending):
    graphs = labelled_graphs()
    path = tmp_path / f"t{ending}"
    convert(graphs, path)
    again = gcaps.load(path)
    assert again.fingerprint() == graphs.fingerprint()
    assert again.label_names == graphs.label_names
    assert again.ids.astype(str).tolist() == ["0", "1", "2"]


@pytest.mark.parametrize("ending", [".json", ".graphml", ".edges"])
def test_weights_survive(tmp_path, ending):
    graphs = replace(hostile_graphs(12, seed=3, weighted=True), loops=None, edge_labels=None, edge_attr=None)
    convert(graphs, tmp_path / f"t{ending}")
    again = gcaps.load(tmp_path / f"t{ending}", labelled=False)
    assert np.array_equal(again.edge_weight, graphs.edge_weight.astype(np.float64))
    assert np.array_equal(again.col, graphs.col)


def test_tu_format_survives_but_for_the_names_of_labels(tmp_path):
    graphs = gcaps.load("MUTAG")
    convert(graphs, tmp_path / "M.zip")
    assert gcaps.load(tmp_path / "M.zip").fingerprint() == graphs.fingerprint()
    named = labelled_graphs()
    convert(named, tmp_path / "N.zip")
    again = gcaps.load(tmp_path / "N.zip")
    assert again.y.tolist() == [0, 1, 0]
    assert np.array_equal(again.x, named.x)
    assert len(np.unique(again.node_labels)) == 2
    numbers = replace(graphs, y=np.linspace(0, 1, len(graphs)))
    convert(numbers, tmp_path / "R.zip")
    assert gcaps.load(tmp_path / "R.zip").fingerprint() == numbers.fingerprint()
    several = replace(graphs, y=np.stack([graphs.y, -graphs.y], axis=1) + 0.5)
    convert(several, tmp_path / "S.zip")
    assert gcaps.load(tmp_path / "S.zip").fingerprint() == several.fingerprint()


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".gset"])
def test_molecules_survive(tmp_path, ending):
    pytest.importorskip("rdkit")
    graphs = molecules(tmp_path)
    convert(graphs, tmp_path / f"t{ending}")
    again = gcaps.load(tmp_path / f"t{ending}", target="logp", columns=["split"])
    assert again.fingerprint() == graphs.fingerprint()
    assert (again.ids.tolist(), again.target_names) == (["a", "b", "c"], ("logp",))
    assert again.columns["split"].tolist() == ["train", "test", "train"]


def test_what_a_format_cannot_hold_is_said(tmp_path):
    weighted = hostile_graphs(4, seed=1, weighted=True)
    with pytest.raises(DataError, match="has edge weights, which the TU format cannot hold"):
        convert(weighted, tmp_path / "t.zip", labelled=False)
    with pytest.raises(DataError, match="has no SMILES"):
        convert("MUTAG", tmp_path / "t.csv")
    some = replace(gcaps.load("MUTAG"), y=np.append(np.nan, np.arange(187.0)))
    with pytest.raises(DataError, match="has missing targets"):
        convert(some, tmp_path / "t.zip")
    assert list(tmp_path.iterdir()) == []


def test_several_targets_with_missing_values_survive_in_json_and_tables(tmp_path):
    graphs = replace(labelled_graphs(), y=np.array([[1, 0], [np.nan, 1], [0, np.nan]]), target_names=("a", "b"))
    for ending in (".json", ".edges", ".gset"):
        convert(graphs, tmp_path / f"t{ending}")
        again = gcaps.load(tmp_path / f"t{ending}", target="a,b")
        assert again.fingerprint() == graphs.fingerprint()
        assert again.target_names == ("a", "b")
