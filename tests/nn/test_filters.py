import numpy as np
import pytest
import torch

from gcaps.nn import FILTERS, batch_filter, edge_filter
from tests.conftest import whole_batch
from tests.oracle import dense

POWERS = [name for name in FILTERS if name not in ("chebyshev", "cayley")]


@pytest.mark.parametrize("name", POWERS)
def test_filter_matches_dense_oracle_in_both_directions(name, hostile):
    x = np.random.default_rng(0).standard_normal((hostile.num_nodes, 3))
    batch = whole_batch(hostile, x)
    M = batch_filter(name, batch)
    forward, backward = M.matmul(batch.x).numpy(), M.t_matmul(batch.x).numpy()
    for number in range(len(hostile)):
        nodes = slice(hostile.ptr[number], hostile.ptr[number + 1])
        expected = dense.filter_matrix(name, dense.adjacency(hostile[number]))
        np.testing.assert_allclose(forward[nodes], expected @ x[nodes], atol=1e-10, rtol=1e-12)
        np.testing.assert_allclose(backward[nodes], expected.T @ x[nodes], atol=1e-10, rtol=1e-12)


@pytest.mark.parametrize("name", FILTERS)
def test_edge_index_in_any_order_gives_the_same_filter(name, hostile):
    graph = hostile[3]
    x = torch.randn(graph.num_nodes, 2, dtype=torch.float64)
    weight = None if graph.edge_weight is None else torch.from_numpy(graph.edge_weight)
    edge_index = torch.from_numpy(graph.edge_index)
    shuffle = torch.randperm(edge_index.size(1))
    expected = edge_filter(name, edge_index, weight, x).matmul(x)
    found = edge_filter(name, edge_index[:, shuffle], None if weight is None else weight[shuffle], x).matmul(x)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_edge_index_self_loops_are_left_out_and_duplicates_add_up():
    x = torch.tensor([[1.0], [10.0]], dtype=torch.float64)
    edge_index = torch.tensor([[0, 0, 0, 1], [0, 1, 1, 0]])
    M = edge_filter("adjacency", edge_index, None, x)
    assert M.matmul(x).tolist() == [[10.0], [2.0]]


def test_directed_edges_flow_from_source_to_target_as_in_pyg():
    x = torch.tensor([[1.0], [10.0], [100.0]], dtype=torch.float64)
    edge_index = torch.tensor([[0, 1], [1, 2]])
    M = edge_filter("adjacency", edge_index, torch.tensor([2.0, 3.0]), x)
    assert M.matmul(x).tolist() == [[0.0], [2.0], [30.0]]
    assert M.t_matmul(x).tolist() == [[20.0], [300.0], [0.0]]


def test_chebyshev_filter_keeps_every_graphs_spectrum_within_one(hostile):
    for graph in hostile:
        if graph.num_nodes > 40:
            continue
        x = torch.eye(graph.num_nodes, dtype=torch.float64)
        weight = None if graph.edge_weight is None else torch.from_numpy(graph.edge_weight)
        M = edge_filter("chebyshev", torch.from_numpy(graph.edge_index), weight, x).matmul(x).numpy()
        assert np.abs(np.linalg.eigvalsh((M + M.T) / 2)).max() <= 1 + 1e-9


@pytest.mark.parametrize("name", ["chebyshev", "cayley"])
def test_a_graphs_spectral_filter_does_not_depend_on_its_batch(name, hostile):
    x = np.random.default_rng(0).standard_normal((hostile.num_nodes, 3))
    together = batch_filter(name, whole_batch(hostile, x)).matmul(torch.from_numpy(x)).numpy()
    for number in range(len(hostile)):
        nodes = slice(hostile.ptr[number], hostile.ptr[number + 1])
        batch = whole_batch(hostile.subset([number]), x[nodes])
        np.testing.assert_allclose(batch_filter(name, batch).matmul(batch.x).numpy(), together[nodes], atol=1e-12)
