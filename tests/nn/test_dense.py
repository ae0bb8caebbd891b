import numpy as np
import pytest
import torch

from gcaps.nn import GraphCapsuleConv, MeanCovariance
from gcaps.nn.dense import DenseGraphCapsuleConv, closed_walks, dense_capsules, dense_mean_covariance
from gcaps.testing import hostile_graphs
from tests.oracle.dense import adjacency


@pytest.mark.parametrize(("relations", "degree"), [(1, 1), (1, 3), (2, 1), (3, 2)])
def test_dense_layer_equals_the_sparse_one(relations, degree):
    rng = np.random.default_rng(0)
    sparse = GraphCapsuleConv(2, 3, 3, degree, filter="adjacency", bound=2.0, activation=None, num_relations=relations)
    sparse = sparse.double()
    for graph in hostile_graphs(8, seed=4, largest=8):
        n = min(graph.num_nodes, 12)
        A, kind = adjacency(graph)[:n, :n], rng.integers(0, relations, (n, n))
        kind = np.triu(kind) + np.triu(kind, 1).T
        x = torch.from_numpy(rng.standard_normal((n, 2)))
        i, j = np.nonzero(A)
        edge_type = torch.from_numpy(kind[i, j]) if relations > 1 else None
        expected = sparse(x, torch.from_numpy(np.stack([i, j])), edge_type=edge_type) - sparse.bias.view(3, 3).T
        padded = np.zeros((1, relations, n + 2, n + 2))
        padded[0, kind[i, j], i, j] = 1
        wide = torch.cat([x, torch.zeros(2, 2, dtype=torch.float64)]).unsqueeze(0)
        found = dense_capsules(wide, torch.from_numpy(padded), sparse.weight, 2.0)
        torch.testing.assert_close(found[0, :n].transpose(1, 2), expected, atol=1e-10, rtol=1e-10)
        assert not found[0, n:].any()


def test_dense_layer_gradcheck_in_features_edges_and_weights():
    layer = DenseGraphCapsuleConv(2, 2, 2, 2, num_relations=2).double()
    mask = torch.tensor([[1.0, 1, 1], [1, 1, 0]], dtype=torch.float64)
    pair = mask.unsqueeze(1) * mask.unsqueeze(2)
    x = torch.randn(2, 3, 2, dtype=torch.float64) * mask.unsqueeze(2)
    A = torch.rand(2, 2, 3, 3, dtype=torch.float64) * pair.unsqueeze(1)

    def output(x, A, weight):
        return torch.func.functional_call(layer, {"weight": weight}, (x, A, mask))

    inputs = [x.requires_grad_(), A.requires_grad_(), layer.weight.detach().clone().requires_grad_()]
    assert torch.autograd.gradcheck(output, inputs)
    assert torch.autograd.gradgradcheck(output, inputs)


def test_closed_walks_are_traces_of_walks_node_by_node():
    for graph in hostile_graphs(8, seed=1, largest=7):
        A = adjacency(graph)
        found = closed_walks(torch.from_numpy(A).unsqueeze(0), 5)[0].numpy()
        for length in range(2, 6):
            expected = [np.linalg.matrix_power(A, length)[v, v] for v in range(len(A))]
            np.testing.assert_allclose(np.expm1(found[:, length - 2]), expected, rtol=1e-9, atol=1e-9)


def test_dense_readout_equals_eq7_of_the_real_nodes():
    sizes = [1, 4, 6]
    mask = (torch.arange(6) < torch.tensor(sizes).unsqueeze(1)).double()
    z = torch.randn(3, 6, 4, dtype=torch.float64)
    rows = torch.cat([z[g, :n] for g, n in enumerate(sizes)])
    expected = MeanCovariance(4)(rows, ptr=torch.tensor([0, 1, 5, 11]))
    torch.testing.assert_close(dense_mean_covariance(z, mask), expected)
