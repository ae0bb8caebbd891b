"""The plan of a comparison: which cells there are, on which graphs and folds; saved as ``run.json``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from gcaps.config.limits import mib_of, seconds_of
from gcaps.data.arrays import Ints
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Task
from gcaps.documents import STRICT, Count, Digest, Name, Number, read_json, validated
from gcaps.errors import ConfigError, DataError, GcapsError
from gcaps.estimators.registry import METHODS
from gcaps.evaluation.outcome import Cell, cell_of, digest, fold_digest, full_label
from gcaps.evaluation.splits import (
    Fold,
    Split,
    folds_of,
    groups_of,
)
from gcaps.files import exists, write_json
from gcaps.tuning.search import Tuning

FORMAT = 3
READABLE = (2, 3)
"""Formats that :meth:`Plan.read` reads; 2 knows classification on stratified folds only."""
FILE = "run.json"
TEST_ONLY = "test:"
"""Begins the digest of a fold of which only the test graphs are known."""

MAX_CONFIGURATIONS = 4096
"""Configurations that a grid may have."""
FoldDigest = Annotated[str, Field(pattern=rf"^({TEST_ONLY})?([0-9a-f]{{64}})?$")]
"""Fingerprint of a fold in a plan."""


@dataclass(frozen=True)
class Limits:
    """Time and memory that a cell may take; None: no limit."""

    __pydantic_config__ = STRICT

    seconds: Annotated[Number, Field(gt=0)] | None = None
    """Of a cell, and once more of the work that the folds of a kernel share."""
    mib: Annotated[Number, Field(gt=0)] | None = None
    """Resident memory of the child process that computes the cell, including Python and its libraries."""

    @classmethod
    def of(cls, time_limit: str | float | None, memory_limit: str | float | None) -> Limits:
        """From ``"90s"``, ``"30m"``, ``"2h"`` or seconds, and ``"800M"``, ``"4G"`` or bytes."""
        return cls(seconds_of(time_limit), mib_of(memory_limit))


@dataclass(frozen=True)
class PlannedData:
    """A data set of a comparison and its folds."""

    __pydantic_config__ = STRICT

    name: Name
    source: Name
    """As the user gave it."""
    path: Name | None
    """Path of the source; None for a set that is generated or only in memory."""
    splits: Name | None
    """The file that holds the folds; None where they are drawn."""
    fingerprint: Digest
    graphs: Count
    classes: list[Any]
    """As in the source."""
    folds: dict[Annotated[str, Field(pattern=r"^[0-9]{1,19}$")], Annotated[list[FoldDigest], Field(min_length=1)]]
    """For each seed the digests of its folds."""
    copied: bool = False
    """The set was given as an object; ``path`` is a copy, if there is one, and loading reads it into memory."""
    task: Task = "classification"
    reason: str = ""
    """Reason for the task."""
    targets: list[str] = field(default_factory=list)
    """Names of the targets."""
    metric: str = "accuracy"
    """The headline metric."""
    split: str = "stratified"
    """Rule by which folds are drawn if ``splits`` is None."""
    reading: dict[str, Any] = field(default_factory=dict)
    """Further arguments of :func:`gcaps.load` for reading the source."""
    notes: list[str] = field(default_factory=list)
    """Remarks, such as on graphs that were left out."""

    @property
    def about(self) -> dict[str, Any]:
        """Description for a :class:`~gcaps.evaluation.result.Result`."""
        return {name: value for name, value in asdict(self).items() if name not in _PLACES}

    def load(self) -> GraphSet:
        """Load the graphs from where they were found, or by the name that was given.

        Raises:
            DataError: the graphs are not there, or are not those of the plan.
        """
        path = None if self.path is None else Path(self.path)
        graphs = load(self.source if path is None or not path.exists() else path, **self.reading)
        if self.copied:
            graphs = graphs.in_memory()
        if graphs.fingerprint() != self.fingerprint:
            raise DataError("holds other graphs than the comparison was planned with", str(self.path or self.source))
        return graphs

    def groups(self, graphs: GraphSet | PreparedSet) -> Ints | None:
        """[G] the groups, such as scaffolds, that folds keep whole; None where they keep none."""
        return groups_of(graphs, self.split) if self.grouped else None

    @property
    def grouped(self) -> bool:
        """Whether folds are drawn so that they keep groups whole."""
        return self.splits is None and Split.parse(self.split).grouped

    def fold(self, graphs: GraphSet | PreparedSet, seed: int, number: int) -> Fold:
        """Fold ``number`` of ``seed``, drawn again or read from the splits file.

        Raises:
            DataError: the file is not there, or the fold is not that of the plan.
        """
        planned, folds = self.folds[str(seed)], self.all_folds(graphs, seed)
        if number >= len(folds) or not matches(folds[number], planned[number]):
            raise DataError("holds other folds than the comparison was planned with", self.splits or self.source)
        return folds[number]

    def all_folds(self, graphs: GraphSet | PreparedSet, seed: int) -> list[Fold]:
        """The folds of ``seed``, drawn again or read from the splits file, those of the plan or not."""
        how = self.split if self.splits is None else find_splits(self.splits)
        return folds_of(graphs, len(self.folds[str(seed)]), how, seed, self.task)

    def origin(self, seed: int, chosen: Sequence[int] | None = None) -> str:
        """Return the source of the folds (or those numbered ``chosen``) of a seed, in words."""
        count = len(self.folds[str(seed)])
        whole = self.splits or f"{count} {self.split} fold{'' if count == 1 else 's'}, seed {seed}"
        if chosen is None:
            return whole
        first = list(chosen) == list(range(len(chosen)))
        return f"the first {len(chosen)} of {whole}" if first else f"folds {', '.join(map(str, chosen))} of {whole}"


_PLACES = ("source", "path", "splits", "folds", "copied")
"""Fields of :class:`PlannedData` that are about where graphs and folds are."""


def matches(fold: Fold, known: str) -> bool:
    """Whether ``known`` is the digest of a fold, as far as it goes."""
    if known.startswith(TEST_ONLY):
        return known == digest_of_test(fold.test.tolist())
    return known == fold_digest(fold)


def digest_of_test(test: list[int]) -> str:
    """Digest of a fold of which only the test graphs are known."""
    return TEST_ONLY + digest(test)


def data_folders() -> list[Path]:
    """The folders that the environment variable GCAPS_DATA names."""
    return [Path(part) for part in os.environ.get("GCAPS_DATA", "").split(os.pathsep) if part]


def find_splits(path: str | Path) -> Path:
    """A splits file or folder: where the path says, else below a folder that GCAPS_DATA names."""
    for place in (Path(path), *(folder / path for folder in data_folders())):
        if place.exists():
            return place
    raise DataError("the folds are not here; put the file there, or below a folder that GCAPS_DATA names", str(path))


@dataclass(frozen=True)
class PlannedEntry:
    """A row of a comparison on one data set."""

    __pydantic_config__ = STRICT

    label: Name
    """The row's name."""
    method: Name | None
    """A name in the registry of estimators; None for an estimator of the caller's, which ``configs`` only describes."""
    data: Name
    """The set's name."""
    configs: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_CONFIGURATIONS)]
    """Its configuration, or those of its grid."""
    seeds: Annotated[list[Count], Field(min_length=1)]
    folds: list[Count] | None = None
    """The folds to run; None: all of them."""
    train_size: Count | None = None
    """Number of each fold's training graphs that are trained on, a point of a learning curve; None: all of them."""
    tuning: Tuning | None = None
    """Search over settings on the training graphs of each fold; None: those of ``configs`` are used."""

    @property
    def row(self) -> str:
        """The label of the row that trains on all graphs."""
        return full_label(self.label, self.train_size)


