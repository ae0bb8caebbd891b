"""PyTorch Geometric and NetworkX: what goes out comes back the same."""

from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, HeteroData

from gcaps.data import GraphSet, from_graphs, from_networkx, from_pyg, load, to_networkx, to_pyg
from gcaps.data.arrays import pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.errors import DataError

TARGETS = [
    lambda rng, count: rng.integers(-3, 3, count),
    lambda rng, count: rng.standard_normal(count),
    lambda rng, count: rng.random(count) < 0.5,
    lambda rng, count: rng.choice(["toxic", "not toxic", "ungiftig (süß)", "1"], count),
]
"""Integers, other numbers, booleans, strings."""


@st.composite
def graph_sets(draw, directed_values: bool) -> GraphSet:
    """Any set at all: loops, lone nodes, every mixture of fields; edge values may differ by direction."""
    sizes = np.array(draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ptr = pointer(sizes)
    graph = np.repeat(
        np.arange(len(sizes)), draw(st.lists(st.integers(0, 6), min_size=len(sizes), max_size=len(sizes)))
    )
    u, v = (ptr[graph] + (rng.random(len(graph)) * sizes[graph]).astype(np.int64) for _ in range(2))
    ends = np.unique(np.concatenate([np.stack([u, v], 1), np.stack([v, u], 1)]), axis=0).reshape(-1, 2)
    _, edge = np.unique(np.sort(ends, axis=1), axis=0, return_inverse=True)
    edge = edge.reshape(-1)
    of_arc = np.arange(len(ends)) if directed_values else edge
    has = draw(st.fixed_dictionaries(dict.fromkeys(("nl", "na", "el", "ea", "w", "y"), st.booleans())))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    columns = draw(st.integers(1, 3))
    count = len(ends)
    has_edges = count > 0

    def floats(rows: int) -> np.ndarray:
        return rng.standard_normal((rows, columns)).astype(dtype)

    return assemble(
        "any",
        ptr,
        EdgeRows(
            ends[:, 0],
            ends[:, 1],
            rng.integers(-(2**60), 2**60, (count, columns))[of_arc] if has["el"] and has_edges else None,
            floats(count)[of_arc] if has["ea"] and has_edges else None,
            (rng.random(count) + 0.5).astype(dtype)[edge] if has["w"] and has_edges else None,
        ),
        y=draw(st.sampled_from(TARGETS))(rng, len(sizes)) if has["y"] else None,
        node_labels=rng.integers(-5, 5, (ptr[-1], columns)) if has["nl"] else None,
        x=floats(int(ptr[-1])) if has["na"] else None,
    )


@settings(max_examples=150, deadline=None)
@given(graph_sets(directed_values=True))
def test_pyg_round_trip_is_exact(graphs):
    back = from_pyg(to_pyg(graphs), "any")
    assert back.fingerprint() == graphs.fingerprint()
    assert back.notes["one_way_arcs"] == back.notes["duplicate_arcs"] == 0


@settings(max_examples=150, deadline=None)
@given(graph_sets(directed_values=False))
def test_networkx_round_trip_is_exact(graphs):
    back = from_networkx(to_networkx(graphs))
    assert back.fingerprint() == graphs.fingerprint()
    assert back.notes["one_way_arcs"] == back.notes["duplicate_arcs"] == 0


def test_real_molecules_survive_both_round_trips():
    graphs = load("MUTAG")
    assert GraphSet.from_pyg(graphs.to_pyg()).fingerprint() == graphs.fingerprint()
    assert GraphSet.from_networkx(graphs.to_networkx()).fingerprint() == graphs.fingerprint()


def test_saved_sets_convert_without_a_warning(tmp_path):
    graphs = load("MUTAG")
    graphs.save(tmp_path / "m.gset")
    assert from_pyg(GraphSet.open(tmp_path / "m.gset").to_pyg()).fingerprint() == graphs.fingerprint()


def test_to_pyg_writes_the_fields_people_expect():
    graphs = load("MUTAG")
    first = to_pyg(graphs)[0]
    assert first.y.tolist() == [1]
    assert (first.num_nodes, first.num_edges) == (17, 38)
    assert first.is_undirected()
    assert first.is_coalesced()
    assert first.node_label.shape == (17, 1)
    assert first.validate()


def triangle(**fields) -> Data:
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    return Data(**{"edge_index": edge_index, "num_nodes": 3, "y": torch.tensor([1]), **fields})


def test_x_and_edge_attr_go_by_their_type():
    floats = from_pyg([triangle(x=torch.rand(3, 2, dtype=torch.float64), edge_attr=torch.rand(6))])
    assert floats.x.dtype == np.float64
    assert floats.edge_attr.shape == (6, 1)
    integers = from_pyg([triangle(x=torch.arange(3), edge_attr=torch.arange(6).view(6, 1))])
    assert integers.node_labels[:, 0].tolist() == [0, 1, 2]
    assert integers.edge_labels.shape == (6, 1)
    assert from_pyg([triangle(x=torch.tensor([True, False, True]))]).node_labels[:, 0].tolist() == [1, 0, 1]
    assert from_pyg([triangle(x=torch.rand(3, 2, dtype=torch.bfloat16))]).x.dtype == np.float32


def test_one_way_edges_and_loops_of_pyg_are_settled():
    one_way = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 2]]), num_nodes=4, edge_attr=torch.tensor([5, 6, 7]))
    graphs = from_pyg([one_way])
    assert graphs.num_edges == 2
    assert graphs.edge_labels[:, 0].tolist() == [5, 5, 6, 6]
    assert graphs.loops.labels.tolist() == [[7]]
    assert graphs.notes["one_way_arcs"] == 2
    assert graphs.y is None


