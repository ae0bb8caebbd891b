"""Execution of a plan: tasks for an executor, and the outcomes of their cells."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from gcaps.errors import ConfigError, GcapsError, MemoryLimitError
from gcaps.estimators.registry import METHODS
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.executor import DaskCluster, Executor, InProcess, WorkerProcesses
from gcaps.evaluation.outcome import Cell, Outcome, read_cell
from gcaps.evaluation.plan import InMemory, Limits, Plan
from gcaps.evaluation.planning import write_inputs
from gcaps.evaluation.reuse import recorded_cells
from gcaps.evaluation.supervise import Listener, Task

if TYPE_CHECKING:
    from gcaps.training import Epoch

OnEpoch: TypeAlias = "Callable[[Cell, Epoch], None]"


class Report(Protocol):
    """Callbacks for the progress of a comparison."""

    def begin(self, cells: list[Cell], there: list[Outcome], workers: int) -> None:
        """Called before ``cells`` are run by so many workers; ``there`` were done before."""
        ...

    def cell(self, outcome: Outcome) -> None:
        """Called when a cell is done or has failed."""
        ...


def run_plan(plan: Plan, memory: InMemory, jobs: int | None = None, on_epoch: OnEpoch | None = None) -> Comparison:
    """Run a plan of :func:`~gcaps.evaluation.planning.make_plan` in memory."""
    return Runner(plan, memory, {}, jobs, on_epoch=on_epoch).in_memory()


@dataclass(frozen=True)
class Runner:
    """Runs the cells of a plan."""

    plan: Plan
    memory: InMemory
    own: dict[str, Any]
    """Estimators given by the caller, by label."""
    jobs: int | None = None
    cluster: str | None = None
    report: Report | None = None
    on_epoch: OnEpoch | None = None
    strict: bool = False
    """Raise failures instead of recording them."""
    reuse: Sequence[str | Path] = ()
    """Records whose cells are taken into the folder of the run."""

    def in_folder(self, folder: Path, *, retry: bool) -> Comparison:
        """Run the cells that have no file in the folder of the run."""
        for cell, recorded in recorded_cells(self.plan, self.reuse) if self.reuse else ():
            if not (folder / cell.path).exists():
                recorded.save(folder / cell.path)
        there, left = [], []
        for cell in self.plan.cells():
            outcome = read_cell(folder, cell)
            if outcome is not None and retry and outcome.status != "done":
                (folder / cell.path).unlink()
                outcome = None
            if outcome is None:
                left.append(cell)
            else:
                there.append(outcome)
        if left:
            alone = self.processes == 1 and self.cluster is None and self.plan.limits == Limits()
            self._run(self._tasks(left), there, folder.resolve(), alone=alone)
        return Comparison.read(folder)

    def in_memory(self) -> Comparison:
        """Run all cells and keep their outcomes in memory; inputs of children are in a temporary folder."""
        tasks = self._tasks(self.plan.cells())
        single = self.processes == 1 or len(tasks) == 1
        alone = single and self.cluster is None and self.plan.limits == Limits()
        with tempfile.TemporaryDirectory(prefix="gcaps-") as temporary:
            if not alone:
                written = write_inputs(self.plan, self.memory, Path(temporary))
                tasks = [replace(task, data=written.of(task.data.name)) for task in tasks]
            outcomes = {outcome.key: outcome for outcome in self._run(tasks, [], None, alone=alone)}
        return Comparison(self.plan, [outcomes[cell.key] for cell in self.plan.cells() if cell.key in outcomes])

    def _run(self, tasks: list[Task], there: list[Outcome], folder: Path | None, *, alone: bool) -> list[Outcome]:
        """Run tasks, in this process if ``alone``; return outcomes in the order of completion."""
        outcomes: list[Outcome] = []

        def on_outcome(outcome: Outcome) -> None:
            outcomes.append(outcome)
            if self.strict and outcome.status != "done":
                kind = MemoryLimitError if outcome.status == "memory" else GcapsError
                raise kind(f"fold {outcome.fold}: {outcome.error}")
            if self.report is not None:
                self.report.cell(outcome)

        executor: Executor
        if self.cluster is not None:
            executor = DaskCluster(self.cluster)
        else:
            executor = InProcess(self.memory, catch=not self.strict) if alone else WorkerProcesses(self.processes)
        with executor:
            if self.report is not None:
                self.report.begin([cell for task in tasks for cell in task.cells], there, executor.workers)
            executor.run(tasks, self.plan.limits, Listener(folder, on_outcome, self._on_epoch()))
        return outcomes

    def _on_epoch(self) -> Callable[[Cell, tuple[Any, ...]], None] | None:
        if (on_epoch := self.on_epoch) is None:
            return None
        from gcaps.training import Epoch

        return lambda cell, epoch: on_epoch(cell, Epoch(*epoch))

    @cached_property
    def processes(self) -> int:
        """Number of processes: as given, or as many as there are CPUs for the threads of each."""
        threads = max(config.get("threads", 1) for entry in self.plan.entries for config in entry.configs)
        return self.jobs or max(1, available_cpus() // threads)

    def _tasks(self, cells: Sequence[Cell]) -> list[Task]:
        """Return the tasks, each run by one process: a cell, or all folds of a method whose folds share work.

        The largest sets come first, and on each the tasks with most cells, so that no long task is
        left at the end.
        """
        groups: dict[tuple[str, str, int, int], list[Cell]] = {}
        for cell in cells:
            if cell.method is None and cell.row not in self.own:
                raise ConfigError(f"{cell.row} is an estimator of yours; give data and methods again to continue")
            fold = -1 if shares_folds(cell.method) else cell.fold
            groups.setdefault((cell.data, cell.label, cell.seed, fold), []).append(cell)
        tasks = [
            Task(self.plan.of(data), tuple(group), self.own.get(group[0].row))
            for (data, _, _, _), group in groups.items()
        ]
        return sorted(tasks, key=lambda task: (-task.data.graphs, task.data.name, -len(task.cells)))


def shares_folds(method: str | None) -> bool:
    """Return ``shares_folds`` of a method's estimator without importing it: supervising processes need no torch."""
    return method is not None and (METHODS[method].family == "kernel" or method == "ensemble")


def available_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
