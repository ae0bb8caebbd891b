"""All graphs on k nodes as numbers: bit (i, j) of a code says whether i and j are joined."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb

import numpy as np

from gcaps.data.arrays import Array, Ints
from gcaps.kernels.hashing import Names, join, mix


def adjacency_of(codes: Array, k: int) -> Ints:
    """[n, k, k] the adjacency matrices behind codes [n]; bits in the order (0, 1), (0, 2), …, (k−2, k−1)."""
    i, j = np.triu_indices(k, 1)
    bits = (codes[:, None] >> np.arange(len(i))) & 1
    A = np.zeros((len(codes), k, k), dtype=np.int64)
    A[:, i, j] = A[:, j, i] = bits
    return A


def isomorphism_names(codes: Array, k: int) -> Names:
    """[n] the same name for isomorphic graphs, different ones for all others up to k = 7.

    Nodes are told apart by the numbers of closed walks through them and by two color refinements with the matrix of
    walk counts; the tests compare with the atlas of all graphs on up to seven nodes.
    """
    A = adjacency_of(codes, k)
    power, color = A, np.zeros((len(codes), k), dtype=np.uint64)
    pair = np.zeros(A.shape, dtype=np.uint64)
    for _ in range(k):
        pair = join(pair.ravel(), power.ravel()).reshape(A.shape)
        power = power @ A
    color = mix(np.diagonal(pair, axis1=1, axis2=2).ravel()).reshape(len(codes), k)
    for _ in range(2):
        seen = join(pair.ravel(), np.repeat(color[:, None, :], k, axis=1).ravel()).reshape(A.shape)
        color = join(color.ravel(), seen.sum(axis=2, dtype=np.uint64).ravel()).reshape(len(codes), k)
    return join(np.full(len(codes), k), color.sum(axis=1, dtype=np.uint64))


def is_connected(codes: Array, k: int) -> Array:
    """[n] whether the graph on k nodes is connected."""
    reach = adjacency_of(codes, k) + np.eye(k, dtype=np.int64)
    for _ in range(max(1, (k - 1).bit_length())):
        reach = np.minimum(reach @ reach, 1)
    return np.asarray(reach.all(axis=(1, 2)))


@cache
def graphlets(k: int) -> tuple[tuple[int, ...], Ints]:
    """One code for each graph on k ≤ 4 nodes up to isomorphism, by number of edges; and the matrix of copies.

    Entry (i, j) is the number of spanning subgraphs of graph j isomorphic to graph i: it takes induced counts to
    counts of not necessarily induced subgraphs, and is upper triangular.
    """
    codes = np.arange(1 << comb(k, 2))
    names = isomorphism_names(codes, k)
    size = np.array([int(code).bit_count() for code in codes])
    kinds: dict[int, int] = {}
    for code in codes[np.argsort(size, kind="stable")]:
        kinds.setdefault(int(names[code]), int(code))
    chosen = list(kinds.values())
    number = {name: at for at, name in enumerate(kinds)}
    copies = np.zeros((len(chosen), len(chosen)), dtype=np.int64)
    for j, code in enumerate(chosen):
        bits = [b for b in range(comb(k, 2)) if code >> b & 1]
        for edges in range(len(bits) + 1):
            for part in combinations(bits, edges):
                copies[number[int(names[sum(1 << b for b in part)])], j] += 1
    return tuple(chosen), copies
