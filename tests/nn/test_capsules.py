import numpy as np
import pytest
import torch

from gcaps.nn import CAPSULES, FILTERS, GraphCapsuleConv, batch_filter
from gcaps.testing import hostile_graphs, permute_nodes
from tests.conftest import whole_batch
from tests.oracle import dense

STATISTICS = ["central", "polynomial", "density"]


def of_edges(capsule, x, edge_index, **settings):
    conv = GraphCapsuleConv(x.size(1), 4, capsule=capsule, **({"capsule_size": 4} | settings)).to(x.dtype)
    return conv, conv(x, edge_index)


@pytest.mark.parametrize("capsule", STATISTICS)
@pytest.mark.parametrize(
    ("filter_name", "degree"), [("adjacency", 0), ("adjacency", 1), ("symmetric", 3), ("cayley", 2)]
)
def test_capsule_statistics_match_dense_oracle(capsule, filter_name, degree):
    worst = 0.0
    for weighted in (False, True):
        graphs = hostile_graphs(24, seed=degree, weighted=weighted, largest=6)
        graphs = graphs[graphs.sizes <= 13]  # the oracle tries every combination of neighbors
        x = np.random.default_rng(0).standard_normal((graphs.num_nodes, 2))
        batch = whole_batch(graphs, x)
        conv = GraphCapsuleConv(2, 3, 4, degree, capsule, filter_name).double()
        torch.nn.init.normal_(conv.bias)
        parameters = {}
        if capsule == "density":
            parameters = {"center": conv.capsule.center, "width": conv.capsule.log_width.exp()}
            parameters = {key: value.detach().numpy() for key, value in parameters.items()}
        found = conv(batch.x, batch_filter(filter_name, batch)).detach().numpy()
        W, b = conv.weight.detach().numpy(), conv.bias.detach().numpy().reshape(4, 3)
        for number in range(len(graphs)):
            nodes = slice(graphs.ptr[number], graphs.ptr[number + 1])
            A = dense.adjacency(graphs[number])
            S = dense.capsule_statistics(capsule, x[nodes], A, 4, **parameters)
            expected = dense.statistic_layer(
                x[nodes], S, dense.basis_matrices(filter_name, A, max(degree - 1, 0)), W, b
            )
            worst = max(worst, np.abs(found[nodes] - expected).max() / max(1.0, np.abs(expected).max()))
    assert worst <= 1e-10


@pytest.mark.parametrize("capsule", CAPSULES)
@pytest.mark.parametrize("filter_name", FILTERS)
def test_every_capsule_with_every_filter_passes_gradcheck(capsule, filter_name):
    graphs = hostile_graphs(8, seed=3, weighted=True, largest=4)[[0, 1, 2, 3, 5, 7]]
    graphs.edge_weight[:] = np.clip(graphs.edge_weight, 0.5, 2)
    batch = whole_batch(graphs, np.random.default_rng(0).standard_normal((graphs.num_nodes, 2)))
    conv = GraphCapsuleConv(2, 2, 3, 2, capsule, filter_name, bound=2.0, activation="tanh").double()
    M = batch_filter(filter_name, batch)
    names, leaves = zip(*conv.named_parameters(), strict=True)

    def output(x, *values):
        return torch.func.functional_call(conv, dict(zip(names, values, strict=True)), (x, M))

    inputs = [t.detach().clone().requires_grad_() for t in (batch.x, *leaves)]
    assert torch.autograd.gradcheck(output, inputs, fast_mode=True)


@pytest.mark.parametrize("capsule", CAPSULES)
@pytest.mark.parametrize("capsule_size", range(1, 9))
def test_every_size_gives_its_shape_and_is_equivariant(capsule, capsule_size):
    graphs = hostile_graphs(16, seed=1, largest=9)
    moved, order = permute_nodes(graphs, 0)
    x = np.random.default_rng(0).standard_normal((graphs.num_nodes, 3))
    conv = GraphCapsuleConv(3, 4, capsule_size, 2, capsule, "mean").double()
    found = []
    for some, features in ((graphs, x), (moved, x[order])):
        batch = whole_batch(some, features)
        found.append(conv(batch.x, batch_filter("mean", batch)).detach().numpy())
    assert found[0].shape == (graphs.num_nodes, 4, 1 if capsule == "routing" else capsule_size)
    assert found[0].reshape(graphs.num_nodes, -1).shape[1] == conv.width
    np.testing.assert_allclose(found[1], found[0][order], atol=1e-11)


@pytest.mark.parametrize("capsule", CAPSULES)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("bound", [None, 3.0])
def test_values_and_gradients_are_finite_in_float32(capsule, scale, constant, bound):
    """Constant neighborhoods, isolated nodes, a hub of degree 10,000; features from a millionth to ten thousand."""
    leaves = torch.arange(1, 10_001)
    hub = torch.stack([torch.zeros_like(leaves), leaves])
    edge_index = torch.cat([hub, hub.flip(0), torch.tensor([[10_001, 10_002], [10_002, 10_001]])], dim=1)
    x = torch.ones(10_004, 2) if constant else torch.randn(10_004, 2)
    x = (scale * x).requires_grad_()
    conv, out = of_edges(capsule, x, edge_index, filter="mean", capsule_size=8, bound=bound)
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(x.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in conv.parameters())


def test_a_neighborhood_of_equal_values_has_no_higher_central_moments():
    edge_index = torch.tensor([[0, 1, 0, 2], [1, 0, 2, 0]])
    for value in (0.0, 0.1, -3e3):
        from gcaps.nn import central_moments, edge_filter

        x = torch.full((3, 1), value, requires_grad=True)
        mean, variance, skewness, kurtosis = central_moments(x, 4, edge_filter("mean", edge_index, None, x))
        torch.testing.assert_close(mean, x)
        assert variance.abs().max() <= 1e-12 * max(1, value**2)
        assert skewness.abs().max() < 1e-3
        assert kurtosis.abs().max() < 1e-3
        (variance + skewness + kurtosis).sum().backward()
        assert torch.isfinite(x.grad).all()


def test_routing_hands_on_its_width_from_layer_to_layer():
    edge_index = torch.tensor([[0, 1], [1, 0]])
    first = GraphCapsuleConv(3, 5, 4, capsule="routing")
    second = GraphCapsuleConv(first.width, 5, 4, capsule="routing")
    assert first.width == 5
    assert second(first(torch.randn(2, 3), edge_index), edge_index).shape == (2, 5, 1)


def test_routing_shares_add_up_to_one_and_follow_agreement():
    conv = GraphCapsuleConv(3, 6, 3, capsule="routing")
    same = torch.randn(4, 6, 1).expand(4, 6, 3)
    torch.testing.assert_close(conv.capsule.combine(same), same[:, :, :1])
    odd = torch.cat([same[:, :, :2], -same[:, :, 2:]], dim=2)  # two agree, the third contradicts
    plain = odd.mean(dim=2, keepdim=True)
    assert (conv.capsule.combine(odd) * same[:, :, :1]).sum() > (plain * same[:, :, :1]).sum()
