"""Results of cross-validation: predictions and curves of each fold, and what it takes to reproduce them."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcaps.data.targets import Task
from gcaps.documents import STRICT, Count, Number
from gcaps.version import __version__

if TYPE_CHECKING:
    from gcaps.data.arrays import Array
    from gcaps.data.graphset import GraphSet

RECOMPUTED = ("accuracy", "balanced_accuracy", "f1", "mcc", "roc_auc", "rmse", "mae", "r2", "spearman")
"""Metrics that the rounded scores of a record still tell; a logarithm of them does not."""
VERSIONED = ("torch", "numpy", "scipy", "scikit-learn")


if TYPE_CHECKING:
    Values = list[Any]
else:
    Values = list[int] | list[Number] | list[list[Number | None]]
"""Of each graph a class number or a value, or one for each target, None where it is missing."""


@dataclass(frozen=True)
class FoldResult:
    """One fold: the predictions for its test graphs, their metrics, and the score after each epoch."""

    __pydantic_config__ = STRICT

    fold: Count
    """Counted from 0."""
    test: list[Count]
    """Graphs of the test fold, counted from 0 in the set's order."""
    y: Values
    """Class numbers 0..C−1 (classification) or values (regression); with several targets [graph][target], where zeros
    and ones are multilabel classes and None is a missing value."""
    predictions: Values
    """Predictions under the honest protocol, in the form of ``y``."""
    scores: list[list[Number]]
    """Probabilities [graph][class], or [graph][target] of the second class, rounded to six decimals; empty for
    regression."""
    epoch: Count
    """The epoch that predicts, counted from 1; 1 for methods without epochs."""
    train_loss: list[Number]
    """After each epoch."""
    train_score: list[Number]
    """After each epoch, in training mode: accuracy (of multilabel targets, over all known labels) or R²."""
    test_score: list[Number]
    """After each epoch. Recorded for the optimistic protocols and the curves; not used under `honest`."""
    validation_score: list[Number]
    """After each epoch; empty with a fixed schedule."""
    seconds: Number
    chosen: dict[str, Any] = field(default_factory=dict)
    """Values chosen on the training graphs of this fold, such as a kernel and the SVM's C."""
    resolved: dict[str, Any] = field(default_factory=dict)
    """The settings with every ``auto`` replaced by its value."""
    resolution: list[str] = field(default_factory=list)
    """For each setting that was ``auto``, its value and the reason."""
    task: Task = "classification"
    train_size: Count | None = None
    """Number of training graphs; None in older results, which trained on all graphs that are not tested."""
    metrics: dict[str, Number] = field(default_factory=dict)
    """Metrics of the test graphs; of several targets, the mean over those for which each is defined."""
    targets: list[dict[str, Number]] = field(default_factory=list)
    """With several targets, for each its metrics and ``known``, its number of known values."""

    def contradiction(self) -> str:
        """Return the first inconsistency of the fold, or an empty text."""
        if not self.test or min(self.test) < 0 or len(set(self.test)) < len(self.test):
            return "its test graphs are none, or one of them is there twice"
        lengths = {len(self.test), len(self.y), len(self.predictions), len(self.scores) or len(self.test)}
        if len(lengths) > 1:
            return f"it has {len(self.test)} test graphs and {len(self.predictions)} predictions"
        shapes = [{len(row) if isinstance(row, list) else 0 for row in table} for table in (self.y, self.predictions)]
        if len(shapes[0] | shapes[1]) > 1 or len({len(row) for row in self.scores}) > 1:
            return "its targets, predictions or scores differ in their number of columns"
        if self.task == "classification" and not all(
            type(code) is int and 0 <= code < 1 << 31 for code in (*self.y, *self.predictions)
        ):
            return "a class is not a number of a class"
        return ""

    @property
    def accuracy(self) -> float:
        """Share of the test graphs that are classified correctly under the honest protocol."""
        return self.value("accuracy")

    def value(self, metric: str) -> float:
        """Return a metric of the test graphs, NaN if it is not defined for them."""
        if self.task == "classification" and metric == "accuracy":
            return float(sum(a == b for a, b in zip(self.y, self.predictions, strict=True)) / len(self.y))
        if self.metrics:
            return self.metrics.get(metric, math.nan)
        return self._computed.get(metric, math.nan)

    def recomputed(self, metric: str) -> float | None:
        """Return a metric from predictions and scores; None where rounded scores do not tell it."""
        if metric not in RECOMPUTED:
            return None
        found = self._computed.get(metric, math.nan)
        return None if math.isnan(found) else found

    @cached_property
    def _computed(self) -> dict[str, float]:
        """The metrics of an older result, from its predictions and rounded scores."""
        from gcaps.evaluation.metrics import encoded_metrics, mean_over_targets

        y, predictions = self.arrays()
        scores = np.array(self.scores, dtype=np.float64) if len(self.scores) == len(self.y) else None
        return mean_over_targets(encoded_metrics(self.task, y, predictions, scores))

    def arrays(self) -> tuple[Array, Array]:
        """Return ``y`` and ``predictions``: [n] class numbers, or [n, T] numbers with NaN where a value is missing."""
        if self.task == "classification":
            return np.array(self.y, dtype=np.int64), np.array(self.predictions, dtype=np.int64)
        y, predictions = (np.array(values, dtype=np.float64) for values in (self.y, self.predictions))
        return y.reshape(len(y), -1), predictions.reshape(len(y), -1)


