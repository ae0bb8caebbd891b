"""Thresholds, sets and intervals against their definition by p-values, and the coverage that they promise."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import softmax

from gcaps.errors import ConfigError
from gcaps.estimators.conformal import (
    interval_widths,
    nonconformity,
    prediction_sets,
    threshold,
    thresholds,
)

SPLITS = 20


def conforms(value, calibration, coverage):
    """The definition: the p-value (#{a_i ≥ a} + 1) / (n + 1) exceeds 1 − coverage; in exact fractions."""
    p = Fraction(sum(a >= value for a in calibration) + 1, len(calibration) + 1)
    return p > 1 - Fraction(coverage).limit_denominator(1000)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 2, 4, 9, 10, 19, 20, 99, 100, 101])
@pytest.mark.parametrize("tied", [False, True])
def test_a_threshold_keeps_what_the_definition_by_p_values_keeps(n, coverage, tied):
    rng = np.random.default_rng(n)
    scores = rng.integers(0, 4, n) / 4 if tied else rng.random(n)
    limit = threshold(scores, coverage)
    for value in [*scores, *(scores + 1e-6), *(scores - 1e-6), 5.0]:
        assert (value <= limit) == conforms(value, scores, coverage)


def test_too_few_scores_promise_nothing():
    assert threshold(np.arange(8.0), 0.9) == np.inf
    assert threshold(np.arange(9.0), 0.9) == 8.0, "10 · 0.9 is 9, whatever floating point makes of it"
    assert threshold(np.zeros(0), 0.9) == np.inf
    found = nonconformity("classification", np.array([[0.7, 0.3]]), np.array([0]))
    assert prediction_sets("classification", np.array([[1.0, 0.0]]), thresholds(found, 0.9, 1, 2)).all()
    found = nonconformity("regression", np.zeros((3, 2)), np.ones((3, 2)))
    assert (interval_widths(thresholds(found, 0.9, 2, 1), 4) == np.inf).all()


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1.0, 90.0, float("nan")])
def test_a_coverage_that_is_none_is_refused(coverage):
    with pytest.raises(ConfigError, match="is not between 0 and 1"):
        thresholds(nonconformity("regression", np.zeros((3, 1)), np.ones((3, 1))), coverage, 1, 1)


def test_scores_of_each_task():
    p = np.array([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
    found = nonconformity("classification", p, np.array([0, 0, -1]))
    np.testing.assert_allclose(found.values, [0.3, 0.6, 1.0])
    y = np.array([[1.0, np.nan], [0.0, 1.0]])
    found = nonconformity("multilabel", p[:2], y)
    np.testing.assert_allclose(found.values, [0.3, 0.4, 0.4])
    assert found.columns.tolist() == [0, 0, 1]
    assert found.classes.tolist() == [1, 0, 1]
    found = nonconformity("regression", p[:2], y, np.array([[0.1, 9.0], [0.4, 0.0]]))
    np.testing.assert_allclose(found.values, [0.3 / 0.2, 0.4 / 0.5, 0.4 / 0.1])


def of_classes(rng, n, classes=4):
    """Probabilities of a model that is far too sure, and classes of which the last is rare."""
    y = rng.choice(classes, n, p=[0.45, 0.3, 0.2, 0.05])
    return softmax(4 * (np.eye(classes)[y] + rng.normal(size=(n, classes))), axis=1), y


def tolerance(coverage, calibration, tested, splits=SPLITS):
    """Four standard errors of the mean coverage: that of a Beta-distributed one, and that of counting."""
    p = coverage * (1 - coverage)
    return 4 * np.sqrt((p / (calibration + 2) + p / tested) / splits) + 1 / (calibration + 1)


@pytest.mark.parametrize("coverage", [0.6, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
def test_coverage_is_what_was_promised(task, coverage):
    shares = []
    for seed in range(SPLITS):
        rng = np.random.default_rng(seed)
        if task == "classification":
            (p, y), (q, z) = of_classes(rng, 300), of_classes(rng, 500)
            limits = thresholds(nonconformity(task, p, y), coverage, 1, 4)
            shares.append(prediction_sets(task, q, limits)[np.arange(500), z].mean())
        elif task == "multilabel":
            p, q = rng.random((300, 2)), rng.random((500, 2))
            y, z = (np.where(rng.random(u.shape) < u**3, 1.0, 0.0) for u in (p, q))
            limits = thresholds(nonconformity(task, p, y), coverage, 2, 2)
            inside = np.take_along_axis(prediction_sets(task, q, limits), z.astype(int)[:, :, None], axis=2)
            shares.append(inside.mean())
        else:
            x, u = rng.normal(size=(300, 1)), rng.normal(size=(500, 1))
            y, z = (v + np.exp(v / 2) * rng.standard_t(3, size=v.shape) for v in (x, u))
            limits = thresholds(nonconformity(task, x, y, np.exp(x)), coverage, 1, 1)
            shares.append((np.abs(z - u) <= interval_widths(limits, 500, np.exp(u))).mean())
    assert np.mean(shares) == pytest.approx(coverage, abs=tolerance(coverage, 300, 500))


def test_each_class_is_covered_by_itself():
    plain, own = [], []
    for seed in range(SPLITS):
        rng = np.random.default_rng(seed)
        (p, y), (q, z) = of_classes(rng, 800), of_classes(rng, 800)
        q[:, 3] /= 4  # a model that overlooks the rare class
        p[:, 3] /= 4
        found, rare = nonconformity("classification", p, y), z == 3
        plain.append(prediction_sets("classification", q, thresholds(found, 0.9, 1, 4))[rare, 3].mean())
        limits = thresholds(found, 0.9, 1, 4, by_class=True)
        own.append(prediction_sets("classification", q, limits)[rare, 3].mean())
    assert np.mean(own) == pytest.approx(0.9, abs=tolerance(0.9, 40, 40))
    assert np.mean(plain) < np.mean(own) - 0.05


def test_more_coverage_never_takes_a_class_out():
    p, y = of_classes(np.random.default_rng(0), 200)
    found = nonconformity("classification", p, y)
    sets = [prediction_sets("classification", p, thresholds(found, c, 1, 4)) for c in (0.5, 0.8, 0.9, 0.99)]
    assert all((small <= large).all() for small, large in pairwise(sets))


def test_sets_and_intervals_are_those_of_crepes():
    crepes = pytest.importorskip("crepes")
    rng = np.random.default_rng(0)
    (p, y), (q, _) = of_classes(rng, 157), of_classes(rng, 60)
    for coverage in (0.8, 0.9, 0.95):
        classifier = crepes.ConformalClassifier().fit(1 - p[np.arange(157), y])
        theirs = classifier.predict_set(1 - q, confidence=coverage, smoothing=False)
        ours = prediction_sets("classification", q, thresholds(nonconformity("classification", p, y), coverage, 1, 4))
        np.testing.assert_array_equal(ours, np.asarray(theirs).astype(bool))
        x, truth, sigma = rng.normal(size=(157, 1)), rng.normal(size=(157, 1)), rng.random((157, 1))
        regressor = crepes.ConformalRegressor().fit((truth - x)[:, 0], sigmas=sigma[:, 0] + 0.1)
        theirs = regressor.predict_int(np.zeros(60), sigmas=sigma[:60, 0] + 0.1, confidence=coverage)
        limits = thresholds(nonconformity("regression", x, truth, sigma), coverage, 1, 1)
        np.testing.assert_allclose(interval_widths(limits, 60, sigma[:60])[:, 0], theirs[:, 1])
