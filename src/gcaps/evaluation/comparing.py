"""``gcaps.compare``: every method on every data set, cell by cell, resumable, as wide as there are workers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation.budget import Budget
from gcaps.evaluation.cells import Cell, Outcome
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.dispatch import crew_of
from gcaps.evaluation.folds import Fold
from gcaps.evaluation.grid import Grid, configurations, read_grid
from gcaps.evaluation.methods import METHODS
from gcaps.evaluation.plan import FILE, Plan, make_plan
from gcaps.evaluation.runner import available_cpus
from gcaps.evaluation.supervise import Task

GLANCE = 1.0
"""Seconds between two looks at which cells have been written."""


class Report(Protocol):
    """Takes word of a comparison's progress."""

    def begin(self, cells: list[Cell], there: list[Outcome], workers: int) -> None:
        """``cells`` are about to be run by so many workers; the outcomes that are there already stay."""
        ...

    def cell(self, outcome: Outcome) -> None:
        """A cell has been written."""
        ...


def compare(
    data: Any = None,
    methods: str | Sequence[str] = "all",
    *,
    run: str | Path,
    folds: int = 10,
    splits: str | Path | Sequence[Fold] | None = None,
    seeds: Sequence[int] = (0,),
    grid: Grid | str | Path | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    time_limit: str | float | None = None,
    memory_limit: str | float | None = None,
    retry: bool = False,
    report: Report | None = None,
    command: str | None = None,
) -> Comparison:
    """Cross-validate methods on data sets. What the folder ``run`` holds already is not computed again.

    Args:
        data: one or a list of whatever :func:`gcaps.load` takes; None goes on with the plan in ``run``, and only the
            arguments from ``jobs`` on count then.
        methods: names in ``gcaps.evaluation.METHODS``, as a list or joined with commas, or ``"all"``.
        run: the folder that holds the plan and a file for each cell; on a cluster one that all workers see.
        folds: stratified folds drawn with each seed, unless ``splits`` names files of folds.
        splits: a file of folds, a folder with ``NAME.json`` for each set, or the folds themselves.
        seeds: each decides folds and training, as in :func:`gcaps.evaluate`.
        grid: for each method the settings to choose from on inner validation, ``{"gin": {"hidden": [16, 32]}}``; a
            TOML file of such tables; or ``"default"``. A value that is no list is fixed.
        jobs: processes; by default as many as there are CPUs for the threads that configurations ask for.
        cluster: the address of a Dask scheduler whose workers do the work.
        time_limit: of a cell, ``"30m"`` or seconds; going over it is an outcome.
        memory_limit: of a cell's process, ``"4G"`` or bytes; going over it is an outcome.
        retry: run cells again that failed or went over a budget.
        report: told of each cell.
        command: how to go on with it; by default this call.
    """
    folder, budget = Path(run), Budget.of(time_limit, memory_limit)
    if data is None:
        plan = Plan.read(folder)
    else:
        plan = _planned(folder, data, methods, folds, splits, seeds, grid, budget, command)
    cells = plan.cells()
    there = _outcomes(folder, cells, retry=retry)
    left = [cell for cell in cells if cell.fingerprint not in there]
    limits = budget if data is None and budget != Budget() else plan.budgets
    if left:
        with crew_of(_jobs(plan, jobs), cluster) as crew:
            if report is not None:
                report.begin(left, list(there.values()), crew.workers)
            with _Watch(folder, left, report) as watch:
                crew.work(_tasks(folder, plan, left), limits, watch.look)
    return Comparison.read(folder)


def _planned(
    folder: Path,
    data: Any,
    methods: str | Sequence[str],
    folds: int,
    splits: str | Path | Sequence[Fold] | None,
    seeds: Sequence[int],
    grid: Grid | str | Path | None,
    budget: Budget,
    command: str | None,
) -> Plan:
    if folder.exists() and not (folder / FILE).exists() and not _is_begun(folder):
        raise GcapsError(f"{folder}: is not the folder of a comparison; choose a new one")
    names = method_names(methods)
    candidates = read_grid(grid)
    configs = {name: configurations(name, candidates) for name in names}
    sources = list(data) if isinstance(data, list | tuple) and all(_is_source(d) for d in data) else [data]
    plan = make_plan(folder, sources, configs, folds, splits, list(seeds), budget, command)
    plan.save(folder)
    return plan


def _is_begun(folder: Path) -> bool:
    """Whether it is empty, or holds only what planning writes before the plan."""
    return folder.is_dir() and {entry.name for entry in folder.iterdir()} <= {"data", "splits"}


def _is_source(thing: Any) -> bool:
    """Whether it stands for a whole set, and not for one graph of a list of graphs."""
    from gcaps.data.graphset import GraphSet

    return isinstance(thing, str | Path | GraphSet)


def method_names(methods: str | Sequence[str]) -> list[str]:
    """The methods that are meant, each once, in the order given."""
    given = methods.split(",") if isinstance(methods, str) else list(methods)
    names = list(METHODS) if given == ["all"] else list(dict.fromkeys(name.strip() for name in given))
    for name in names:
        if name not in METHODS:
            raise ConfigError(f"there is no method {name!r}; there are {', '.join(METHODS)}")
    return names


def _outcomes(folder: Path, cells: list[Cell], *, retry: bool) -> dict[str, Outcome]:
    """What is there already, by fingerprint; with ``retry`` whatever is not done is removed."""
    there = {cell.fingerprint: Outcome.read(folder / cell.path) for cell in cells if (folder / cell.path).exists()}
    for cell in cells if retry else []:
        if cell.fingerprint in there and there[cell.fingerprint].status != "done":
            (folder / cell.path).unlink()
            del there[cell.fingerprint]
    return there


def _jobs(plan: Plan, jobs: int | None) -> int:
    threads = max(config.get("threads", 1) for configs in plan.methods.values() for config in configs)
    return jobs or max(1, available_cpus() // threads)


def _tasks(folder: Path, plan: Plan, left: list[Cell]) -> list[Task]:
    """What is run by one process without a break: a cell, or all folds of a method whose folds share something.

    The largest sets come first, and in each what cannot be divided: no worker waits at the end for a long task.
    """
    groups: dict[tuple[str, str, int, int], list[Cell]] = {}
    for cell in left:
        shares = METHODS[cell.method].shares
        groups.setdefault((cell.data, cell.method, cell.seed, -1 if shares else cell.fold), []).append(cell)
    planned = {data.name: (data.graphs, asdict(data)) for data in plan.data}
    tasks = [Task(str(folder.resolve()), planned[cells[0].data][1], tuple(cells)) for cells in groups.values()]
    return sorted(tasks, key=lambda task: (-task.data["graphs"], task.data["name"], -len(task.cells)))


class _Watch:
    """Looks for the files of cells, whichever process or machine writes them, and reports each once."""

    def __init__(self, folder: Path, cells: list[Cell], report: Report | None) -> None:
        self._folder, self._report = folder, report
        self._open = dict.fromkeys(cell.path for cell in cells)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._look_again, daemon=True)

    def __enter__(self) -> _Watch:
        if self._report is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._report is not None:
            self._thread.join()
            self.look()

    def _look_again(self) -> None:
        while not self._over.wait(GLANCE):
            self.look()

    def look(self) -> None:
        """Report the cells that have been written since the last look."""
        if self._report is None:
            return
        with self._lock:
            for path in [path for path in self._open if (self._folder / path).exists()]:
                del self._open[path]
                self._report.cell(Outcome.read(self._folder / path))