def as_lists(values: Array) -> list[Any]:
    """Return an array as nested lists, with None for NaN, which JSON does not have."""
    lists: list[Any] = values.astype(object).tolist()
    if values.dtype.kind == "f" and np.isnan(values).any():
        lists = np.where(np.isnan(values), np.array(None, dtype=object), values.astype(object)).tolist()
    return lists


@dataclass(frozen=True)
class Summary:
    """A metric under one protocol: mean and standard deviation over the folds."""

    mean: float
    std: float
    """Standard deviation over all folds, of all repetitions, divided by their number n (not by n − 1)."""
    folds: list[float]
    """Of each fold for which the metric is defined."""
    rule: str
    """Rule by which the epoch of each fold was chosen, in words."""
    repetitions: list[float] = field(default_factory=list)
    """Mean over the folds of each repetition; empty where there is only one."""

    @classmethod
    def of(cls, repetitions: Sequence[Sequence[float]], rule: str) -> Summary:
        """Summarise the values of each repetition's folds; NaN does not count."""
        known = [[float(v) for v in values if not math.isnan(v)] for values in repetitions]
        folds = [value for values in known for value in values]
        mean, std = (float(np.mean(folds)), float(np.std(folds))) if folds else (math.nan, math.nan)
        means = [float(np.mean(values)) for values in known if values] if len(known) > 1 else []
        return cls(mean, std, folds, rule, means)

    @property
    def repetition_std(self) -> float | None:
        """Sample standard deviation (n − 1) of the repetitions' means; None where there is only one."""
        return float(np.std(self.repetitions, ddof=1)) if len(self.repetitions) > 1 else None


