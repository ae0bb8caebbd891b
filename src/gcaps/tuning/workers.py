"""Workers that compute the inner folds of trials: this process, or several processes of joblib."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

from threadpoolctl import threadpool_limits

Score: TypeAlias = Callable[[dict[str, Any], int], float]
"""Function of settings and the number of an inner fold that returns the metric."""
SINGLE_THREADED = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB", "NUMEXPR", "NUMBA")
"""Libraries limited to one thread in each process; the threads of a network are part of its settings."""


class FoldWorkers(Protocol):
    """Interface of the workers."""

    count: int
    """Number of scores computed at a time."""

    def submit(self, settings: dict[str, Any], fold: int) -> Future[float]:
        """Start to compute the score of settings on a fold."""
        ...


class _Here:
    """Computes scores in this process, synchronously."""

    count = 1

    def __init__(self, score: Score) -> None:
        self._score = score

    def submit(self, settings: dict[str, Any], fold: int) -> Future[float]:
        """Compute a score."""
        found: Future[float] = Future()
        try:
            found.set_result(self._score(settings, fold))
        except Exception as error:
            found.set_exception(error)
        return found


class _Processes:
    """Computes scores in processes that keep the graphs in memory."""

    def __init__(self, pool: Any, count: int) -> None:
        self._pool, self.count = pool, count

    def submit(self, settings: dict[str, Any], fold: int) -> Future[float]:
        """Send settings and fold to the next idle process."""
        found: Future[float] = self._pool.submit(_score_there, settings, fold)
        return found


@contextmanager
def fold_workers(score: Score, jobs: int = 1) -> Iterator[FoldWorkers]:
    """Yield the workers that compute ``score``: this process, or ``jobs`` others, to which it is pickled once."""
    if jobs == 1:
        with threadpool_limits(1, user_api="blas"):  # as in a process of its own: other sums round differently
            yield _Here(score)
        return
    from joblib.externals.loky import ProcessPoolExecutor

    threads = {f"{name}_NUM_THREADS": "1" for name in SINGLE_THREADED}
    pool = ProcessPoolExecutor(jobs, initializer=_take, initargs=(score,), env=os.environ | threads)
    try:
        yield _Processes(pool, jobs)
        pool.shutdown()
    except BaseException:
        pool.shutdown(kill_workers=True)
        raise


_given: list[Score] = []
"""The score function of a worker process."""


def _take(score: Score) -> None:
    _given[:] = [score]


def _score_there(settings: dict[str, Any], fold: int) -> float:
    return _given[0](settings, fold)
