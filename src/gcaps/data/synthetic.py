"""Endless molecule-like graphs, made by array operations: for measuring what sets of any size cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gcaps.data.arrays import pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet

MOLECULES = 8192
"""Graphs that are made together."""
ATOMS = np.array([6, 7, 8, 9, 16])
SHARES = np.array([0.70, 0.115, 0.115, 0.04, 0.03])
SIZE, DEVIATION, SMALLEST, LARGEST = 25, 6, 8, 48
RINGS = 3


def random_molecules(count: int, seed: int = 0) -> Iterator[GraphSet]:
    """``count`` graphs in sets of 8,192: about 25 nodes and 27 edges each, labelled nodes, two classes.

    A tree of mostly short branches, and three edges that close rings of six (one that is there already is not counted
    twice). Node labels are those of organic molecules' atoms, drawn independently. A graph is of class 1 if and only if
    a nitrogen (7) and an oxygen (8) are joined, which about half of the graphs have and a network can learn. The same
    seed gives the same graphs, however many are asked for.
    """
    for number, first in enumerate(range(0, count, MOLECULES)):
        made = _molecules(np.random.default_rng([seed, number]))
        yield made[: count - first] if count - first < MOLECULES else made


def _molecules(rng: np.random.Generator) -> GraphSet:
    sizes = np.rint(rng.normal(SIZE, DEVIATION, MOLECULES)).astype(np.int64).clip(SMALLEST, LARGEST)
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
