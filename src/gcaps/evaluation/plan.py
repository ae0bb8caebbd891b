"""The plan of a comparison: which cells there are, on which graphs and folds; saved as ``run.json``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from gcaps.config.limits import mib_of, seconds_of
from gcaps.data.arrays import Ints
from gcaps.data.catalog import load, located
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.required import is_molecules, require_molecules
from gcaps.data.prepared import PreparedSet
from gcaps.data.reading import Reading
from gcaps.data.targets import Task, resolve_task
from gcaps.documents import STRICT, Count, Digest, Name, Number, read_json, validated
from gcaps.errors import ConfigError, DataError, GcapsError
from gcaps.estimators.registry import METHODS, make_estimator
from gcaps.evaluation.learning_curve import curve_sizes
from gcaps.evaluation.metrics import metric_for
from gcaps.evaluation.outcome import Cell, as_folder, cell_of, digest, fold_digest, full_label, sized_label
from gcaps.evaluation.result import about, now, versions
from gcaps.evaluation.splits import (
    DEFAULT_SPLIT,
    Fold,
    Split,
    folds_of,
    groups_of,
    repetition_note,
    split_notes,
    write_splits,
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
"""What a plan knows of a fold."""


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
    """Where it was found; None for a set that is generated or only in memory."""
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
    """What tells the task."""
    targets: list[str] = field(default_factory=list)
    """Names of the targets."""
    metric: str = "accuracy"
    """The headline metric."""
    split: str = "stratified"
    """How folds are drawn where ``splits`` is None."""
    reading: dict[str, Any] = field(default_factory=dict)
    """How the source is read: further arguments of :func:`gcaps.load`."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know, such as graphs that were left out."""

    @property
    def about(self) -> dict[str, Any]:
        """What a :class:`~gcaps.evaluation.result.Result` says of it."""
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
        """Where the folds (or those numbered ``chosen``) of a seed come from, in words."""
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
    """How settings are searched on the training graphs of each fold; None: they are those of ``configs``."""

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
    """How to continue or repeat it."""
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
class Row:
    """A row as the user asks for it, on one data set."""

    label: str
    method: str | None
    configs: list[dict[str, Any]]
    source: str | Path | GraphSet
    seeds: tuple[int, ...]
    folds: int
    first: int | None = None
    """Run only the first so many folds."""
    split: str | Path | tuple[Fold, ...] | None = None
    """See :func:`gcaps.evaluation.splits.folds_of`; a path may be a folder with a file for each set."""
    task: str = "auto"
    metric: str | None = None
    """The headline metric; None: that of the task."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of :func:`gcaps.load`."""
    optional: bool = False
    """Left out, instead of refused, where the method does not take such graphs."""
    train_sizes: int | tuple[int, ...] = ()
    """Points of a learning curve, see :func:`gcaps.evaluation.learning_curve.curve_sizes`."""
    tuning: Tuning | None = None
    """How settings are searched on the training graphs of each fold."""


@dataclass(frozen=True)
class InMemory:
    """Graphs and folds of a plan that this process has, by the set's name."""

    graphs: dict[str, GraphSet] = field(default_factory=dict)
    folds: dict[str, list[Fold]] = field(default_factory=dict)


def make_plan(
    rows: Sequence[Row], limits: Limits, command: str | None = None, name: str = "comparison"
) -> tuple[Plan, InMemory]:
    """Plan the rows of a comparison.

    Args:
        rows: what to run.
        limits: of each cell.
        command: how to continue or repeat the comparison; by default a call of :func:`gcaps.compare`.
        name: of the comparison.

    Returns:
        The plan, and the graphs and folds that are only in memory; :func:`write_inputs` writes these for other
        processes.
    """
    by_source: dict[str | Path | GraphSet, list[Row]] = {}
    for row in rows:
        if len(set(row.seeds)) < len(row.seeds):
            raise ConfigError(f"a seed is given twice in {', '.join(map(str, row.seeds))}")
        by_source.setdefault(row.source, []).append(row)
    if not by_source or not all(row.seeds for row in rows):
        raise ConfigError("a comparison needs a data set, a method and a seed")
    data: list[PlannedData] = []
    entries: list[PlannedEntry] = []
    memory = InMemory()
    for source, own in by_source.items():
        planned, own, smallest = _planned(source, own, memory, alone=len(by_source) == 1)
        data.append(planned)
        if data[-1].name in {other.name for other in data[:-1]}:
            raise ConfigError(f"two data sets are called {data[-1].name}; save one under another name")
        found = [entry for row in own for entry in _entries(row, planned, smallest)]
        for label in (labels := [entry.label for entry in found]):
            if labels.count(label) > 1:
                raise ConfigError(f"two rows on {planned.name} are called {label!r}; give one another label")
        entries += found
    labels = list(dict.fromkeys(row.label for row in rows))
    call = f"gcaps.compare({[planned.source for planned in data]!r}, {labels!r})"
    return Plan(name, command or call, data, entries, limits, versions(), now()), memory


def write_inputs(plan: Plan, memory: InMemory, folder: Path) -> Plan:
    """Write graphs and folds that are only in memory into a folder; returns the plan with their paths."""
    return replace(plan, data=[_written(data, memory, folder) for data in plan.data])


def _written(data: PlannedData, memory: InMemory, folder: Path) -> PlannedData:
    if data.copied:
        graphs, path = memory.graphs[data.name], folder / "data" / f"{as_folder(data.name)}.gset"
        if not path.exists() or load(path).fingerprint() != data.fingerprint:
            graphs.save(path)
        # a set that was mapped before is mapped again
        data = replace(data, path=str(path.resolve()), copied=not graphs.mapped, reading={})
    if data.name in memory.folds:
        file = folder / "splits" / f"{as_folder(data.name)}.json"
        write_json(file, write_splits(memory.folds[data.name]))
        data = replace(data, splits=str(file.resolve()))
    return data


