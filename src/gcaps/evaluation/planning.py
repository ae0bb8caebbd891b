"""Planning of a comparison: from the rows of the user to a :class:`~gcaps.evaluation.plan.Plan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gcaps.data.catalog import load, located
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.required import is_molecules, require_molecules
from gcaps.data.prepared import PreparedSet
from gcaps.data.reading import Reading
from gcaps.data.targets import resolve_task
from gcaps.errors import ConfigError, DataError
from gcaps.estimators.registry import METHODS, make_estimator
from gcaps.evaluation.learning_curve import curve_sizes
from gcaps.evaluation.metrics import metric_for
from gcaps.evaluation.outcome import as_folder, fold_digest, sized_label
from gcaps.evaluation.plan import InMemory, Limits, Plan, PlannedData, PlannedEntry, find_splits
from gcaps.evaluation.result import about, now, versions
from gcaps.evaluation.splits import (
    DEFAULT_SPLIT,
    Fold,
    Split,
    folds_of,
    repetition_note,
    split_notes,
    write_splits,
)
from gcaps.files import write_json
from gcaps.tuning.search import Tuning


@dataclass(frozen=True)
class Row:
    """A row given by the user, on one data set."""

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
    """Search over settings on the training graphs of each fold."""


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