def test_num_nodes_is_guessed_only_when_there_is_no_other_way():
    edges = torch.tensor([[0, 1], [1, 0]])
    lone = from_pyg([Data(edge_index=edges, x=torch.rand(4, 1)), Data(x=torch.rand(2, 1))])
    assert lone.sizes.tolist() == [4, 2]
    assert "guessed_sizes" not in lone.notes
    guessed = from_pyg([Data(edge_index=edges), Data(edge_index=edges, num_nodes=3)])
    assert guessed.sizes.tolist() == [2, 3]
    assert guessed.notes["guessed_sizes"] == 1


def test_batches_and_features_of_no_width_are_taken():
    datas = [triangle(x=torch.zeros(3, 0)), triangle(y=torch.tensor(2))]
    assert from_pyg(datas).x is None
    assert from_pyg(Batch.from_data_list([triangle(), triangle(y=torch.tensor([2]))])).y.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("y", "expected", "dtype"),
    [
        ("toxic", "toxic", "<U5"),
        (torch.tensor([True]), True, "|b1"),
        (torch.tensor(0.5), 0.5, "<f8"),
        (torch.tensor([7], dtype=torch.int32), 7, "<i8"),
        (1.25, 1.25, "<f8"),
    ],
    ids=str,
)
def test_targets_of_any_type_come_through_pyg(y, expected, dtype):
    graphs = from_pyg([triangle(y=y), triangle(y=y)])
    assert (graphs.y.tolist(), graphs.y.dtype.str) == ([expected] * 2, dtype)
    back = to_pyg(graphs)[1].y
    assert (back if isinstance(back, str) else back.item()) == expected
    assert from_pyg(Batch.from_data_list(to_pyg(graphs))).fingerprint() == graphs.fingerprint()


@pytest.mark.parametrize("values", [["b", "a"], [True, False], [0.5, 1.0], [3, -3]], ids=str)
def test_targets_of_any_type_come_through_networkx_and_graph_objects(values):
    graphs = from_networkx([nx.path_graph(2), nx.path_graph(3)], values)
    assert graphs.y.tolist() == values
    assert [graph.graph["label"] for graph in to_networkx(graphs)] == values
    assert from_networkx(to_networkx(graphs)).fingerprint() == graphs.fingerprint()
    assert from_graphs(list(graphs)).fingerprint() == graphs.fingerprint()


