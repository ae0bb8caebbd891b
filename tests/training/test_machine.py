from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.svm import SVC

import gcaps
from gcaps import persistence
from gcaps.config import Config
from gcaps.errors import ConfigError, MemoryLimitError
from gcaps.evaluation import evaluate
from gcaps.models.ensemble import Ensemble
from gcaps.models.machine import CapsuleMachine, class_sums
from gcaps.nn.distances import city_block
from gcaps.testing import assert_batch_equals_singles, assert_permutation_invariant, hostile_graphs
from gcaps.training import fit
from gcaps.training.machine import require_memory, temperature

SMALL = {"hidden": 4, "layers": 2, "rank": 4, "fc": 8, "epochs": 2, "head": "svm"}
CONFIG = Config.parse(SMALL)
BOTH = Config.parse(SMALL | {"head": "both"})


@pytest.fixture(scope="module")
def graphs():
    return hostile_graphs(48, seed=7, largest=10)


@pytest.fixture(scope="module", params=[CONFIG, BOTH], ids=["svm", "both"])
def model(request, graphs):
    return fit(graphs, np.arange(32), request.param, 0)[0]


def machine_of(model):
    network = model.network
    return network.networks[1] if isinstance(network, Ensemble) else network


@pytest.mark.parametrize(("m", "n", "d"), [(1, 1, 1), (70, 130, 37), (0, 3, 2), (3, 0, 2), (2, 3, 0)])
def test_distances_are_sums_of_absolute_differences(m, n, d):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, d)).astype(np.float32), rng.standard_normal((n, d)).astype(np.float32)
    expected = np.abs(a[:, None].astype(np.float64) - b[None]).sum(2)
    np.testing.assert_allclose(city_block(a, b), expected, rtol=1e-5)


def test_a_class_is_the_sum_of_what_its_machines_say():
    values = torch.tensor([[1.0, -2.0, 4.0]], dtype=torch.float64)  # of the pairs 01, 02, 12
    found = class_sums(values, [(0, 1), (0, 2), (1, 2)], 3)
    torch.testing.assert_close(found, torch.tensor([[1.0, -3.0, 2.0]], dtype=torch.float64))


def test_a_machine_predicts_as_scikit_learns_on_the_same_vectors(graphs):
    train, new = np.arange(32), graphs.subset(np.arange(32, 48))
    model = fit(graphs, train, CONFIG, 0)[0]
    machine, y = model.network, graphs.targets[train]
    z, seen = (
        ((model.embed(some) - machine.mean.numpy()) * machine.scale.numpy()).astype(np.float64)
        for some in (new, graphs.subset(train))
    )
    np.testing.assert_allclose(seen.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(seen[:, machine.scale.numpy() > 0].std(0), 1, rtol=1e-3)
    gamma, C = float(machine.gamma), machine.measured["machine"]["C"]

    def kernel(a, b):
        return np.exp(-gamma * np.abs(a[:, None] - b[None]).sum(2))

    peer = SVC(C=C, kernel="precomputed", decision_function_shape="ovo").fit(kernel(seen, seen), y)
    values = np.atleast_2d(peer.decision_function(kernel(z, seen)).T).T
    signs = np.zeros((values.shape[1], graphs.num_classes))
    for p, (a, b) in enumerate(
        machine.pairs
    ):  # for two classes scikit-learn is positive for the second, else the first
        toward = 1 if graphs.num_classes == 2 else -1
        signs[p, a], signs[p, b] = -toward, toward
    expected = torch.softmax(torch.from_numpy(values @ signs) / machine.temperature, 1).numpy()
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=2e-3)  # both stop at a tolerance of 1e-3


def test_both_is_the_mean_of_network_and_machine(graphs):
    new = graphs.subset(np.arange(32, 48))
    both, alone = (fit(graphs, np.arange(32), config, 0)[0] for config in (BOTH, CONFIG))
    layers = fit(graphs, np.arange(32), Config.parse(SMALL | {"head": "layers"}), 0)[0]
    expected = (alone.predict_proba(new) + layers.predict_proba(new)) / 2
    np.testing.assert_allclose(both.predict_proba(new), expected, atol=1e-6)
    np.testing.assert_array_equal(both.embed(new), layers.embed(new), "the trained network's vectors")


