"""Compiled loops over packed fingerprints; imported where they run, since numba takes a while to import."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64

from gcaps.data.arrays import Array


@njit(cache=True, nogil=True)
def _bits_set(word: Any) -> Any:
    """Number of ones of a 64-bit word; compiled to a single instruction where there is one."""
    word = word - ((word >> uint64(1)) & uint64(0x5555555555555555))
    word = (word & uint64(0x3333333333333333)) + ((word >> uint64(2)) & uint64(0x3333333333333333))
    word = (word + (word >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return (word * uint64(0x0101010101010101)) >> uint64(56)


@njit(cache=True, nogil=True)
def _similarity(a: Array, b: Array, total: int) -> float:
    """Tanimoto similarity of two fingerprints that have ``total`` bits together."""
    common = uint64(0)
    for k in range(len(a)):
        common += _bits_set(a[k] & b[k])
    union = total - np.int64(common)
    return np.int64(common) / union if union > 0 else 0.0


@njit(cache=True, nogil=True)
def write_pairs(
    words: Array,
    counts: Array,
    first: int,
    last: int,
    ends: Array,
    threshold: float,
    a: Array,
    b: Array,
    similarity: Array,
) -> int:
    """Write the similar pairs (i, j), i < j, of the rows from ``first`` to ``last``; return their number."""
    found = 0
    for i in range(first, last):
        for j in range(i + 1, ends[i]):
            value = _similarity(words[i], words[j], counts[i] + counts[j])
            if value >= threshold:
                a[found], b[found], similarity[found] = i, j, value
                found += 1
    return found


@njit(cache=True, nogil=True)
def any_similar(
    queries: Array, query_counts: Array, words: Array, counts: Array, low: Array, high: Array, threshold: float
) -> Array:
    """[q] whether one of the candidates from ``low`` to ``high`` of each query is similar to it."""
    found = np.zeros(len(queries), dtype=np.bool_)
    for i in range(len(queries)):
        for j in range(low[i], high[i]):
            if _similarity(queries[i], words[j], query_counts[i] + counts[j]) >= threshold:
                found[i] = True
                break
    return found


@njit(cache=True, nogil=True)
def insert_nearest(
    queries: Array, query_counts: Array, words: Array, counts: Array, place: Array, similarity: Array
) -> None:
    """Insert each candidate into the ordered list of the most similar ones of each query."""
    last = place.shape[1] - 1
    for i in range(len(queries) if last >= 0 else 0):
        for j in range(len(words)):
            value = _similarity(queries[i], words[j], query_counts[i] + counts[j])
            if value <= similarity[i, last]:
                continue
            k = last
            while k > 0 and value > similarity[i, k - 1]:
                similarity[i, k], place[i, k] = similarity[i, k - 1], place[i, k - 1]
                k -= 1
            similarity[i, k], place[i, k] = value, j
