"""A comparison grouped by data set and method, with the tests and ranks that every part of a report reads."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gcaps.estimators.registry import METHODS
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.metrics import METRICS, Metric, metric_for
from gcaps.evaluation.outcome import Cell, Outcome
from gcaps.evaluation.plan import TEST_ONLY, Plan, PlannedData
from gcaps.evaluation.protocols import summarise, summarise_metrics
from gcaps.evaluation.result import FoldResult, Summary
from gcaps.evaluation.statistics import PairedTest, Ranks, all_pairs, rank_methods

ALPHA = 0.05
"""Significance level of every test in a report."""
OURS = "gcaps"
"""Label of the entry that a report compares the best method with."""
LEAST_RANKED = 5
"""Ranks and the tests on them need at least so many data sets."""
STATUS = {"failed": "failed", "time": "over time", "memory": "over memory"}
"""Shown where a cell has no result, by the status of its outcome."""


class MethodName(NamedTuple):
    """Presentation of a method in a report."""

    short: str
    long: str
    family: str
    """A key of :data:`FAMILIES`."""
    published: tuple[str, ...] = ()
    """Names of the method in :mod:`gcaps.evaluation.published`."""


FAMILIES = {
    "ours": ("ours", "blue", "circle"),
    "network": ("networks", "purple", "square"),
    "kernel": ("kernels", "orange", "diamond"),
    "features": ("features", "green", "triangle"),
    "baseline": ("baseline", "muted", "cross"),
    "other": ("other", "ink", "circle"),
}
"""Title, color and marker of each family of methods."""

_PUBLISHED_AS = {"deepsets": "structure-blind-baseline"}
"""Methods that published tables call differently."""

_KNOWN = {
    name: MethodName(method.title, method.about, method.family, (_PUBLISHED_AS.get(name, method.title),))
    for name, method in METHODS.items()
}


def method_name(label: str, method: str | None) -> MethodName:
    """Return the name of an entry: that of a known label, otherwise the label with the family of its method."""
    if label in _KNOWN:
        return _KNOWN[label]
    known = _KNOWN.get(method or "")
    return MethodName(label, "", "other") if known is None else MethodName(label, known.short, known.family)


@dataclass(frozen=True)
class Entry:
    """One method on one data set, with the outcomes of all folds and seeds."""

    data: str
    label: str
    method: str | None
    configs: list[dict[str, Any]]
    """The configuration, or the candidates of a grid."""
    planned: int
    """Number of cells: folds × seeds."""
    outcomes: list[Outcome]
    metric: Metric = METRICS["accuracy"]
    """The headline metric."""

    @property
    def name(self) -> MethodName:
        """Name shown in the report."""
        return method_name(self.label, self.method)

    @cached_property
    def folds(self) -> list[FoldResult]:
        """Results of the cells that are done."""
        return [outcome.result for outcome in self.outcomes if outcome.result is not None]

    @property
    def complete(self) -> bool:
        """Whether every fold of every seed is done; only complete entries are compared."""
        return len(self.folds) == self.planned > 0

    @cached_property
    def repetitions(self) -> list[list[FoldResult]]:
        """Results of the cells that are done, by seed."""
        by_seed: dict[int, list[FoldResult]] = {}
        for outcome in self.outcomes:
            if outcome.result is not None:
                by_seed.setdefault(outcome.seed, []).append(outcome.result)
        return list(by_seed.values())

    @cached_property
    def protocols(self) -> dict[str, Summary]:
        """The headline metric over the done folds and seeds, by rule; only ``honest`` without epochs."""
        return summarise(self.repetitions, self.metric.name) if self.folds else {}

    @cached_property
    def metrics(self) -> dict[str, Summary]:
        """Every metric of the task over the done folds and seeds."""
        return summarise_metrics(self.repetitions) if self.folds else {}

    @property
    def honest(self) -> Summary | None:
        """The headline metric; None unless complete, or where no fold defines the metric."""
        return self.protocols["honest"] if self.complete and self.protocols["honest"].folds else None

    @cached_property
    def values(self) -> dict[tuple[int, int], float]:
        """The headline metric by seed and fold; a fold that does not define it is left out."""
        found = {(o.seed, o.fold): o.result.value(self.metric.name) for o in self.outcomes if o.result is not None}
        return {key: value for key, value in found.items() if not math.isnan(value)}

    def undefined(self, metric: str) -> str:
        """Say where a metric is not defined and therefore not part of the mean; empty where it always is."""
        folds, known = len(self.folds), len(self.metrics[metric].folds)
        parts = [f"over {known} of {folds} folds"] if known < folds else []
        pairs = [metric in target for fold in self.folds for target in fold.targets]
        if pairs and not all(pairs):
            parts.append(f"without {len(pairs) - sum(pairs)} of {len(pairs)} targets × folds")
        return ", ".join(parts)

    def target_metrics(self, number: int) -> dict[str, float]:
        """Mean over the folds of the metrics of one target of several, and ``known``: its values in all folds."""
        rows = [fold.targets[number] for fold in self.folds if number < len(fold.targets)]
        names = dict.fromkeys(name for row in rows for name in row if name != "known")
        found = {name: float(np.mean([row[name] for row in rows if name in row])) for name in names}
        return found | {"known": sum(row["known"] for row in rows) / max(len(self.repetitions), 1)}

    @property
    def status(self) -> str:
        """Reason why there is no accuracy; empty if complete."""
        if self.complete:
            return "" if self.honest is not None else "undefined"
        bad = Counter(outcome.status for outcome in self.outcomes if outcome.status != "done")
        if bad:
            status, count = max(bad.items(), key=lambda item: (item[1], item[0]))
            return STATUS[status] if count == self.planned else f"{STATUS[status]}, {count} of {self.planned} folds"
        return f"{len(self.folds)} of {self.planned} folds" if self.folds else "not run"

    @property
    def error(self) -> str | None:
        """First error message of its outcomes."""
        return next((outcome.error for outcome in self.outcomes if outcome.error), None)

    @property
    def seconds(self) -> float | None:
        """Mean time of the done folds."""
        times = [outcome.seconds for outcome in self.outcomes if outcome.status == "done"]
        return float(np.mean(times)) if times else None

    @property
    def peak_mib(self) -> float | None:
        """Highest memory of the done folds."""
        peaks = [o.peak_mib for o in self.outcomes if o.status == "done" and o.peak_mib is not None]
        return max(peaks, default=None)

    @cached_property
    def embedding(self) -> tuple[list[list[float]], set[int]] | None:
        """Embedding [G][2] of all graphs by the network of the first fold, and the test graphs of that fold."""
        for outcome in self.outcomes:
            if outcome.embedding and outcome.result is not None:
                return outcome.embedding, set(outcome.result.test)
        return None


class Majority(NamedTuple):
    """The baseline that always predicts the most frequent class."""

    name: str
    """That class, as the source calls it."""
    share: float
    """Its share of the tested graphs, which is the accuracy of the baseline."""


class Baseline(NamedTuple):
    """Score of a prediction that ignores the graph."""

    title: str
    words: str
    """The constant prediction, in words."""
    value: float
    """Of the headline metric."""


@dataclass(frozen=True)
class Study:
    """A comparison as a report sees it."""

    plan: Plan
    entries: dict[tuple[str, str], Entry]
    """By data set and label; a label need not be planned on every data set."""
    missing: list[Cell]
    """Cells without an outcome."""
    smaller: dict[tuple[str, str], list[Entry]] = field(default_factory=dict)
    """Points of learning curves by data set and label: the same row on parts of the training graphs, ascending."""

    @classmethod
    def of(cls, comparison: Comparison) -> Study:
        """Group the outcomes of a comparison by data set and label; points of learning curves are kept apart."""
        plan, missing = comparison.plan, comparison.missing()
        absent = Counter((cell.data, cell.label) for cell in missing)
        outcomes: dict[tuple[str, str], list[Outcome]] = {}
        for outcome in comparison.outcomes:
            outcomes.setdefault((outcome.data, outcome.label), []).append(outcome)
        entries: dict[tuple[str, str], Entry] = {}
        smaller: dict[tuple[str, str], list[Entry]] = {}
        for planned in plan.entries:
            key = planned.data, planned.label
            found = outcomes.get(key, [])
            data = plan.of(planned.data)
            metric = metric_for(data.task, data.metric)
            entry = Entry(*key, planned.method, planned.configs, len(found) + absent[key], found, metric)
            if planned.train_size is None:
                entries[key] = entry
            else:
                smaller.setdefault((planned.data, planned.row), []).append(entry)
        full = replace(plan, entries=[entry for entry in plan.entries if entry.train_size is None])
        return cls(full, entries, [cell for cell in missing if cell.train_size is None], smaller)

    @property
    def sets(self) -> list[PlannedData]:
        """Data sets in the order of the plan."""
        return self.plan.data

    @cached_property
    def names(self) -> dict[str, MethodName]:
        """Name of each label, in the order of the plan."""
        methods = {entry.label: entry.method for entry in reversed(self.plan.entries)}
        return {label: method_name(label, methods[label]) for label in self.plan.labels}

    @property
    def single(self) -> bool:
        """Whether there is only one method, and therefore nothing to compare."""
        return len(self.names) == 1

    def of_set(self, data: str) -> list[Entry]:
        """Return the entries of a data set in the order of the plan."""
        return [self.entries[data, label] for label in self.names if (data, label) in self.entries]

    def complete(self, data: str) -> list[Entry]:
        """Return the complete entries of a data set, best first; ties keep the order of the plan."""
        found = [entry for entry in self.of_set(data) if entry.honest is not None]
        return sorted(found, key=lambda entry: -entry.metric.sign * entry.protocols["honest"].mean)

    def metric(self, data: str) -> Metric:
        """Return the headline metric of a data set."""
        planned = self.plan.of(data)
        return metric_for(planned.task, planned.metric)

    @cached_property
    def shared_metric(self) -> Metric | None:
        """The headline metric, if all data sets have the same."""
        metrics = {self.metric(planned.name) for planned in self.sets}
        return metrics.pop() if len(metrics) == 1 else None

    @property
    def title(self) -> str:
        """The headline metric in words."""
        return "score" if self.shared_metric is None else self.shared_metric.title

    @property
    def repeats(self) -> int:
        """Largest number of repetitions of an entry."""
        return max((len(entry.seeds) for entry in self.plan.entries), default=1)

    def best(self, data: str) -> str | None:
        """Return the label with the best value of the headline metric."""
        entries = self.complete(data)
        return entries[0].label if entries else None

    @cached_property
    def tests(self) -> dict[str, dict[tuple[str, str], PairedTest]]:
        """By data set, the test of every complete entry against every other, as one family."""
        return {
            planned.name: all_pairs(
                {entry.label: self._by_division(entry) for entry in self.complete(planned.name)},
                self.test_to_train(planned.name),
            )
            for planned in self.sets
        }

    def test_to_train(self, data: str) -> float:
        """Return the mean number of test graphs over that of training graphs, of the folds of a data set."""
        folds = [fold for entry in self.complete(data) for fold in entry.folds]
        test = float(np.mean([len(fold.test) for fold in folds])) if folds else 0.0
        trained = [float(fold.train_size) for fold in folds if fold.train_size is not None]
        train = float(np.mean(trained)) if trained else self.plan.of(data).graphs - test
        return test / max(train, 1.0)

    def divisions(self, data: str) -> int:
        """Return the number of different folds, over all seeds, that the paired tests of a data set are about."""
        return len({key for entry in self.complete(data) for key in self._by_division(entry)})

    def _by_division(self, entry: Entry) -> dict[Any, float]:
        """The headline metric by division of the set into training and test graphs.

        Repetitions with the same division differ in their training only; their mean is one value of a paired test.
        """
        digests = self.plan.of(entry.data).folds
        values: dict[Any, list[float]] = {}
        for (seed, fold), value in entry.values.items():
            digest = digests[str(seed)][fold]
            values.setdefault((seed, fold) if digest == TEST_ONLY else digest, []).append(value)
        return {key: float(np.mean(found)) for key, found in values.items()}

    def near_best(self, data: str, label: str) -> bool:
        """Return whether a complete entry, not itself the best, is not significantly worse than the best."""
        test = self.tests[data].get((self.best(data) or "", label))
        return test is not None and test.holm >= ALPHA

    @cached_property
    def ranks(self) -> Ranks | None:
        """Average ranks; None where fewer than :data:`LEAST_RANKED` data sets have several complete entries."""
        found = rank_methods(
            {
                planned.name: {
                    entry.label: entry.metric.sign * entry.protocols["honest"].mean
                    for entry in self.complete(planned.name)
                }
                for planned in self.sets
            },
            ALPHA,
        )
        return None if found is None or len(found.data) < LEAST_RANKED else found

    def truth(self, data: str) -> dict[int, Any]:
        """Return the target of every tested graph of a data set: a class number, a value, or a list of them."""
        return self._truth[data]

    @cached_property
    def _truth(self) -> dict[str, dict[int, Any]]:
        found: dict[str, dict[int, Any]] = {planned.name: {} for planned in self.sets}
        for (data, _), entry in self.entries.items():
            for fold in entry.folds:
                found[data].update(zip(fold.test, fold.y, strict=True))
        return found

    def classes(self, data: str) -> list[str]:
        """Return the names of the classes; a class number without a name in the plan is shown as a number."""
        names = [str(name) for name in self.plan.of(data).classes]
        if self.plan.of(data).task != "classification":
            return names
        seen = [n for e in self.of_set(data) for fold in e.folds for n in (*fold.y, *fold.predictions)]
        return names + [str(number) for number in range(len(names), max(seen, default=-1) + 1)]

    def majority(self, data: str) -> Majority | None:
        """Return the most frequent class of the tested graphs; None before any fold is done, or without classes."""
        if self.plan.of(data).task != "classification":
            return None
        counts = Counter(self._truth[data].values())
        if not counts:
            return None
        number, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
        return Majority(self.classes(data)[number], count / counts.total())

    def baseline(self, data: str) -> Baseline | None:
        """Return what a prediction that does not look at the graph gives; None where it has no such value."""
        metric, majority = self.metric(data).name, self.majority(data)
        truth = list(self._truth[data].values())
        if not truth:
            return None
        if metric == "accuracy" and majority is not None:
            return Baseline("majority class", f"always predicting “{majority.name}”", majority.share)
        if metric == "balanced_accuracy":
            return Baseline("chance", "the same class for every graph", 1 / len({*truth} if majority else (0, 1)))
        if metric in ("roc_auc", "enrichment"):
            value = {"roc_auc": 0.5, "enrichment": 1.0}[metric]
            return Baseline("chance", "the same probability for every graph", value)
        if self.plan.of(data).task != "regression":
            return None
        y = np.array(truth, dtype=np.float64).reshape(len(truth), -1)
        middle = np.nanmedian(y, axis=0) if metric == "mae" else np.nanmean(y, axis=0)
        values = {
            "rmse": np.sqrt(np.nanmean((y - middle) ** 2, axis=0)).mean(),
            "mae": np.nanmean(np.abs(y - middle), axis=0).mean(),
            "r2": 0.0,
        }
        if metric not in values:
            return None
        word = "median" if metric == "mae" else "mean"
        return Baseline(f"constant {word}", f"always predicting the {word} of the tested graphs", float(values[metric]))
