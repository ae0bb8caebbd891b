from dataclasses import replace

import numpy as np
import pytest
import torch

import gcaps
from gcaps import persistence
from gcaps.config import DEEP, DROPOUT, SEVERAL, SHALLOW, Config
from gcaps.errors import MemoryLimitError
from gcaps.models.config import GINConfig
from gcaps.models.ensemble import Ensemble, together
from gcaps.models.gcaps import GCAPS, require_memory
from gcaps.models.machine import CapsuleMachine
from gcaps.models.registry import build_network
from gcaps.nn import MeanCovariance
from gcaps.nn.regularization import Dropout
from gcaps.testing import hostile_graphs
from gcaps.training import fit
from tests.conftest import whole_batch

SMALL = {"hidden": 4, "layers": 2, "epochs": 3}
ALONE = SMALL | {"members": 1, "head": "layers"}


def batch_of(graphs, dtype=torch.float32):
    x = np.random.default_rng(0).standard_normal((graphs.num_nodes, 3))
    return whole_batch(graphs, x, dtype)


def test_probabilities_are_the_mean_of_the_members():
    graphs = hostile_graphs(12, seed=1)
    network, batch = build_network(Config(**SMALL, members=3), 3, graphs).eval(), batch_of(graphs)
    assert isinstance(network, Ensemble)
    expected = torch.stack([torch.softmax(member(batch), 1) for member in network.networks]).mean(0)
    torch.testing.assert_close(torch.softmax(network(batch), 1), expected)
    torch.testing.assert_close(network(batch).exp(), expected)
    torch.testing.assert_close(together([torch.tensor([[900.0, 0.0]])] * 2).exp(), torch.tensor([[1.0, 0.0]]))
    assert network.embed(batch).shape[1] == 3 * network.networks[0].embed(batch).shape[1]


def test_each_member_learns_from_its_own_loss():
    graphs = hostile_graphs(12, seed=1)
    network = build_network(Config(**SMALL, members=2, dropout=0.0), 3, graphs).double()
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
    torch.testing.assert_close(logits, together([one for _, one in alone]))


@pytest.mark.parametrize("alone", [Config(**ALONE), GINConfig(**SMALL)], ids=["gcaps", "gin"])
def test_an_ensemble_is_trained_saved_and_loaded(tmp_path, alone):
    graphs = gcaps.load("MUTAG").subset(np.arange(40))
    model, curves, _ = fit(graphs, np.arange(40), alone.model_copy(update={"members": 2}), 0)
    first, second = (dict(member.named_parameters()) for member in model.network.networks)
    weights = [key for key in first if key.endswith("weight") and first[key].dim() > 1]
    assert weights
    assert not any(torch.equal(first[key], second[key]) for key in weights)
    assert curves.loss[0] < 1.5 * fit(graphs, np.arange(40), alone, 0)[1].loss[0], "the losses' mean, not their sum"
    persistence.save(model, tmp_path / "model")
    loaded = persistence.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(graphs), model.predict_proba(graphs))


@pytest.mark.parametrize(
    ("settings", "total"),
    [
        ({"readout": "mean"}, False),
        ({"readout": "sum"}, True),
        ({"reduce": "mean"}, False),
        ({"reduce": "sum"}, True),
        ({}, True),  # these graphs have labels
    ],
)
def test_inputs_stand_beside_the_graph_vector(settings, total):
    graphs = hostile_graphs(12, seed=2)
    x = np.random.default_rng(0).standard_normal((graphs.num_nodes, 3))
    network = build_network(Config(**SMALL, inputs=True, **settings), 3, graphs).eval()
    found = network.embed(whole_batch(graphs, x, torch.float32))[:, -3:].detach().numpy()
    for g in range(len(graphs)):
        rows = x[graphs.ptr[g] : graphs.ptr[g + 1]]
        np.testing.assert_allclose(found[g], rows.sum(0) if total else rows.mean(0), rtol=1e-5, atol=1e-5)


