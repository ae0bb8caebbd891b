"""Data of nodes and edges under any key."""

import networkx as nx
import numpy as np
import pytest

import gcaps
from gcaps.data import from_networkx
from gcaps.data.labels import LabelNames, label_code
from gcaps.errors import DataError, DataWarning


def with_nodes(graph, **fields):
    for key, value in fields.items():
        nx.set_node_attributes(graph, value, key)
    return graph


def with_edges(graph, **fields):
    for key, value in fields.items():
        nx.set_edge_attributes(graph, value, key)
    return graph


@pytest.mark.parametrize("key", ["x", "feature", "features", "feat", "attr", "attributes", "pos", "何か"])
@pytest.mark.parametrize("value", [0.5, (0.5, 1.0), 3, np.array([1.0, 2.0, 3.0]), True], ids=str)
def test_numbers_under_any_key_are_attributes(key, value):
    graphs = from_networkx([with_nodes(nx.path_graph(3), **{key: value})])
    assert graphs.x.tolist() == [np.atleast_1d(value).astype(float).tolist()] * 3
    assert graphs.node_labels is None


@pytest.mark.parametrize("key", ["label", "labels", "type", "element", "node_type"])
def test_integers_and_strings_under_usual_names_are_labels(key):
    integers = from_networkx([with_nodes(nx.path_graph(2), **{key: {0: 4, 1: 7}})])
    assert (integers.node_labels[:, 0].tolist(), integers.x) == ([4, 7], None)
    strings = from_networkx([with_nodes(nx.path_graph(2), **{key: {0: "C", 1: "N"}})])
    assert strings.node_labels[:, 0].tolist() == [label_code("C"), label_code("N")]
    assert strings.label_names == {label_code("C"): "C", label_code("N"): "N"}


def test_strings_under_any_key_are_labels_and_several_keys_are_columns():
    graph = with_nodes(nx.path_graph(2), label=1, residue={0: "A", 1: "G"}, charge=0.5, mass={0: 1, 1: 2})
    graphs = from_networkx([graph])
    assert graphs.node_labels[:, 0].tolist() == [1, 1]
    assert [graphs.label_names[code] for code in graphs.node_labels[:, 1].tolist()] == ["A", "G"]
    assert graphs.x.tolist() == [[0.5, 1.0], [0.5, 2.0]]


def test_string_labels_of_edges_and_round_trip():
    graph = with_edges(with_nodes(nx.path_graph(3), label={0: "C", 1: "N", 2: "C"}), label="single", weight=2.0)
    graphs = from_networkx([graph], ["a"])
    back = graphs.to_networkx()
    assert [values["label"] for _, values in back[0].nodes(data=True)] == ["C", "N", "C"]
    assert [values["label"] for *_, values in back[0].edges(data=True)] == ["single", "single"]
    assert from_networkx(back).fingerprint() == graphs.fingerprint()


def test_string_labels_survive_saving_and_subsets(tmp_path):
    graphs = from_networkx([with_nodes(nx.path_graph(2), label=name) for name in "abc"], [0, 1, 0])
    graphs.save(tmp_path / "s.gset")
    opened = gcaps.GraphSet.open(tmp_path / "s.gset")
    assert opened.label_names == graphs.label_names
    assert opened[1:].label_names == graphs.label_names
    streamed = gcaps.data.write_graphs([graphs[:1], graphs[1:]], tmp_path / "t.gset")
    assert streamed.label_names == graphs.label_names


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("charge", {0: 1.0}, "'charge' (2 of 3 lack it)"),
        ("thing", {0: {}, 1: {}, 2: {}}, "'thing' (values such as '{}' are neither numbers nor strings)"),
        ("ragged", {0: (1,), 1: (1, 2), 2: (1,)}, "'ragged' (values differ in length)"),
    ],
)
def test_what_is_not_used_is_named_once(key, value, why):
    graph = nx.path_graph(3)
    for node, entry in value.items():
        graph.nodes[node][key] = entry
    with pytest.warns(DataWarning) as caught:
        graphs = from_networkx([graph])
    assert [str(one.message) for one in caught] == [f"data of nodes that are not used: {why}"]
    assert graphs.x is None


def test_names_that_are_different_for_every_node_are_not_labels():
    graph = with_nodes(nx.path_graph(200), caption={i: f"node {i}" for i in range(200)})
    with pytest.warns(DataWarning, match="'caption' \\(nearly every one has a string of its own\\)"):
        assert from_networkx([graph]).node_labels is None


def test_directed_graphs_are_refused_or_symmetrised():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", 1.0), ("b", "a", 3.0), ("b", "c", 5.0)])
    with pytest.raises(DataError, match="is directed"):
        from_networkx([graph])
    graphs = from_networkx([graph], directed="symmetrize")
    assert graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graphs.edge_weight.tolist() == [2.0, 2.0, 5.0, 5.0]
    assert graphs.notes["one_way_arcs"] == 1


def test_parallel_edges_are_merged_and_their_weights_added():
    graph = nx.MultiGraph()
    graph.add_edge(0, 1, weight=1.0, label=4)
    graph.add_edge(1, 0, weight=2.0, label=5)
    graphs = from_networkx([graph])
    assert (graphs.num_edges, graphs.edge_weight.tolist()) == (1, [3.0, 3.0])
    assert graphs.edge_labels[:, 0].tolist() == [4, 4]
    assert graphs.notes["parallel_edges"] == 1
    both = nx.MultiDiGraph([(0, 1), (0, 1), (1, 0)])
    assert from_networkx([both], directed="symmetrize").num_edges == 1


def test_targets_are_graph_data_of_a_usual_or_a_given_name():
    graphs = [nx.Graph([(0, 1)], y=value, logp=value / 2, extra="x") for value in (1, 2)]
    assert gcaps.load(graphs).y.tolist() == [1, 2]
    assert gcaps.load(graphs, target="logp").y.tolist() == [0.5, 1.0]
    several = gcaps.load(graphs, target=["y", "logp"])
    assert (several.y.tolist(), several.target_names) == ([[1.0, 0.5], [2.0, 1.0]], ("y", "logp"))
    with pytest.raises(
        DataError, match="no graph has 'gone' among its graph data for target; there are y, logp, extra"
    ):
        gcaps.load(graphs, target="gone")
    assert gcaps.load(graphs, target="gone", labelled=False).y is None


def test_codes_are_stable_and_fit_into_63_bits():
    assert label_code("C") == 404799973914955058
    codes = [label_code(str(i)) for i in range(10_000)]
    assert len(set(codes)) == 10_000
    assert min(codes) >= 0
    assert max(codes) < 2**63
    names = LabelNames()
    assert names[names.code("süß")] == "süß"
