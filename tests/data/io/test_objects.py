"""Lists of graphs of every kind."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData

import gcaps
from gcaps.data.io.objects import kind_of, require_list
from gcaps.errors import DataError


def pair(**fields) -> Data:
    return Data(**{"edge_index": torch.tensor([[0, 1], [1, 0]]), "num_nodes": 2, **fields})


def test_object_arrays_of_graphs_are_lists_of_graphs():
    graphs = [nx.path_graph(2), nx.path_graph(3)]
    array = np.empty(2, dtype=object)
    array[:] = graphs
    expected = gcaps.load(graphs, labelled=False).fingerprint()
    assert gcaps.load(array, labelled=False).fingerprint() == expected
    assert gcaps.load(array[:, None], labelled=False).fingerprint() == expected
    own = np.empty(2, dtype=object)
    for i, graph in enumerate(gcaps.load(graphs, labelled=False)):
        own[i] = graph
    assert gcaps.load(list(own), labelled=False).fingerprint() == expected


@pytest.mark.parametrize(
    ("graph", "kind"),
    [
        (nx.path_graph(2), "a NetworkX graph"),
        (pair(), "a PyG Data object"),
        (gcaps.load("families")[0], "a gcaps Graph"),
    ],
    ids=["networkx", "pyg", "graph"],
)
def test_one_graph_is_asked_for_as_a_list(graph, kind):
    with pytest.raises(DataError, match=rf"is one graph \({kind}\); pass a list: \[graph\]"):
        gcaps.load(graph)


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([nx.path_graph(2), pair()], r"graphs\[1\]: is a PyG Data object while graphs\[0\] is a NetworkX graph"),
        ([pair(), nx.path_graph(2)], r"graphs\[1\]: is a NetworkX graph while graphs\[0\] is a PyG Data object"),
        ([pair(), pair(), None], r"graphs\[2\]: is None while graphs\[0\] is a PyG Data object"),
        ([3, 4], r"graphs\[0\]: is an object of type int, not a graph"),
        ([], "there are no graphs"),
    ],
)
def test_the_first_odd_object_of_a_list_is_named(graphs, message):
    with pytest.raises(DataError, match=message):
        gcaps.load(graphs, labelled=False)


def test_strings_that_are_neither_molecules_nor_files_are_told_what_they_may_be():
    pytest.importorskip("rdkit")
    with pytest.raises(DataError, match=r"graphs\[0\]: 'aspirin' is not a SMILES \(a list of strings is one of SMILES"):
        gcaps.load(["aspirin", "caffeine"], labelled=False)
    with pytest.raises(DataError, match=r"no data set 'CCO' was found.*one molecule is a list"):
        gcaps.load("CCO")


def test_graphs_of_several_kinds_of_nodes_say_what_to_do():
    with pytest.raises(DataError, match=r"graphs\[0\]: has several kinds of nodes; convert it with .to_homogeneous"):
        gcaps.load([HeteroData()])


def test_something_that_is_no_list_is_named():
    with pytest.raises(DataError, match="is an object of type dict; give a list of graphs"):
        gcaps.load({"a": nx.path_graph(2)})
    with pytest.raises(DataError, match="is an object of type int; give a list of graphs, or a path"):
        gcaps.load(7)
    assert kind_of(7) == "int"


def test_batches_and_generators_are_lists():
    assert len(require_list(Batch.from_data_list([pair(), pair()]))) == 2
    assert len(gcaps.load((nx.path_graph(n) for n in (2, 3)), labelled=False)) == 2


def test_vectors_of_targets_become_columns_of_y():
    graphs = gcaps.load([pair(y=torch.tensor([[1.0, 2.0]])), pair(y=torch.tensor([3.0, float("nan")]))])
    assert np.array_equal(graphs.y, [[1, 2], [3, np.nan]], equal_nan=True)
    assert gcaps.data.from_pyg(graphs.to_pyg()).fingerprint() == graphs.fingerprint()


def test_string_labels_of_pyg_come_back_as_codes_with_names():
    graphs = gcaps.load([pair(node_label=["C", "N"]), pair(node_label=["N", "N"])], labelled=False)
    assert sorted(graphs.label_names.values()) == ["C", "N"]
    assert [graphs.label_names[code] for code in graphs.node_labels[:, 0].tolist()] == ["C", "N", "N", "N"]


@pytest.mark.parametrize("layout", ["coo", "csr", "scipy"])
def test_a_sparse_adjacency_as_edge_index_says_what_to_do(layout):
    dense = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    made = {"coo": dense.to_sparse, "csr": dense.to_sparse_csr}.get(layout)
    if made is None:
        from scipy.sparse import csr_array

        adjacency = csr_array(dense.numpy())
    else:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of PyTorch, whose CSR is in beta
            adjacency = made()
    with pytest.raises(DataError, match=r"graphs\[0\]: edge_index is a sparse matrix.*to_edge_index"):
        gcaps.load([Data(edge_index=adjacency, num_nodes=2)], labelled=False)


@pytest.mark.parametrize("kind", ["pyg", "networkx", "graph"])
def test_graphs_without_nodes_are_dropped_and_listed(kind):
    made = {
        "pyg": [pair(y=torch.tensor([0])), Data(num_nodes=0, y=torch.tensor([1])), pair(y=torch.tensor([1]))],
        "networkx": [nx.Graph([(0, 1)], label=0), nx.Graph(label=1), nx.Graph([(0, 1)], label=1)],
    }
    empty = gcaps.load("families")[0]._replace(
        edge_index=np.zeros((2, 0), dtype=np.int64), num_nodes=0, node_labels=None, x=None, y=1
    )
    made["graph"] = [gcaps.load("families")[0]._replace(y=0), empty, gcaps.load("families")[1]._replace(y=1)]
    graphs = gcaps.load(made[kind], empty="drop")
    assert (graphs.y.tolist(), graphs.ids.tolist()) == ([0, 1], [0, 2])
    assert [(one.row, one.id, one.reason) for one in graphs.skipped] == [(1, "1", "has no nodes")]
    with pytest.raises(DataError, match=r"graphs\[1\]: has no nodes; remove it, or leave it out"):
        gcaps.load(made[kind])
    with pytest.raises(DataError, match="has no graph with nodes"):
        gcaps.load(made[kind][1:2], empty="drop")
