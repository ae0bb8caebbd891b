import numpy as np
import pytest
import torch
from scipy import sparse
from torch.autograd import gradcheck

from gcaps.nn import GraphCapsuleConv, edge_filter
from gcaps.tasks.encoder import CapsuleEncoder, NodeCapsuleConv
from gcaps.tasks.sparse_rows import SparseRows
from tests.tasks.graphs import HOSTILE, hostile_graph

WEIGHTS = ("separate", "shared", "decaying")


def kipf(graph):
    """(D+I)^−½ (A+I) (D+I)^−½, dense."""
    A = np.zeros((len(graph), len(graph)))
    weight = 1.0 if graph.edge_weight is None else graph.edge_weight
    A[graph.edge_index[1], graph.edge_index[0]] = weight
    root = np.diag((A.sum(axis=1) + 1) ** -0.5)
    return root @ (A + np.eye(len(A))) @ root


def filter_of(graph, name="kipf"):
    weight = None if graph.edge_weight is None else torch.from_numpy(graph.edge_weight)
    return edge_filter(name, torch.from_numpy(graph.edge_index), weight, torch.zeros(len(graph), 1).double())


def rows_of(x):
    found = sparse.csr_array(x)
    parts = (torch.from_numpy(part.astype(np.int64)) for part in (found.indptr, found.indices))
    return SparseRows.from_csr(*parts, torch.from_numpy(found.data), x.shape[1])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", HOSTILE)
def test_eq5_with_separate_and_shared_weights_matches_the_dense_oracle(name, weights, weighted):
    graph = hostile_graph(name, weighted=weighted)
    torch.manual_seed(0)
    layer = NodeCapsuleConv(5, 3, capsule_size=2, degree=3, weights=weights, bound=3.0).double()
    torch.nn.init.normal_(layer.bias)
    x, M, W = graph.x.astype(np.float64), kipf(graph), layer.weight.detach().numpy()
    theta = {"separate": np.ones(4), "shared": np.full(4, 0.25), "decaying": 0.9 ** np.arange(4)}[weights]
    theta = theta / (theta.sum() if weights == "decaying" else 1)
    powers = [x, (x / np.sqrt(1 + (x / 3) ** 2)) ** 2]
    expected = np.concatenate(
        [
            sum(
                theta[k] * np.linalg.matrix_power(M, k) @ powers[p] @ W[p, :, k if weights == "separate" else 0]
                for k in range(4)
            )
            for p in range(2)
        ],
        axis=1,
    )
    found = layer(torch.from_numpy(x), filter_of(graph))
    np.testing.assert_allclose(found.detach().numpy(), expected + layer.bias.detach().numpy(), atol=1e-12)


def test_separate_weights_are_those_of_graph_capsule_conv():
    graph = hostile_graph("hub")
    ours = NodeCapsuleConv(5, 4, capsule_size=3, degree=2).double()
    theirs = GraphCapsuleConv(5, 4, 3, 2, filter="kipf", bound=3.0, activation=None).double()
    theirs.load_state_dict(ours.state_dict())
    x, M = torch.from_numpy(graph.x.astype(np.float64)), filter_of(graph)
    torch.testing.assert_close(ours(x, M), theirs(x, M).transpose(1, 2).flatten(1))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", HOSTILE)
def test_sparse_features_give_what_dense_ones_give_and_the_same_gradients(name, weights):
    graph = hostile_graph(name)
    x = graph.x.astype(np.float64) * (np.abs(graph.x) > 0.5)
    layer, M = NodeCapsuleConv(5, 3, 2, 2, weights).double(), filter_of(graph)
    dense = layer(torch.from_numpy(x), M)
    found = layer(rows_of(x), M)
    torch.testing.assert_close(found, dense)
    torch.testing.assert_close(
        *(torch.autograd.grad(out.square().sum(), layer.weight)[0] for out in (found, dense)), atol=1e-10, rtol=1e-8
    )


@pytest.mark.parametrize("weights", WEIGHTS)
def test_gradients_of_the_layer(weights):
    graph = hostile_graph("disconnected", weighted=True)
    layer, M = NodeCapsuleConv(5, 2, 2, 2, weights).double(), filter_of(graph)
    x = torch.from_numpy(graph.x.astype(np.float64)).requires_grad_()
    assert gradcheck(lambda x, w: torch.func.functional_call(layer, {"weight": w}, (x, M)), (x, layer.weight))


def test_gradient_of_the_sparse_product():
    X = rows_of(np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, -1]]))
    assert gradcheck(X.matmul, torch.randn(3, 2, dtype=torch.float64, requires_grad=True))


def test_sparse_rows_are_those_of_the_dense_matrix():
    x = np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, -1.0]])
    X, chosen = rows_of(x), torch.tensor([2, 0, 2])
    np.testing.assert_array_equal(X.take(chosen).to_dense().numpy(), x[chosen.numpy()])
    np.testing.assert_array_equal(X.with_row_factors(torch.tensor([2.0, 1, 0.5])).to_dense(), x * [[2], [1], [0.5]])
    np.testing.assert_allclose(X.powers(3)[2].to_dense(), x**3)


@pytest.mark.parametrize("name", HOSTILE)
def test_encoder_is_equivariant_to_the_order_of_nodes(name):
    graph = hostile_graph(name)
    order = np.random.default_rng(1).permutation(len(graph))
    position = np.argsort(order)
    turned = type(graph).from_arrays(graph.x[order], position[graph.edges])
    torch.manual_seed(0)
    network = CapsuleEncoder(5, 3, 4, 2, (2, 1), "shared").double().eval()
    found, expected = (
        network(torch.from_numpy(g.x.astype(np.float64)), filter_of(g)).detach().numpy() for g in (turned, graph)
    )
    np.testing.assert_allclose(found, expected[order], atol=1e-12)


def test_a_node_sees_as_many_hops_as_the_degrees_add_up_to():
    path = type(hostile_graph("hub")).from_arrays(np.eye(8), [(i, i + 1) for i in range(7)])
    network = CapsuleEncoder(8, 2, 4, 1, (2, 1), "separate").double().eval()
    x = torch.eye(8, dtype=torch.float64, requires_grad=True)
    reached = torch.autograd.grad(network(x, filter_of(path))[0].sum(), x)[0].abs().sum(dim=1) > 0
    assert reached.tolist() == [True] * 4 + [False] * 4


def test_dropout_is_of_training_only_and_drops_whole_nodes():
    x = torch.ones(1000, 3)
    network = CapsuleEncoder(3, 2, 4, 1, (1,), "shared", node_dropout=0.5)
    thinned = network.thinned(x)
    assert set(thinned.sum(dim=1).tolist()) == {0.0, 6.0}
    assert 400 < (thinned[:, 0] == 0).sum() < 600
    assert network.eval().thinned(x) is x