@pytest.mark.parametrize("form", [from_pyg, from_networkx, from_graphs])
def test_targets_of_different_kinds_are_refused_and_named(form):
    objects = {
        from_pyg: [triangle(), triangle(y="toxic")],
        from_networkx: [nx.Graph([(0, 1)], label=label) for label in (1, "toxic")],
        from_graphs: [one._replace(y=y) for one, y in zip(load("MUTAG")[:2], (1, "toxic"), strict=True)],
    }[form]
    with pytest.raises(DataError, match=r"^graphs\[1\]: has the label 'toxic' while graphs\[0\] has a number"):
        form(objects)


def test_a_graph_without_edges_need_not_bring_edge_fields():
    graphs = from_pyg([Data(num_nodes=2, y=torch.tensor([0])), triangle(edge_attr=torch.rand(6, 2))])
    assert graphs.edge_attr.shape == (6, 2)


PYG_FAULTS = {
    "index out of range": (triangle(edge_index=torch.tensor([[0, 3], [3, 0]])), "and 3; there are nodes 0 to 2"),
    "negative index": (triangle(edge_index=torch.tensor([[0, -1], [-1, 0]])), "joins nodes 0 and -1"),
    "no nodes": (Data(num_nodes=0, y=torch.tensor([1])), "has no nodes"),
    "nothing at all": (Data(), "has no nodes"),
    "NaN": (triangle(x=torch.tensor([1.0, float("nan"), 0])), "x holds nan"),
    "infinite edge_attr": (triangle(edge_attr=torch.full((6,), torch.inf)), "edge_attr holds inf"),
    "weight zero": (triangle(edge_weight=torch.zeros(6)), "edge of weight 0.0"),
    "weight NaN": (triangle(edge_weight=torch.full((6,), torch.nan)), "edge of weight nan"),
    "weight negative": (triangle(edge_weight=torch.tensor([1, 1, 1, 1, -2, -2])), "edge of weight -2.0"),
    "weights by direction": (triangle(edge_weight=torch.arange(1.0, 7.0)), "in one direction and"),
    "two weights": (triangle(edge_weight=torch.ones(6, 2)), "expected 1"),
    "x against num_nodes": (triangle(x=torch.rand(4, 2)), "4 by x, 3 by num_nodes"),
    "rows of edge_attr": (triangle(edge_attr=torch.rand(5, 2)), "5 rows, expected 6"),
    "integers twice": (triangle(x=torch.arange(3), node_label=torch.arange(3)), "both in x and in node_label"),
    "floats as labels": (triangle(node_label=torch.rand(3)), "labels are integers"),
    "three dimensions": (triangle(x=torch.rand(3, 2, 2)), "has 3 dimensions"),
    "y of nodes": (triangle(y=torch.zeros(3, 2)), "y has shape [3, 2]; a graph has one target"),
    "edge_index of floats": (triangle(edge_index=torch.rand(2, 2)), "integers [2, edges]"),
    "edge_index of triples": (triangle(edge_index=torch.zeros(3, 2, dtype=torch.long)), "integers [2, edges]"),
    "hetero": (HeteroData(), "to_homogeneous"),
    "adj_t": (Data(adj_t=object(), num_nodes=2), "ToSparseTensor"),
    "something else": (SimpleNamespace(), "not a PyG Data object"),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "message"), PYG_FAULTS.values(), ids=PYG_FAULTS)
def test_pyg_fault_names_the_graph(fault, message):
    with pytest.raises(DataError) as caught:
        from_pyg([fault])
    assert message in caught.value.problem
    assert "graphs[0]" in str(caught.value) or "of graph 0" in str(caught.value)


