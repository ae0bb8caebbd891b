"""Metrics beyond accuracy: calibration of the probabilities, and graphs that most methods misclassify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gcaps.evaluation.result import FoldResult


@dataclass(frozen=True)
class Bin:
    """Predictions whose probability lies in one interval of a reliability curve."""

    probability: float
    """Mean probability of the predicted class."""
    accuracy: float
    """Share of these predictions that is correct."""
    count: int


@dataclass(frozen=True)
class Calibration:
    """Calibration of predicted probabilities."""

    error: float
    """Expected calibration error: mean over the predictions of |accuracy − probability| of their bin."""
    brier: float
    """Brier score Σ_c (p_c − [y = c])², mean over the graphs: 0 is perfect, 2 the worst."""
    curve: list[Bin]
    """Only bins that are not empty."""


def reliability_curve(scores: ArrayLike, y: ArrayLike, bins: int = 10) -> list[Bin]:
    """Predictions (largest entry of each row of scores [n, C]) in equally wide bins (lower, upper] of [0, 1]."""
    p = np.asarray(scores, dtype=np.float64)
    chosen = p.argmax(axis=1)
    probability, right = p[np.arange(len(p)), chosen], chosen == np.asarray(y)
    place = np.clip(np.ceil(probability * bins).astype(np.int64) - 1, 0, bins - 1)
    return [
        Bin(float(probability[inside].mean()), float(right[inside].mean()), int(inside.sum()))
        for inside in (place == number for number in range(bins))
        if inside.any()
    ]


def expected_calibration_error(scores: ArrayLike, y: ArrayLike, bins: int = 10) -> float:
    """Σ_b n_b/n |accuracy_b − probability_b| over the bins of :func:`reliability_curve` (Guo et al., 2017)."""
    curve = reliability_curve(scores, y, bins)
    total = sum(entry.count for entry in curve)
    return sum(entry.count * abs(entry.accuracy - entry.probability) for entry in curve) / total


def brier_score(scores: ArrayLike, y: ArrayLike) -> float:
    """Mean over the graphs of Σ_c (p_c − [y = c])², Brier's original form for any number of classes."""
    p = np.asarray(scores, dtype=np.float64)
    truth = np.zeros_like(p)
    truth[np.arange(len(p)), np.asarray(y)] = 1
    return float(((p - truth) ** 2).sum(axis=1).mean())


def calibration(folds: Sequence[FoldResult], bins: int = 10) -> Calibration | None:
    """Calibration on all tested graphs together; None for a method without scores."""
    scores = [row for fold in folds for row in fold.scores]
    y = [label for fold in folds for label in fold.y]
    if not y or len(scores) != len(y) or not all(scores):
        return None
    return Calibration(
        error=expected_calibration_error(scores, y, bins),
        brier=brier_score(scores, y),
        curve=reliability_curve(scores, y, bins),
    )


class Hard(NamedTuple):
    """A graph that some methods misclassify."""

    graph: int
    label: int
    """Its class number."""
    wrong: float
    """Share of its tests in which a method was wrong, mean over the methods."""
    methods: int
    """Methods that tested it."""
    missed: list[str]
    """Those that were wrong more often than right."""


def hardest_graphs(folds: Mapping[str, Sequence[FoldResult]]) -> list[Hard]:
    """Graphs in descending order of how many methods misclassify them; those that none misclassifies are left out.

    Args:
        folds: the predictions of each method, in any number of folds and seeds.
    """
    tests: dict[int, dict[str, list[bool]]] = {}
    y: dict[int, int] = {}
    for method, parts in folds.items():
        for fold in parts:
            for graph, label, prediction in zip(fold.test, fold.y, fold.predictions, strict=True):
                tests.setdefault(graph, {}).setdefault(method, []).append(label != prediction)
                y[graph] = label
    found = []
    for graph, by_method in tests.items():
        shares = np.array([np.mean(wrong) for wrong in by_method.values()], dtype=np.float64)
        missed = [method for method, share in zip(by_method, shares, strict=True) if share > 0.5]
        if missed:
            found.append(Hard(graph, y[graph], float(shares.mean()), len(by_method), missed))
    return sorted(found, key=lambda hard: (-len(hard.missed) / hard.methods, -hard.wrong, hard.graph))
