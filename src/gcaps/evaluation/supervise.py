"""Child processes that compute cells, watched for time, memory and death; each of these becomes a recorded outcome."""

from __future__ import annotations

import base64
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import psutil

from gcaps.errors import GcapsError
from gcaps.evaluation.outcome import Cell, Outcome, Status, read_cell
from gcaps.evaluation.plan import FILE, Limits, PlannedData
from gcaps.evaluation.result import FoldResult, now, versions

POLL_INTERVAL = 0.05
"""Seconds between two looks at a child."""
SINGLE_THREADED = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB", "NUMEXPR", "NUMBA")
"""Libraries that would each use all cores; the threads of a network are part of its configuration."""

Event = dict[str, Any]


class LimitError(Exception):
    """A child that was stopped or died: the outcome's status and one line."""

    def __init__(self, status: Status, error: str) -> None:
        self.status, self.error = status, error
        super().__init__(error)


class StoppedError(Exception):
    """The whole run is being stopped."""


@dataclass(frozen=True)
class Task:
    """Cells of one row, data set and seed that run one after the other in one process."""

    data: PlannedData
    cells: tuple[Cell, ...]
    estimator: Any = None
    """Of the caller's, where the row has no method."""
    pickled: str | None = None
    """The same for the pipe to a child, in place of the object."""

    def for_child(self) -> Task:
        """The task with its estimator pickled; classes of the main module are pickled by value."""
        if self.estimator is None:
            return self
        import cloudpickle

        pickled = base64.b64encode(cloudpickle.dumps(self.estimator)).decode("ascii")
        return replace(self, estimator=None, pickled=pickled)

    def request(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """Return the facts about cells that a worker needs."""
        first = self.cells[0]
        tuning = None if first.tuning is None else asdict(first.tuning)
        common = {"method": first.method, "configs": list(first.configs), "tuning": tuning, "seed": first.seed}
        return common | {"train_size": first.train_size, "folds": [cell.fold for cell in cells]}


@dataclass(frozen=True)
class Listener:
    """Receiver of outcomes."""

    folder: Path | None
    """The run's folder, in which each outcome is saved as soon as it is known; None keeps them in memory."""
    on_outcome: Callable[[Outcome], None]
    on_epoch: Callable[[Cell, tuple[Any, ...]], None] | None = None
    """Called with the fields of each :class:`~gcaps.training.Epoch`."""


class Recorder:
    """Turns the events of a task into outcomes."""

    def __init__(self, task: Task, listener: Listener) -> None:
        self.task, self._listener = task, listener
        self.outcomes: list[Outcome] = []
        self.left = list(task.cells)
        self.at: Cell | None = None
        """The cell under way; None while the work that folds share is done."""
        self.began = time.monotonic()
        if listener.folder is not None:
            for cell in task.cells:
                found = read_cell(listener.folder, cell)
                if found is not None:
                    self.outcomes.append(found)
                    self.left.remove(cell)

    def begin(self) -> None:
        """A worker begins with the cells that are left."""
        self.at, self.began = None, time.monotonic()

    def take(self, event: Event, peak_mib: float | None = None) -> None:
        """Take an event of :meth:`gcaps.evaluation.session.Session.work` or of a child."""
        kind = event.pop("event")
        if kind == "fold":
            self.at, self.began = self._cell(event["fold"]), time.monotonic()
        elif kind in ("epoch", "epochs") and self._listener.on_epoch is not None:
            for epoch in event["epochs"] if kind == "epochs" else [astuple(event["epoch"])]:
                self._listener.on_epoch(self._cell(event["fold"]), tuple(epoch))
        elif kind == "done":
            cell, result = self._cell(event.pop("fold")), FoldResult(**event.pop("result"))
            self._add(cell, "done", result=result, peak_mib=peak_mib, **event)
        elif kind == "failed":
            number = event.pop("fold")
            self.fail(event["status"], event["error"], None if number is None else self._cell(number), peak_mib)

    def fail(self, status: Status, error: str, cell: Cell | None, peak_mib: float | None) -> None:
        """A cell has failed, or with None all that are left."""
        seconds = time.monotonic() - self.began
        for one in [*self.left] if cell is None else [cell]:
            self._add(one, status, error=error, seconds=seconds, peak_mib=peak_mib)

    def _cell(self, number: int) -> Cell:
        return next(cell for cell in self.task.cells if cell.fold == number)

    def _add(self, cell: Cell, status: Status, *, seconds: float, peak_mib: float | None, **known: Any) -> None:
        known = {"config": None, "result": None, "error": None, "candidates": [], "embedding": None} | known
        outcome = Outcome(
            data=cell.data,
            label=cell.label,
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
        )
        if self._listener.folder is not None:
            outcome.save(self._listener.folder / cell.path)
        self.left.remove(cell)
        if self.at is cell:  # if the process dies now, the next cell fails
            self.at = self.left[0] if self.left else None
        self.outcomes.append(outcome)
        self._listener.on_outcome(outcome)


class Child:
    """A process that computes cells; it ends with this one, however that ends."""

    def __init__(self) -> None:
        ours, lifeline = os.pipe()
        self._lifeline = os.fdopen(lifeline, "wb")
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gcaps.evaluation.child", str(ours)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            pass_fds=(ours,),
            env=os.environ
            | {f"{name}_NUM_THREADS": "1" for name in SINGLE_THREADED}
            | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # an estimator's module may be beside the script
            start_new_session=True,  # an interrupt at the keyboard is for the parent
        )
        os.close(ours)
        self.fresh = True
        self.peak = 0.0
        """MiB seen since the last fold began."""
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def ask(self, request: dict[str, Any], limits: Limits, stopping: Stopping) -> Iterator[Event]:
        """The events that follow a request. Each stage after loading has the whole time of the limit.

        Raises:
            LimitError: the process took too much, or died; it is gone then.
            StoppedError: ``stopping`` was set.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._death() from None
        watched, began, self.peak = psutil.Process(self.process.pid), math.inf, 0.0
        while True:
            if stopping.is_set():
                raise StoppedError
            try:
                line = self._lines.get(timeout=POLL_INTERVAL)
            except queue.Empty:
                self._check(watched, limits, time.monotonic() - began)
                continue
            if line is None:
                raise self._death()
            self._check(watched, limits, 0.0)  # a cell may be done between two looks
            event = json.loads(line)
            if event["event"] == "end":
                self.fresh = False
                return
            if event["event"] in ("prepare", "fold"):
                began, self.peak = time.monotonic(), 0.0
            yield event

    def _check(self, watched: psutil.Process, limits: Limits, seconds: float) -> None:
        try:
            mib = watched.memory_info().rss / 2**20
        except psutil.Error:
            return  # it has just ended, which the next line tells
        self.peak = max(self.peak, mib)
        if limits.mib is not None and mib > limits.mib:
            self.stop()
            raise LimitError("memory", f"took more memory than its limit of {limits.mib:,.0f} MiB")
        if limits.seconds is not None and seconds > limits.seconds:
            self.stop()
            raise LimitError("time", f"took longer than its limit of {limits.seconds:,.6g} s")

    def _death(self) -> LimitError:
        code = self.process.wait()
        self._stderr.seek(0)
        last = self._stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
        self.stop()
        if code == -signal.SIGKILL:
            return LimitError("memory", "its process was killed; most likely the machine ran out of memory")
        if code < 0:
            return LimitError("failed", f"its process died of {signal.Signals(-code).name}")
        return LimitError("failed", f"its process ended with exit code {code}: {last}")

    def stop(self) -> None:
        """End the process now."""
        self.process.kill()
        self.process.wait()
        self._listener.join()
        for pipe in (self.process.stdin, self.process.stdout, self._stderr, self._lifeline):
            if pipe is not None:
                with suppress(BrokenPipeError):  # of a request that it has not read
                    pipe.close()


class Stopping(Protocol):
    """Says whether a task is to be given up, as ``threading.Event`` does."""

    def is_set(self) -> bool:
        """Whether to stop."""
        ...


class Children:
    """Children that are kept for the next task; several threads may use them."""

    def __init__(self) -> None:
        self._idle: list[Child] = []
        self.closed = threading.Event()
        """Set when all are to stop, those that are computing too."""

    def take(self) -> Child:
        """An idle child that is alive, or a new one."""
        while self._idle:
            try:
                child = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if child.process.poll() is None:
                return child
            child.stop()
        return Child()

    def give(self, child: Child) -> None:
        """Keep a child for the next task."""
        if self.closed.is_set():
            child.stop()
        else:
            self._idle.append(child)

    def close(self) -> None:
        """Stop all idle children; the threads that supervise others stop theirs."""
        self.closed.set()
        while self._idle:
            self._idle.pop().stop()


class _Either:
    """Stops when one of two does."""

    def __init__(self, first: Stopping, second: Stopping) -> None:
        self._first, self._second = first, second

    def is_set(self) -> bool:
        return self._first.is_set() or self._second.is_set()


def supervise(task: Task, limits: Limits, listener: Listener, children: Children, stopping: Stopping) -> list[Outcome]:
    """Compute the cells of a task that have no file yet; each outcome is saved and passed on as soon as it is known.

    Returns:
        The outcomes of all cells of the task, those found in the folder first.
    """
    if listener.folder is not None and not (listener.folder / FILE).exists():
        place = f"{listener.folder}: cannot be seen from {platform.node()}"
        raise GcapsError(f"{place}; all workers must share the folder of the run")
    recorder = Recorder(task, listener)
    while recorder.left:
        _attempt(recorder, limits, children, stopping, epochs=listener.on_epoch is not None)
    return recorder.outcomes


def _attempt(recorder: Recorder, limits: Limits, children: Children, stopping: Stopping, *, epochs: bool) -> None:
    """Compute cells in one child for as long as it lives."""
    child = children.take()
    fresh = child.fresh
    recorder.begin()
    task = recorder.task
    request = {"data": asdict(task.data), "estimator": task.pickled, "epochs": epochs, **task.request(recorder.left)}
    try:
        for event in child.ask(request, limits, _Either(stopping, children.closed)):
            recorder.take(event, child.peak or None)
    except LimitError as error:
        if error.status == "memory" and not fresh:
            return  # memory left over from earlier tasks may be to blame: try again in a new process
        stage = "" if recorder.at is not None else "what its folds share: "
        recorder.fail(error.status, stage + error.error, recorder.at, child.peak or None)
    except BaseException:
        child.stop()
        raise
    else:
        children.give(child)
