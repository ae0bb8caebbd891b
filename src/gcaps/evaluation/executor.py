"""Executors: run tasks in this process, in child processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation.outcome import Outcome
from gcaps.evaluation.plan import InMemory, Limits
from gcaps.evaluation.supervise import Children, Listener, Recorder, Task, supervise

TIMEOUT = 8
"""Seconds to wait for a scheduler's answer."""
ARRIVAL_TIMEOUT = 300
"""Seconds to wait for a cluster's first worker, which may be queued itself."""
CONTINUE = "the same command continues from the cells that are done"


class Executor(Protocol):
    """Runs tasks."""

    workers: int
    """Number of tasks that run at a time."""

    def run(self, tasks: Sequence[Task], limits: Limits, listener: Listener) -> None:
        """Run all tasks, in this order as far as workers allow; the listener gets each outcome."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class InProcess:
    """Runs tasks in this process, one after the other and without limits.

    Args:
        memory: graphs and folds that need not be loaded.
        catch: exceptions become outcomes; otherwise they are raised.
    """

    workers = 1

    def __init__(self, memory: InMemory | None = None, *, catch: bool = True) -> None:
        self._memory, self._catch = memory, catch

    def run(self, tasks: Sequence[Task], limits: Limits, listener: Listener) -> None:
        """Run all tasks; ``limits`` must be empty."""
        from threadpoolctl import threadpool_limits

        from gcaps.evaluation.session import Session

        assert limits == Limits()
        session = Session(self._memory, catch=self._catch)
        with threadpool_limits(
            1, user_api="blas"
        ):  # as in a child: sums over other numbers of threads round differently
            for task in tasks:
                recorder = Recorder(task, listener)
                recorder.begin()
                epochs = listener.on_epoch is not None
                request = task.request(recorder.left)
                session.work(task.data, request, task.estimator, recorder.take, epochs=epochs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class WorkerProcesses:
    """Runs tasks in child processes of this one; a thread watches each of them."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._children = Children()

    def run(self, tasks: Sequence[Task], limits: Limits, listener: Listener) -> None:
        """Run all tasks; the listener is called by one thread at a time."""
        stopping = threading.Event()
        listener = _one_at_a_time(listener)
        with ThreadPoolExecutor(self.workers) as threads:
            futures = [
                threads.submit(supervise, task.for_child(), limits, listener, self._children, stopping)
                for task in tasks
            ]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                stopping.set()
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._children.close()


def _one_at_a_time(listener: Listener) -> Listener:
    lock = threading.Lock()

    def locked(call: Callable[..., None], *arguments: Any) -> None:
        with lock:
            call(*arguments)

    on_epoch = None if listener.on_epoch is None else partial(locked, listener.on_epoch)
    return replace(listener, on_outcome=partial(locked, listener.on_outcome), on_epoch=on_epoch)


class DaskCluster:
    """Runs tasks on the workers of a Dask scheduler, as many as come; each watches a child process.

    Dask gives the tasks of a worker that is lost to another one.
    """

    def __init__(self, address: str) -> None:
        try:
            self._dask: Any = importlib.import_module("distributed")
        except ImportError as error:
            raise ConfigError("--cluster needs Dask: pip install 'gcaps[cluster]'") from error
        # a lost scheduler is reported in one line; Dask would log the tracebacks of cancelled tasks
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self._address = address
        try:
            self._client = self._dask.Client(address, timeout=TIMEOUT)
        except (OSError, TimeoutError, ValueError) as error:
            raise GcapsError(f"{address}: no Dask scheduler answers there; start one with `dask scheduler`") from error
        self._plugin = f"gcaps-{uuid.uuid4().hex}"
        try:
            with self._connected():
                self._wait_for_worker()
                self.workers = sum(self._client.ncores().values())
                self._client.register_plugin(_plugin(self._dask), name=self._plugin)
        except BaseException:
            self._client.close()
            raise

    def _wait_for_worker(self) -> None:
        """Wait for work to be done; an adaptive cluster starts workers only then."""
        try:
            self._client.submit(os.getpid, pure=False).result(ARRIVAL_TIMEOUT)
        except TimeoutError as error:
            text = f"{self._address}: has no workers; start them with `dask worker {self._address}`"
            raise GcapsError(text) from error

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Turn any exception of Dask after the loss of the scheduler into an error of one line."""
        try:
            yield
        except (CancelledError, asyncio.CancelledError, OSError) as error:
            # Dask's own errors of connections have no errno; a full disk, which a worker may report, has one
            if getattr(error, "errno", None) is not None and not isinstance(error, ConnectionError):
                raise
            raise GcapsError(f"{self._address}: the scheduler is gone; {CONTINUE}") from error

    def run(self, tasks: Sequence[Task], limits: Limits, listener: Listener) -> None:
        """Run all tasks. They are submitted at once, so that workers that come later find work."""
        finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with self._connected():
            futures = [
                self._client.submit(
                    _on_worker, task.for_child(), limits, listener.folder, self._plugin, pure=False, priority=-number
                )
                for number, task in enumerate(tasks)
            ]
        for future in futures:
            future.add_done_callback(finished.put)
        try:
            self._collect(finished, len(futures), listener)
        except BaseException:
            with suppress(Exception, asyncio.CancelledError):
                self._client.cancel(futures, force=True)  # workers stop what they are computing
            raise

    def _collect(self, finished: queue.SimpleQueue[Any], left: int, listener: Listener) -> None:
        """Pass on the outcomes of so many tasks."""
        while left:
            try:
                future = finished.get(timeout=0.2)
            except queue.Empty:
                if self._client.status == "closed":
                    raise GcapsError(f"{self._address}: the scheduler is gone; {CONTINUE}") from None
                continue
            left -= 1
            for outcome in self._result(future):
                listener.on_outcome(outcome)

    def _result(self, future: Any) -> list[Outcome]:
        try:
            with self._connected():
                found: list[Outcome] = future.result()
        except self._dask.KilledWorker as error:
            raise GcapsError(f"{self._address}: a task has lost every worker that tried it; {CONTINUE}") from error
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client.status != "closed":
            with suppress(Exception, asyncio.CancelledError):  # the scheduler may go at any moment
                self._client.unregister_worker_plugin(self._plugin)
        self._client.close()


def _plugin(dask: Any) -> Any:
    """A Dask plugin that holds the idle children of a worker."""

    class ChildrenPlugin(dask.WorkerPlugin):  # type: ignore[misc]  # Dask has no types
        def setup(self, worker: Any) -> None:
            self.children = Children()

        def teardown(self, worker: Any) -> None:
            self.children.close()

    return ChildrenPlugin()


def _on_worker(task: Task, limits: Limits, folder: Path | None, plugin: str) -> list[Outcome]:
    """Run a task on a Dask worker."""
    dask: Any = importlib.import_module("distributed")
    children: Children = dask.get_worker().plugins[plugin].children
    return supervise(task, limits, Listener(folder, lambda outcome: None), children, _Unwanted(dask))


class _Unwanted:
    """Says whether the Dask task of this thread was given up: its client has ended, or has been stopped."""

    def __init__(self, dask: Any) -> None:
        worker = dask.get_worker()
        self._tasks, self._key = worker.state.tasks, worker.get_current_task()

    def is_set(self) -> bool:
        task = self._tasks.get(self._key)
        return task is None or task.state == "cancelled"
