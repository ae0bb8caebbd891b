"""A generated data set that needs no file: families of graphs that their degrees cannot tell apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.random import Generator

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet

FAMILIES = ("ring", "torus", "communities", "random")
"""Classes 0, 1, 2, 3."""
SMALLEST, LARGEST = 12, 40
NOISE = 0.03
"""Share of the edges that are exchanged at random, so that no two graphs of a family need be the same."""
MIXING = 3
"""Exchanges an edge that make a random graph of a lattice; the number of triangles levels off after one."""


def make_families(graphs: int = 240, seed: int = 0) -> GraphSet:
    """Connected graphs of 12 to 40 nodes, every node of every graph with exactly four neighbors.

    Four classes: ring lattices, torus grids, two communities with a narrow bridge, and random graphs. Each class has
    the same sizes (where 4 divides ``graphs``), and no node carries a label, so whoever tells the classes apart has
    looked at how edges are arranged. The same seed gives the same set everywhere.
    """
    rng = np.random.default_rng(seed)
    rows = np.arange(SMALLEST, LARGEST + 1)
    pool = rows[_torus_rows(rows) > 1]
    kinds = len(FAMILIES)
    size = np.repeat(pool[(rng.random(-(-graphs // kinds)) * len(pool)).astype(np.int64)], kinds)[:graphs]
    family = np.arange(graphs) % kinds
    stack = _Stack(size, _starting_edges(family, size))
    half = (np.arange(LARGEST) >= (size // 2)[:, None]).astype(np.int64)
    whole = np.zeros_like(half)
    split = family == FAMILIES.index("communities")
    stack.exchange(np.where(split, MIXING * 2 * size, 0), rng, within=half)
    stack.exchange(np.where(family == FAMILIES.index("random"), MIXING * 2 * size, 0), rng, within=whole)
    stack.exchange(split.astype(np.int64), rng, across=half)
    stack.exchange(np.rint(NOISE * 2 * size).astype(np.int64), rng, within=whole)
    while (apart := ~stack.connected()).any():
        stack.exchange(apart.astype(np.int64), rng, within=whole)
    made = stack.shuffled(rng, family)
    return replace(made, notes={})


def _torus_rows(size: Array) -> Ints:
    """The most rows ≥ 3, at most √size, of a grid of ``size`` nodes; 1 where there is no such grid."""
    rows = np.arange(3, int(LARGEST**0.5) + 1)
    fits = (size[:, None] % rows == 0) & (rows * rows <= size[:, None])
    most: Ints = np.where(fits, rows, 1).max(axis=1)
    return most


def _starting_edges(family: Ints, size: Ints) -> Ints:
    """[G, 2·LARGEST, 2] two edges for each node v, at 2v and 2v+1: the regular skeleton of each family."""
    v = np.arange(LARGEST)
    n, half = size[:, None], (size // 2)[:, None]

    def step(k: int, first: Array, length: Array) -> Array:
        return first + (v - first + k) % length

    columns = n // _torus_rows(size)[:, None]
    ring = np.stack([step(1, np.zeros_like(n), n), step(2, np.zeros_like(n), n)], axis=2)
    torus = np.stack([v // columns * columns + (v % columns + 1) % columns, (v + columns) % n], axis=2)
    first, length = np.where(v < half, 0, half), np.where(v < half, half, n - half)
    communities = np.stack([step(1, first, length), step(2, first, length)], axis=2)
    other = np.stack([ring, torus, communities, ring])[family, np.arange(len(family))]
    return np.stack([np.broadcast_to(v[:, None], other.shape), other], axis=3).reshape(len(family), 2 * LARGEST, 2)


class _Stack:
    """All graphs at once, as padded edge lists and adjacency matrices that are changed together."""

    def __init__(self, size: Ints, ends: Ints) -> None:
        self.size, self.ends = size, ends
        self.adjacent = np.zeros((len(size), LARGEST, LARGEST), dtype=bool)
        graph, edge = np.nonzero(np.arange(2 * LARGEST) < 2 * size[:, None])
        self._set(graph, ends[graph, edge, 0], ends[graph, edge, 1], True)

    def _set(self, graph: Array, u: Array, v: Array, value: bool) -> None:
        self.adjacent[graph, u, v] = self.adjacent[graph, v, u] = value

    def exchange(self, times: Ints, rng: Generator, *, within: Ints | None = None, across: Ints | None = None) -> None:
        """Replace edges a–b, c–d by a–d, c–b, ``times[g]`` times in graph g; that changes no degree.

        The two edges are drawn at random until they are ``within`` one part of the nodes (or lie ``across`` two) and
        the result is again a simple graph.
        """
        left = times.copy()
        while (left > 0).any():
            g = np.flatnonzero(left > 0)
            draw = rng.random((len(g), 3))
            i, j = (draw[:, :2] * (2 * self.size[g])[:, None]).astype(np.int64).T
            (a, b), (c, d) = self.ends[g, i].T, self.ends[g, j].T
            c, d = np.where(draw[:, 2] < 0.5, (c, d), (d, c))
            sound = (a != c) & (a != d) & (b != c) & (b != d) & ~self.adjacent[g, a, d] & ~self.adjacent[g, c, b]
            if within is not None:
                sound &= within[g, a] == within[g, c]
            if across is not None:
                sound &= across[g, a] != across[g, c]
            g, i, j, a, b, c, d = (values[sound] for values in (g, i, j, a, b, c, d))
            self._set(g, a, b, False)
            self._set(g, c, d, False)
            self._set(g, a, d, True)
            self._set(g, c, b, True)
            self.ends[g, i], self.ends[g, j] = np.stack([a, d], axis=1), np.stack([c, b], axis=1)
            left[g] -= 1

    def connected(self) -> Array:
        """[G] whether node 0 reaches all others."""
        reach = self.adjacent | np.eye(LARGEST, dtype=bool)
        for _ in range(LARGEST.bit_length()):
            reach = np.matmul(reach.astype(np.float32), reach.astype(np.float32)) > 0
        connected: Array = reach[:, 0].sum(axis=1) == self.size
        return connected

    def shuffled(self, rng: Generator, labels: Ints) -> GraphSet:
        """The set, the nodes of each graph in random order."""
        real = np.arange(LARGEST) < self.size[:, None]
        order = np.argsort(np.where(real, rng.random(real.shape), 2.0), axis=1, kind="stable")
        graph, u, v = np.nonzero(
            self.adjacent[np.arange(len(order))[:, None, None], order[:, :, None], order[:, None, :]]
        )
        ptr = pointer(self.size)
        return assemble("families", ptr, EdgeRows(ptr[graph] + u, ptr[graph] + v), y=labels)
