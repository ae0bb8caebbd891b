import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data

from gcaps.errors import DataError
from gcaps.tasks import NodeGraph
from gcaps.tasks.sampling import NeighborSampler
from tests.tasks.graphs import community_graph, hostile_graph


def test_edges_stand_once_in_both_directions():
    graph = hostile_graph("duplicates")
    assert graph.edges.tolist() == [[0, 1], [2, 3]]
    assert graph.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert hostile_graph("self-loops").edges.tolist() == [[0, 1]]


def test_a_file_is_read_as_it_was_written(tmp_path):
    graph = community_graph(sparse_x=True)
    x = graph.x
    np.savez(
        tmp_path / "g.npz",
        **{"x_data": x.data, "x_indices": x.indices, "x_indptr": x.indptr, "x_shape": np.array(x.shape)},
        **{"edges": graph.edges, "y": graph.y, "train": graph.train, "val": graph.validation, "test": graph.test},
    )
    again = NodeGraph.of(tmp_path / "g.npz")
    assert again.fingerprint() == graph.fingerprint()
    assert again.y.tolist() == graph.y.tolist()
    for part in ("train", "validation", "test"):
        assert getattr(again, part).tolist() == getattr(graph, part).tolist()


def test_pyg_data_with_masks():
    graph = community_graph()
    mask = torch.zeros(60, dtype=torch.bool)
    mask[torch.from_numpy(graph.train)] = True
    data = Data(torch.from_numpy(graph.x), torch.from_numpy(graph.edge_index), train_mask=mask)
    again = NodeGraph.of(data)
    assert again.fingerprint() == graph.fingerprint()
    assert again.train.tolist() == sorted(graph.train.tolist())
    assert again.test is None


def test_features_are_divided_by_their_sum():
    x = np.array([[1, 3], [0, 0.0]])
    for given in (x, sparse.csr_array(x)):
        found = NodeGraph.from_arrays(given, [(0, 1)]).features(normalize=True)
        dense = found if isinstance(found, torch.Tensor) else found.to_dense()
        assert dense.tolist() == [[0.25, 0.75], [0, 0]]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"edges": [(0, 9)]}, "edges name nodes from 0 to 9; there are 0 to 3"),
        ({"edges": [(0, -1)]}, "edges name nodes"),
        ({"edges": [(0.5, 1)]}, "expected pairs of node numbers"),
        ({"x": np.full((4, 2), np.nan)}, "NaN or infinity"),
        ({"x": np.ones(4)}, r"expected numbers \[nodes, features\]"),
        ({"x": np.ones((0, 2))}, "a node and a feature at least"),
        ({"y": [1, 2]}, "a class for each of 4 nodes"),
        ({"train": [0, 7]}, "train names nodes from 0 to 7"),
        ({"train": [0, 0]}, "several times"),
        ({"train": [0], "test": [0]}, "share nodes"),
        ({"train": [True, False]}, "one entry for each of 4 nodes"),
        ({"edge_weight": [-1.0]}, "edge_weight should be 1 finite numbers"),
    ],
)
def test_a_malformed_graph_is_refused_in_one_line(given, says):
    x, edges = given.pop("x", np.ones((4, 2))), given.pop("edges", [(0, 1)])
    with pytest.raises(DataError, match=says) as error:
        NodeGraph.from_arrays(x, edges, **given)
    assert "\n" not in str(error.value)


def test_a_damaged_file_is_refused(tmp_path):
    np.savez(tmp_path / "g.npz", x_data=np.ones(2), x_indices=[0, 9], x_indptr=[0, 2], x_shape=[1, 3], edges=[[0, 0]])
    with pytest.raises(DataError, match="no sparse matrix"):
        NodeGraph.of(tmp_path / "g.npz")
    np.savez(tmp_path / "h.npz", a=np.ones(2))
    with pytest.raises(DataError, match="expected x or x_indptr, and edges"):
        NodeGraph.of(tmp_path / "h.npz")
    with pytest.raises(DataError, match="expected a NodeGraph"):
        NodeGraph.of(3)


def test_sampling_enough_neighbors_gives_the_whole_neighborhood():
    graph = community_graph()
    sampler = NeighborSampler(graph.edge_index, len(graph), hops=2, neighbors=1000)
    batch = np.array([3, 7])
    found = sampler.sample(batch, np.random.default_rng(0))
    A = np.eye(60)
    A[tuple(graph.edge_index)] = 1
    assert found.nodes[:2].tolist() == [3, 7]
    assert sorted(found.nodes) == np.flatnonzero((A @ A)[batch].any(axis=0)).tolist()
    first = np.flatnonzero(A[batch].any(axis=0))
    source, target = graph.edge_index
    assert found.edges.tolist() == np.flatnonzero(np.isin(source, first) | np.isin(target, first)).tolist()


def test_sampling_bounds_the_neighbors_of_a_hub():
    graph = hostile_graph("hub")
    found = NeighborSampler(graph.edge_index, 9, 1, 3).sample(np.array([0]), np.random.default_rng(0))
    assert len(found.nodes) == len(set(found.nodes.tolist())) == 4
    assert len(found.edges) == 6
    alone = NeighborSampler(hostile_graph("no edges").edge_index, 5, 2, 3).sample(
        np.array([1]), np.random.default_rng(0)
    )
    assert alone.nodes.tolist() == [1]
