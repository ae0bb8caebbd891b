"""A comparison: its plan and the outcomes of its cells, from a run's folder, a record, or single results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gcaps.errors import GcapsError
from gcaps.evaluation.metrics import metric_for
from gcaps.evaluation.outcome import Cell, Key, Outcome, fold_digest, read_cell
from gcaps.evaluation.plan import TEST_ONLY, Limits, Plan, PlannedData, PlannedEntry, digest_of_test
from gcaps.evaluation.protocols import summarise
from gcaps.evaluation.result import FoldResult, Result
from gcaps.evaluation.splits import Fold
from gcaps.files import is_folder

DRAWN = re.compile(r"(?:the first \d+ of )?(\d+) (stratified|random|scaffold(?:-balanced)?|\w+:.*) folds?, seed (\d+)")
"""The origin of folds that a seed draws, as a result states it."""


@dataclass(frozen=True)
class Comparison:
    """Methods × data sets × seeds × folds, finished or not."""

    plan: Plan
    outcomes: list[Outcome]
    """Of the plan's cells that were run, in the plan's order."""

    @classmethod
    def read(cls, path: str | Path) -> Comparison:
        """Read a comparison from the folder of its run, or from a record that :meth:`save` wrote."""
        place = Path(path)
        if place.suffix == ".json" and not is_folder(place):
            from gcaps.evaluation.record import read_record

            return read_record(place)
        plan = Plan.read(place)
        outcomes = [read_cell(place, cell) for cell in plan.cells()]
        found = cls(plan, [outcome for outcome in outcomes if outcome is not None])
        found.require_sound(str(place))
        return found

    def require_sound(self, place: str) -> None:
        """Raise a GcapsError unless outcomes agree with the plan and with one another.

        The folds of a data set and seed have the same test graphs and targets for every method; where folds are drawn,
        no graph is tested twice; test graphs are graphs of the set, and classes its classes.
        """
        tests: dict[tuple[str, int, int], FoldResult] = {}
        for outcome in self.outcomes:
            if (found := outcome.result) is None:
                continue
            data, what = self.plan.of(outcome.data), f"{outcome.label} on {outcome.data}, fold {outcome.fold}"
            if found.task != data.task or max(found.test) >= data.graphs:
                raise GcapsError(f"{place}: {what} is of another task or of graphs that the data set does not have")
            classes = len(data.classes) if data.task == "classification" else 0
            if classes and max(*found.y, *found.predictions) >= classes:
                raise GcapsError(f"{place}: {what} names a class that the data set does not have")
            known = data.folds[str(outcome.seed)][outcome.fold]
            if known.startswith(TEST_ONLY) and known not in (TEST_ONLY, digest_of_test(found.test)):
                raise GcapsError(f"{place}: {what} tests other graphs than the plan says")
            first = tests.setdefault((outcome.data, outcome.seed, outcome.fold), found)
            if first is not found and (first.test != found.test or first.y != found.y):
                raise GcapsError(f"{place}: {what} tests other graphs or targets than another row does")
        tested: set[tuple[str, int, int]] = set()
        for (name, seed, fold), found in tests.items():
            own = {(name, seed, graph) for graph in found.test}
            if self.plan.of(name).splits is None and tested & own:
                raise GcapsError(f"{place}: fold {fold} of {name}, seed {seed}, tests graphs of another fold")
            tested |= own

    def save(self, path: str | Path) -> None:
        """Write a record: ``NAME.json`` and beside it ``NAME.npz`` (see :mod:`gcaps.evaluation.record`)."""
        from gcaps.evaluation.record import write_record

        write_record(self, path)

    @classmethod
    def of_results(cls, results: Sequence[Result], name: str = "results") -> Comparison:
        """The comparison that single results make up.

        Every row on a data set should have the same seeds: what a row lacks is missing, as in an unfinished run.

        Raises:
            GcapsError: as :meth:`join`.
        """
        found = cls.join([_of_result(result) for result in results], name)
        seeds = {data.name: sorted(map(int, data.folds)) for data in found.plan.data}
        entries = [replace(entry, seeds=seeds[entry.data]) for entry in found.plan.entries]
        return replace(found, plan=replace(found.plan, entries=entries))

    @classmethod
    def join(cls, comparisons: Sequence[Comparison], name: str = "results") -> Comparison:
        """Join comparisons of different rows, data sets or seeds.

        Raises:
            GcapsError: a row is there twice for a data set and seed, or graphs or folds of a data set differ.
        """
        if not comparisons:
            raise GcapsError("there are no results to compare")
        data: dict[str, PlannedData] = {}
        entries: dict[tuple[str, str], PlannedEntry] = {}
        outcomes: dict[Key, Outcome] = {}
        tests: dict[tuple[str, int, int], list[int]] = {}
        for one in comparisons:
            for planned in one.plan.data:
                data[planned.name] = _joined_data(data.get(planned.name), planned)
            for entry in one.plan.entries:
                key = entry.data, entry.label
                entries[key] = _joined_entry(entries.get(key), entry)
            for outcome in one.outcomes:
                if outcome.result is not None:
                    test = tests.setdefault((outcome.data, outcome.seed, outcome.fold), outcome.result.test)
                    if sorted(test) != sorted(outcome.result.test):
                        what = f"results of {outcome.data} with seed {outcome.seed}"
                        raise GcapsError(f"{what} have different folds; they cannot be compared fold by fold")
                outcomes[outcome.key] = replace(outcome, command=outcome.command or one.plan.command)
        plans = [one.plan for one in comparisons]
        plan = Plan(
            name=name,
            command="\n".join(dict.fromkeys(plan.command for plan in plans)),
            data=list(data.values()),
            entries=[entry for planned in data for entry in entries.values() if entry.data == planned],
            limits=plans[0].limits if len({plan.limits for plan in plans}) == 1 else Limits(),
            versions=plans[0].versions,
            created=max(plan.created for plan in plans),
        )
        cells = [cell for cell in plan.cells() if cell.key in outcomes]
        return cls(plan, [replace(outcomes[cell.key], fingerprint=cell.fingerprint) for cell in cells])

    def with_metric(self, metric: str) -> Comparison:
        """The same comparison with another headline metric.

        Raises:
            ConfigError: there is no such metric for the task of a data set.
        """
        data = [
            replace(planned, metric=metric_for(planned.task, metric, len(planned.classes)).name)
            for planned in self.plan.data
        ]
        return replace(self, plan=replace(self.plan, data=data))

    def missing(self) -> list[Cell]:
        """Cells of the plan that have not been run."""
        there = {outcome.key for outcome in self.outcomes}
        return [cell for cell in self.plan.cells() if cell.key not in there]

    def results(self) -> list[Result]:
        """All results whose folds are done, in the plan's order."""
        found = [self.result(entry.data, entry.label, seed) for entry in self.plan.entries for seed in entry.seeds]
        return [result for result in found if result is not None]

    def result(self, data: str, label: str, seed: int | None = None) -> Result | None:
        """The folds of one row on one data set, as :func:`gcaps.evaluate` returns them; None unless all are done.

        ``seed`` is by default the row's first. Where configurations were chosen, the settings that differ are in each
        fold's ``chosen`` and not in the result's ``config``.
        """
        planned, entry = self.plan.of(data), self.plan.entry(data, label)
        if entry is None:
            return None
        seed = entry.seeds[0] if seed is None else seed
        found = [o for o in self._by_row.get((data, label, seed), []) if o.result is not None and o.config is not None]
        count = len(entry.folds if entry.folds is not None else planned.folds.get(str(seed), []))
        if not found or len(found) < count:
            return None
        configs = [*entry.configs, *(o.config for o in found if o.config is not None)]
        common = {name: value for name, value in configs[0].items() if all(c.get(name) == value for c in configs)}
        folds = [_with_choice(o, common, planned.metric) for o in found]
        return Result(
            label=label,
            method=entry.method,
            data=planned.about,
            folds=folds,
            protocols=summarise([folds], planned.metric),
            config=common,
            seed=seed,
            splits=planned.origin(seed, entry.folds),
            command=found[0].command or self.plan.command,
            versions=found[0].versions,
            created=max(o.created for o in found),
            train_size=entry.train_size,
        )

    @cached_property
    def _by_row(self) -> dict[tuple[str, str, int], list[Outcome]]:
        rows: dict[tuple[str, str, int], list[Outcome]] = {}
        for outcome in self.outcomes:
            rows.setdefault((outcome.data, outcome.label, outcome.seed), []).append(outcome)
        return rows


