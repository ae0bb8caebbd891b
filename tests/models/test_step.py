"""A training step without autograd has the gradients that autograd finds."""

import numpy as np
import pytest
import torch

from gcaps.batching import BatchSource
from gcaps.config import Config
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.models.ensemble import Ensemble
from gcaps.models.network import Network
from gcaps.models.step import FusedStep
from gcaps.testing import hostile_graphs
from gcaps.training.optimizer import FlatAdam

SMALL = {"hidden": 4, "layers": 2, "fc": 4, "reduce": "mean", "dropout": 0.5}


def a_batch(features=("labels", "attributes", "degree"), merge=False, weights=None):
    graphs = hostile_graphs(24, seed=5, largest=12)
    x = NodeFeatures.fit(Config(features=features), graphs).encode(graphs)
    y = np.arange(24) % 3
    source = BatchSource(graphs, x, merge=merge, y=y, sample_weight=weights)
    return source, source.take(np.arange(24))


def outcome(network, compute):
    """Loss, outputs, gradients and running statistics."""
    torch.manual_seed(1)
    loss, outputs = compute()
    gradients = [p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    return [loss.detach(), outputs.detach(), *gradients]


@pytest.mark.parametrize("rank", [None, 3])
@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("weights", [None, np.linspace(0, 2, 24)])
def test_gradients_are_those_of_autograd_bit_for_bit(rank, merge, weights):
    config = Config(**SMALL, rank=rank)
    source, batch = a_batch(("degree",) if merge else ("labels", "attributes", "degree"), merge, weights)
    torch.manual_seed(0)
    network = GCAPS(source.num_features, 3, config, **source.shape).train()
    twin = GCAPS(source.num_features, 3, config, **source.shape).train()
    twin.load_state_dict(network.state_dict())
    step = network.training_step()
    assert isinstance(step, FusedStep)
    step(batch, 24)  # whatever was there before
    twin.load_state_dict(network.state_dict())
    found = outcome(network, lambda: step(batch, 24))
    expected = outcome(twin, lambda: Network.set_gradients(twin, batch, 24))
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(ours, theirs)
    for (name, ours), theirs in zip(network.state_dict().items(), twin.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs), name


@pytest.mark.parametrize("settings", [{"readout": "mean"}, {"capsule": "central"}, {"inputs": True}])
def test_other_parts_are_left_to_autograd(settings):
    source, batch = a_batch()
    torch.manual_seed(0)
    network = GCAPS(source.num_features, 3, Config(**{**SMALL, **settings}, rank=3)).train()
    assert network.training_step() == network.set_gradients
    network.set_gradients(batch, 24)
    assert all(p.grad is not None for p in network.parameters())


def test_networks_of_an_ensemble_have_their_own_gradients():
    source, batch = a_batch()
    torch.manual_seed(0)
    networks = [GCAPS(source.num_features, 3, Config(**SMALL, rank=3)).train() for _ in range(2)]
    ensemble = Ensemble(networks)
    state = {name: value.clone() for name, value in ensemble.state_dict().items()}
    found = outcome(ensemble, lambda: ensemble.training_step()(batch, 24))
    ensemble.load_state_dict(state)  # statistics of batches are rounded by the running ones
    expected = outcome(ensemble, lambda: Network.set_gradients(ensemble, batch, 24))
    for ours, theirs in zip(found[:1] + found[2:], expected[:1] + expected[2:], strict=True):
        assert torch.equal(ours, theirs)


def test_a_batch_of_one_graph_is_left_to_autograd():
    source, _ = a_batch()
    torch.manual_seed(0)
    network = GCAPS(source.num_features, 3, Config(**SMALL, rank=3)).train()
    step, batch = network.training_step(), source.take(np.array([3]))
    with pytest.raises(ValueError, match="more than 1 value"):  # torch's normalisation of one row
        step(batch, 1)


@pytest.mark.parametrize("inputs", [False, True])
def test_gradients_are_set_and_not_added(inputs):
    source, batch = a_batch()
    torch.manual_seed(0)
    network = GCAPS(source.num_features, 3, Config(**{**SMALL, "dropout": 0.0}, inputs=inputs, rank=3)).double().train()
    source.dtype = torch.float64
    step, batch = network.training_step(), source.take(np.arange(24))
    step(batch, 24)
    once = [p.grad.clone() for p in network.parameters()]
    step(batch, 24)
    for p, expected in zip(network.parameters(), once, strict=True):
        torch.testing.assert_close(p.grad, expected)


def test_a_step_writes_where_the_optimizer_reads():
    source, batch = a_batch()
    torch.manual_seed(0)
    network = GCAPS(source.num_features, 3, Config(**SMALL, rank=3)).train()
    optimizer = FlatAdam(network, 0.01, 0.0)
    network.training_step()(batch, 24)
    assert optimizer.gradient.abs().max() > 0
    assert torch.equal(optimizer.gradient, torch.cat([p.grad.reshape(-1) for p in network.parameters()]))
    before = network.readout.projection.weight.clone()
    optimizer.step()
    assert not torch.equal(network.readout.projection.weight, before)
