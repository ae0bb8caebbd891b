"""Networks compute from rows of merged nodes what they compute from nodes; see :mod:`gcaps.batching.merging`."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gcaps.batching import BatchSource
from gcaps.data.prepared import PreparedSet
from gcaps.features import NodeFeatures
from gcaps.models.registry import build_network, extras_of, network_class
from gcaps.nn.cpu import blocks
from gcaps.nn.pooling import MeanPool, first_rows
from gcaps.nn.regularization import BatchNorm
from tests.batching.test_merging import symmetric_graphs
from tests.models.test_networks import small

MERGING = ["dcnn", "ecc", "dgcnn", "gin", "deepsets"]


def outcome(method, graphs, merge, training, dtype=torch.float64):
    """Logits, gradients and running statistics of a network with random weights, and its batch."""
    config = small(method, features=("degree", "fgsd"), dropout=0.3)
    features = NodeFeatures.fit(config, graphs)
    torch.manual_seed(0)
    network = build_network(config, features.num_features, 2, graphs).to(dtype).train(training)
    extras = extras_of(config, PreparedSet(graphs))
    source = BatchSource(graphs, features.encode(graphs), dtype, extras, merge=merge, y=graphs.y)
    batch = source.take(np.random.default_rng(0).permutation(len(graphs)))
    loss, logits = network.loss(batch)
    loss.backward()
    gradients = [parameter.grad.clone() for parameter in network.parameters()]
    return [logits.detach(), *gradients, *(buffer.clone() for buffer in network.buffers())], batch


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("method", MERGING)
def test_rows_give_what_nodes_give(method, training):
    graphs = symmetric_graphs()
    assert network_class(small(method)).merges(small(method))
    rows, merged = outcome(method, graphs, True, training)
    nodes, whole = outcome(method, graphs, False, training)
    assert len(merged.batch) < len(whole.batch) / 2
    assert whole.multiplicity is None
    for ours, theirs in zip(rows, nodes, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8 * max(float(theirs.abs().max()), 1.0))


@pytest.mark.parametrize("method", MERGING)
def test_compiled_and_plain_paths_agree(method, monkeypatch):
    graphs = symmetric_graphs()
    compiled, _ = outcome(method, graphs, False, True)
    for module in ("models.network", "models.dgcnn", "models.ecc", "models.edge_filters", "nn.pooling"):
        path = f"gcaps.{module}.is_supported"
        monkeypatch.setattr(path, lambda x: False, raising=False)
    monkeypatch.setattr("gcaps.nn.regularization.is_supported", lambda x: False)
    plain, _ = outcome(method, graphs, False, True)
    for ours, theirs in zip(compiled, plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8 * max(float(theirs.abs().max()), 1.0))
    merged, _ = outcome(method, graphs, True, True)
    for ours, theirs in zip(merged, plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8 * max(float(theirs.abs().max()), 1.0))


def test_the_pyramid_of_merged_nodes_has_the_same_edges():
    graphs = symmetric_graphs()
    config = small("ecc", features=("degree",))
    pyramid = extras_of(config, PreparedSet(graphs))
    x = NodeFeatures.fit(config, graphs).encode(graphs)
    merged = BatchSource(graphs, x, extras=pyramid, merge=True).extras
    for level, rows in zip(pyramid.levels, merged.levels, strict=True):
        assert len(rows.kept) < len(level.kept)
        assert rows.multiplicity.sum() == len(level.kept)
        of_row = np.repeat(rows.multiplicity, np.diff(rows.rowptr))
        assert (of_row * rows.edge_count).sum() == len(level.col)
        np.testing.assert_allclose((of_row * rows.edge_count * rows.weight).sum(), level.weight.sum(), rtol=1e-6)


def test_nodes_are_not_merged_where_their_edges_have_features():
    graphs = symmetric_graphs()
    labelled = replace(graphs, edge_labels=np.zeros((len(graphs.col), 1), np.int64))
    config = small("ecc", features=("degree",))
    x = NodeFeatures.fit(config, graphs).encode(graphs)
    source = BatchSource(labelled, x, extras=extras_of(config, PreparedSet(labelled)), merge=True)
    assert source.merged is None
    assert source.take(np.arange(3)).multiplicity is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [2, 31, 100])
def test_normalisation_counts_rows_as_often_as_they_say(dtype, size):
    rng = torch.Generator().manual_seed(size)
    x = (100 + torch.randn(size, 5, generator=rng)).to(dtype).requires_grad_()
    count = torch.randint(1, 40, (size,), generator=rng).to(dtype)
    grad = torch.randn(size, 5, generator=rng).to(dtype)
    ours, theirs = BatchNorm(5).to(dtype), torch.nn.BatchNorm1d(5).double()
    with torch.no_grad():
        for norm in (ours, theirs):
            norm.weight.copy_(torch.arange(1, 6))
            norm.bias.copy_(torch.linspace(-1, 1, 5))
    out = ours.rectified(x, count)
    out.backward(grad)
    every = x.detach().double().requires_grad_()
    repeated = torch.relu(theirs(every.repeat_interleave(count.long(), 0)))
    first = (count.cumsum(0) - count).long()
    repeated[first].backward(grad.double())
    tolerance = {"rtol": 0, "atol": 1e-9 if dtype == torch.float64 else 3e-4}
    torch.testing.assert_close(out.double(), repeated[first], **tolerance)
    torch.testing.assert_close(ours.running_mean.double(), theirs.running_mean, **tolerance)
    torch.testing.assert_close(ours.running_var.double(), theirs.running_var, **tolerance)
    torch.testing.assert_close(ours.weight.grad.double(), theirs.weight.grad, rtol=1e-4, atol=1e-2)
    torch.testing.assert_close(ours.bias.grad.double(), theirs.bias.grad, rtol=1e-4, atol=1e-4)


def test_normalised_rows_have_the_right_gradients():
    torch.manual_seed(0)
    norm, count = BatchNorm(3).double(), torch.tensor([1.0, 4, 2, 3], dtype=torch.float64)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: norm.rectified(x, count), [x])
    assert torch.autograd.gradcheck(lambda x: norm.rectified(x), [x])


def test_pooling_counts_rows_as_often_as_they_say():
    torch.manual_seed(0)
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    count, ptr = torch.tensor([1, 3, 2, 5, 1, 1.0]), torch.tensor([0, 2, 2, 6])
    every = x.detach().repeat_interleave(count.long(), 0)
    for total in (False, True):
        pool = MeanPool(total)
        expected = pool(every, ptr=torch.tensor([0, 4, 4, 13]))
        torch.testing.assert_close(pool(x, ptr=ptr, multiplicity=count), expected)
        assert torch.autograd.gradcheck(lambda x, pool=pool: pool(x, ptr=ptr, multiplicity=count), [x])


@pytest.mark.parametrize("compiled", [True, False])
def test_first_rows_repeat_merged_nodes(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr("gcaps.nn.pooling.is_supported", lambda x: False)
    assert blocks.is_supported(torch.ones(1))
    last = torch.tensor([[0.1], [0.5], [0.3], [2.0]])
    rows = first_rows(
        [torch.zeros(4, 2), last], 4, torch.tensor([0, 0, 0, 1]), torch.tensor([0, 3, 4]), torch.tensor([9.0, 2, 1, 3])
    )
    assert rows.tolist() == [[1, 1, 2, 0], [3, 3, 3, -1]]
