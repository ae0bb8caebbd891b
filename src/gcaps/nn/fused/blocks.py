"""A batch cut between graphs into blocks that fit a core's cache, and compiled loops over blocks that threads share.

How a batch is cut depends on the batch alone, and sums over nodes are taken block by block: what is computed does not
depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FunctionType
from typing import Any

import numba
import numpy as np
import scipy.linalg  # loads the BLAS that compiled code calls, so that its threads can be limited
import torch
from numba import njit
from threadpoolctl import ThreadpoolController

Array = np.ndarray[Any, Any]

NODES = 256
"""Nodes of a block: its matrices of width 64 stay in a core's cache."""
SHARES = 64
"""In how many parts, at most, a gradient of weights is summed up: each takes as many blocks."""

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
_threaded = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, parallel=True)
_forked = False


def cut(ptr: Array) -> Array:
    """[C+1] which graphs begin a block, and the number of graphs, for graphs that begin at the nodes ``ptr`` [B+1].

    Blocks have about as many nodes each; their number is a power of two where graphs allow it, for threads to share.
    """
    nodes = int(ptr[-1])
    count = 1 << max(0, round(np.log2(max(nodes, 1) / NODES)))
    if count == 1:
        return np.array([0, len(ptr) - 1])
    inner = np.searchsorted(ptr, nodes * np.arange(1, count) // count)
    return np.unique(np.concatenate([[0], inner, [len(ptr) - 1]]))


class over_blocks:  # noqa: N801
    """Compile a function whose outermost loop is ``for b in prange(…)`` over blocks, for one thread and for several.

    A call takes as many threads as torch does. A process that was forked off one with threads does without them, as
    it must.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        assert isinstance(function, FunctionType)
        self.__doc__ = function.__doc__
        self.alone: Callable[..., None] = compiled(function)
        copy = FunctionType(function.__code__, function.__globals__, f"{function.__name__}_threaded")
        copy.__qualname__, copy.__module__ = copy.__name__, function.__module__  # its own place in the compiler's cache
        self.threaded: Callable[..., None] = _threaded(copy)

    def __call__(self, *given: Any) -> None:
        """The function, on all blocks."""
        threads = min(torch.get_num_threads(), numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
        if threads == 1 or _forked:
            self.alone(*given)
        else:
            numba.set_num_threads(threads)
            self.threaded(*given)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Matrix products inside compiled code stay in their thread."""
    libraries = _libraries()
    before = [library.get_num_threads() for library in libraries]
    for library in libraries:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, threads in zip(libraries, before, strict=True):
            library.set_num_threads(threads)


@cache
def _libraries() -> list[Any]:
    assert scipy.linalg
    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


def _now_forked() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_now_forked)
