"""Predictions of one method for every graph that it was tested on, as arrays, and how wrong each of them is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.targets import Task
from gcaps.evaluation.metrics import METRICS, encoded_metrics, mean_over_targets
from gcaps.report.study import Entry


class WorstTest(NamedTuple):
    """A test of a graph, and the target that was predicted worst."""

    place: int
    """Row of :class:`TestedGraphs`."""
    target: int


@dataclass(frozen=True)
class TestedGraphs:
    """Tests of one method, all folds (and seeds, unless one was chosen) together; n rows."""

    task: Task
    graph: Ints
    """[n] position of each tested graph in its set."""
    seed: Ints
    """[n]"""
    fold: Ints
    """[n]"""
    y: Array
    """[n] class numbers; or [n, T] zeros and ones, or values, NaN where missing."""
    predictions: Array
    """Likewise."""
    scores: Floats | None
    """[n, C] probabilities of the classes, or [n, T] of the second class; None where there are none."""

    @classmethod
    def of(cls, entry: Entry, task: Task, seed: int | None = None) -> TestedGraphs | None:
        """Collect the done cells of an entry; None if there are none.

        Args:
            entry: a method on a data set.
            task: that of the data set.
            seed: of the folds to take; by default all.
        """
        done = [(o, o.result) for o in entry.outcomes if o.result is not None and seed in (None, o.seed)]
        if not done:
            return None
        counts = [len(result.test) for _, result in done]
        y, predictions = (np.concatenate(side) for side in zip(*(r.arrays() for _, r in done), strict=True))
        scored = task != "regression" and all(len(r.scores) == len(r.y) and all(r.scores) for _, r in done)
        return cls(
            task,
            np.concatenate([np.asarray(result.test, dtype=np.int64) for _, result in done]),
            np.repeat([outcome.seed for outcome, _ in done], counts),
            np.repeat([result.fold for _, result in done], counts),
            y,
            predictions,
            np.array([row for _, r in done for row in r.scores], dtype=np.float64) if scored else None,
        )

    def errors(self) -> Floats:
        """[n, T] how wrong each prediction is; NaN where the truth is missing.

        The probability that was not given to the true class; in regression the distance from the true value in
        standard deviations of the target.
        """
        if self.task == "classification":
            if self.scores is None:
                return np.array(self.y != self.predictions, dtype=np.float64)[:, None]
            missed: Floats = 1 - self.scores[np.arange(len(self.y)), self.y]
            return missed[:, None]
        if self.task == "multilabel":
            given = self.predictions if self.scores is None else self.scores
            gap: Floats = np.abs(self.y - given)
            return gap
        spread = np.nanstd(self.y, axis=0)
        distance: Floats = np.abs(self.predictions - self.y) / np.where(spread > 0, spread, 1.0)
        return distance

    def worst(self, count: int) -> list[WorstTest]:
        """Return the largest errors, or the wrong classes with the highest probability; each graph at most once."""
        rank = self.errors()
        if self.task == "classification":
            wrong = self.y != self.predictions
            if self.scores is not None:
                rank = self.scores[np.arange(len(self.y)), self.predictions][:, None]
            rank = np.where(wrong[:, None], rank, np.nan)
        elif self.task == "multilabel":
            rank = np.where(self.y != self.predictions, rank, np.nan)
        rank = np.where(np.isnan(rank), -1.0, rank)
        found: dict[int, WorstTest] = {}
        for place in np.argsort(-rank.max(axis=1), kind="stable").tolist():
            target, graph = int(rank[place].argmax()), int(self.graph[place])
            if rank[place, target] < 0 or len(found) == count:
                break
            found.setdefault(graph, WorstTest(place, target))
        return list(found.values())

    def metric(self, name: str, rows: Array) -> float | None:
        """Return a metric of some rows, of several targets the mean over them; None where it is not defined."""
        if METRICS[name].needs == "probabilities" and self.scores is None:
            return None
        scores = None if self.scores is None else self.scores[rows]
        classes = None if scores is None or self.task != "classification" else scores.shape[1]
        found = encoded_metrics(self.task, self.y[rows], self.predictions[rows], scores, [name], classes)
        return mean_over_targets(found).get(name)
