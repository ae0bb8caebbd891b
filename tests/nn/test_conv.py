import numpy as np
import pytest
import torch

from gcaps.nn import FILTERS, GraphCapsuleConv, batch_filter, filter_polynomial, flatten_capsules
from gcaps.nn.spectral import _clenshaw, mixed
from gcaps.testing import hostile_graphs
from tests.conftest import whole_batch
from tests.oracle import dense


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(("capsule_size", "degree", "bound"), [(1, 0, None), (2, 1, None), (3, 2, 2.0), (4, 3, None)])
def test_eq5_matches_dense_oracle(name, capsule_size, degree, bound):
    worst = 0.0
    for weighted in (False, True):
        graphs = hostile_graphs(16, seed=degree, weighted=weighted, largest=10)
        if weighted:  # weights of 1e3 to the third power leave no digits to compare
            graphs.edge_weight[:] = graphs.edge_weight ** (1 / 3) / 3
        x = np.random.default_rng(0).standard_normal((graphs.num_nodes, 3))
        batch = whole_batch(graphs, x)
        conv = GraphCapsuleConv(3, 4, capsule_size, degree, filter=name, bound=bound).double()
        torch.nn.init.normal_(conv.bias)
        found = conv(batch.x, batch_filter(name, batch)).detach().numpy()
        W, b = conv.weight.detach().numpy(), conv.bias.detach().numpy().reshape(capsule_size, 4)
        for number in range(len(graphs)):
            nodes = slice(graphs.ptr[number], graphs.ptr[number + 1])
            bases = dense.basis_matrices(name, dense.adjacency(graphs[number]), degree)
            expected = dense.equation_5(x[nodes], bases, W, b, bound)
            worst = max(worst, np.abs(found[nodes] - expected).max() / max(1.0, np.abs(expected).max()))
    assert worst <= 1e-10


@pytest.mark.parametrize("name", FILTERS)
def test_eq5_gradcheck(name):
    graphs = hostile_graphs(8, seed=3, weighted=True, largest=5)
    graphs.edge_weight[:] = np.clip(graphs.edge_weight, 0.5, 2)
    batch = whole_batch(graphs, np.random.default_rng(0).standard_normal((graphs.num_nodes, 2)))
    conv = GraphCapsuleConv(2, 2, 3, 2, filter=name, bound=2.0, activation="tanh").double()
    M = batch_filter(name, batch)
    some = torch.arange(graphs.num_nodes - 30, graphs.num_nodes)  # a star and its neighbors in the batch are enough

    def output(x, weight, bias):
        full = batch.x.index_copy(0, some, x)
        return torch.func.functional_call(conv, {"weight": weight, "bias": bias}, (full, M))

    inputs = [batch.x[some], conv.weight.detach(), conv.bias.detach()]
    assert torch.autograd.gradcheck(output, [t.clone().requires_grad_() for t in inputs])


def test_hand_written_backward_equals_autograd(hostile):
    batch = whole_batch(hostile, np.random.default_rng(0).standard_normal((hostile.num_nodes, 3)))
    M = batch_filter("random_walk", batch)
    weight = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    grads = []
    for function in (filter_polynomial, lambda parts, w, M: _clenshaw(mixed(parts, w), M)):
        leaves = [batch.x.clone().requires_grad_(), (batch.x**2).clone().requires_grad_()]
        w = weight.clone().requires_grad_()
        function(leaves, w, M).sin().sum().backward()
        grads.append([leaf.grad for leaf in (*leaves, w)])
    for found, expected in zip(*grads, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


def test_edge_weights_receive_gradients():
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    x = torch.randn(3, 2, dtype=torch.float64)
    conv = GraphCapsuleConv(2, 3, 2, 2, activation="tanh").double()
    weight = torch.rand(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: conv(x, edge_index, w), [weight])


def test_backward_stores_no_power_of_the_filter():
    graphs = hostile_graphs(8)
    batch = whole_batch(graphs, np.ones((graphs.num_nodes, 3)))
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (saved.append(t.shape), t)[1], lambda t: t):
        x = batch.x.requires_grad_()
        filter_polynomial(
            [x], torch.ones(1, 3, 9, 7, dtype=torch.float64, requires_grad=True), batch_filter("kipf", batch)
        )
    assert sorted(map(tuple, saved)) == sorted([(1, 3, 9, 7), tuple(x.shape)])


@pytest.mark.parametrize(("degree", "layers"), [(1, 1), (1, 3), (2, 2), (3, 1)])
def test_theorem1_output_depends_on_at_most_k_times_l_hops(degree, layers):
    n, reach = 15, degree * layers
    i = torch.arange(n - 1)
    edge_index = torch.cat([torch.stack([i, i + 1]), torch.stack([i + 1, i])], dim=1)
    x = torch.randn(n, 2, dtype=torch.float64, requires_grad=True)
    out = x
    for layer in range(layers):
        conv = GraphCapsuleConv(2 if layer == 0 else 6, 3, 2, degree, activation="tanh").double()
        out = conv(out, edge_index)
    middle = n // 2
    (grad,) = torch.autograd.grad(out[middle].sum(), x)
    touched = grad.abs().sum(1) > 0
    hops = (torch.arange(n) - middle).abs()
    assert not touched[hops > reach].any()
    assert touched[hops == reach].all()


def test_flattened_capsules_are_what_the_next_layer_reads():
    edge_index = torch.tensor([[0, 1], [1, 0]])
    first, second = GraphCapsuleConv(2, 3, 2), GraphCapsuleConv(6, 4, 3)
    capsules = first(torch.randn(2, 2), edge_index)
    assert capsules.shape == (2, 3, 2)
    torch.testing.assert_close(second(capsules, edge_index), second(flatten_capsules(capsules), edge_index))


def test_powers_of_any_input_stay_in_range_in_float32():
    conv = GraphCapsuleConv(1, 4, 8, 1, filter="mean", bound=3.0)
    x = torch.tensor([[0.0], [1e-30], [1e4], [-1e15]], requires_grad=True)
    out = conv(x, torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]))
    out[:, :, 1:].sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(x.grad).all()
    assert out[:, :, 1:].abs().max() < 4 * 3.0**8


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"filter": "lap"}, "unknown filter 'lap'"),
        ({"capsule": "x"}, "unknown capsule"),
        ({"activation": "x"}, "unknown activation"),
        ({"capsule_size": 0}, "capsule_size must be at least 1"),
    ],
)
def test_wrong_arguments_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        GraphCapsuleConv(2, 2, **settings)
