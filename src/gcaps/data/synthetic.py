"""Generated data sets: families of graphs with equal degrees, and any number of molecule-like graphs.

Families test whether a method looks at structure, motifs whether an explanation finds what decides a class; molecules
measure what sets of any size cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet

FAMILIES = ("ring", "torus", "communities", "random")
"""Names of the classes 0, 1, 2, 3 of :func:`make_families`."""
SMALLEST, LARGEST = 12, 40
NOISE = 0.03
"""Share of the edges that are exchanged at random, so that graphs of a family differ."""
MIXING = 3
"""Exchanges per edge that turn a lattice into a random graph; the number of triangles levels off after one."""

HOUSE = ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4))
"""Edges of the motif of :func:`make_motifs`."""
HOUSE_LABELS = (3, 4, 3, 4, 3)
MOTIF_SIZES = (10, 20)
"""Smallest and largest tree that it is attached to."""

MOLECULES = 8192
"""Molecules that are made together."""
ATOMS = np.array([6, 7, 8, 9, 16])
SHARES = np.array([0.70, 0.115, 0.115, 0.04, 0.03])
MEAN_SIZE, DEVIATION, SMALLEST_MOLECULE, LARGEST_MOLECULE = 25, 6, 8, 48
RINGS = 3


def make_families(graphs: int = 240, seed: int = 0) -> GraphSet:
    """Generate connected graphs of 12 to 40 nodes in which every node has exactly four neighbors.

    The four classes are ring lattices, torus grids, two communities with a narrow bridge, and random graphs. All
    classes have the same sizes (if ``graphs`` is a multiple of 4) and nodes have no labels, so only the arrangement of
    the edges distinguishes them. A seed gives the same set on every computer.
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
    """Largest number of rows from 3 to √size of a grid of ``size`` nodes; 1 if there is no such grid."""
    rows = np.arange(3, int(LARGEST**0.5) + 1)
    fits = (size[:, None] % rows == 0) & (rows * rows <= size[:, None])
    most: Ints = np.where(fits, rows, 1).max(axis=1)
    return most


def _starting_edges(family: Ints, size: Ints) -> Ints:
    """[G, 2·LARGEST, 2] two edges for each node v, at 2v and 2v+1: the regular lattice of each family."""
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
    """All graphs as padded edge lists and adjacency matrices, changed together."""

    def __init__(self, size: Ints, ends: Ints) -> None:
        self.size, self.ends = size, ends
        self.adjacent = np.zeros((len(size), LARGEST, LARGEST), dtype=bool)
        graph, edge = np.nonzero(np.arange(2 * LARGEST) < 2 * size[:, None])
        self._set(graph, ends[graph, edge, 0], ends[graph, edge, 1], True)

    def _set(self, graph: Array, u: Array, v: Array, value: bool) -> None:
        self.adjacent[graph, u, v] = self.adjacent[graph, v, u] = value

    def exchange(self, count: Ints, rng: Generator, *, within: Ints | None = None, across: Ints | None = None) -> None:
        """Replace edges a–b, c–d by a–d, c–b, ``count[g]`` times in graph g, which keeps all degrees.

        The two edges are drawn at random until they are ``within`` one part of the nodes (or lie ``across`` two) and
        the result is a simple graph.
        """
        left = count.copy()
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
        """Return the set with the nodes of each graph in random order."""
        real = np.arange(LARGEST) < self.size[:, None]
        order = np.argsort(np.where(real, rng.random(real.shape), 2.0), axis=1, kind="stable")
        graph, u, v = np.nonzero(
            self.adjacent[np.arange(len(order))[:, None, None], order[:, :, None], order[:, None, :]]
        )
        ptr = pointer(self.size)
        return assemble("families", ptr, EdgeRows(ptr[graph] + u, ptr[graph] + v), y=labels)


class Motifs(NamedTuple):
    """Graphs whose class is decided by a motif, and where it is."""

    graphs: GraphSet
    inside: Array
    """[N] whether each node belongs to the motif; nowhere in graphs of class 0."""


