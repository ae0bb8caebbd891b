"""Names of labels and substructures: 64-bit numbers that do not depend on the set they were met in.

A label, a subtree or a path gets the same name in every set and every process, so that training and test graphs agree
without a shared dictionary. Two different ones share a name with probability 2⁻⁶⁴: over all pairs of a million
different ones, with probability 3·10⁻⁸.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gcaps.data.arrays import Array, Ints
from gcaps.data.graphset import GraphSet

Names = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mix(values: Array) -> Names:
    """Scramble 64-bit numbers one to one (the finaliser of SplitMix64)."""
    x = np.atleast_1d(values).astype(np.uint64) + _STEP
    x ^= x >> np.uint64(30)
    x *= _FIRST
    x ^= x >> np.uint64(27)
    x *= _SECOND
    x ^= x >> np.uint64(31)
    return x


def join(first: Array, second: Array) -> Names:
    """The name of the ordered pair (first, second)."""
    return mix(mix(first) * _STEP + mix(second))


def sums(values: Names, ptr: Ints) -> Names:
    """The sum of each segment modulo 2⁶⁴, which is exact whatever the order: names of multisets."""
    total = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values, out=total[1:])
    return total[ptr[1:]] - total[ptr[:-1]]


def rows(labels: Array) -> Names:
    """[n] a name for each row of integers [n, ·]."""
    name = mix(labels[:, 0])
    for column in labels.T[1:]:
        name = join(name, column)
    return name


def neighbors_of_set(graphs: GraphSet) -> Ints:
    """[E] the other end of each arc, counted over the whole set."""
    return graphs.col.astype(np.int64) + np.repeat(graphs.ptr[:-1], graphs.arc_counts)
