"""Array types and operations on segments of flat arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.floating[Any]]
Array = NDArray[Any]

LARGEST = float(np.finfo(np.float32).max)
"""The largest number that networks and support vector machines can take in."""


def ranges(starts: Array, lengths: Array) -> Ints:
    """Concatenate ``[s, s+1, …, s+n−1]`` for every (s, n): positions of many slices in one index array."""
    lengths = np.asarray(lengths, dtype=np.int64)
    shift = np.asarray(starts, dtype=np.int64) - pointer(lengths)[:-1]
    return np.repeat(shift, lengths) + np.arange(lengths.sum(), dtype=np.int64)


def array_digest(values: Array) -> str:
    """SHA-256 of the values of an array."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def pointer(lengths: Array) -> Ints:
    """Return ``[0, n₀, n₀+n₁, …]``: the start of each segment and, last, the total."""
    out = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def strides(lengths: Array, budget: int) -> Iterator[tuple[int, int]]:
    """Yield ranges [first, last) whose ``lengths`` add up to at most ``budget``; a longer segment is alone."""
    ends = np.cumsum(lengths)
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + budget, side="right")), first + 1)
        yield first, last
        first = last


def counting_argsort(values: Array, bound: int) -> Array:
    """Stable argsort of integers 0 ≤ values < bound in O(len + bound).

    SciPy's conversion from CSR to CSC is a counting sort in C; applied to a matrix of one row that contains the
    positions, it returns the order.
    """
    from scipy.sparse import csr_array  # a tenth of a second that many commands do without

    count = len(values)
    index = np.int32 if max(count, bound) < 2**31 else np.int64
    positions: Array = np.arange(count, dtype=index)
    one_row = csr_array(
        (positions, values.astype(index, copy=False), np.array([0, count], dtype=index)),
        shape=(1, bound),
    )
    return np.asarray(one_row.tocsc().data)
