"""Support vector machines for several binary targets and for regression, against scikit-learn's SVC and SVR."""

import numpy as np
import pytest
from sklearn.svm import SVC, SVR

from gcaps.kernels.multi_output import (
    EPSILON,
    MultiOutputSVM,
    fit_multi_output,
    multi_output_path,
    random_splits,
    score_of,
)
from gcaps.kernels.svm import choose


def test_random_splits_keep_groups_whole():
    groups = np.arange(30) // 4
    splits = random_splits(30, 3, 0, groups)
    assert sorted(np.concatenate([check for _, check in splits])) == list(range(30))
    assert all(not set(groups[learn]) & set(groups[check]) for learn, check in splits)
    assert len(random_splits(30, 3, 0, np.zeros(30, dtype=int))) == 3


@pytest.fixture
def exact(monkeypatch):
    monkeypatch.setattr("gcaps.kernels.multi_output.TOLERANCE", 1e-7)
    monkeypatch.setattr("gcaps.kernels.multi_output.MAX_STEPS", 10**7)


def problem(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return np.exp(-0.3 * ((x[:, None] - x[None]) ** 2).sum(-1)), x, rng


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_regression_is_that_of_scikit_learn(exact, C):
    K, x, rng = problem()
    y = x[:, :1] - x[:, 1:2] ** 2 + 0.1 * rng.normal(size=(60, 1))
    ours = fit_multi_output(K[:40, :40], y[:40], C, "regression").decision_function(K[40:, :40])
    theirs = SVR(kernel="precomputed", C=C, epsilon=EPSILON, tol=1e-7).fit(K[:40, :40], y[:40, 0])
    np.testing.assert_allclose(ours[:, 0], theirs.predict(K[40:, :40]), atol=2e-4)


def test_a_path_of_penalties_ends_where_each_penalty_alone_does(exact):
    K, x, _ = problem()
    y = np.stack([x[:, 0], np.where(x[:, 1] > 0.5, np.nan, x[:, 2])], axis=1)
    for C, machines in zip([0.1, 1.0, 10.0], multi_output_path(K, y, [0.1, 1.0, 10.0], "regression"), strict=True):
        alone = fit_multi_output(K, y, C, "regression")
        np.testing.assert_allclose(machines.decision_function(K), alone.decision_function(K), atol=2e-4)


def test_a_missing_target_is_as_if_the_graph_were_not_there(exact):
    K, x, _ = problem()
    y = np.stack([x[:, 0] > 0, x[:, 1] > 0], axis=1).astype(float)
    y[:10, 0] = np.nan
    found = fit_multi_output(K, y, 1.0, "multilabel").decision_function(K)
    for t, rows in enumerate((np.arange(10, 60), np.arange(60))):
        alone = SVC(kernel="precomputed", C=1.0, tol=1e-7).fit(K[np.ix_(rows, rows)], y[rows, t])
        np.testing.assert_allclose(found[:, t], alone.decision_function(K[:, rows]), atol=2e-4)


def test_weights_are_those_of_scikit_learn(exact):
    K, x, rng = problem()
    weight = rng.uniform(0.2, 3, size=60)
    y = x[:, :1]
    ours = fit_multi_output(K, y, 1.0, "regression", weight).decision_function(K)
    theirs = SVR(kernel="precomputed", C=1.0, epsilon=EPSILON, tol=1e-7).fit(K, y[:, 0], sample_weight=weight)
    np.testing.assert_allclose(ours[:, 0], theirs.predict(K), atol=2e-4)


@pytest.mark.parametrize(("labels", "sign"), [([1.0] * 60, 1), ([0.0] * 60, -1), ([np.nan] * 60, 0)])
def test_a_target_of_a_single_class_is_predicted_as_that_class(labels, sign):
    K, x, _ = problem()
    y = np.stack([np.array(labels), (x[:, 1] > 0).astype(float)], axis=1)
    values = fit_multi_output(K, y, 1.0, "multilabel").decision_function(K)
    np.testing.assert_array_equal(np.sign(values[:, 0]), sign)


@pytest.mark.parametrize("task", ["multilabel", "regression"])
def test_the_kernel_that_tells_the_targets_is_chosen(task):
    K, x, rng = problem(80)
    noise = rng.normal(size=(80, 3))
    y = x[:, :2] if task == "regression" else (x[:, :2] > 0).astype(float)
    choice = choose([noise @ noise.T, K], score_of(y, task), [0.1, 10.0], random_splits(80, 5, 0))
    assert choice.kernel == 1
    assert choice.score > 0.8


def test_support_vectors_alone_give_the_same_values():
    K, x, _ = problem()
    machines = fit_multi_output(K, x[:, :2], 1.0, "regression")
    support = machines.support
    assert 0 < len(support) < 60
    kept = MultiOutputSVM.from_arrays(machines.restrict(support).arrays())
    np.testing.assert_allclose(kept.decision_function(K[:, support]), machines.decision_function(K), atol=1e-9)
