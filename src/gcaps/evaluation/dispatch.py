"""Handing tasks to whoever has time: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, Protocol

from joblib import Parallel, delayed, parallel_config

from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation.budget import Budget
from gcaps.evaluation.supervise import Task, supervise

PATIENCE = 10
"""Seconds to wait for an answer of a scheduler."""
ARRIVAL = 300
"""Seconds to wait for a cluster's first worker, which may stand in a queue itself."""
GO_ON = "the same command goes on from the cells that are done"


class Crew(Protocol):
    """Those who work."""

    workers: int
    """How many tasks they do at a time."""

    def work(self, tasks: list[Task], budget: Budget, after: Callable[[], None]) -> None:
        """Have all tasks done, the first ones first; ``after`` is called after each."""
        ...


@contextmanager
def crew_of(jobs: int, cluster: str | None) -> Iterator[Crew]:
    """``jobs`` processes of this machine, or the workers of the Dask scheduler at the address ``cluster``."""
    if cluster is None:
        yield Processes(jobs)
        return
    crew = Cluster(cluster)
    try:
        yield crew
    finally:
        crew.close()


class Processes:
    """Processes of this machine; they end with this one."""

    def __init__(self, jobs: int) -> None:
        self.workers = jobs

    def work(self, tasks: list[Task], budget: Budget, after: Callable[[], None]) -> None:
        """Have all tasks done."""
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        try:
            _all(tasks, budget, after, os.getpid(), n_jobs=self.workers)
        except TerminatedWorkerError as error:
            raise GcapsError(f"a worker was killed; {GO_ON}") from error


class Cluster:
    """The workers of a Dask scheduler, as many as come; the work of one that is lost is given to another by Dask."""

    def __init__(self, address: str) -> None:
        try:
            self._dask: Any = importlib.import_module("distributed")
        except ImportError as error:
            raise ConfigError("--cluster needs Dask: pip install 'gcaps[cluster]'") from error
        self._address = address
        try:
            self._client = self._dask.Client(address, timeout=PATIENCE)
        except (OSError, TimeoutError, ValueError) as error:
            raise GcapsError(f"{address}: no Dask scheduler answers there; start one with `dask scheduler`") from error
        try:
            self._client.submit(os.getpid, pure=False).result(ARRIVAL)  # a cluster that adapts waits for work
        except TimeoutError as error:
            self.close()
            raise GcapsError(f"{address}: has no workers; start them with `dask worker {address}`") from error
        self.workers = sum(self._client.ncores().values())

    def work(self, tasks: list[Task], budget: Budget, after: Callable[[], None]) -> None:
        """Have all tasks done. joblib waits for ever for a scheduler that is gone, so it waits in another thread."""
        failures: list[BaseException] = []

        def wait() -> None:
            try:
                with parallel_config(_backend(self._client)):
                    _all(tasks, budget, after, None, n_jobs=-1)
            except BaseException as error:
                failures.append(error)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        while waiting.is_alive() and self._client.status != "closed":
            waiting.join(0.2)
        failure = failures[0] if failures else None
        if self._client.status == "closed" or isinstance(failure, CancelledError | asyncio.CancelledError):
            raise GcapsError(f"{self._address}: the scheduler is gone; {GO_ON}") from failure
        if isinstance(failure, self._dask.KilledWorker):
            raise GcapsError(f"{self._address}: a task has lost every worker that tried it; {GO_ON}") from failure
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Leave the scheduler and its workers to others."""
        self._client.close()


def _backend(client: Any) -> Any:
    """joblib's backend for Dask, which uses the one worker of a small cluster too; joblib would use this process."""
    from joblib._dask import DaskDistributedBackend  # it imports Dask

    class Backend(DaskDistributedBackend):  # type: ignore[misc]  # joblib has no types
        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, int(super().effective_n_jobs(n_jobs)))

    return Backend(client=client, wait_for_workers_timeout=ARRIVAL)


def _all(tasks: list[Task], budget: Budget, after: Callable[[], None], parent: int | None, n_jobs: int) -> None:
    """All tasks are handed over at once, so that workers who come later find work."""
    calls = (delayed(supervise)(task, budget, parent) for task in tasks)
    for _ in Parallel(n_jobs, batch_size=1, pre_dispatch="all", return_as="generator_unordered")(calls):
        after()