def _with_choice(outcome: Outcome, common: dict[str, Any], metric: str) -> FoldResult:
    """The outcome's fold, with the settings that were chosen for it."""
    assert outcome.result is not None
    assert outcome.config is not None
    if not outcome.candidates:
        return outcome.result
    chosen = {name: value for name, value in outcome.config.items() if name not in common}
    best = max if metric_for(outcome.result.task, metric).greater_is_better else min
    inner = [candidate["inner"] for candidate in outcome.candidates if candidate["inner"] is not None]
    found = {"inner": best(inner)} if inner else {}
    return replace(outcome.result, chosen=outcome.result.chosen | chosen | found)


def _of_result(result: Result) -> Comparison:
    """The comparison that consists of one result."""
    drawn, numbers = DRAWN.fullmatch(result.splits), [fold.fold for fold in result.folds]
    known: dict[int, str] = {}
    for fold in result.folds:
        test = np.array(fold.test, dtype=np.int64)
        train = np.setdiff1d(np.arange(int(result.data["graphs"])), test)
        # only then are all graphs that are not tested training graphs
        whole = drawn is not None and drawn[2] == "stratified" and drawn[1] != "1" and not result.data.get("notes")
        known[fold.fold] = fold_digest(Fold(train, test)) if whole else digest_of_test(fold.test)
    count = max(numbers) + 1 if drawn is None else int(drawn[1])
    data = PlannedData(
        source=str(result.data["name"]),
        path=None,
        splits=None if drawn is not None else re.sub(r"^the first \d+ of ", "", result.splits),
        folds={str(result.seed): [known.get(number, TEST_ONLY) for number in range(count)]},
        **result.data,
    )
    configs = [_config(result, fold) for fold in result.folds]
    distinct = [config for place, config in enumerate(configs) if config not in configs[:place]]
    chosen = None if numbers == list(range(count)) else numbers
    entry = PlannedEntry(result.label, result.method, data.name, distinct, [result.seed], chosen, result.train_size)
    plan = Plan("result", result.command, [data], [entry], Limits(), result.versions, result.created)
    outcomes = [
        Outcome(
            data=cell.data,
            label=cell.label,
            method=cell.method,
            seed=cell.seed,
            fold=cell.fold,
            fingerprint=cell.fingerprint,
            status="done",
            config=config,
            result=fold,
            error=None,
            seconds=fold.seconds,
            peak_mib=None,
            candidates=[],
            embedding=None,
            versions=result.versions,
            created=result.created,
            command=result.command,
        )
        for cell, fold, config in zip(plan.cells(), result.folds, configs, strict=True)
    ]
    return Comparison(plan, outcomes)