@dataclass(frozen=True)
class Result:
    """The cross-validation of one method on one data set, once or repeatedly."""

    label: str
    """The row's name in a comparison; by default the method's."""
    method: str | None
    """A name in ``gcaps.estimators.registry.METHODS``; None for an estimator of the caller's."""
    data: dict[str, Any]
    """About the set and its folds: name, fingerprint, graphs, classes (as in the source), task, targets, metric, …"""
    folds: list[FoldResult]
    """Of all repetitions, one after the other."""
    protocols: dict[str, Summary]
    """Of the headline metric: honest, last, gin, best; only honest for a method without epochs, or where the metric is
    not the one that is recorded after each epoch."""
    config: dict[str, Any]
    seed: int
    splits: str
    """Source of the folds: drawn by a seed, or a file."""
    command: str
    versions: dict[str, str]
    created: str
    """UTC, ISO 8601."""
    protocol: str = "honest"
    """The protocol behind :attr:`score`."""
    repetitions: list[Result] = field(default_factory=list)
    """With several seeds, the result of each."""
    train_size: int | None = None
    """Number of training graphs, where only a part of each fold's is trained on."""
    smaller: list[Result] = field(default_factory=list)
    """With ``train_sizes``, the results with parts of the training graphs, the smallest first."""

    @property
    def learning_curve(self) -> list[tuple[int, Summary]]:
        """Number of training graphs and the headline metric under the chosen protocol; the last point has all graphs.

        Where folds differ in their number of training graphs, the last point has their mean, rounded.
        """
        return [
            (round(float(np.mean([fold.train_size or 0 for fold in one.folds]))), one.protocols[self.protocol])
            for one in (*self.smaller, self)
        ]

    @property
    def task(self) -> Task:
        """The task: classification, multilabel or regression."""
        task: Task = self.data.get("task", "classification")
        return task

    @property
    def metric(self) -> str:
        """The headline metric."""
        return str(self.data.get("metric", "accuracy"))

    @property
    def score(self) -> float:
        """Mean of the headline metric over the folds under the chosen protocol."""
        return self.protocols[self.protocol].mean

    @property
    def accuracy(self) -> float:
        """Mean accuracy over the folds, under the chosen protocol if accuracy is the headline metric."""
        return self.score if self.metric == "accuracy" else self.metrics["accuracy"].mean

    @cached_property
    def metrics(self) -> dict[str, Summary]:
        """Every metric of the task under the honest protocol."""
        from gcaps.evaluation.protocols import summarise_metrics

        return summarise_metrics([part.folds for part in self.repetitions] or [self.folds])

    def save(self, path: str | Path) -> None:
        """Write the result as a record (see :mod:`gcaps.evaluation.record`): ``NAME.json`` and ``NAME.npz``."""
        from gcaps.evaluation.comparison import Comparison

        parts = [part for one in (self, *self.smaller) for part in one.repetitions or [one]]
        Comparison.of_results(parts, Path(path).stem).save(path)

    @classmethod
    def read(cls, path: str | Path) -> Result:
        """The only result of a record.

        Raises:
            GcapsError: the file is not a record, or holds several results.
        """
        from gcaps.errors import GcapsError
        from gcaps.evaluation.comparison import Comparison
        from gcaps.evaluation.outcome import full_label

        results = Comparison.read(path).results()
        if len({(result.data["name"], full_label(result.label, result.train_size)) for result in results}) != 1:
            raise GcapsError(f"{path}: holds {len(results)} results; read it with gcaps.Comparison.read")
        return cls.joined(results)

    @classmethod
    def joined(cls, results: Sequence[Result]) -> Result:
        """Join the results of one method on one data set: several seeds, and parts of the training graphs."""
        sizes: dict[int | None, list[Result]] = {}
        for result in results:
            sizes.setdefault(result.train_size, []).append(result)
        full = cls.repeated(sizes.pop(None))
        smaller = [cls.repeated(found) for _, found in sorted(sizes.items(), key=lambda item: item[0] or 0)]
        return replace(full, smaller=smaller)

    @classmethod
    def repeated(cls, results: Sequence[Result]) -> Result:
        """Join the results of one method on one data set with several seeds."""
        from gcaps.evaluation.protocols import summarise

        if len(results) == 1:
            return results[0]
        first = results[0]
        folds = [fold for result in results for fold in result.folds]
        protocols = summarise([result.folds for result in results], first.metric)
        return replace(first, folds=folds, protocols=protocols, repetitions=list(results))


def about(graphs: GraphSet, task: Task = "classification") -> dict[str, Any]:
    """Name, fingerprint, size, task, targets and classes of a data set."""
    from gcaps.data.targets import Target

    assert graphs.y is not None
    target = Target.of(graphs.y, task, graphs.target_names, graphs.name)
    return {
        "name": graphs.name,
        "fingerprint": graphs.fingerprint(),
        "graphs": len(graphs),
        "classes": [] if target.classes is None else target.classes.tolist(),
        "task": task,
        "targets": list(target.names),
    }


@cache
def versions() -> dict[str, str]:
    """Versions of gcaps, Python and the packages that numbers depend on, and the processor they were computed on."""
    found = {"gcaps": __version__, "python": platform.python_version()} | {p: version(p) for p in VERSIONED}
    return found | {"processor": _processor()}


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: *(.+)$", info.read_text() if info.exists() else "", re.MULTILINE)
    return str(names[0]) if names else platform.processor() or platform.machine()


def now() -> str:
    """UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
