"""What the C library does with memory that was freed."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
"""Of mallopt(3), as in malloc.h."""
_MIB = 1 << 20


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep memory that is freed inside for what is asked for next; give what is left over back at the end.

    A training step on graphs of 10⁵ nodes and more asks for gigabytes and frees them again. glibc gives blocks of that
    size back to the system at once, which has to clear every page anew: two thirds of such a step's time. Elsewhere
    than with glibc this does nothing.
    """
    library = _glibc()
    if library is None:
        yield
        return
    library.mallopt(_MMAP_MAX, 0)
    library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    try:
        yield
    finally:  # the largest values that glibc comes to by itself
        library.mallopt(_MMAP_MAX, 65_536)
        library.mallopt(_MMAP_THRESHOLD, 32 * _MIB)
        library.mallopt(_TRIM_THRESHOLD, 64 * _MIB)
        library.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