def _config(result: Result, fold: FoldResult) -> dict[str, Any]:
    """The configuration of a fold: the result's, with what the fold chose from a grid."""
    from gcaps.config import CONFIGS

    kind = CONFIGS.get(result.method or "")
    chosen = {} if kind is None else {n: v for n, v in fold.chosen.items() if n in kind.model_fields}
    return chosen | result.config


def _joined_data(first: PlannedData | None, second: PlannedData) -> PlannedData:
    if first is None:
        return second
    if first.fingerprint != second.fingerprint:
        raise GcapsError(f"results of {first.name} are about different graphs; they cannot be compared")
    if (first.task, first.targets or second.targets) != (second.task, second.targets or first.targets):
        raise GcapsError(f"results of {first.name} are about different tasks or targets; they cannot be compared")
    folds = dict(first.folds)
    for seed, digests in second.folds.items():
        before = folds.setdefault(seed, digests)
        if len(before) != len(digests) or any(
            a != b and not a.startswith(TEST_ONLY) and not b.startswith(TEST_ONLY)
            for a, b in zip(before, digests, strict=True)
        ):
            what = f"results of {first.name} with seed {seed}"
            raise GcapsError(f"{what} have different folds; they cannot be compared fold by fold")
        folds[seed] = [max(pair, key=_knowledge) for pair in zip(before, digests, strict=True)]
    return replace(first, folds=folds)


def _knowledge(digest: str) -> tuple[bool, int]:
    """Orders digests of one fold: of nothing, of its test graphs, of the whole fold."""
    return not digest.startswith(TEST_ONLY), len(digest)


def _joined_entry(first: PlannedEntry | None, second: PlannedEntry) -> PlannedEntry:
    if first is None:
        return second
    what = f"{first.label} on {first.data}"
    if shared := set(first.seeds) & set(second.seeds):
        raise GcapsError(f"two results are about {what} with seed {min(shared)}; give one of them")
    if (first.method, first.folds, first.tuning) != (second.method, second.folds, second.tuning):
        raise GcapsError(f"two results are about {what}, with different methods or numbers of folds")
    configs = [*first.configs, *(config for config in second.configs if config not in first.configs)]
    return replace(first, configs=configs, seeds=sorted([*first.seeds, *second.seeds]))
