"""Watching the process that computes: its time, its memory, its death; each becomes a cell's recorded outcome."""

from __future__ import annotations

import atexit
import json
import math
import os
import platform
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from gcaps.errors import GcapsError
from gcaps.evaluation.budget import Budget
from gcaps.evaluation.cells import Cell, Outcome, Status
from gcaps.evaluation.result import FoldResult, now, versions

GLANCE = 0.05
"""Seconds between two looks at a process."""
SINGLE = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB", "NUMEXPR", "NUMBA")
"""Libraries that would each take every core; a network's own threads are part of its configuration."""


class OverrunError(Exception):
    """A process that had to be stopped or has died: the outcome's status and one line."""

    def __init__(self, status: Status, error: str) -> None:
        self.status, self.error = status, error
        super().__init__(error)


@dataclass(frozen=True)
class Task:
    """Cells of one data set, method and seed that are run one after the other in one process."""

    run: str
    """The folder of the comparison."""
    data: dict[str, Any]
    """The fields of its :class:`~gcaps.evaluation.plan.PlannedData`."""
    cells: tuple[Cell, ...]

    def left(self) -> list[Cell]:
        """Cells that have no file yet."""
        return [cell for cell in self.cells if not (Path(self.run) / cell.path).exists()]


class Child:
    """A process that computes cells for as long as it behaves; it ends with this one, however that ends."""

    def __init__(self) -> None:
        ours, lifeline = os.pipe()
        self._lifeline = os.fdopen(lifeline, "wb")
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gcaps.evaluation.child", str(ours)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            pass_fds=(ours,),
            env=os.environ | {f"{name}_NUM_THREADS": "1" for name in SINGLE},
            start_new_session=True,  # an interrupt at the keyboard is for the one who started us all
        )
        os.close(ours)
        self.fresh = True
        self.peak = 0.0
        """MiB seen since the last event."""
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def ask(self, request: dict[str, Any], budget: Budget, orphaned: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        """The events that follow a request. Each stage after loading has the whole time of the budget.

        Raises:
            OverrunError: the process took too much, or died; it is gone then.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._death() from None
        watched, began, self.peak = psutil.Process(self.process.pid), math.inf, 0.0
        while True:
            try:
                line = self._lines.get(timeout=GLANCE)
            except queue.Empty:
                if orphaned():
                    self.stop()
                    os._exit(1)
                self._glance(watched, budget, time.monotonic() - began)
                continue
            if line is None:
                raise self._death()
            self._glance(watched, budget, 0.0)  # a cell may be over before anyone has looked
            event = json.loads(line)
            if event["event"] == "end":
                self.fresh = False
                return
            if event["event"] in ("prepare", "fold"):
                began, self.peak = time.monotonic(), 0.0
            yield event

    def _glance(self, watched: psutil.Process, budget: Budget, seconds: float) -> None:
        try:
            mib = watched.memory_info().rss / 2**20
        except psutil.Error:
            return  # it has just ended; the next line tells
        self.peak = max(self.peak, mib)
        if budget.mib is not None and mib > budget.mib:
            self.stop()
            raise OverrunError("memory", f"took more memory than its limit of {budget.mib:,.0f} MiB")
        if budget.seconds is not None and seconds > budget.seconds:
            self.stop()
            raise OverrunError("time", f"took longer than its limit of {budget.seconds:,.6g} s")

    def _death(self) -> OverrunError:
        code = self.process.wait()
        self._complaints.seek(0)
        last = self._complaints.read().decode(errors="replace").strip().rpartition("\n")[2]
        self.stop()
        if code == -signal.SIGKILL:
            return OverrunError("memory", "its process was killed; most likely the machine ran out of memory")
        if code < 0:
            return OverrunError("failed", f"its process died of {signal.Signals(-code).name}")
        return OverrunError("failed", f"its process ended with exit code {code}: {last}")

    def stop(self) -> None:
        """End the process now."""
        self.process.kill()
        self.process.wait()
        self._listener.join()
        for pipe in (self.process.stdin, self.process.stdout, self._complaints, self._lifeline):
            if pipe is not None:
                with suppress(BrokenPipeError):  # of a request that it has not read
                    pipe.close()


_idle: list[Child] = []
"""Processes that wait for work; a worker with several threads uses several."""


@atexit.register
def _stop_idle() -> None:
    while _idle:
        _idle.pop().stop()


def _take() -> Child:
    while _idle:
        child = _idle.pop()
        if child.process.poll() is None:
            return child
        child.stop()
    return Child()


def supervise(task: Task, budget: Budget, parent: int | None) -> int:
    """Run the cells of a task that have no file yet, and write each one's as soon as it is known; how many these were.

    Args:
        task: the cells.
        budget: what each may cost.
        parent: the process that started this one; when it is gone, so is this. None where another engine sees to that.
    """
    if not Path(task.run, "run.json").exists():
        raise GcapsError(f"{task.run}: is not to be seen from {platform.node()}; all workers must share its folder")

    def orphaned() -> bool:
        return parent is not None and parent not in (os.getpid(), os.getppid())

    left = task.left()
    count = len(left)
    while left:
        _attempt(task, left, budget, orphaned)
        left = task.left()
    return count


def _attempt(task: Task, left: list[Cell], budget: Budget, orphaned: Callable[[], bool]) -> None:
    """Run cells in one process, for as long as it lives; an outcome is written for one of them at least."""
    child, at, began = _take(), None, time.monotonic()
    fresh = child.fresh
    by_fold = {cell.fold: cell for cell in left}
    one = left[0]
    request = {"data": task.data, "method": one.method, "configs": one.configs, "seed": one.seed}
    try:
        for event in child.ask(request | {"folds": list(by_fold)}, budget, orphaned):
            kind = event.pop("event")
            if kind == "fold":
                at, began = by_fold[event["fold"]], time.monotonic()
            elif kind == "done":
                fold, worked = by_fold[event.pop("fold")], FoldResult(**event.pop("result"))
                _write(task, fold, "done", result=worked, peak_mib=child.peak or None, **event)
            elif kind == "failed":
                number = event.pop("fold")
                for cell in left if number is None else [by_fold[number]]:
                    _write(task, cell, peak_mib=child.peak or None, seconds=time.monotonic() - began, **event)
    except OverrunError as overrun:
        if overrun.status == "memory" and not fresh:
            return  # what earlier work has left behind may be to blame: once more in a new process
        stage = "" if at is not None else "what its folds share: "
        seconds, error = time.monotonic() - began, stage + overrun.error
        for cell in left if at is None else [at]:
            _write(task, cell, overrun.status, error=error, seconds=seconds, peak_mib=child.peak or None)
    except BaseException:
        child.stop()
        raise
    else:
        _idle.append(child)


def _write(task: Task, cell: Cell, status: Status, seconds: float, peak_mib: float | None, **known: Any) -> None:
    known = {"config": None, "result": None, "error": None, "candidates": [], "embedding": None} | known
    Outcome(
        data=cell.data,
        method=cell.method,
        seed=cell.seed,
        fold=cell.fold,
        fingerprint=cell.fingerprint,
        status=status,
        seconds=seconds,
        peak_mib=None if peak_mib is None else round(peak_mib, 1),
        versions=versions(),
        created=now(),
        **known,
    ).save(Path(task.run) / cell.path)
