"""``gcaps.compare`` and ``gcaps.evaluate``: plan cells, run them with an executor, collect their outcomes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from gcaps.errors import ConfigError, GcapsError, MemoryLimitError
from gcaps.evaluation.executor import DaskCluster, Executor, InProcess, WorkerProcesses
from gcaps.evaluation.experiments import Experiment, Grid, Methods, Named, named_methods, read_experiment, rows_of
from gcaps.evaluation.outcome import Cell, Key, Outcome
from gcaps.evaluation.plan import FILE, InMemory, Limits, Plan, Row, make_plan, write_inputs
from gcaps.evaluation.protocols import PROTOCOLS, summarise
from gcaps.evaluation.result import FoldResult, Result
from gcaps.evaluation.splits import Fold
from gcaps.evaluation.supervise import Listener, Task

if TYPE_CHECKING:
    from gcaps.training import Epoch


OnEpoch: TypeAlias = "Callable[[Cell, Epoch], None]"


class Report(Protocol):
    """Is told of a comparison's progress."""

    def begin(self, cells: list[Cell], there: list[Outcome], workers: int) -> None:
        """``cells`` are about to be run by so many workers; ``there`` were done before."""
        ...

    def cell(self, outcome: Outcome) -> None:
        """A cell is done, or has failed."""
        ...


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
        if place.suffix == ".json" and not place.is_dir():
            from gcaps.evaluation.record import read_record

            return read_record(place)
        plan = Plan.read(place)
        files = [place / cell.path for cell in plan.cells()]
        return cls(plan, [Outcome.read(file) for file in files if file.exists()])

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
        from gcaps.evaluation.record import of_result

        found = cls.join([of_result(result) for result in results], name)
        seeds = {data.name: sorted(map(int, data.folds)) for data in found.plan.data}
        entries = [replace(entry, seeds=seeds[entry.data]) for entry in found.plan.entries]
        return replace(found, plan=replace(found.plan, entries=entries))

    @classmethod
    def join(cls, comparisons: Sequence[Comparison], name: str = "results") -> Comparison:
        """Join comparisons of different rows, data sets or seeds.

        Raises:
            GcapsError: a row is there twice for a data set and seed, or graphs or folds of a data set differ.
        """
        from gcaps.evaluation.record import join

        return join(comparisons, name)

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
        folds = [_with_choice(o, common) for o in found]
        return Result(
            label=label,
            method=entry.method,
            data={
                "name": planned.name,
                "fingerprint": planned.fingerprint,
                "graphs": planned.graphs,
                "classes": planned.classes,
            },
            folds=folds,
            protocols=summarise(folds),
            config=common,
            seed=seed,
            splits=planned.origin(seed, entry.folds),
            command=found[0].command or self.plan.command,
            versions=found[0].versions,
            created=max(o.created for o in found),
        )

    @cached_property
    def _by_row(self) -> dict[tuple[str, str, int], list[Outcome]]:
        rows: dict[tuple[str, str, int], list[Outcome]] = {}
        for outcome in self.outcomes:
            rows.setdefault((outcome.data, outcome.label, outcome.seed), []).append(outcome)
        return rows


def _with_choice(outcome: Outcome, common: dict[str, Any]) -> FoldResult:
    """The outcome's fold, with the settings that were chosen for it."""
    assert outcome.result is not None
    assert outcome.config is not None
    if not outcome.candidates:
        return outcome.result
    chosen = {name: value for name, value in outcome.config.items() if name not in common}
    inner = max(candidate["inner"] for candidate in outcome.candidates)
    return replace(outcome.result, chosen=outcome.result.chosen | chosen | {"inner": inner})


