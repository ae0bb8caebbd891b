"""The compiled functions for CPU compute the same outputs and gradients as the plain layers."""

import numpy as np
import pytest
import torch
from torch import nn

from gcaps.batching import BatchSource
from gcaps.config import Config, FeatureConfig
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.nn import MeanCovariance
from gcaps.nn.conv import flatten_capsules
from gcaps.nn.cpu import blocks, readout, stack
from gcaps.nn.cpu.head import Head
from gcaps.nn.cpu.stack import can_fuse
from gcaps.nn.filters import batch_filter
from gcaps.nn.readout import segment_covariance, segment_mean, signed_root, upper_triangle
from gcaps.nn.regularization import BatchNorm, Dropout
from gcaps.testing import hostile_graphs

MIXED = FeatureConfig(features=("labels", "attributes", "degree"))


def small(**settings):
    return Config(**{"hidden": 4, "layers": 2, "rank": 4, "fc": 4, "reduce": "mean", "dropout": 0.5} | settings)


def hostile_batch(weighted, features=MIXED, dtype=torch.float64):
    graphs = hostile_graphs(48, seed=5, weighted=weighted, largest=20)
    fitted = NodeFeatures.fit(features, graphs.subset(np.arange(24)))  # labels of the others may be unknown
    return BatchSource(graphs, fitted.encode(graphs), dtype).take(np.random.default_rng(0).permutation(48))


def plain_capsules(network, batch):
    M = batch_filter(network.config.filter, batch)
    x, outputs = batch.x, []
    for conv in network.convs:
        x = flatten_capsules(conv(x, M))
        outputs.append(x)
    return torch.cat(outputs, dim=1)


def outcome(network, compute, batch):
    """Output, gradients and running statistics."""
    network.zero_grad()
    Z = compute(batch)
    direction = torch.randn(Z.shape, generator=torch.Generator().manual_seed(1), dtype=Z.dtype)
    (Z * direction).sum().backward()
    gradients = [p.grad.clone() for p in network.convs.parameters()]
    norms = [conv.norm for conv in network.convs]
    means = [norm.running_mean / norm.running_var.sqrt() for norm in norms]  # a mean is known to the deviation's digits
    return [Z.detach().clone(), *gradients, *means, *(norm.running_var.clone() for norm in norms)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["laplacian", "symmetric", "random_walk", "adjacency", "kipf", "mean"])
@pytest.mark.parametrize(
    ("size", "degree", "bound"), [(1, 1, 3.0), (2, 0, 3.0), (2, 1, 3.0), (3, 3, None), (4, 2, 1.5)]
)
@pytest.mark.parametrize("training", [True, False])
def test_fused_layers_equal_the_plain_ones(weighted, name, size, degree, bound, training):
    batch = hostile_batch(weighted)
    config = small(filter=name, capsule_size=size, degree=degree, bound=bound, hidden=5, layers=3)
    networks = []
    for _ in range(2):
        torch.manual_seed(0)
        network = GCAPS(batch.x.size(1), 2, config).double()
        with torch.no_grad():
            for conv in network.convs:
                conv.norm.weight.uniform_(0.5, 2.0)
                conv.norm.bias.normal_()
        networks.append(network.train(training))
    assert can_fuse(networks[0].convs, batch, batch_filter(name, batch))
    fused = outcome(networks[0], networks[0].node_capsules, batch)
    plain = outcome(networks[1], lambda b: plain_capsules(networks[1], b), batch)
    tolerance = 1e-10 if degree < 2 or name != "laplacian" else 1e-8  # powers of L, with weights up to 1e3
    for ours, theirs in zip(fused, plain, strict=True):
        scale = max(float(theirs.abs().max()), 1.0)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("features", [("labels",), ("attributes",), ("degree", "constant")])
