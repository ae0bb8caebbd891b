"""Coverage of conformal sets and intervals, and calibration, of cross-validated predictions.

Sets, intervals and temperature of a fold are fitted to the predictions of the other folds of its repetition, for graphs
that their models were not fitted on; no target of the fold is used. This corresponds to
:meth:`gcaps.estimators.base.GraphEstimator.fit_calibrated` with inner folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gcaps.data.arrays import Array, Floats
from gcaps.data.targets import Task
from gcaps.estimators.conformal import interval_widths, nonconformity, prediction_sets, thresholds
from gcaps.estimators.stacking import Truth, calibrate
from gcaps.evaluation.diagnostics import expected_calibration_error
from gcaps.evaluation.result import FoldResult

PROMISED = (0.8, 0.9, 0.95)
"""Nominal coverages that are compared with the measured ones."""
SIZED = 0.9
"""Nominal coverage for which the size of sets or intervals is reported."""
LEAST = 19
"""Least number of calibration graphs; fewer give sets of all classes, or infinite intervals, for coverage 0.95."""


@dataclass(frozen=True)
class Coverage:
    """Measured coverage of the predictions of all folds together."""

    measured: dict[float, float]
    """For each of :data:`PROMISED` the share of the true targets within their set or interval."""
    deviation: dict[float, float]
    """Standard deviation of that share over the folds."""
    size: float
    """Mean number of classes of a set, or mean width of an interval in standard deviations of its target, for a
    coverage of :data:`SIZED`."""
    error_before: float | None
    """Expected calibration error of the predicted probabilities; None for values."""
    error_after: float | None
    """The same after temperature scaling, or Platt scaling of several binary targets."""


@dataclass(frozen=True)
class _Part:
    """Graphs with their targets and scores: probabilities, or values."""

    graphs: Array
    y: Array
    scores: Floats

    def subset(self, keep: Array) -> _Part:
        return _Part(self.graphs[keep], self.y[keep], self.scores[keep])


def coverage_of(repetitions: Sequence[Sequence[FoldResult]]) -> Coverage | None:
    """Return coverage and calibration of one method's folds.

    Args:
        repetitions: the folds of each repetition of cross-validation.

    Returns:
        None if no fold has at least :data:`LEAST` calibration graphs, or the method has no probabilities.
    """
    every = [fold for folds in repetitions for fold in folds]
    if not every or (every[0].task != "regression" and not all(fold.scores for fold in every)):
        return None
    task: Task = every[0].task
    inside: dict[float, list[Array]] = {coverage: [] for coverage in PROMISED}
    sizes: list[Floats] = []
    before: list[Floats] = []
    after: list[Floats] = []
    truth: list[Array] = []
    for folds in repetitions:
        parts = [_part(fold) for fold in folds]
        for number, test in enumerate(parts):
            known = _joined([part for other, part in enumerate(parts) if other != number])
            if known is not None:
                known = known.subset(~np.isin(known.graphs, test.graphs))
            if known is None or len(known.y) < LEAST:
                continue
            for coverage in PROMISED:
                covered, size = _covered(task, known, test, coverage)
                if not len(covered):
                    continue
                inside[coverage].append(covered)
                if coverage == SIZED:
                    sizes.append(size)
            if task != "regression":
                fitted = calibrate(Truth(task, known.y), known.scores)
                before.append(_rows(task, test, test.scores)[0])
                found, y = _rows(task, test, fitted.apply(task, test.scores))
                after.append(found)
                truth.append(y)
    if not sizes:
        return None
    measured = {coverage: float(np.concatenate(parts).mean()) for coverage, parts in inside.items()}
    deviation = {coverage: float(np.std([part.mean() for part in parts])) for coverage, parts in inside.items()}
    errors: list[float | None] = [None, None]
    if truth:
        y = np.concatenate(truth)
        errors = [expected_calibration_error(np.concatenate(p), y) for p in (before, after)]
    return Coverage(measured, deviation, float(np.concatenate(sizes).mean()), errors[0], errors[1])


def _part(fold: FoldResult) -> _Part:
    y, predictions = fold.arrays()
    scores = predictions if fold.task == "regression" else np.array(fold.scores, dtype=np.float64)
    return _Part(np.array(fold.test, dtype=np.int64), y, scores)


def _joined(parts: Sequence[_Part]) -> _Part | None:
    if not parts:
        return None
    return _Part(
        np.concatenate([part.graphs for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.scores for part in parts]),
    )


def _covered(task: Task, known: _Part, test: _Part, coverage: float) -> tuple[Array, Floats]:
    """Return for each known target of ``test`` whether its set or interval contains it, and the size of that."""
    if task == "regression":
        scale = np.nanstd(known.y, axis=0)
        scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
        found = nonconformity(task, known.scores / scale, known.y / scale)
        limits = thresholds(found, coverage, known.y.shape[1], 1)
        half = interval_widths(limits, len(test.y))
        rows, columns = np.nonzero(~np.isnan(test.y))
        error = np.abs(test.scores - test.y)[rows, columns] / scale[columns]
        return error <= half[rows, columns], 2 * half[rows, columns]
    found = nonconformity(task, known.scores, known.y)
    if task == "classification":
        sets = prediction_sets(task, test.scores, thresholds(found, coverage, 1, test.scores.shape[1]))
        return sets[np.arange(len(test.y)), test.y], sets.sum(axis=1).astype(np.float64)
    sets = prediction_sets(task, test.scores, thresholds(found, coverage, test.scores.shape[1], 2))
    rows, columns = np.nonzero(~np.isnan(test.y))
    codes = test.y[rows, columns].astype(np.int64)
    return sets[rows, columns, codes], sets[rows, columns].sum(axis=1).astype(np.float64)


def _rows(task: Task, test: _Part, scores: Floats) -> tuple[Floats, Array]:
    """Return probabilities [N, C] and class numbers [N]; a row for each known target."""
    if task == "classification":
        return scores, test.y
    rows, columns = np.nonzero(~np.isnan(test.y))
    second = scores[rows, columns]
    return np.stack([1 - second, second], axis=1), test.y[rows, columns].astype(np.int64)
