"""Verification of recorded results: run a fold again and compare its predictions with the recorded ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.outcome import Outcome
from gcaps.evaluation.plan import FILE, Plan, PlannedData
from gcaps.evaluation.record import METRIC_TOLERANCE, SCORE_UNIT, false_claim, is_record
from gcaps.evaluation.result import FoldResult, versions
from gcaps.evaluation.worker import Worker
from gcaps.files import is_folder

TOLERANCE = 1e-4 + SCORE_UNIT / 2
"""Scores may differ by this much, which includes their rounding in a record; predictions must be equal."""

VALUE_TOLERANCE = 1e-4
"""Predicted values may differ by this share of the largest."""


@dataclass(frozen=True)
class Verdict:
    """The result of running a recorded fold again."""

    name: str
    verdict: Literal["same", "different", "not comparable"]
    detail: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.name} ({self.detail})"


def verify(path: str | Path, fold: int | None = None, only: Collection[str] = ()) -> Iterator[Verdict]:
    """Verify a run's folder, a record, or all records below a folder: one verdict for each row and data set.

    Args:
        path: where they are.
        fold: the fold to run again; by default the one that took the shortest time.
        only: names of data sets and labels of rows to verify; by default all.
    """
    place = Path(path)
    if not place.exists():
        raise GcapsError(f"{place}: does not exist")
    files = [place]
    if place.is_dir() and not (place / FILE).exists():
        files = [file for file in sorted(place.rglob("*.json")) if is_record(file)]
        if not files:
            raise GcapsError(f"{place}: holds no recorded results")
    for file in files:
        comparison = Comparison.read(file)
        claims = {} if is_folder(file) else false_claim(file, comparison)
        yield from _verdicts(comparison, claims, str(file), fold, only)


def _verdicts(
    comparison: Comparison, claims: dict[tuple[str, str], str], place: str, fold: int | None, only: Collection[str]
) -> Iterator[Verdict]:
    data, labels = {planned.name for planned in comparison.plan.data}, set(comparison.plan.labels)
    if unknown := set(only) - data - labels:
        known = ", ".join(sorted(data | labels))
        raise ConfigError(f"{place}: has no data set or row {min(unknown)!r}; it has {known}")
    data, labels = data & set(only) or data, labels & set(only) or labels
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in comparison.outcomes:
        if outcome.result is not None and outcome.data in data and outcome.label in labels:
            groups.setdefault((outcome.data, outcome.label), []).append(outcome)
    graphs: dict[str, GraphSet] = {}
    for (name, label), outcomes in groups.items():
        what = f"{place}: {name} {label}"
        recorded = _pick(outcomes, fold, what)
        try:
            planned = comparison.plan.of(name)
            if name not in graphs:  # one set at a time is kept
                graphs = {name: planned.load()}
            found = _verdict(comparison.plan, planned, graphs[name], recorded, what)
        except GcapsError as error:
            found = Verdict(what, "not comparable", str(error))
        if (name, label) in claims and found.verdict != "different":
            found = Verdict(what, "different", claims[name, label])
        yield found


def _pick(outcomes: list[Outcome], number: int | None, name: str) -> Outcome:
    if number is None:
        return min(outcomes, key=lambda outcome: outcome.seconds)
    found = next((outcome for outcome in outcomes if outcome.fold == number), None)
    if found is None:
        raise ConfigError(f"{name}: has no fold {number}; there are {', '.join(str(o.fold) for o in outcomes)}")
    return found


def _verdict(plan: Plan, planned: PlannedData, graphs: GraphSet, recorded: Outcome, name: str) -> Verdict:
    """Run the cell of a recorded outcome again, in this process."""
    if recorded.method is None:
        raise GcapsError("an estimator of the caller's is not part of the record")
    assert recorded.result is not None
    assert recorded.config is not None
    fold = planned.fold(graphs, recorded.seed, recorded.fold)
    if fold.test.tolist() != recorded.result.test:
        raise GcapsError(f"its folds are others here ({planned.origin(recorded.seed)})")
    entry = plan.entry(recorded.data, recorded.label)
    assert entry is not None
    chosen = recorded.candidates or entry.tuning is not None
    configs = entry.configs if chosen else [recorded.config]  # the choice is repeated, too
    with threadpool_limits(1, user_api="blas"):
        prepared = PreparedSet(graphs)
        worker = Worker(
            *(prepared, recorded.method, configs, recorded.seed),
            task=planned.task,
            metric=planned.metric,
            groups=planned.groups(prepared),
            tuning=entry.tuning,
        )
        again = worker.run(fold, recorded.fold, train_size=entry.train_size)
    if again.config != recorded.config:
        return Verdict(name, "different", "another configuration was chosen")
    here = versions()
    changed = [f"{name} {value}" for name, value in recorded.versions.items() if here.get(name) != value]
    return _compared(name, recorded.result, again.result, changed)


def _compared(name: str, recorded: FoldResult, again: FoldResult, changed: list[str]) -> Verdict:
    if not np.array_equal(recorded.arrays()[0], again.arrays()[0], equal_nan=recorded.task != "classification"):
        return Verdict(name, "different", f"fold {recorded.fold}: the recorded targets are not those of the data set")
    before, after = recorded.arrays()[1], again.arrays()[1]
    if recorded.task == "regression":
        scale = max(float(np.abs(before).max()), 1e-300)
        gap = float(np.abs(before - after).max()) / scale
        detail = f"fold {recorded.fold}: {len(before)} values differ by up to {gap:.2g} of the largest"
        same, tested = gap <= VALUE_TOLERANCE, f"{len(before)} values"
    else:
        wrong, gap = int((before != after).sum()), float(np.abs(np.subtract(recorded.scores, again.scores)).max())
        detail = f"fold {recorded.fold}: {wrong} of {before.size} predictions differ, scores by up to {gap:.2g}"
        same, tested = not wrong and gap <= TOLERANCE, f"{before.size} predictions"
    if not same:
        return Verdict(name, "different", detail + (f"; recorded with {', '.join(changed)}" if changed else ""))
    for metric, value in recorded.metrics.items():
        found = again.metrics.get(metric, value)
        if not abs(found - value) <= METRIC_TOLERANCE * max(1.0, abs(value)):
            detail = f"fold {recorded.fold}: {metric} is {found:.4g}, recorded as {value:.4g}"
            return Verdict(name, "different", detail)
    return Verdict(name, "same", f"fold {recorded.fold}: {tested}")