def compare(
    data: Any = None,
    methods: Methods = "all",
    *,
    run: str | Path | None = None,
    experiment: Experiment | str | None = None,
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
    on_epoch: OnEpoch | None = None,
    command: str | None = None,
) -> Comparison:
    """Cross-validate methods on data sets.

    Args:
        data: one or a list of whatever :func:`gcaps.load` takes; None continues with the plan in ``run``, and only the
            arguments from ``jobs`` on count then.
        methods: names of methods, as a list or joined with commas, ``"all"``; scikit-learn estimators or pipelines on
            graphs; or ``{label: name | (name, settings) | estimator}``.
        run: the folder that holds the plan and a file for each cell; what it holds already is not computed again. On a
            cluster all workers must see it. None keeps everything in memory.
        experiment: a TOML file or the name of an experiment, in place of ``data`` and the arguments up to ``grid``.
        folds: stratified folds drawn with each seed, unless ``splits`` names files of folds.
        splits: a file of folds, a folder with ``NAME.json`` for each set, or the folds themselves.
        seeds: each decides folds and training.
        grid: for each method the settings to choose from on inner validation, ``{"gin": {"hidden": [16, 32]}}``; a
            TOML file of such tables; or ``"default"``. A value that is no list is fixed.
        jobs: processes; by default as many as there are CPUs for the threads that configurations ask for. With one
            process and no limits, everything runs in this process.
        cluster: the address of a Dask scheduler whose workers run the cells.
        time_limit: of a cell, ``"30m"`` or seconds; exceeding it is recorded as its outcome.
        memory_limit: of a cell's process, ``"4G"`` or bytes; exceeding it is recorded as its outcome.
        retry: run cells again that failed or exceeded a limit.
        report: told of each cell.
        on_epoch: called with the cell and the epoch after each epoch, except on a cluster.
        command: how to continue or repeat the comparison; by default this call.
    """
    limits = Limits.of(time_limit, memory_limit)
    named: dict[str, Named] = {}
    if experiment is not None:
        found = read_experiment(experiment) if isinstance(experiment, str) else experiment
        rows = found.rows()
        limits = Limits.of(time_limit or found.time_limit, memory_limit or found.memory_limit)
    elif data is not None:
        named = named_methods(methods, grid)
        rows = rows_of(data, named, seeds, folds, splits)
    elif run is None:
        raise ConfigError("give data to compare on, or the folder of a comparison to continue")
    else:
        plan = Plan.read(run)
        plan = replace(plan, limits=plan.limits if limits == Limits() else limits)
        runner = _Runner(plan, InMemory(), {}, on_epoch)
        return runner.run_in(Path(run), jobs, cluster, report, retry=retry)
    own = {label: estimator for label, (_, _, estimator) in named.items() if estimator is not None}
    if run is None:
        return _in_memory(rows, limits, own, jobs, cluster, command, report, on_epoch)
    folder = Path(run)
    if folder.exists() and not (folder / FILE).exists() and not _is_begun(folder):
        raise GcapsError(f"{folder}: is not the folder of a comparison; choose a new one")
    plan, memory = make_plan(rows, limits, command, folder.resolve().name)
    plan = write_inputs(plan, memory, folder)
    plan.save(folder)
    return _Runner(plan, memory, own, on_epoch).run_in(folder, jobs, cluster, report, retry=retry)


def _is_begun(folder: Path) -> bool:
    """Whether it is empty, or holds only what planning writes before the plan."""
    return folder.is_dir() and {entry.name for entry in folder.iterdir()} <= {"data", "splits"}


