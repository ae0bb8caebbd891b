"""Whether probabilities mean what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gcaps.evaluation.result import FoldResult


@dataclass(frozen=True)
class Bin:
    """Answers whose probability lies in one stretch of a reliability curve."""

    probability: float
    """Mean probability that was given to the chosen class."""
    accuracy: float
    """Share of these answers that is right."""
    count: int


@dataclass(frozen=True)
class Calibration:
    """How far probabilities can be trusted."""

    error: float
    """Expected calibration error: mean over the answers of |accuracy − probability| of their bin."""
    brier: float
    """Brier score Σ_c (p_c − [y = c])², mean over the graphs: 0 is perfect, 2 the worst."""
    curve: list[Bin]
    """Only bins with answers in them."""


def reliability_curve(scores: ArrayLike, labels: ArrayLike, bins: int = 10) -> list[Bin]:
    """The answers (largest entry of each row of scores [n, classes]) in equally wide bins (lower, upper] of [0, 1]."""
    p = np.asarray(scores, dtype=np.float64)
    chosen = p.argmax(axis=1)
    probability, right = p[np.arange(len(p)), chosen], chosen == np.asarray(labels)
    place = np.clip(np.ceil(probability * bins).astype(np.int64) - 1, 0, bins - 1)
    return [
        Bin(float(probability[inside].mean()), float(right[inside].mean()), int(inside.sum()))
        for inside in (place == number for number in range(bins))
        if inside.any()
    ]


def expected_calibration_error(scores: ArrayLike, labels: ArrayLike, bins: int = 10) -> float:
    """Σ_b n_b/n |accuracy_b − probability_b| over the bins of :func:`reliability_curve` (Guo et al., 2017)."""
    curve = reliability_curve(scores, labels, bins)
    total = sum(entry.count for entry in curve)
    return sum(entry.count * abs(entry.accuracy - entry.probability) for entry in curve) / total


def brier_score(scores: ArrayLike, labels: ArrayLike) -> float:
    """Mean over the graphs of Σ_c (p_c − [y = c])², Brier's own form for any number of classes."""
    p = np.asarray(scores, dtype=np.float64)
    truth = np.zeros_like(p)
    truth[np.arange(len(p)), np.asarray(labels)] = 1
    return float(((p - truth) ** 2).sum(axis=1).mean())


def calibration(folds: Sequence[FoldResult], bins: int = 10) -> Calibration | None:
    """Of all tested graphs together; None where a method gave no scores."""
    scores = [row for fold in folds for row in fold.scores]
    labels = [label for fold in folds for label in fold.y]
    if not labels or len(scores) != len(labels) or not all(scores):
        return None
    return Calibration(
        error=expected_calibration_error(scores, labels, bins),
        brier=brier_score(scores, labels),
        curve=reliability_curve(scores, labels, bins),
    )