def test_one_hot_and_dense_input_alone(features):
    batch = hostile_batch(False, FeatureConfig(features=features))
    networks = []
    for _ in range(2):
        torch.manual_seed(0)
        networks.append(GCAPS(batch.x.size(1), 2, small()).double())
    fused = outcome(networks[0], networks[0].node_capsules, batch)
    plain = outcome(networks[1], lambda b: plain_capsules(networks[1], b), batch)
    for ours, theirs in zip(fused, plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


def test_other_capsules_and_bases_use_the_plain_layers():
    batch = hostile_batch(False)
    for setting in ({"capsule": "central"}, {"filter": "chebyshev"}, {"filter": "cayley"}):
        network = GCAPS(batch.x.size(1), 2, small(**setting)).double()
        assert not can_fuse(network.convs, batch, batch_filter(network.config.filter, batch))
        assert torch.isfinite(network.node_capsules(batch)).all()


@pytest.mark.parametrize(("columns", "rank"), [(7, None), (90, None), (90, 6), (6, 70)])
@pytest.mark.parametrize(
    ("reduce", "root", "count"), [("mean", False, False), ("mean", True, True), ("sum", True, False)]
)
def test_fused_readout_equals_the_plain_one(columns, rank, reduce, root, count):
    rng = np.random.default_rng(0)
    sizes = np.array([1, 5, 2, 40, 7, 6, 1, 3])
    ptr = torch.from_numpy(np.concatenate([[0], np.cumsum(sizes)]))
    index = torch.repeat_interleave(torch.arange(len(sizes)), torch.from_numpy(sizes))
    x = torch.from_numpy(rng.standard_normal((sizes.sum(), columns))).requires_grad_()
    torch.manual_seed(0)
    readout = MeanCovariance(columns, rank, reduce=reduce, root=root, count=count).double()

    def plain(x):
        mean = segment_mean(x, index, ptr)
        z, middle = (x, mean) if rank is None else (readout.projection(x), readout.projection(mean))
        C = upper_triangle(segment_covariance(z, middle, index, ptr))
        size = ptr.diff().unsqueeze(1)
        if reduce == "sum":
            mean, C = mean * size, C * size
        parts = [mean, signed_root(C) if root else C]
        return torch.cat([*parts, torch.log1p(size.double())] if count else parts, dim=1)

    inputs = [x, *readout.parameters()]
    found, expected = readout(x, ptr=ptr), plain(x)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    direction = torch.from_numpy(rng.standard_normal(tuple(found.shape)))
    ours = torch.autograd.grad((found * direction).sum(), inputs)
    theirs = torch.autograd.grad((expected * direction).sum(), inputs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


def test_fused_readout_gradcheck():
    ptr = torch.tensor([0, 1, 4, 9])
    x = torch.randn(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    readout = MeanCovariance(3, root=True, count=True).double()
    assert torch.autograd.gradcheck(lambda x: readout(x, ptr=ptr), (x,))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "NODES", 40)


def test_blocks_cover_all_graphs_and_are_of_about_one_size():
    rng = np.random.default_rng(0)
    for graphs, largest in ((1, 5000), (3, 3), (400, 30), (50, 900)):
        ptr = np.concatenate([[0], np.cumsum(rng.integers(1, largest + 1, graphs))])
        cuts = blocks.cut(ptr)
        assert cuts[0] == 0
        assert cuts[-1] == graphs
        assert (np.diff(cuts) > 0).all()
        assert np.diff(ptr[cuts]).max() <= 2 * blocks.NODES + largest


@pytest.mark.parametrize("shares", [1, 3, 64])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_many_blocks_and_threads_equal_one(small_blocks, threads, shares, monkeypatch):
    """Bit for bit between numbers of threads; to rounding between one block and many, however gradients are summed."""
    monkeypatch.setattr(stack, "PARTIAL_SUMS", shares)
    monkeypatch.setattr(readout, "PARTIAL_SUMS", shares)
    batch = hostile_batch(True)
    assert len(blocks.cut(batch.ptr.numpy())) > 4

    def run(count):
        torch.manual_seed(0)
        network = GCAPS(batch.x.size(1), 2, small(hidden=5, layers=3)).double()
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            network(batch).square().sum().backward()
        finally:
            torch.set_num_threads(before)
        return [p.grad for p in network.parameters()] + [b.double() for b in network.buffers()]

    found = run(threads)
    for ours, theirs in zip(found, run(1), strict=True):
        assert torch.equal(ours, theirs)
    monkeypatch.setattr(blocks, "NODES", 10**6)
    for ours, theirs in zip(found, run(1), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-8 * max(1.0, float(theirs.abs().max())))


def make_head(beside=0):
    torch.manual_seed(0)
    wide, narrow = BatchNorm(7 - beside, beside), BatchNorm(5)
    layers = [wide, Dropout(0.5), nn.Linear(7, 5), narrow, nn.ReLU(), Dropout(0.3), nn.Linear(5, 5), BatchNorm(5)]
    return Head(*layers, nn.ReLU(), nn.Linear(5, 3)).double()


@pytest.mark.parametrize("beside", [0, 3])
def test_fused_head_equals_its_layers_one_after_the_other(beside):
    fused, plain = make_head(beside), make_head(beside)
    x = torch.randn(9, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    inputs = [x.clone().requires_grad_(), x.clone().requires_grad_()]
    torch.manual_seed(1)
    found = fused(inputs[0])
    torch.manual_seed(1)
    expected = nn.Sequential.forward(plain, inputs[1])
    direction = torch.randn(found.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    (found * direction).sum().backward()
    (expected * direction).sum().backward()
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad, rtol=1e-8, atol=1e-9)
    for ours, theirs in zip(fused.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-8, atol=1e-9)
    for ours, theirs in zip(fused.buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
    assert torch.equal(x, inputs[0].detach())


def test_a_head_refuses_layers_it_does_not_know():
    with pytest.raises(TypeError, match="no Tanh"):
        Head(BatchNorm(3), nn.Tanh())
    with pytest.raises(TypeError, match="no ReLU after Linear"):
        Head(nn.Linear(3, 3), nn.ReLU())