@pytest.mark.parametrize("key", ["x", "node_label", "edge_attr", "edge_weight"])
def test_pyg_field_of_some_graphs_only_is_an_error(key):
    field = {key: torch.ones(6) if key.startswith("edge") else torch.arange(3)}
    with pytest.raises(DataError, match=r"graphs\[1\]: has no .* while graphs\[0\] has"):
        from_pyg([triangle(**field), triangle()])


def test_pyg_graphs_that_do_not_agree_are_errors():
    with pytest.raises(DataError, match=r"graphs\[2\]: x of floats: 3 columns; graphs\[0\] has 2"):
        from_pyg([triangle(x=torch.rand(3, c)) for c in (2, 2, 3)])
    with pytest.raises(DataError, match="there are no graphs"):
        from_pyg([])


def labelled(graph: nx.Graph, **fields) -> nx.Graph:
    for key, value in fields.items():
        owner, name = key.split("_")
        (nx.set_node_attributes if owner == "node" else nx.set_edge_attributes)(graph, value, name)
    return graph


NX_FAULTS = {
    "directed": (nx.DiGraph([(0, 1)]), '--directed symmetrize'),
    "no nodes": (nx.Graph(), "has no nodes"),
    "not a graph": ([(0, 1)], "not a NetworkX graph"),
    "label of text and numbers": (labelled(nx.path_graph(2), node_label={0: "C", 1: 2}), "mixes strings and 2"),
    "label of float": (labelled(nx.path_graph(3), edge_label=1.5), "not 1.5"),
    "some nodes only": (labelled(nx.path_graph(3), node_label={0: 1}), "2 of 3 nodes have no 'label'"),
    "some edges only": (labelled(nx.path_graph(3), edge_weight={(0, 1): 1.0}), "1 of 2 edges have no 'weight'"),
    "ragged": (labelled(nx.path_graph(2), node_attributes={0: (1.0,), 1: (1.0, 2.0)}), "differ in length"),
    "NaN": (labelled(nx.path_graph(2), node_attributes=(float("nan"),)), "holds nan"),
    "weight zero": (labelled(nx.path_graph(2), edge_weight=0), "edge of weight 0"),
    "two weights": (labelled(nx.path_graph(2), edge_weight=(1.0, 2.0)), "is a number, not (1.0, 2.0)"),
    "class that is no value": (nx.Graph([(0, 1)], label={1: 2}), "its label is {1: 2}"),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "message"), NX_FAULTS.values(), ids=NX_FAULTS)
def test_networkx_fault_names_the_graph(fault, message):
    with pytest.raises(DataError) as caught:
        from_networkx([fault])
    assert message in caught.value.problem
    assert caught.value.file == "graphs[0]"


def test_networkx_nodes_of_any_name_are_numbered_in_their_order():
    graph = nx.Graph()
    graph.add_nodes_from(["c", "a", "b"])
    graph.add_edge("a", "b", weight=2)
    graphs = from_networkx([graph], [4])
    assert graphs[0].edge_index.tolist() == [[1, 2], [2, 1]]
    assert graphs.edge_weight.tolist() == [2.0, 2.0]
    assert graphs.y.tolist() == [4]


def test_networkx_labels_may_be_given_beside_the_graphs():
    graphs = from_networkx([nx.path_graph(2), nx.Graph([(0, 1)], label=9)], [1, 0], "mine")
    assert (graphs.name, graphs.y.tolist()) == ("mine", [1, 0])
    with pytest.raises(DataError, match="1 targets for 2 graphs"):
        from_networkx([nx.path_graph(2)] * 2, [1])
    some = from_networkx([nx.path_graph(2), nx.Graph([(0, 1)], label=9)])
    assert np.array_equal(some.y, [np.nan, 9], equal_nan=True)


def test_networkx_cannot_hold_values_that_differ_by_direction():
    graphs = from_pyg([triangle(edge_attr=torch.arange(6))])
    with pytest.raises(DataError, match=r"graphs\[0\].*use to_pyg"):
        to_networkx(graphs)
    assert len(to_networkx(replace(graphs, edge_labels=None))) == 1
