import numpy as np
import pytest
import torch
from sklearn.svm import SVC

import gcaps
from gcaps import GraphCapsuleClassifier, RandomCapsuleSVC, load_model
from gcaps.config import Config
from gcaps.errors import ConfigError, DataError, MemoryLimitError
from gcaps.evaluation import evaluate
from gcaps.models.ensemble import Ensemble
from gcaps.models.random_capsules import RandomCapsuleSVM, class_sums
from gcaps.nn.cpu.distances import city_block
from gcaps.testing import assert_batch_equals_singles, assert_permutation_invariant, hostile_graphs
from gcaps.training.random_capsules import require_memory, temperature

SMALL = {"layers": 2, "hidden": 4, "rank": 4, "fc": 8, "epochs": 2}
WIDE = {"layers": 2, "hidden": 8, "rank": 8}
"""The capsules beside a small network are twice as wide."""


def alone():
    return RandomCapsuleSVC(**WIDE)


def beside(with_svm=True):
    return GraphCapsuleClassifier(**SMALL, with_svm=with_svm)


@pytest.fixture(scope="module")
def graphs():
    return hostile_graphs(48, seed=7, largest=10)


@pytest.fixture(scope="module", params=[alone, beside])
def model(request, graphs):
    return request.param().fit(graphs[:32])


def svm_of(model):
    network = model.fitted_.network
    return network.networks[1] if isinstance(network, Ensemble) else network


@pytest.mark.parametrize(("m", "n", "d"), [(1, 1, 1), (70, 130, 37), (0, 3, 2), (3, 0, 2), (2, 3, 0)])
def test_distances_are_sums_of_absolute_differences(m, n, d):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, d)).astype(np.float32), rng.standard_normal((n, d)).astype(np.float32)
    expected = np.abs(a[:, None].astype(np.float64) - b[None]).sum(2)
    np.testing.assert_allclose(city_block(a, b), expected, rtol=1e-5)


def test_a_class_has_the_sum_of_its_pairs_decision_values():
    values = torch.tensor([[1.0, -2.0, 4.0]], dtype=torch.float64)  # of the pairs 01, 02, 12
    found = class_sums(values, [(0, 1), (0, 2), (1, 2)], 3)
    torch.testing.assert_close(found, torch.tensor([[1.0, -3.0, 2.0]], dtype=torch.float64))


def test_it_predicts_as_scikit_learns_svc_on_the_same_vectors(graphs):
    train, new = np.arange(32), graphs.subset(np.arange(32, 48))
    model = alone().fit(graphs.subset(train))
    machine, y = model.fitted_.network, graphs.y[train]
    z, seen = (
        ((model.transform(some) - machine.mean.numpy()) * machine.scale.numpy()).astype(np.float64)
        for some in (new, graphs.subset(train))
    )
    np.testing.assert_allclose(seen.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(seen[:, machine.scale.numpy() > 0].std(0), 1, rtol=1e-3)
    gamma, C = float(machine.gamma), model.chosen_["C"]

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


def test_beside_a_network_its_probabilities_are_averaged_in(graphs):
    new = graphs.subset(np.arange(32, 48))
    both, svm, network = (model.fit(graphs[:32]) for model in (beside(), alone(), beside(with_svm=False)))
    expected = (svm.predict_proba(new) + network.predict_proba(new)) / 2
    np.testing.assert_allclose(both.predict_proba(new), expected, atol=1e-6)
    np.testing.assert_array_equal(both.transform(new), network.transform(new), "the trained network's vectors")


def test_node_order_and_other_graphs_of_the_batch_do_not_matter(model, graphs):
    new = graphs.subset(np.arange(32, 48))
    assert_permutation_invariant(model.predict_proba, new, atol=1e-4)
    assert_batch_equals_singles(model.predict_proba, new, atol=1e-4)


def test_it_is_saved_with_its_support_graphs_and_loaded(model, graphs, tmp_path):
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(graphs), model.predict_proba(graphs))
    np.testing.assert_array_equal(again.transform(graphs), model.transform(graphs))
    svm = svm_of(model)
    assert isinstance(svm, RandomCapsuleSVM)
    assert 0 < len(svm.support) == svm.shape_args["vectors"] <= 32


def test_random_state_decides_the_capsules(graphs):
    one, two, other = (
        RandomCapsuleSVC(**WIDE, random_state=seed).fit(graphs[:32]).fitted_.network.state_dict() for seed in (0, 0, 1)
    )
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert not torch.equal(one["support"][:1], other["support"][:1])


@pytest.mark.parametrize("classes", [[0, 0, 0, 0, 0, 0, 1, 2], [0, 0, 0, 0, 2, 2, 2, 2], [0, 1, 2, 0], [0, 1]])
def test_classes_with_few_graphs(graphs, classes):
    some = graphs.subset(np.arange(len(classes)))
    for model in (alone(), beside()):
        found = model.fit(some, classes).predict_proba(graphs)
        assert model.classes_.tolist() == sorted(set(classes))
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    with pytest.raises(DataError, match="at least two classes"):
        alone().fit(some, [1] * len(classes))


def test_the_temperature_minimises_the_log_loss():
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

    def log_loss(t):
        return np.logaddexp(0, -2 * (2 * y - 1) * values / t).mean()

    found = temperature(K, y, 1.0, splits)
    assert log_loss(found) <= min(log_loss(t) for t in np.geomspace(0.01, 100, 400)) + 1e-4


def test_an_evaluation_says_what_was_chosen_and_has_epochs_only_where_a_network_is_trained():
    graphs = gcaps.load("MUTAG").subset(np.arange(60))
    for model, epochs in ((alone(), 0), (beside(), 2)):
        result = evaluate(graphs, model, folds=2, jobs=1)
        assert set(result.protocols) == ({"honest", "last", "gin", "best"} if epochs else {"honest"})
        assert all(set(fold.chosen) == {"C", "inner"} for fold in result.folds)
        assert [len(fold.train_loss) for fold in result.folds] == [epochs] * 2
        assert [len(fold.test_accuracy) for fold in result.folds] == [epochs] * 2
        if epochs:
            assert [fold.test_score[-1] for fold in result.folds] == [fold.accuracy for fold in result.folds]
    with pytest.raises(ConfigError, match="only the protocol honest"):
        evaluate(graphs, alone(), protocol="best", folds=2)


def test_what_does_not_go_together_is_refused():
    with pytest.raises(ConfigError, match=r"^configuration: .* selection = last$"):
        Config.parse({"with_svm": True, "selection": "validation"})
    with pytest.raises(MemoryLimitError, match="with_svm off"):
        require_memory(10_000_000)