def _entries(row: Row, data: PlannedData, smallest: int) -> list[PlannedEntry]:
    """The row on all training graphs and on parts of them; ``smallest`` is the number of the smallest fold."""
    full = _entry(row, data)
    sizes = [] if row.train_sizes == () else curve_sizes(row.train_sizes, smallest)
    return [full, *(replace(full, label=sized_label(row.label, size), train_size=size) for size in sizes)]


def _entry(row: Row, data: PlannedData) -> PlannedEntry:
    count = min(len(data.folds[str(seed)]) for seed in row.seeds)
    if row.first is not None and not 1 <= row.first <= count:
        raise ConfigError(f"{row.label} on {data.name}: first = {row.first}, but there are {count} folds")
    if row.method is not None and data.task == "regression":  # settings about classes are refused before anything runs
        for config in row.configs:
            make_estimator(row.method, config, task=data.task)
    folds = None if row.first is None else list(range(row.first))
    return PlannedEntry(row.label, row.method, data.name, row.configs, list(row.seeds), folds, tuning=row.tuning)


def _planned(
    source: str | Path | GraphSet, rows: list[Row], memory: InMemory, *, alone: bool
) -> tuple[PlannedData, list[Row], int]:
    """Plan one data set; return it, its rows and the number of training graphs of its smallest fold.

    All rows on it must have the same folds.
    """
    given = isinstance(source, GraphSet)
    how = rows[0].split if isinstance(rows[0].split, tuple) or rows[0].split is None else Split.parse(rows[0].split)
    reading = _changed(rows[0].reading)
    if isinstance(how, Split) and how.column and not given:
        reading["columns"] = [*dict.fromkeys([*reading.get("columns", ()), how.column])]
    graphs = load(source, **reading)
    if graphs.y is None:
        raise DataError("has no targets to evaluate predictions with", graphs.name)
    rows = [row for row in rows if _applies(row, graphs)]
    if not all(_same_folds(row, rows[0]) for row in rows):
        raise ConfigError(f"the rows on {graphs.name} have different folds; methods are compared on the same ones")
    if len({(row.task, row.metric) for row in rows}) > 1:
        raise ConfigError(f"the rows on {graphs.name} have different tasks or metrics")
    if given or alone:
        memory.graphs[graphs.name] = graphs
    path = None if isinstance(source, GraphSet) else located(source)
    task, reason = resolve_task(graphs.y, rows[0].task, graphs.name)
    known = about(graphs, task)
    metric = metric_for(task, rows[0].metric, len(known["classes"])).name
    origin: str | None = None
    split: str | Path | tuple[Fold, ...] = DEFAULT_SPLIT[task]
    if isinstance(how, tuple):
        memory.folds[graphs.name] = folds_of(graphs, len(how), how, 0, task)
        split, origin = how, f"{len(how)} folds given by the caller"
    elif how is not None and how.is_file:
        split = origin = str(_splits_file(how.file, graphs.name, alone=alone))
    elif how is not None:
        split = str(how)
    seeds, folds = sorted({seed for row in rows for seed in row.seeds}), rows[0].folds
    prepared = PreparedSet(graphs)
    drawn = {str(seed): folds_of(prepared, folds, split, seed, task) for seed in seeds}
    digests = {seed: [fold_digest(fold) for fold in parts] for seed, parts in drawn.items()}
    notes = [*_skipped_notes(graphs), *split_notes(graphs, folds, str(split) if origin is None else "file", task)]
    if len(seeds) > 1 and len({tuple(found) for found in digests.values()}) == 1:
        notes.append(repetition_note("the file" if origin is not None else str(split), folds))
    planned = PlannedData(
        source=graphs.name if given else str(source),
        path=None if path is None else str(path.resolve()),
        splits=origin,
        folds=digests,
        copied=given,
        reason=reason,
        metric=metric,
        split=DEFAULT_SPLIT[task] if origin is not None else str(split),
        reading={} if given else reading,
        notes=notes,
        **known,
    )
    return planned, rows, min(len(fold.train) for parts in drawn.values() for fold in parts)


def _applies(row: Row, graphs: GraphSet) -> bool:
    """Whether a row's method takes such graphs.

    Raises:
        DataError: it does not, and the row is not optional.
    """
    if row.method is None or not METHODS[row.method].needs_molecules:
        return True
    if not row.optional:
        require_molecules(graphs, row.method)
    return is_molecules(graphs)


def _changed(reading: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of :func:`gcaps.load` that are not the default, as JSON values."""
    default = asdict(Reading())
    found = {name: value for name, value in reading.items() if name not in default or value != default[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def _skipped_notes(graphs: GraphSet) -> list[str]:
    """Rows of the source that are no graphs."""
    if not graphs.skipped:
        return []
    first, count = graphs.skipped[0], len(graphs.skipped)
    rows = f"{count:,} row{'s' if count > 1 else ''} of the source {'are' if count > 1 else 'is'} left out"
    return [f"{rows} (row {first.row + 1}: {first.reason}{'; …' if count > 1 else ''})"]


def _same_folds(a: Row, b: Row) -> bool:
    same = a.split is b.split or (isinstance(a.split, str | Path) and a.split == b.split)
    return same and a.folds == b.folds


def _splits_file(splits: str | Path, name: str, *, alone: bool) -> Path:
    """The file with the folds of a set."""
    if not alone and Path(splits).suffix == ".json":
        raise ConfigError(f"{splits}: with several data sets, give a folder with a file of folds for each")
    place = find_splits(splits)
    return (find_splits(place / f"{name}.json") if place.is_dir() else place).resolve()
