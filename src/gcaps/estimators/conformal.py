"""Conformal prediction: sets of classes and intervals of values that contain the truth with a given probability.

The nonconformity score of a calibration graph, which the model was not fitted on, measures the disagreement of
prediction and true target. The set of a new graph contains all values whose score does not exceed the quantile of these
scores at the given coverage (Vovk, Gammerman and Shafer, 2005; for classes LAC: Sadinle, Lei and Wasserman, 2019).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.targets import Task
from gcaps.errors import ConfigError

SPREAD_FLOOR = 0.1
"""Added to the spread of an ensemble, in standard deviations of the target, so that no interval has width 0."""
ROUNDING = 1e-9
"""Subtracted from (n + 1) · coverage before rounding up, as floating-point products may exceed an integer."""


class Nonconformity(NamedTuple):
    """Nonconformity scores of the known targets of calibration graphs."""

    values: Floats
    """[N] 1 − probability of the true class, or |error| in standard deviations, optionally divided by the spread."""
    columns: Ints
    """[N] number of the target; 0 for classes."""
    classes: Ints
    """[N] number of the true class; −1 for a class unknown from training, 0 for values."""


def require_coverage(coverage: float) -> None:
    """Raise a ConfigError unless a coverage lies between 0 and 1."""
    if not 0 < coverage < 1:
        raise ConfigError(f"coverage: {coverage:g} is not between 0 and 1; 0.9 is usual")


def threshold(values: Floats, coverage: float) -> float:
    """Return the ⌈(n + 1) · coverage⌉-th smallest of n nonconformity scores; ∞ if there are fewer.

    A new score that is exchangeable with them is no larger with a probability of at least ``coverage``, and of at most
    coverage + 1 / (n + 1) if no two are equal.
    """
    n = len(values)
    rank = int(np.ceil((n + 1) * coverage - ROUNDING))
    return float(np.partition(values, rank - 1)[rank - 1]) if 1 <= rank <= n else float("inf") if rank > n else -np.inf


def nonconformity(task: Task, scores: Floats, y: Array, spread: Floats | None = None) -> Nonconformity:
    """Return the nonconformity scores of graphs with known targets.

    Args:
        task: what is predicted.
        scores: [n, C] probabilities, [n, T] those of the second class, or [n, T] standardised values.
        y: [n] class numbers, −1 for an unknown class; or [n, T] with NaN where a value is missing.
        spread: [n, T] standard deviation of the standardised values of an ensemble; None: errors are not scaled.
    """
    if task == "classification":
        known = np.maximum(y, 0)
        values = np.where(y < 0, 1.0, 1.0 - scores[np.arange(len(y)), known])
        return Nonconformity(values, np.zeros(len(y), np.int64), np.asarray(y, np.int64))
    rows, columns = np.nonzero(~np.isnan(y))
    truth, found = y[rows, columns], scores[rows, columns].astype(np.float64)
    if task == "multilabel":
        values = np.where(truth > 0.5, 1.0 - found, found)
        return Nonconformity(values, columns, truth.astype(np.int64))
    values = np.abs(found - truth)
    if spread is not None:
        values = values / (spread[rows, columns] + SPREAD_FLOOR)
    return Nonconformity(values, columns, np.zeros(len(rows), np.int64))


def thresholds(found: Nonconformity, coverage: float, targets: int, classes: int, *, by_class: bool = False) -> Floats:
    """Return the threshold [T, C] of each target and class; the same for all classes unless ``by_class``.

    With ``by_class``, each class has its own threshold (Mondrian, or class-conditional, conformal prediction), which
    takes more calibration graphs, as only those of the class are used.
    """
    require_coverage(coverage)
    table = np.empty((targets, classes))
    for t in range(targets):
        own = found.columns == t
        if by_class:
            table[t] = [threshold(found.values[own & (found.classes == c)], coverage) for c in range(classes)]
        else:
            table[t] = threshold(found.values[own], coverage)
    return table


def prediction_sets(task: Task, scores: Floats, limits: Floats) -> Array:
    """Return which classes are in each graph's set: [n, C], or [n, T, 2] for several binary targets.

    Args:
        task: classification or multilabel.
        scores: [n, C], or [n, T] probabilities of the second class.
        limits: [T, C] thresholds.
    """
    p = np.asarray(scores, dtype=np.float64)
    if task == "classification":
        inside: Array = (1.0 - p) <= limits[0]
        return inside
    both = np.stack([p, 1.0 - p], axis=2)  # of the first class, the score is the probability of the second
    within: Array = both <= limits
    return within


def interval_widths(limits: Floats, rows: int, spread: Floats | None = None) -> Floats:
    """Return half the width of each graph's intervals [n, T], in standard deviations of the targets.

    Args:
        limits: [T, 1] thresholds.
        rows: number of graphs n.
        spread: [n, T] as in :func:`nonconformity`.
    """
    scale = np.ones((rows, len(limits))) if spread is None else spread + SPREAD_FLOOR
    found: Floats = scale * limits[:, 0]
    return found
