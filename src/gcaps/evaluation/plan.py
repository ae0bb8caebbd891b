"""The plan of a comparison: which cells there are, from which graphs, in ``run.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcaps.data.catalog import load, located
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError, DataError, GcapsError
from gcaps.evaluation.budget import Budget
from gcaps.evaluation.cells import Cell as Cell
from gcaps.evaluation.cells import as_folder, cell, digest
from gcaps.evaluation.folds import Fold, folds_of
from gcaps.evaluation.result import about, now, versions
from gcaps.files import write_json

if TYPE_CHECKING:
    from gcaps.data.catalog import Source

FORMAT = 1
FILE = "run.json"


@dataclass(frozen=True)
class PlannedData:
    """A data set of a comparison, and how its folds are made."""

    name: str
    source: str
    """As the user gave it."""
    path: str | None
    """Where it was found; None for a set that is generated."""
    splits: str | None
    """A file of folds; None where they are drawn."""
    fingerprint: str
    graphs: int
    classes: list[Any]
    """As the source calls them."""
    folds: dict[str, list[str]]
    """For each seed the digests of its folds."""

    def load(self) -> GraphSet:
        """The graphs, found where they were or under the name that was given; others are refused."""
        path = None if self.path is None else Path(self.path)
        graphs = load(self.source if path is None or not path.exists() else path)
        if graphs.fingerprint() != self.fingerprint:
            raise DataError("holds other graphs than the comparison was planned with", str(self.path or self.source))
        return graphs

    def fold(self, graphs: GraphSet, seed: int, number: int) -> Fold:
        """Fold ``number`` of ``seed``."""
        fold = folds_of(graphs, len(self.folds[str(seed)]), self.splits, seed)[0][number]
        if digest(fold) != self.folds[str(seed)][number]:
            raise DataError("holds other folds than the comparison was planned with", self.splits or self.source)
        return fold


@dataclass(frozen=True)
class PlannedEntry:
    """One method on one data set."""

    label: str
    method: str | None
    data: str
    configs: list[dict[str, Any]]
    seeds: list[int]
    folds: list[int] | None = None


@dataclass(frozen=True)
class Plan:
    """Everything that a comparison computes."""

    name: str
    command: str
    """How to go on with it, or to make it again."""
    data: list[PlannedData]
    entries: list[PlannedEntry]
    limits: Budget
    versions: dict[str, str]
    created: str
    format: int = field(default=FORMAT)

    def cells(self) -> list[Cell]:
        """All cells, by data set, method, seed and fold."""
        return [
            cell(data.name, data.fingerprint, entry.label, entry.method, tuple(entry.configs), number, fold, seed)
            for data in self.data
            for entry in self.entries
            if entry.data == data.name
            for seed in entry.seeds
            for number, fold in enumerate(data.folds[str(seed)])
            if entry.folds is None or number in entry.folds
        ]

    @property
    def labels(self) -> list[str]:
        """Unique labels, in order."""
        return list(dict.fromkeys(entry.label for entry in self.entries))

    def of(self, name: str) -> PlannedData:
        """The data set of that name."""
        found = next((data for data in self.data if data.name == name), None)
        if found is None:
            raise ConfigError(f"there is no data set {name!r} in it; there are {', '.join(d.name for d in self.data)}")
        return found

    def save(self, run: str | Path) -> None:
        """Write it into the folder of the run, atomically."""
        write_json(Path(run) / FILE, asdict(self))

    @classmethod
    def read(cls, run: str | Path) -> Plan:
        """The plan of the run in a folder."""
        path = Path(run) / FILE
        if not path.exists():
            raise GcapsError(f"{run}: is not the folder of a comparison (it has no {FILE})")
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            if raw["format"] != FORMAT:
                raise GcapsError(f"{path}: has format {raw['format']}, this gcaps reads format {FORMAT}")
            raw["data"] = [PlannedData(**data) for data in raw["data"]]
            raw["entries"] = [PlannedEntry(**entry) for entry in raw["entries"]]
            raw["limits"] = Budget(**raw["limits"])
            return cls(**raw)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise GcapsError(f"{path}: is not a plan of gcaps ({type(error).__name__}: {error})") from error


def make_plan(
    run: Path,
    sources: Sequence[Source],
    methods: dict[str, list[dict[str, Any]]],
    folds: int,
    splits: str | Path | Sequence[Fold] | None,
    seeds: Sequence[int],
    budget: Budget,
    command: str | None,
) -> Plan:
    """A plan for the folder ``run``; graphs and folds that have no file of their own are written into it."""
    if not sources or not methods or not seeds:
        raise ConfigError("a comparison needs a data set, a method and a seed")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"a seed stands twice in {', '.join(map(str, seeds))}")
    data: list[PlannedData] = []
    for source in sources:
        data.append(_planned(run, source, folds, splits, seeds, alone=len(sources) == 1))
        if data[-1].name in {other.name for other in data[:-1]}:
            raise ConfigError(f"two data sets are called {data[-1].name}; save one under another name")
    return Plan(
        name=run.resolve().name,
        command=command or _call(data, methods, run),
        data=data,
        entries=[PlannedEntry(m, m, d.name, configs, list(seeds)) for d in data for m, configs in methods.items()],
        limits=budget,
        versions=versions(),
        created=now(),
    )


def _planned(
    run: Path,
    source: Source,
    folds: int,
    splits: str | Path | Sequence[Fold] | None,
    seeds: Sequence[int],
    *,
    alone: bool,
) -> PlannedData:
    graphs = load(source)
    if not isinstance(source, str | Path):
        source = run / "data" / f"{as_folder(graphs.name)}.gset"
        if not source.exists() or load(source).fingerprint() != graphs.fingerprint():
            graphs.save(source)
    path, file = located(source), _splits(run, graphs.name, splits, alone=alone)
    found = {str(seed): [digest(fold) for fold in folds_of(graphs, folds, file, seed)[0]] for seed in seeds}
    return PlannedData(
        source=str(source),
        path=None if path is None else str(path.resolve()),
        splits=file,
        folds=found,
        **about(graphs),
    )


def _splits(run: Path, name: str, splits: str | Path | Sequence[Fold] | None, *, alone: bool) -> str | None:
    """The file of folds for the set ``name``."""
    if splits is None:
        return None
    if not isinstance(splits, str | Path):
        file = run / "splits" / f"{as_folder(name)}.json"
        write_json(file, [_sides(fold) for fold in splits])
        return str(file.resolve())
    file = Path(splits)
    if file.is_dir():
        file = file / f"{name}.json"
    elif not alone:
        raise ConfigError(f"{splits}: with several data sets, give a folder with a file of folds for each")
    if not file.exists():
        raise DataError("does not exist", str(file))
    return str(file.resolve())


def _sides(fold: Fold) -> dict[str, list[int]]:
    held = [] if fold.validation is None else fold.validation.tolist()
    return {"train": np.setdiff1d(fold.train, held).tolist(), "validation": held, "test": fold.test.tolist()}


def _call(data: list[PlannedData], methods: dict[str, list[dict[str, Any]]], run: Path) -> str:
    return f"gcaps.compare({[d.source for d in data]!r}, {list(methods)!r}, run={str(run)!r})"
