"""The compiled way through the network computes what the plain layers compute, forwards and backwards."""

import numpy as np
import pytest
import torch

from gcaps.batching import BatchSource
from gcaps.config import Config, FeatureConfig
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.nn import MeanCovariance
from gcaps.nn.conv import flatten_capsules
from gcaps.nn.filters import batch_filter
from gcaps.nn.fused.stack import can_fuse
from gcaps.nn.readout import segment_covariance, segment_mean, signed_root, upper_triangle
from gcaps.testing import hostile_graphs

MIXED = FeatureConfig(features=("labels", "attributes", "degree"))


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
    config = Config(filter=name, capsule_size=size, degree=degree, bound=bound, hidden=5, layers=3, rank=4, fc=4)
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
        networks.append(GCAPS(batch.x.size(1), 2, Config(hidden=4, layers=2, rank=4, fc=4)).double())
    fused = outcome(networks[0], networks[0].node_capsules, batch)
    plain = outcome(networks[1], lambda b: plain_capsules(networks[1], b), batch)
    for ours, theirs in zip(fused, plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


def test_what_cannot_be_fused_takes_the_plain_way():
    batch = hostile_batch(False)
    for setting in ({"capsule": "central"}, {"filter": "chebyshev"}, {"filter": "cayley"}):
        network = GCAPS(batch.x.size(1), 2, Config(hidden=4, layers=2, rank=4, fc=4, **setting)).double()
        assert not can_fuse(network.convs, batch, batch_filter(network.config.filter, batch))
        assert torch.isfinite(network.node_capsules(batch)).all()


@pytest.mark.parametrize(("columns", "rank"), [(7, None), (90, None), (90, 6), (6, 70)])
@pytest.mark.parametrize(
    ("reduce", "root", "count"), [("mean", False, False), ("mean", True, True), ("sum", True, False)]
)
def test_fused_readout_equals_the_plain_one(columns, rank, reduce, root, count):
    """Narrow covariances by compiled loops, wide ones by padded products: both as one graph after the other."""
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
