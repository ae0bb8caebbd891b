from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from gcaps.evaluation.diagnostics import (
    brier_score,
    calibration,
    expected_calibration_error,
    hardest_graphs,
    reliability_curve,
)
from gcaps.evaluation.result import FoldResult


def fold(test: list[int], labels: list[int], predictions: list[int], scores: list[list[float]] | None = None):
    nothing: list[float] = []
    return FoldResult(
        0, test, labels, predictions, [] if scores is None else scores, 1, nothing, nothing, nothing, nothing, 1.0
    )


def slow_error(scores: np.ndarray, labels: np.ndarray, bins: int) -> float:
    """Guo et al. (2017), equation 3, prediction by prediction."""
    total = 0.0
    for b in range(bins):
        inside = [
            (row.max(), row.argmax() == y)
            for row, y in zip(scores, labels, strict=True)
            if (b / bins < row.max() <= (b + 1) / bins)
        ]
        if inside:
            confidence = np.mean([c for c, _ in inside])
            accuracy = np.mean([right for _, right in inside])
            total += len(inside) / len(labels) * abs(accuracy - confidence)
    return total


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(1, 40))
def test_expected_calibration_error_matches_the_slow_sum(seed: int, classes: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores, labels = rng.dirichlet(np.ones(classes), n), rng.integers(0, classes, n)
    assert expected_calibration_error(scores, labels) == pytest.approx(slow_error(scores, labels, 10))


def test_brier_score_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    known = brier_score_loss(labels, scores, scale_by_half=False, labels=[0, 1, 2])
    assert brier_score(scores, labels) == pytest.approx(known)
    assert brier_score([[1.0, 0.0]], [1]) == 2.0


def test_reliability_curve_by_hand() -> None:
    curve = reliability_curve([[0.72, 0.28], [0.22, 0.78], [1.0, 0.0], [0.0, 1.0]], [0, 0, 0, 1])
    assert [(round(b.probability, 9), b.accuracy, b.count) for b in curve] == [(0.75, 0.5, 2), (1.0, 1.0, 2)]


def test_calibration_is_of_all_folds_together_and_needs_scores() -> None:
    parts = [fold([0], [0], [0], [[0.9, 0.1]]), fold([1], [1], [0], [[0.8, 0.2]])]
    found = calibration(parts)
    assert found is not None
    assert found.brier == pytest.approx((0.01 + 0.01 + 0.64 + 0.64) / 2)
    assert sum(b.count for b in found.curve) == 2
    assert calibration([fold([0], [0], [0])]) is None
    assert calibration([]) is None


def test_the_hardest_graphs_are_those_most_methods_miss() -> None:
    a = [fold([0, 1], [0, 1], [1, 1]), fold([2, 3], [0, 1], [1, 0])]
    b = [fold([0, 1], [0, 1], [0, 1]), fold([2, 3], [0, 1], [1, 0])]
    c = [fold([2], [0], [1])]
    found = hardest_graphs({"a": a, "b": b, "c": c})
    assert [(hard.graph, hard.label, hard.missed, hard.methods) for hard in found] == [
        (2, 0, ["a", "b", "c"], 3),
        (3, 1, ["a", "b"], 2),
        (0, 0, ["a"], 2),
    ]
    assert found[2].wrong == 0.5
