"""Coverage and calibration of cross-validated predictions."""

from __future__ import annotations

import numpy as np
import pytest

from gcaps.evaluation.coverage import PROMISED, SIZED, coverage_of
from gcaps.evaluation.diagnostics import expected_calibration_error
from gcaps.evaluation.result import FoldResult, as_lists


def fold(number, test, y, predictions, scores, task):
    rows = np.asarray(scores).tolist()
    curves = {"train_loss": [], "train_score": [], "test_score": [], "validation_score": []}
    return FoldResult(number, list(test), as_lists(y), as_lists(predictions), rows, 1, **curves, seconds=0.0, task=task)


def folds_of(y, scores, predictions, task, count=5):
    parts = np.array_split(np.arange(len(y)), count)
    return [
        fold(k, part.tolist(), y[part], predictions[part], scores[part] if len(scores) else [], task)
        for k, part in enumerate(parts)
    ]


def classes(n, flat=1.0, seed=0):
    """Probabilities of which the truth is drawn, then flattened or sharpened."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2, size=(n, 3))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(3, p=row) for row in p])
    told = np.exp(flat * logits) / np.exp(flat * logits).sum(axis=1, keepdims=True)
    return y, told


def test_sets_of_a_fold_are_those_of_the_other_folds_predictions():
    y, p = classes(100)
    found = coverage_of([folds_of(y, p, p.argmax(axis=1), "classification")])
    inside, sizes = [], []
    for part in np.array_split(np.arange(100), 5):
        others = np.setdiff1d(np.arange(100), part)
        scores = sorted(1 - p[g, y[g]] for g in others)
        limit = scores[int(np.ceil((len(others) + 1) * SIZED)) - 1]
        for g in part:
            inside.append(1 - p[g, y[g]] <= limit)
            sizes.append(sum(1 - p[g, c] <= limit for c in range(3)))
    assert found.measured[SIZED] == pytest.approx(np.mean(inside))
    assert found.size == pytest.approx(np.mean(sizes))
    assert found.error_before == pytest.approx(expected_calibration_error(p, y))


def test_coverage_is_kept_and_flat_probabilities_are_mended():
    y, p = classes(1500, flat=0.3)
    found = coverage_of([folds_of(y, p, p.argmax(axis=1), "classification")])
    for coverage in PROMISED:
        assert abs(found.measured[coverage] - coverage) < 0.02
        assert 0 < found.deviation[coverage] < 0.08
    assert found.error_after < 0.3 * found.error_before


def test_intervals_of_values_with_missing_ones():
    rng = np.random.default_rng(1)
    y = rng.normal(size=(900, 2)) * [1.0, 50.0]
    predictions = y + rng.normal(size=(900, 2)) * [0.1, 20.0]
    y[rng.random((900, 2)) < 0.2] = np.nan
    found = coverage_of([folds_of(y, [], predictions, "regression")])
    for coverage in PROMISED:
        assert abs(found.measured[coverage] - coverage) < 0.02
    assert found.error_before is None
    assert found.error_after is None
    # errors are normal: the width of 90 % is 2 · 1.645 standard deviations of the error
    assert found.size == pytest.approx((2 * 1.645) * (0.1 + 0.4) / 2, rel=0.12)


def test_several_binary_targets():
    rng = np.random.default_rng(2)
    p = rng.random((600, 2))
    y = (rng.random((600, 2)) < p).astype(float)
    y[::7, 1] = np.nan
    found = coverage_of([folds_of(y, p, (p > 0.5).astype(float), "multilabel")])
    for coverage in PROMISED:
        assert abs(found.measured[coverage] - coverage) < 0.03
    assert 1 <= found.size <= 2
    assert found.error_before < 0.06


@pytest.mark.parametrize("count", [1, 12])
def test_nothing_is_said_of_too_few_graphs(count):
    y, p = classes(12)
    assert coverage_of([folds_of(y, p, p.argmax(axis=1), "classification", count)]) is None
    assert coverage_of([]) is None


def test_nothing_is_said_without_probabilities():
    y, p = classes(60)
    assert coverage_of([folds_of(y, [], p.argmax(axis=1), "classification")]) is None