def test_the_order_of_nodes_and_the_company_of_other_graphs_do_not_matter(model, graphs):
    new = graphs.subset(np.arange(32, 48))
    assert_permutation_invariant(model.predict_proba, new, atol=1e-4)
    assert_batch_equals_singles(model.predict_proba, new, atol=1e-4)


def test_a_machine_is_saved_with_the_graphs_it_remembers_and_loaded(model, graphs, tmp_path):
    persistence.save(model, tmp_path / "m")
    again = persistence.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(graphs), model.predict_proba(graphs))
    np.testing.assert_array_equal(again.embed(graphs), model.embed(graphs))
    machine = machine_of(model)
    assert isinstance(machine, CapsuleMachine)
    assert 0 < len(machine.support) == machine.measured["machine"]["vectors"] <= 32


def test_other_graphs_change_nothing_of_the_machine(graphs):
    others = replace(graphs, labels=np.concatenate([graphs.targets[:32], 1 - graphs.targets[32:] % 2]))
    one, two = (fit(some, np.arange(32), CONFIG, 0)[0].network.state_dict() for some in (graphs, others))
    assert all(torch.equal(one[key], two[key]) for key in one)
    other = fit(graphs, np.arange(32), CONFIG, 1)[0].network.state_dict()
    assert not torch.equal(one["support"][:1], other["support"][:1])


@pytest.mark.parametrize("classes", [[0, 0, 0, 0, 0, 0, 1, 2], [0, 0, 0, 0, 2, 2, 2, 2], [1] * 8, [0, 1, 2, 0], [0, 1]])
def test_classes_with_few_graphs_or_none(graphs, classes):
    some = graphs.subset(np.arange(len(classes) + 3))
    some = replace(some, labels=np.array([*classes, 0, 1, 2]), classes=np.arange(3))
    for config in (CONFIG, BOTH):
        found = fit(some, np.arange(len(classes)), config, 0)[0].predict_proba(some)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    unseen = np.setdiff1d(np.arange(3), classes)
    assert (fit(some, np.arange(len(classes)), CONFIG, 0)[0].predict_proba(some)[:, unseen] == 0).all()


def test_the_temperature_is_the_likeliest():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    x = rng.standard_normal((60, 2)) + 1.2 * y[:, None]
    K = np.exp(-np.abs(x[:, None] - x[None]).sum(2))
    splits = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    values = np.zeros(60)
    for learn, check in splits:
        values[check] = (
            SVC(C=1.0, kernel="precomputed")
            .fit(K[np.ix_(learn, learn)], y[learn])
            .decision_function(K[np.ix_(check, learn)])
        )

    def surprise(t):
        return np.logaddexp(0, -2 * (2 * y - 1) * values / t).mean()

    found = temperature(K, y, 1.0, splits)
    assert surprise(found) <= min(surprise(t) for t in np.geomspace(0.01, 100, 400)) + 1e-4


def test_an_evaluation_tells_what_was_chosen_and_has_epochs_only_where_something_is_trained():
    graphs = gcaps.load("MUTAG").subset(np.arange(60))
    for head, epochs in (("svm", 0), ("both", 2)):
        result = evaluate(graphs, folds=2, config=SMALL | {"head": head}, jobs=1)
        assert set(result.protocols) == ({"honest", "last", "gin", "best"} if epochs else {"honest"})
        assert all(set(fold.chosen) == {"C", "inner"} | ({"networks"} if epochs else set()) for fold in result.folds)
        assert [len(fold.train_loss) for fold in result.folds] == [epochs] * 2
        assert [len(fold.test_accuracy) for fold in result.folds] == [epochs] * 2
        if epochs:
            assert [fold.test_accuracy[-1] for fold in result.folds] == [fold.accuracy for fold in result.folds]
    with pytest.raises(ConfigError, match="only the protocol honest"):
        evaluate(graphs, protocol="best", folds=2, config=SMALL)


def test_what_does_not_go_together_is_said():
    with pytest.raises(ConfigError, match=r"^configuration: .* selection = last$"):
        Config.parse({"head": "svm", "selection": "validation"})
    with pytest.raises(MemoryLimitError, match="set head to layers"):
        require_memory(10_000_000)
