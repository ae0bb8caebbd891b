import numpy as np
import pytest
import torch

import gcaps
from gcaps.batching import BatchSource
from gcaps.config import Config
from gcaps.errors import MemoryLimitError
from gcaps.estimators import make_estimator
from gcaps.models.ensemble import Ensemble
from gcaps.models.gcaps import require_memory
from gcaps.models.losses import mean_outputs
from gcaps.models.registry import build_network
from gcaps.nn import MeanCovariance
from gcaps.testing import hostile_graphs

SMALL = {"hidden": 4, "layers": 2, "epochs": 3, "reduce": "sum", "dropout": 0.5, "with_svm": False}


def batch_of(graphs, dtype=torch.float32):
    x = np.random.default_rng(0).standard_normal((graphs.num_nodes, 3))
    return BatchSource(graphs, x, dtype, y=graphs.y).take(np.arange(len(graphs)))


def test_probabilities_are_the_mean_of_the_networks():
    graphs = hostile_graphs(12, seed=1)
    network, batch = build_network(Config(**SMALL, ensemble_size=3), 3, 2, graphs).eval(), batch_of(graphs)
    assert isinstance(network, Ensemble)
    expected = torch.stack([torch.softmax(member(batch), 1) for member in network.networks]).mean(0)
    torch.testing.assert_close(torch.softmax(network(batch), 1), expected)
    torch.testing.assert_close(network(batch).exp(), expected)
    torch.testing.assert_close(
        mean_outputs("classification", [torch.tensor([[900.0, 0.0]])] * 2).exp(), torch.tensor([[1.0, 0.0]])
    )
    assert network.embed(batch).shape[1] == 3 * network.networks[0].embed(batch).shape[1]


def test_each_network_learns_from_its_own_loss():
    graphs = hostile_graphs(12, seed=1)
    network = build_network(Config(**SMALL | {"ensemble_size": 2, "dropout": 0.0}), 3, 2, graphs).double()
    batch = batch_of(graphs, torch.float64)
    loss, logits = network.loss(batch)
    loss.backward()
    found = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    alone = [member.loss(batch) for member in network.networks]
    for one, _ in alone:
        one.backward()
    for gradient, parameter in zip(found, network.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad)
    torch.testing.assert_close(loss, alone[0][0] + alone[1][0])
    torch.testing.assert_close(logits, mean_outputs("classification", [one for _, one in alone]))


@pytest.mark.parametrize("method", ["gcaps", "gin", "pscn"])
def test_an_ensemble_is_trained_saved_and_loaded(tmp_path, method):
    graphs = gcaps.load("MUTAG").subset(np.arange(40))
    extra = {"gcaps": {"layers": 2, "with_svm": False}, "gin": {"layers": 2}, "pscn": {}}[method]
    settings = {"hidden": 4, "epochs": 3} | extra
    model = make_estimator(method, settings | {"ensemble_size": 2}).fit(graphs)
    first, second = (dict(network.named_parameters()) for network in model.fitted_.network.networks)
    weights = [key for key in first if key.endswith("weight") and first[key].dim() > 1]
    assert weights
    assert not any(torch.equal(first[key], second[key]) for key in weights)
    alone = make_estimator(method, settings | {"ensemble_size": 1}).fit(graphs)
    assert model.curves_.loss[0] < 1.5 * alone.curves_.loss[0], "the mean of the losses, not their sum"
    model.save(tmp_path / "model")
    loaded = gcaps.load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(graphs), model.predict_proba(graphs))


def test_an_ensemble_that_does_not_fit_in_memory_is_refused(monkeypatch):
    config = Config(rank=64, ensemble_size=1)
    one = 4 * 4 * MeanCovariance.length(3 * config.hidden * config.capsule_size, 64, True) * (config.fc + 3)
    monkeypatch.setattr("os.sysconf", lambda name: 2 * one if name == "SC_PHYS_PAGES" else 1)  # room for one, not two
    require_memory(config, 3)
    with pytest.raises(MemoryLimitError, match="set rank"):
        require_memory(config.model_copy(update={"ensemble_size": 2}), 3)