def evaluate(
    graphs: Any,
    method: Any = "gcaps",
    protocol: str = "honest",
    folds: int = 10,
    *,
    splits: str | Path | Sequence[Fold] | None = None,
    seed: int = 0,
    config: Any = None,
    jobs: int | None = None,
    report: Callable[[int, Epoch], None] | None = None,
    command: str | None = None,
) -> Result:
    """Cross-validate one method on one data set: a comparison with a single row, kept in memory.

    Args:
        graphs: a GraphSet or anything :func:`gcaps.load` takes.
        method: the name of a method, or a scikit-learn estimator or pipeline on graphs.
        protocol: the rule behind ``result.accuracy``: honest, last, gin or best; the result holds all four.
        folds: stratified folds drawn with ``seed``, unless ``splits`` names a file of folds.
        splits: JSON file of folds, or the folds themselves.
        seed: decides folds and training; the same seed gives the same predictions, whatever ``jobs`` is.
        config: settings of a method given by name: a dictionary, or its class in ``gcaps.config.CONFIGS``.
        jobs: processes; by default as many as there are CPUs and folds.
        report: called with the fold and the epoch after each epoch.
        command: how to repeat the evaluation; by default this call.

    Raises:
        GcapsError: a fold failed; with ``jobs=1`` its own exception is raised.
    """
    if protocol not in PROTOCOLS:
        raise ConfigError(f"there is no protocol {protocol!r}; there are {', '.join(PROTOCOLS)}")
    if config is not None and not isinstance(method, str):
        raise ConfigError("config goes with a method's name; set the parameters of the estimator instead")
    named = named_methods({method: (method, config)} if isinstance(method, str) else [method])
    ((label, (name, (settings, *_), estimator)),) = named.items()
    if protocol != "honest" and not _has_epochs(name, settings):
        raise ConfigError(f"{label} has no epochs: only the protocol honest applies to it")
    rows = rows_of(graphs, named, [seed], folds, splits)
    if len(rows) > 1:
        raise ConfigError("evaluate takes one data set; gcaps.compare takes several")
    call = command or _call(rows[0], label, settings)
    on_epoch = None if report is None else lambda cell, epoch: report(cell.fold, epoch)
    found = _in_memory(rows, Limits(), {label: estimator}, jobs, None, call, None, on_epoch, strict=True)
    (result,) = found.results()
    return replace(result, protocol=protocol)


def _has_epochs(method: str | None, settings: dict[str, Any]) -> bool:
    from gcaps.estimators.registry import config_class

    if method is None:
        return False
    return config_class(method).parse(settings).selection in ("last", "validation")  # type: ignore[attr-defined]


def _call(row: Row, label: str, settings: dict[str, Any]) -> str:
    """The evaluation as a call from Python; settings that have their default are left out."""
    from gcaps.estimators.registry import config_class

    name = row.source if isinstance(row.source, str | Path) else row.source.name
    file = str(row.splits) if isinstance(row.splits, str | Path) else "…"
    where = f"folds={row.folds}" if row.splits is None else f"splits={file!r}"
    if row.method is None:
        return f"gcaps.evaluate({str(name)!r}, {settings['estimator']}, {where}, seed={row.seeds[0]})"
    config = config_class(row.method).parse(settings)
    changed = {n: v for n, v in config.model_dump().items() if v != type(config).model_fields[n].default}
    given = f", config={changed!r}" if changed else ""
    return f"gcaps.evaluate({str(name)!r}, {label!r}, {where}, seed={row.seeds[0]}{given})"


def _in_memory(
    rows: Sequence[Row],
    limits: Limits,
    own: dict[str, Any],
    jobs: int | None,
    cluster: str | None,
    command: str | None,
    report: Report | None,
    on_epoch: OnEpoch | None = None,
    *,
    strict: bool = False,
) -> Comparison:
    """Run rows and keep the outcomes in memory; graphs and folds that children need are in a temporary folder."""
    plan, memory = make_plan(rows, limits, command)
    runner = _Runner(plan, memory, own, on_epoch, strict=strict)
    with tempfile.TemporaryDirectory(prefix="gcaps-") as temporary:
        if not runner.alone(jobs, cluster):
            runner = replace(runner, plan=write_inputs(plan, memory, Path(temporary)))
        outcomes = {o.key: o for o in runner.run(plan.cells(), [], None, jobs, cluster, report)}
    return Comparison(plan, [outcomes[cell.key] for cell in plan.cells() if cell.key in outcomes])


