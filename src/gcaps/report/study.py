"""A comparison as its report sees it: one entry for each method on each data set, and what the numbers say together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gcaps.evaluation.cells import Cell, Outcome
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.plan import Plan, PlannedData
from gcaps.evaluation.protocols import summarise
from gcaps.evaluation.ranks import Ranks, rank_methods
from gcaps.evaluation.result import FoldResult, Summary
from gcaps.evaluation.significance import PairedTest, all_pairs

ALPHA = 0.05
"""A corrected p below this is called significant."""

STATUS = {"failed": "failed", "time": "over time", "memory": "over memory"}
"""What a table says where a cell has no number."""


@dataclass(frozen=True)
class Entry:
    """One method on one data set: what became of its folds, under all seeds."""

    data: str
    method: str
    planned: int
    """Folds times seeds."""
    outcomes: list[Outcome]

    @cached_property
    def folds(self) -> list[FoldResult]:
        """Those that are done."""
        return [outcome.result for outcome in self.outcomes if outcome.result is not None]

    @property
    def complete(self) -> bool:
        """Whether every fold of every seed is done: only then does its number stand beside others."""
        return len(self.folds) == self.planned > 0

    @cached_property
    def protocols(self) -> dict[str, Summary]:
        """Mean and deviation over the done folds (and seeds), by rule; only honest where there are no epochs."""
        by_seed: dict[int, list[FoldResult]] = {}
        for outcome in self.outcomes:
            if outcome.result is not None:
                by_seed.setdefault(outcome.seed, []).append(outcome.result)
        parts = [summarise(folds, _selection(folds)) for folds in by_seed.values()]
        if not parts:
            return {}
        joined = {rule: [value for part in parts for value in part[rule].folds] for rule in parts[0]}
        return {
            rule: Summary(float(np.mean(values)), float(np.std(values)), values, parts[0][rule].rule)
            for rule, values in joined.items()
        }

    @property
    def honest(self) -> Summary | None:
        """Its number, None unless complete."""
        return self.protocols["honest"] if self.complete else None

    @cached_property
    def accuracies(self) -> dict[tuple[int, int], float]:
        """Honest accuracy by seed and fold."""
        return {(o.seed, o.fold): o.result.accuracy for o in self.outcomes if o.result is not None}

    @property
    def status(self) -> str:
        """Why it has no number, in words; empty where it has one."""
        if self.complete:
            return ""
        bad = Counter(outcome.status for outcome in self.outcomes if outcome.status != "done")
        if bad:
            status, count = max(bad.items(), key=lambda item: (item[1], item[0]))
            return STATUS[status] if count == self.planned else f"{STATUS[status]}, {count} of {self.planned} folds"
        return f"{len(self.folds)} of {self.planned} folds" if self.folds else "not run"

    @property
    def error(self) -> str | None:
        """The first error's line."""
        return next((outcome.error for outcome in self.outcomes if outcome.error), None)

    @property
    def seconds(self) -> float | None:
        """Mean over its done folds."""
        times = [outcome.seconds for outcome in self.outcomes if outcome.status == "done"]
        return float(np.mean(times)) if times else None

    @property
    def peak_mib(self) -> float | None:
        """The highest of its done folds."""
        peaks = [o.peak_mib for o in self.outcomes if o.status == "done" and o.peak_mib is not None]
        return max(peaks, default=None)

    @cached_property
    def embedding(self) -> tuple[list[list[float]], set[int]] | None:
        """The graphs in a plane, as the network of the first fold sees them, and which of them were its test graphs."""
        for outcome in self.outcomes:
            if outcome.embedding and outcome.result is not None:
                return outcome.embedding, set(outcome.result.test)
        return None


def _selection(folds: list[FoldResult]) -> str:
    """The rule that :func:`summarise` is to name, read off the folds."""
    if not all(fold.test_accuracy for fold in folds):
        return "inner" if any(fold.chosen for fold in folds) else "fixed"
    return "validation" if any(fold.validation_accuracy for fold in folds) else "last"


@dataclass(frozen=True)
class Study:
    """Everything of a comparison that the report asks for."""

    plan: Plan
    entries: dict[tuple[str, str], Entry]
    """By data set and method."""
    missing: list[Cell]
    """Cells of the plan that have no outcome yet."""

    @classmethod
    def of(cls, comparison: Comparison) -> Study:
        """The report's view of a comparison."""
        plan, missing = comparison.plan, comparison.missing()
        outcomes: dict[tuple[str, str], list[Outcome]] = {(d.name, m): [] for d in plan.data for m in plan.methods}
        for outcome in comparison.outcomes:
            outcomes[outcome.data, outcome.method].append(outcome)
        absent = Counter((cell.data, cell.method) for cell in missing)
        entries = {key: Entry(*key, len(found) + absent[key], found) for key, found in outcomes.items()}
        return cls(plan, entries, missing)

    @property
    def sets(self) -> list[PlannedData]:
        """The data sets, in the plan's order."""
        return self.plan.data

    @property
    def methods(self) -> list[str]:
        """In the plan's order."""
        return list(self.plan.methods)

    def entry(self, data: str, method: str) -> Entry:
        """One method on one data set."""
        return self.entries[data, method]

    def complete(self, data: str) -> list[Entry]:
        """The entries of a data set that have a number, the best first; among equals in the plan's order."""
        found = [self.entries[data, method] for method in self.methods]
        return sorted((e for e in found if e.honest is not None), key=lambda e: -e.protocols["honest"].mean)

    def best(self, data: str) -> str | None:
        """The method with the highest honest mean."""
        ahead = self.complete(data)
        return ahead[0].method if ahead else None

    def tests(self, data: str) -> dict[tuple[str, str], PairedTest]:
        """Every complete method against every other, one family; computed once."""
        return self._tests[data]

    @cached_property
    def _tests(self) -> dict[str, dict[tuple[str, str], PairedTest]]:
        found = {}
        for info in self.sets:
            entries = self.complete(info.name)
            sizes = [len(fold.test) for entry in entries for fold in entry.folds]
            test = float(np.mean(sizes)) if sizes else 0.0
            ratio = test / max(info.graphs - test, 1.0)
            found[info.name] = all_pairs({entry.method: entry.accuracies for entry in entries}, ratio)
        return found

    def near_best(self, data: str, method: str) -> bool:
        """Whether the folds do not show a method to be worse than the best."""
        best = self.best(data)
        if best is None or self.entries[data, method].honest is None or method == best:
            return False
        test = self.tests(data).get((best, method))
        return test is not None and test.holm >= ALPHA

    @cached_property
    def ranks(self) -> Ranks | None:
        """Over the data sets; None where there are too few."""
        return rank_methods(
            {
                info.name: {entry.method: entry.protocols["honest"].mean for entry in self.complete(info.name)}
                for info in self.sets
            },
            ALPHA,
        )
