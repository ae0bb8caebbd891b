import numpy as np
import pytest
from sklearn.svm import SVC

from gcaps.kernels.svm import SVM, accuracy_of, choose, class_scores, fit_svm, inner_splits, solve, svm_path


def test_the_best_kernel_and_the_smallest_sufficient_c_are_chosen() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    x = np.eye(3)[y] + 0.05 * rng.standard_normal((60, 3))
    noise = rng.standard_normal((60, 3))
    choice = choose([noise @ noise.T, x @ x.T, x @ x.T], accuracy_of(y), [100.0, 1.0], inner_splits(y, 5, 0))
    assert choice == (1, 1.0, 1.0)


def test_scores_sum_to_one_and_agree_with_the_predictions() -> None:
    rng = np.random.default_rng(1)
    for classes in (2, 4):
        y = np.arange(60) % classes
        x = np.eye(classes)[y] + rng.standard_normal((60, classes))
        K = x @ x.T
        svm = fit_svm(K[:40, :40], y[:40], 1.0)
        scores = class_scores(svm, K[40:, :40], classes + 1)
        np.testing.assert_allclose(scores.sum(axis=1), 1)
        np.testing.assert_array_equal(scores[:, classes], 0)
        np.testing.assert_array_equal(scores.argmax(axis=1), svm.predict(K[40:, :40]))


def test_inner_folds_keep_groups_whole() -> None:
    y, groups = np.array([0, 1] * 15), np.arange(30) // 4
    splits = inner_splits(y, 3, 0, groups)
    assert sorted(np.concatenate([check for _, check in splits])) == list(range(30))
    for learn, check in splits:
        assert not set(groups[learn]) & set(groups[check])
        assert len(set(y[learn])) == 2
    assert len(inner_splits(y, 3, 0, np.zeros(30, dtype=int))) == 3, "one group cannot be kept whole"
    assert len(inner_splits(np.repeat([0, 1], 15), 3, 0, np.repeat([0, 1], 15))) == 3, "nor one group for each class"


def test_inner_folds_shrink_to_the_smallest_class() -> None:
    y = np.array([0] * 10 + [1] * 3)
    assert len(inner_splits(y, 5, 0)) == 3
    assert len(inner_splits(np.array([0] * 10 + [1]), 5, 0)) == 2


def gram_of(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Gram matrices for solvers: easy, of low rank, with equal rows, constant, and nearly the identity."""
    x = rng.standard_normal((n, 6))
    if kind == "twins":
        x[n // 2 :] = x[: n - n // 2]
    distance = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    if kind == "constant":
        return np.ones((n, n))
    if kind in ("linear", "twins"):
        return x @ x.T
    return np.exp(-distance * (0.1 if kind == "smooth" else 20.0))


def violation(K: np.ndarray, sign: np.ndarray, beta: np.ndarray, C: float) -> float:
    """Largest violation of the optimality conditions."""
    slope = sign - K @ beta
    grow = np.where(sign > 0, beta < C, beta < 0)
    shrink = np.where(sign > 0, beta > 0, beta > -C)
    return float(slope[grow].max() - slope[shrink].min())


@pytest.mark.parametrize("kind", ["linear", "twins", "constant", "smooth", "sharp"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 30.0])
def test_the_solution_meets_the_optimality_conditions(kind: str, C: float) -> None:
    rng = np.random.default_rng(3)
    K, sign = gram_of(kind, 80, rng), np.where(rng.random(80) < 0.4, 1.0, -1.0)
    beta, g = np.zeros(80), -sign
    solve(K.astype(np.float32), sign, sign, np.full(len(sign), C), 1e-3, 10**6, beta, g)
    assert abs(beta.sum()) < 1e-9 * C * 80
    assert (sign * beta >= 0).all()
    assert (sign * beta <= C).all()
    assert violation(K, sign, beta, C) < 1.1e-3
    np.testing.assert_allclose(g, K @ beta - sign, atol=1e-4 * max(1.0, C))


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("kind", ["linear", "smooth", "sharp"])
def test_one_vs_one_classifiers_equal_those_of_libsvm(classes: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcaps.kernels.svm.TOLERANCE", 1e-7)
    monkeypatch.setattr("gcaps.kernels.svm.MAX_STEPS", 10**7)
    rng = np.random.default_rng(4)
    sizes = 14 + np.arange(classes)  # with equal sizes, a sharp kernel leaves the intercept to rounding
    y = rng.permutation(np.repeat(10 * np.arange(classes), sizes))
    n = len(y)
    K = gram_of(kind, n + 30, rng)
    inside, across = K[:n, :n], K[n:, :n]
    for C, ours in zip([0.1, 1.0, 10.0], svm_path(inside, y, [0.1, 1.0, 10.0]), strict=True):
        theirs = SVC(C=C, kernel="precomputed", break_ties=classes > 2, tol=1e-7).fit(inside, y)
        np.testing.assert_array_equal(ours.classes_, theirs.classes_)
        expected = theirs.decision_function(across)
        clear = np.abs(expected) > 1e-3 if classes == 2 else np.ptp(np.sort(expected, axis=1)[:, -2:], axis=1) > 1e-3
        np.testing.assert_array_equal(ours.predict(across)[clear], theirs.predict(across)[clear])
        np.testing.assert_allclose(ours.decision_function(across)[clear], expected[clear], atol=1e-3)


def test_a_single_class_is_always_predicted() -> None:
    svm = fit_svm(np.eye(4), np.full(4, 7), 1.0)
    np.testing.assert_array_equal(svm.predict(np.ones((3, 4))), 7)
    np.testing.assert_array_equal(class_scores(svm, np.ones((3, 4)), 8).argmax(axis=1), 7)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_gram_matrices_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        fit_svm(np.full((4, 4), value), np.array([0, 0, 1, 1]), 1.0)


@pytest.mark.parametrize("classes", [2, 4])
def test_arrays_restore_the_classifiers_and_support_vectors_suffice(classes: int) -> None:
    rng = np.random.default_rng(5)
    y = np.arange(60) % classes
    x = 3 * np.eye(classes)[y] + rng.standard_normal((60, classes))
    K = x @ x.T
    svm = fit_svm(K[:40, :40], y[:40], 1.0)
    arrays = {name: np.array(array) for name, array in svm.arrays().items()}
    expected = svm.decision_function(K[40:, :40])
    np.testing.assert_array_equal(SVM.from_arrays(arrays).decision_function(K[40:, :40]), expected)
    assert 0 < len(svm.support) < 40
    small = svm.restrict(svm.support)
    np.testing.assert_allclose(small.decision_function(K[40:, svm.support]), expected, rtol=1e-12, atol=1e-12)
