"""Blocks of a batch that fit a core's cache, and compiled loops over blocks, which threads share.

The blocks depend on the batch alone and sums over nodes are taken block by block, so results do not depend on the
number of threads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FunctionType
from typing import Any, TypeVar

import numba
import numpy as np
import scipy.linalg  # loads the BLAS that compiled code calls, so that its threads can be limited
import torch
from numba import njit
from threadpoolctl import ThreadpoolController
from torch import Tensor

Array = np.ndarray[Any, Any]
F = TypeVar("F", bound=Callable[..., Any])

NODES = 256
"""Nodes of a block: its matrices of width 64 fit a core's cache."""
PARTIAL_SUMS = 64
"""Largest number of partial sums of a weight's gradient; each covers the same number of blocks."""

_options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}, "no_cfunc_wrapper": True}
_njit: Any = njit
compiled: Callable[[F], F] = _njit(cache=True, **_options)
compiled_part: Callable[[F], F] = _njit(no_cpython_wrapper=True, **_options)
"""Compile a function that only compiled functions call: without what Python needs to call it, and stored with them."""
_threaded: Callable[[F], F] = _njit(cache=True, parallel=True, **_options)
_forked = _limited = False


def is_supported(x: Tensor) -> bool:
    """Whether the compiled functions take this tensor: float32 or float64 on CPU, and not while compiling."""
    on_cpu = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    return on_cpu and not torch.compiler.is_compiling()


def cut(ptr: Array) -> Array:
    """[C+1] first graph of each block, and the number of graphs, for graphs that begin at the nodes ``ptr`` [B+1].

    Blocks have similar numbers of nodes. If the sizes of graphs allow it, their number is a power of two, which threads
    can share evenly.
    """
    nodes = int(ptr[-1])
    count = 1 << max(0, round(math.log2(max(nodes, 1) / NODES)))
    inner = np.searchsorted(ptr, nodes * np.arange(1, count) // count)
    return np.array(sorted({0, *inner.tolist(), len(ptr) - 1}))


class over_blocks:  # noqa: N801
    """Compile a function whose outermost loop is ``for b in prange(…)`` over blocks, for one thread and for several.

    A call uses as many threads as torch does. A forked process always uses one, since threads do not survive a fork.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        assert isinstance(function, FunctionType)
        self.__doc__ = function.__doc__
        self.serial: Callable[..., None] = compiled(function)
        copy = FunctionType(function.__code__, function.__globals__, f"{function.__name__}_threaded")
        copy.__qualname__, copy.__module__ = copy.__name__, function.__module__  # a separate entry in numba's cache
        self.threaded: Callable[..., None] = _threaded(copy)

    def __call__(self, *given: Any) -> None:
        """Run the function on all blocks."""
        threads = min(torch.get_num_threads(), numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
        if threads == 1 or _forked:
            self.serial(*given)
        else:
            numba.set_num_threads(threads)
            self.threaded(*given)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit matrix products in compiled code to one thread each; within another such block, do nothing."""
    global _limited
    if _limited:
        yield
        return
    threads = [(library, library.get_num_threads()) for library in _libraries()]
    several = [(library, count) for library, count in threads if count != 1]
    for library, _ in several:
        library.set_num_threads(1)
    _limited = True
    try:
        yield
    finally:
        _limited = False
        for library, count in several:
            library.set_num_threads(count)


@cache
def _libraries() -> list[Any]:
    assert scipy.linalg
    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


def _after_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)