def make_motifs(graphs: int = 200, seed: int = 0, *, labelled: bool = True, decoys: bool = True) -> Motifs:
    """Generate random trees of 10 to 20 nodes; in class 1 with a house attached, else with five more nodes.

    A house is a square with a triangle on it. With labels, the nodes of the tree have labels 0, 1 and 2 at random, the
    corners of the square 3 and 4 by turns and the top 3. With decoys, five nodes of a graph of class 0 have these
    labels, too, no two of them adjacent, so that it is the arrangement that decides; without, a label suffices.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(MOTIF_SIZES[0], MOTIF_SIZES[1] + 1, graphs) + len(HOUSE_LABELS)
    y = np.arange(graphs) % 2
    ptr = pointer(sizes)
    ends, labels, inside = [], rng.integers(0, 3, ptr[-1]), np.zeros(ptr[-1], dtype=bool)
    for g in range(graphs):
        n, house = int(sizes[g]), len(HOUSE_LABELS)
        tree = n - house if y[g] else n
        edges = [(i, int(rng.integers(0, i))) for i in range(1, tree)]
        if y[g]:
            edges += [(tree + u, tree + v) for u, v in HOUSE]
            edges.append((tree + int(rng.integers(0, house)), int(rng.integers(0, tree))))
            chosen = tree + np.arange(house)
        else:
            chosen = _apart(tree, edges, house, rng)
        order = rng.permutation(n)
        if y[g] or decoys:
            labels[ptr[g] + order[chosen]] = np.array(HOUSE_LABELS)[: len(chosen)]
        inside[ptr[g] + order[chosen]] = bool(y[g])
        ends.append(ptr[g] + order[np.array(edges)])
    u, v = np.concatenate(ends).T
    made = assemble(
        "motifs",
        ptr,
        EdgeRows(np.append(u, v), np.append(v, u)),
        y=y,
        node_labels=labels[:, None] if labelled else None,
    )
    return Motifs(replace(made, notes={}), inside)


def _apart(nodes: int, edges: list[tuple[int, int]], count: int, rng: Generator) -> Ints:
    """Draw nodes of which no two are adjacent, at most ``count``."""
    near: list[set[int]] = [set() for _ in range(nodes)]
    for u, v in edges:
        near[u].add(v)
        near[v].add(u)
    chosen: list[int] = []
    for node in rng.permutation(nodes).tolist():
        if len(chosen) < count and not near[node] & set(chosen):
            chosen.append(node)
    return np.array(chosen, dtype=np.int64)


def random_molecules(count: int, seed: int = 0) -> Iterator[GraphSet]:
    """Yield ``count`` graphs in sets of 8,192, with about 25 nodes and 27 edges each, labelled nodes and two classes.

    A graph is a tree of mostly short branches plus three edges that close rings of six, unless they exist already. Node
    labels are the atomic numbers of organic molecules, drawn independently. The class is 1 if and only if a nitrogen
    (7) and an oxygen (8) are adjacent, which holds for about half of the graphs and can be learned by a network. The
    first graphs for a seed do not depend on ``count``.
    """
    for number, first in enumerate(range(0, count, MOLECULES)):
        made = _molecules(np.random.default_rng([seed, number]))
        yield made[: count - first] if count - first < MOLECULES else made


def _molecules(rng: np.random.Generator) -> GraphSet:
    sizes = np.rint(rng.normal(MEAN_SIZE, DEVIATION, MOLECULES)).astype(np.int64)
    sizes = sizes.clip(SMALLEST_MOLECULE, LARGEST_MOLECULE)
    ptr = pointer(sizes)
    first = np.repeat(ptr[:-1], sizes)
    position = np.arange(ptr[-1]) - first
    back = np.minimum(1 + (rng.random(len(position)) ** 4 * 4).astype(np.int64), position)
    child = np.flatnonzero(position)
    parent = child - back[child]
    ring = ptr[:-1, None] + (rng.random((MOLECULES, RINGS)) * (sizes[:, None] - 5)).astype(np.int64)
    u, v = np.append(child, ring), np.append(parent, ring + 5)
    atoms = ATOMS[np.searchsorted(np.cumsum(SHARES)[:-1], rng.random(len(position)), side="right")]
    graph_of = np.repeat(np.arange(MOLECULES), sizes)
    joined = atoms[u] * atoms[v] == 7 * 8
    labels = np.bincount(graph_of[u[joined]], minlength=MOLECULES) > 0
    made = assemble(
        "molecules",
        ptr,
        EdgeRows(np.append(u, v), np.append(v, u)),
        y=labels.astype(np.int64),
        node_labels=atoms[:, None],
    )
    return replace(made, notes={})
