"""Networks and layers compute on the device of their tensors; see :mod:`tests.models.emulated`."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gcaps.batching import BatchSource
from gcaps.config import CONFIGS, Config
from gcaps.features import NodeFeatures
from gcaps.models.registry import build_network, network_class
from gcaps.nn import CAPSULES, FILTERS, GraphCapsuleConv, MaxSortPool, MeanCovariance
from gcaps.testing import hostile_graphs
from tests.models.emulated import DEVICE, emulated_device
from tests.models.test_networks import SMALL

CAPSULE_NETWORK = {
    "hidden": 4,
    "layers": 2,
    "rank": 4,
    "fc": 4,
    "reduce": "mean",
    "ensemble_size": 1,
    "with_svm": False,
}
FEATURES = {"features": ("labels", "attributes", "degree"), "dropout": 0.0}


def capsule_network(**settings):
    return Config(**CAPSULE_NETWORK | FEATURES | settings)


CONFIGURATIONS = {
    **{f"capsule {name}": capsule_network(capsule=name, capsule_size=3) for name in CAPSULES},
    **{f"filter {name}": capsule_network(filter=name, degree=2) for name in FILTERS},
    **{f"readout {name}": capsule_network(readout=name, inputs=True) for name in ("mean", "sum", "max_sort")},
    "covariance of sums": capsule_network(reduce="sum", rank=None, inputs=True),
    "ensemble": capsule_network(ensemble_size=2),
    **{name: CONFIGS[name](**SMALL[name] | FEATURES) for name in SMALL if name != "gcaps"},
}


@pytest.fixture
def device():
    with emulated_device():
        yield


def prepared(config, labelled_edges=False):
    """A network in float64 and a batch of weighted graphs for it."""
    graphs = hostile_graphs(24, seed=3, weighted=True, largest=12)
    if labelled_edges:
        rng = np.random.default_rng(0)
        graphs = replace(
            graphs,
            edge_labels=rng.integers(0, 3, (len(graphs.col), 1)),
            edge_attr=rng.standard_normal((len(graphs.col), 2)),
        )
    features = NodeFeatures.fit(config, graphs)
    extras = network_class(config).prepare(config, graphs)
    source = BatchSource(graphs, features.encode(graphs), torch.float64, extras, y=graphs.y)
    torch.manual_seed(0)
    return build_network(config, source.num_features, 2, graphs).double(), source.take(np.arange(24))


def training_step(network, batch):
    """Loss, logits, gradients, state of Adam, and parameters and buffers after one step."""
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, foreach=False)
    loss, logits = network.loss(batch)
    loss.backward()
    optimizer.step()
    moments = [state[key] for state in optimizer.state.values() for key in ("exp_avg", "exp_avg_sq")]
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    return [loss, logits, *gradients, *moments, *network.parameters(), *network.buffers()]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_training_step_stays_on_the_device_and_equals_that_on_the_cpu(name, device):
    config = CONFIGURATIONS[name]
    expected = training_step(*prepared(config, labelled_edges=name == "ecc"))
    network, batch = prepared(config, labelled_edges=name == "ecc")
    found = training_step(network.to(DEVICE), batch.to(DEVICE))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.device == DEVICE
        torch.testing.assert_close(ours.detach().to("cpu"), theirs.detach(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["gcaps", "gin"])
def test_dropout_draws_on_the_device(name, device):
    config = (
        capsule_network(dropout=0.5) if name == "gcaps" else CONFIGS[name](**SMALL[name] | FEATURES | {"dropout": 0.5})
    )
    network, batch = prepared(config)
    found = training_step(network.to(DEVICE), batch.to(DEVICE))
    assert {tensor.device for tensor in found} == {DEVICE}
    assert network.embed(batch.to(DEVICE)).device == DEVICE


@pytest.mark.parametrize("filter_name", FILTERS)
@pytest.mark.parametrize("capsule", CAPSULES)
def test_a_capsule_layer_takes_edges_on_the_device(capsule, filter_name, device):
    conv = GraphCapsuleConv(2, 3, 3, 2, capsule, filter_name, bound=2.0, normalize=True)
    x, edge_index = torch.randn(6, 2), torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 3, 5]])
    weight, batch = torch.rand(6) + 0.5, torch.tensor([0, 0, 0, 1, 1, 1])
    expected = conv(x, edge_index, weight, batch).detach()
    found = conv.to(DEVICE)(*(t.to(DEVICE) for t in (x, edge_index, weight, batch)))
    found.sum().backward()
    assert {p.grad.device for p in conv.parameters()} == {DEVICE}
    torch.testing.assert_close(found.detach().to("cpu"), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("readout", [MeanCovariance(3, rank=2, root=True, count=True), MaxSortPool(2)])
def test_readouts_take_an_index_a_pointer_or_neither(readout, device):
    x, index, ptr = torch.randn(6, 3), torch.tensor([0, 0, 1, 1, 1, 2]), torch.tensor([0, 2, 5, 6])
    for given in ({"index": index}, {"ptr": ptr}, {}):
        expected = readout(x, **given).detach()
        found = readout.to(DEVICE)(x.to(DEVICE), **{name: t.to(DEVICE) for name, t in given.items()})
        readout.to("cpu")
        assert found.device == DEVICE
        torch.testing.assert_close(found.detach().to("cpu"), expected, rtol=1e-4, atol=1e-5)


def test_mixing_devices_is_an_error(device):
    with pytest.raises(RuntimeError, match="is on the CPU"):
        torch.ones(3, device=DEVICE) + torch.ones(3)
