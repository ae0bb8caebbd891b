"""A comparison grouped by data set and method, with the tests and ranks that every part of a report reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gcaps.estimators.registry import METHODS
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.outcome import Cell, Outcome
from gcaps.evaluation.plan import Plan, PlannedData
from gcaps.evaluation.protocols import summarise
from gcaps.evaluation.result import FoldResult, Summary
from gcaps.evaluation.statistics import PairedTest, Ranks, all_pairs, rank_methods

ALPHA = 0.05
"""Significance level of every test in a report."""
OURS = "gcaps"
"""Label of the entry that a report compares the best method with."""
STATUS = {"failed": "failed", "time": "over time", "memory": "over memory"}
"""Shown where a cell has no result, by the status of its outcome."""


class MethodName(NamedTuple):
    """How a method is shown in a report."""

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
    def protocols(self) -> dict[str, Summary]:
        """Mean and standard deviation over the done folds and seeds, by rule; only ``honest`` without epochs."""
        by_seed: dict[int, list[FoldResult]] = {}
        for outcome in self.outcomes:
            if outcome.result is not None:
                by_seed.setdefault(outcome.seed, []).append(outcome.result)
        parts = [summarise(folds) for folds in by_seed.values()]
        if not parts:
            return {}
        joined = {rule: [value for part in parts for value in part[rule].folds] for rule in parts[0]}
        return {
            rule: Summary(float(np.mean(values)), float(np.std(values)), values, parts[0][rule].rule)
            for rule, values in joined.items()
        }

    @property
    def honest(self) -> Summary | None:
        """Honest accuracy, None unless complete."""
        return self.protocols["honest"] if self.complete else None

    @cached_property
    def accuracies(self) -> dict[tuple[int, int], float]:
        """Honest accuracy by seed and fold."""
        return {(o.seed, o.fold): o.result.accuracy for o in self.outcomes if o.result is not None}

    @property
    def status(self) -> str:
        """Why there is no accuracy; empty if complete."""
        if self.complete:
            return ""
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


@dataclass(frozen=True)
class Study:
    """A comparison as a report sees it."""

    plan: Plan
    entries: dict[tuple[str, str], Entry]
    """By data set and label; a label need not be planned on every data set."""
    missing: list[Cell]
    """Cells without an outcome."""

    @classmethod
    def of(cls, comparison: Comparison) -> Study:
        """Group the outcomes of a comparison by data set and label."""
        plan, missing = comparison.plan, comparison.missing()
        absent = Counter((cell.data, cell.label) for cell in missing)
        outcomes: dict[tuple[str, str], list[Outcome]] = {}
        for outcome in comparison.outcomes:
            outcomes.setdefault((outcome.data, outcome.label), []).append(outcome)
        entries: dict[tuple[str, str], Entry] = {}
        for planned in plan.entries:
            key = planned.data, planned.label
            found = outcomes.get(key, [])
            entries[key] = Entry(*key, planned.method, planned.configs, len(found) + absent[key], found)
        return cls(plan, entries, missing)

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
        found = [entry for entry in self.of_set(data) if entry.complete]
        return sorted(found, key=lambda entry: -entry.protocols["honest"].mean)

    def best(self, data: str) -> str | None:
        """Return the label with the highest honest accuracy."""
        entries = self.complete(data)
        return entries[0].label if entries else None

    @cached_property
    def tests(self) -> dict[str, dict[tuple[str, str], PairedTest]]:
        """By data set, the test of every complete entry against every other, as one family."""
        found = {}
        for planned in self.sets:
            entries = self.complete(planned.name)
            sizes = [len(fold.test) for entry in entries for fold in entry.folds]
            test = float(np.mean(sizes)) if sizes else 0.0
            ratio = test / max(planned.graphs - test, 1.0)
            found[planned.name] = all_pairs({entry.label: entry.accuracies for entry in entries}, ratio)
        return found

    def near_best(self, data: str, label: str) -> bool:
        """Return whether a complete entry, not itself the best, is not significantly worse than the best."""
        test = self.tests[data].get((self.best(data) or "", label))
        return test is not None and test.holm >= ALPHA

    @cached_property
    def ranks(self) -> Ranks | None:
        """Average ranks over the data sets; None where there are too few complete entries."""
        return rank_methods(
            {
                planned.name: {entry.label: entry.protocols["honest"].mean for entry in self.complete(planned.name)}
                for planned in self.sets
            },
            ALPHA,
        )

    def truth(self, data: str) -> dict[int, int]:
        """Return the class number of every tested graph of a data set."""
        return self._truth[data]

    @cached_property
    def _truth(self) -> dict[str, dict[int, int]]:
        found: dict[str, dict[int, int]] = {planned.name: {} for planned in self.sets}
        for (data, _), entry in self.entries.items():
            for fold in entry.folds:
                found[data].update(zip(fold.test, fold.y, strict=True))
        return found

    def classes(self, data: str) -> list[str]:
        """Return the names of the classes; a class number without a name in the plan is shown as a number."""
        names = [str(name) for name in self.plan.of(data).classes]
        seen = [n for e in self.of_set(data) for fold in e.folds for n in (*fold.y, *fold.predictions)]
        return names + [str(number) for number in range(len(names), max(seen, default=-1) + 1)]

    def majority(self, data: str) -> Majority | None:
        """Return the most frequent class of the tested graphs; None before any fold is done."""
        counts = Counter(self._truth[data].values())
        if not counts:
            return None
        number, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
        return Majority(self.classes(data)[number], count / counts.total())