def test_members_that_do_not_fit_together_are_refused(monkeypatch):
    config = Config(rank=64)
    one = 4 * 4 * MeanCovariance.length(3 * config.hidden * config.capsule_size, 64, True) * (config.fc + 3)
    monkeypatch.setattr("os.sysconf", lambda name: 2 * one if name == "SC_PHYS_PAGES" else 1)  # room for one, not two
    require_memory(config, 3)
    with pytest.raises(MemoryLimitError, match="set rank"):
        require_memory(config.model_copy(update={"members": 2}), 3)


def test_the_readout_takes_sums_where_nodes_have_labels():
    graphs = hostile_graphs(12, seed=2)
    for some, expected in ((graphs, "sum"), (replace(graphs, node_labels=None), "mean")):
        network = build_network(Config(**ALONE), 3, some)
        assert network.measured == {"reduce": expected, "layers": DEEP, "dropout": 0.0}
        assert network.readout.reduce == expected
        assert build_network(Config(**ALONE, reduce="mean"), 3, some).readout.reduce == "mean"


@pytest.mark.parametrize(("enough", "given", "expected"), [(13, "auto", 0.0), (12, "auto", DROPOUT), (13, 0.3, 0.3)])
def test_few_graphs_are_trained_without_dropout(monkeypatch, enough, given, expected):
    monkeypatch.setattr("gcaps.config.ENOUGH", enough)
    network = build_network(Config(**ALONE, dropout=given), 3, hostile_graphs(12, seed=2))
    assert [part.p for part in network.modules() if isinstance(part, Dropout)] == [expected] * 2


def test_one_layer_where_labelled_graphs_are_many_and_of_many_sizes(monkeypatch):
    graphs = hostile_graphs(12, seed=2)  # from one node to hubs
    monkeypatch.setattr("gcaps.config.ENOUGH", 12)
    some = {name: value for name, value in SMALL.items() if name != "layers"}
    for given, expected in (
        (graphs, SHALLOW),
        (replace(graphs, node_labels=None), DEEP),
        (graphs.subset([3] * 12), DEEP),
    ):
        network = build_network(Config(**some), 3, given)
        assert len(network.convs) == network.measured["layers"] == expected
        assert len(build_network(Config(**SMALL), 3, given).convs) == SMALL["layers"]


@pytest.mark.parametrize(
    ("given", "networks", "machine", "told"),
    [
        ({}, SEVERAL, True, f"{SEVERAL} networks and a support vector machine"),
        ({"members": 1}, 1, True, "one network and a support vector machine"),
        ({"head": "layers"}, SEVERAL, False, f"{SEVERAL} networks"),
        ({"head": "svm"}, 1, True, "a support vector machine"),
        ({"selection": "validation"}, SEVERAL, False, f"{SEVERAL} networks"),
    ],
)
def test_few_graphs_have_several_networks_and_a_machine(monkeypatch, tmp_path, given, networks, machine, told):
    graphs, config = gcaps.load("MUTAG").subset(np.arange(40)), Config(**SMALL, **given)
    monkeypatch.setattr("gcaps.config.ENOUGH", 41)
    assert (config.networks(graphs.sizes), config.machine(graphs.sizes)) == (networks, machine)
    model = fit(graphs, np.arange(40), config, 0)[0]
    kinds = [type(part) for part in model.network.modules() if isinstance(part, GCAPS | CapsuleMachine)]
    assert (CapsuleMachine in kinds) == machine
    assert kinds.count(GCAPS) == machine + (networks if config.trains else 0), "a machine has capsules of its own"
    assert model.predictors == told
    persistence.save(model, tmp_path / "model")
    monkeypatch.setattr("gcaps.config.ENOUGH", 40)  # a rule of another day
    assert config.networks(graphs.sizes) == given.get("members", 1)
    assert config.machine(graphs.sizes) == (given.get("head") == "svm")
    loaded = persistence.load(tmp_path / "model")
    assert loaded.config == config
    np.testing.assert_array_equal(loaded.predict_proba(graphs), model.predict_proba(graphs))