@dataclass(frozen=True)
class Plan:
    """Everything that a comparison computes."""

    __pydantic_config__ = STRICT

    name: Name
    command: str
    """Command that continues or repeats it."""
    data: list[PlannedData]
    entries: list[PlannedEntry]
    """By data set, in the order of ``data``."""
    limits: Limits
    versions: dict[str, str]
    created: str
    format: int = field(default=FORMAT)

    @property
    def labels(self) -> list[str]:
        """The rows' names, in order."""
        return list(dict.fromkeys(entry.label for entry in self.entries))

    @property
    def seeds(self) -> list[int]:
        """All seeds of all entries, ascending."""
        return sorted({seed for entry in self.entries for seed in entry.seeds})

    def cells(self) -> list[Cell]:
        """All cells, by data set, row, seed and fold."""
        return [
            cell_of(
                *(data.name, data.fingerprint, entry.label, entry.method, entry.configs, number, fold, seed),
                task=data.task,
                metric=data.metric,
                groups=data.split if data.grouped else None,
                train_size=entry.train_size,
                tuning=entry.tuning,
            )
            for entry in self.entries
            for data in [self.of(entry.data)]
            for seed in entry.seeds
            for number, fold in enumerate(data.folds[str(seed)])
            if entry.folds is None or number in entry.folds
        ]

    def of(self, name: str) -> PlannedData:
        """The data set of that name."""
        found = next((data for data in self.data if data.name == name), None)
        if found is None:
            raise ConfigError(f"there is no data set {name!r} in it; there are {', '.join(d.name for d in self.data)}")
        return found

    def entry(self, data: str, label: str) -> PlannedEntry | None:
        """The row ``label`` on a data set; None where it is not run there."""
        return next((entry for entry in self.entries if (entry.data, entry.label) == (data, label)), None)

    def save(self, run: str | Path) -> None:
        """Write it into the folder of the run, atomically."""
        write_json(Path(run) / FILE, asdict(self))

    @classmethod
    def read(cls, run: str | Path) -> Plan:
        """Read the plan of the run in a folder."""
        path = Path(run) / FILE
        if not exists(path):
            raise GcapsError(f"{run}: is not the folder of a comparison (it has no {FILE})")
        raw = read_json(path)
        if not isinstance(raw, dict):
            raise GcapsError(f"{path}: is not a plan of gcaps")
        if isinstance(raw.get("format"), int) and raw["format"] not in READABLE:
            raise GcapsError(f"{path}: has format {raw['format']}, this gcaps reads format {FORMAT}")
        return cls.from_dict(raw | {"format": FORMAT}, f"{path}: is not a plan of gcaps")

    @classmethod
    def from_dict(cls, raw: dict[str, Any], problem: str = "is not a plan of gcaps") -> Plan:
        """The plan whose fields ``dataclasses.asdict`` gave.

        Raises:
            GcapsError: it is none; the message begins with ``problem``.
        """
        plan = validated(cls, raw, problem)
        names = [data.name for data in plan.data]
        if len(set(names)) < len(names):
            raise GcapsError(f"{problem} (two data sets have one name)")
        rows = [(entry.data, entry.label) for entry in plan.entries]
        if len(set(rows)) < len(rows):
            raise GcapsError(f"{problem} (two rows on a data set have one label)")
        for entry in plan.entries:
            if entry.data not in names:
                raise GcapsError(f"{problem} (there is no data set {entry.data!r})")
            if entry.method is not None and entry.method not in METHODS:
                raise GcapsError(f"{problem} (there is no method {entry.method!r})")
            folds = plan.of(entry.data).folds
            if len(set(entry.seeds)) < len(entry.seeds) or any(str(seed) not in folds for seed in entry.seeds):
                raise GcapsError(f"{problem} ({entry.label} has a seed twice, or one without folds)")
        return plan


@dataclass(frozen=True)
class InMemory:
    """Graphs and folds of a plan that this process has, by the set's name."""

    graphs: dict[str, GraphSet] = field(default_factory=dict)
    folds: dict[str, list[Fold]] = field(default_factory=dict)