@dataclass(frozen=True)
class _Runner:
    """Runs the cells of a plan."""

    plan: Plan
    memory: InMemory
    own: dict[str, Any]
    """Estimators of the caller's, by label."""
    on_epoch: OnEpoch | None = None
    strict: bool = False
    """Raise instead of recording failures."""

    def run_in(
        self, folder: Path, jobs: int | None, cluster: str | None, report: Report | None, *, retry: bool
    ) -> Comparison:
        """Run the cells that have no file in the folder of the run."""
        cells = self.plan.cells()
        there: dict[Key, Outcome] = {}
        for cell in cells:
            if (folder / cell.path).exists():
                there[cell.key] = Outcome.read(folder / cell.path)
                if retry and there[cell.key].status != "done":
                    (folder / cell.path).unlink()
                    del there[cell.key]
        left = [cell for cell in cells if cell.key not in there]
        if left:
            self.run(left, list(there.values()), folder, jobs, cluster, report)
        return Comparison.read(folder)

    def run(
        self,
        cells: list[Cell],
        there: list[Outcome],
        folder: Path | None,
        jobs: int | None,
        cluster: str | None,
        report: Report | None,
    ) -> list[Outcome]:
        """Run cells; returns their outcomes in the order in which they came."""
        outcomes: list[Outcome] = []

        def on_outcome(outcome: Outcome) -> None:
            outcomes.append(outcome)
            if self.strict and outcome.status != "done":
                kind = MemoryLimitError if outcome.status == "memory" else GcapsError
                raise kind(f"fold {outcome.fold}: {outcome.error}")
            if report is not None:
                report.cell(outcome)

        tasks = self.tasks(cells)
        with self.executor(jobs, cluster) as executor:
            if report is not None:
                report.begin(cells, there, executor.workers)
            place = None if folder is None else folder.resolve()
            executor.run(tasks, self.plan.limits, Listener(place, on_outcome, self._on_epoch()))
        return outcomes

    def _on_epoch(self) -> Callable[[Cell, tuple[Any, ...]], None] | None:
        if (told := self.on_epoch) is None:
            return None
        from gcaps.training import Epoch

        return lambda cell, epoch: told(cell, Epoch(*epoch))

    def executor(self, jobs: int | None, cluster: str | None) -> Executor:
        """The executor for so many processes, or for a cluster."""
        if cluster is not None:
            return DaskCluster(cluster)
        if self.alone(jobs, cluster):
            return InProcess(self.memory, catch=not self.strict)
        return WorkerProcesses(self.jobs(jobs))

    def alone(self, jobs: int | None, cluster: str | None) -> bool:
        """Whether everything runs in this process."""
        single = self.jobs(jobs) == 1 or (self.strict and len(self.tasks(self.plan.cells())) == 1)
        return cluster is None and single and self.plan.limits == Limits()

    def jobs(self, jobs: int | None) -> int:
        """The number of processes: as given, or as many as there are CPUs for the threads of each."""
        threads = max((config.get("threads", 1) for entry in self.plan.entries for config in entry.configs), default=1)
        return jobs or max(1, available_cpus() // threads)

    def tasks(self, cells: Sequence[Cell]) -> list[Task]:
        """What one process runs without a break: a cell, or all folds of a method whose folds share work.

        The largest sets come first, and on each the tasks with most cells, so that no worker is left with a long task
        at the end.
        """
        groups: dict[tuple[str, str, int, int], list[Cell]] = {}
        for cell in cells:
            if cell.method is None and cell.label not in self.own:
                raise ConfigError(f"{cell.label} is an estimator of yours; give data and methods again to continue")
            groups.setdefault((cell.data, cell.label, cell.seed, -1 if _shares(cell) else cell.fold), []).append(cell)
        tasks = [
            Task(self.plan.of(data), tuple(group), self.own.get(label)) for (data, label, _, _), group in groups.items()
        ]
        return sorted(tasks, key=lambda task: (-task.data.graphs, task.data.name, -len(task.cells)))


def _shares(cell: Cell) -> bool:
    from gcaps.estimators.registry import METHODS

    # known by the family: importing the estimators would load torch into a process that only watches others
    return cell.method is not None and (METHODS[cell.method].family == "kernel" or cell.method == "ensemble")


def available_cpus() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
