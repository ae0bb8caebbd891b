"""Reuse of recorded cells, which a comparison need not compute again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.estimators.auto import resolve
from gcaps.estimators.registry import METHODS, config_class
from gcaps.evaluation.outcome import Cell, Outcome
from gcaps.evaluation.plan import TEST_ONLY, Plan, PlannedData, PlannedEntry, matches
from gcaps.evaluation.record import read_record
from gcaps.evaluation.splits import Fold

Settings = list[dict[str, Any]]


def recorded_cells(plan: Plan, records: Sequence[str | Path]) -> list[tuple[Cell, Outcome]]:
    """Return those cells of a plan that records hold, with their outcomes.

    A recorded cell is the plan's if graphs, fold, method, settings and seed are the same; names of data sets and rows
    do not matter. Settings that a record does not name have their default, and ``auto`` equals what it is resolved to
    for the training graphs of the fold: by this version here, and in a record by the version that computed it, if it
    says. Cells that failed or exceeded a limit are not taken. An outcome keeps the settings, the command, the versions
    and the time of the record that it comes from.

    Args:
        plan: of the comparison.
        records: their files; where several hold a cell, the first one counts.
    """
    wanted = _Wanted(plan)
    found: dict[str, tuple[Cell, Outcome]] = {}
    for path in records:
        recorded = read_record(Path(path))
        for outcome in recorded.outcomes:
            entry = recorded.plan.entry(outcome.data, outcome.label)
            assert entry is not None
            settings = None if outcome.result is None else _settings(entry, outcome)
            if settings is not None:
                known = recorded.plan.of(outcome.data)
                resolved = outcome.result.resolved if outcome.result is not None and entry.tuning is None else {}
                for cell in wanted.cells(_Recorded(known, entry, settings, resolved, outcome.seed, outcome.fold)):
                    found.setdefault(cell.fingerprint, (cell, _as(cell, outcome, recorded.plan.command)))
    return list(found.values())


def _as(cell: Cell, outcome: Outcome, command: str) -> Outcome:
    """A recorded outcome under the names of the plan's cell."""
    return replace(
        outcome,
        data=cell.data,
        label=cell.label,
        fingerprint=cell.fingerprint,
        command=outcome.command or command,
    )


def _settings(entry: PlannedEntry, outcome: Outcome) -> Settings | None:
    """The settings of a recorded cell, completed by defaults; None where this version has no such method or setting.

    Of a search they are those that it began with, not those that it chose.
    """
    if entry.method not in METHODS:
        return None
    chosen = outcome.config if len(entry.configs) == 1 and entry.tuning is None else None
    own = entry.configs if chosen is None else [chosen]
    try:
        return [config_class(entry.method).of(dict(config)).to_dict() for config in own]
    except ConfigError:
        return None


class _Recorded(NamedTuple):
    """Identity of a recorded cell."""

    data: PlannedData
    entry: PlannedEntry
    settings: Settings
    resolved: dict[str, Any]
    """Settings to which ``auto`` was resolved; empty if the record does not have them."""
    seed: int
    fold: int


class _Wanted:
    """The cells of a plan; graphs are loaded only where digests and settings as given do not tell."""

    def __init__(self, plan: Plan) -> None:
        self._data = {data.fingerprint: data for data in plan.data}
        self._cells: dict[tuple[str, str | None, int, int, int | None], list[Cell]] = {}
        for cell in plan.cells():
            key = plan.of(cell.data).fingerprint, cell.method, cell.seed, cell.fold, cell.train_size
            self._cells.setdefault(key, []).append(cell)
        self._graphs: dict[str, GraphSet] = {}
        self._folds: dict[tuple[str, int], list[Fold]] = {}
        self._settings: dict[tuple[str, str, int, int, str], dict[str, Any]] = {}

    def cells(self, recorded: _Recorded) -> list[Cell]:
        """The plan's cells that equal a recorded one: one, or several rows with the same settings."""
        known, entry = recorded.data, recorded.entry
        key = known.fingerprint, entry.method, recorded.seed, recorded.fold, entry.train_size
        candidates = self._cells.get(key, [])
        if not candidates or not self._same_evaluation(recorded) or not self._same_fold(recorded):
            return []
        return [cell for cell in candidates if cell.tuning == entry.tuning and self._same_settings(cell, recorded)]

    def _same_evaluation(self, recorded: _Recorded) -> bool:
        """Whether task, groups and, where it chooses settings, the metric are the plan's."""
        data, known = self._data[recorded.data.fingerprint], recorded.data
        groups = [one.split if one.grouped else None for one in (data, known)]
        metric_matters = len(recorded.settings) > 1 or recorded.entry.tuning is not None
        return (
            data.task == known.task and groups[0] == groups[1] and (data.metric == known.metric or not metric_matters)
        )

    def _same_fold(self, recorded: _Recorded) -> bool:
        data = self._data[recorded.data.fingerprint]
        digest = recorded.data.folds[str(recorded.seed)][recorded.fold]
        if digest.startswith(TEST_ONLY):
            return matches(self._fold(data, recorded.seed, recorded.fold), digest)
        return digest == data.folds[str(recorded.seed)][recorded.fold]

    def _same_settings(self, cell: Cell, recorded: _Recorded) -> bool:
        planned, theirs = list(cell.configs), recorded.settings
        automatic = any("auto" in config.values() for config in (*planned, *theirs))
        if not automatic or len(planned) != len(theirs):
            return planned == theirs
        if len(planned) == 1 and recorded.resolved:
            # what networks measure in their training graphs (SortPooling's k, a width) is recorded besides
            was = recorded.resolved
            theirs = [{name: was.get(name, value) if value == "auto" else value for name, value in theirs[0].items()}]
        return self._resolved(cell, planned) == self._resolved(cell, theirs)

    def _resolved(self, cell: Cell, settings: Settings) -> Settings:
        assert cell.method is not None
        data = next(data for data in self._data.values() if data.name == cell.data)
        train, kind = self._fold(data, cell.seed, cell.fold).train, config_class(cell.method)
        found = []
        for one in settings:  # resolved once: records and rows repeat them
            key = data.fingerprint, cell.method, cell.seed, cell.fold, json.dumps(one, sort_keys=True)
            if key not in self._settings:
                config = kind.of(dict(one))
                self._settings[key] = resolve(config, self._loaded(data), train, data.task)[0].to_dict()
            found.append(self._settings[key])
        return found

    def _fold(self, data: PlannedData, seed: int, number: int) -> Fold:
        key = data.fingerprint, seed
        if key not in self._folds:
            self._folds[key] = data.all_folds(self._loaded(data), seed)
        return self._folds[key][number]

    def _loaded(self, data: PlannedData) -> GraphSet:
        if data.fingerprint not in self._graphs:
            self._graphs[data.fingerprint] = data.load()
        return self._graphs[data.fingerprint]
