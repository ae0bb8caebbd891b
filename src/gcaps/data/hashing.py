"""64-bit hashes of labels, substructures, nodes and graphs that do not depend on the set they occur in.

A label, a subtree or a path has the same hash in every set and every process, so training and test graphs agree without
a shared dictionary. Two different ones collide with probability 2⁻⁶⁴: among a million different ones, any two do with
probability 3·10⁻⁸. Sums of well-mixed hashes are hashes of multisets, so whole sets are hashed by array operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcaps.data.arrays import Array, Ints
from gcaps.data.graphset import GraphSet

Hashes = NDArray[np.uint64]
STRIDE = 1 << 21
"""Arcs that are hashed together in :func:`wl_hashes` and :func:`stored_hashes`."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mix(values: Array) -> Hashes:
    """Scramble 64-bit numbers one to one (finaliser of SplitMix64)."""
    x = np.atleast_1d(values).astype(np.uint64) + _STEP
    x ^= x >> np.uint64(30)
    x *= _FIRST
    x ^= x >> np.uint64(27)
    x *= _SECOND
    x ^= x >> np.uint64(31)
    return x


def join(first: Array, second: Array) -> Hashes:
    """Hash of the ordered pair (first, second)."""
    return mix(mix(first) * _STEP + mix(second))


def sums(values: Hashes, ptr: Ints) -> Hashes:
    """Sum of each segment modulo 2⁶⁴, a hash of its multiset: exact in any order."""
    total = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values, out=total[1:])
    return total[ptr[1:]] - total[ptr[:-1]]


def rows(labels: Array) -> Hashes:
    """[n] hash of each row of integers [n, ·]."""
    found = mix(labels[:, 0])
    for column in labels.T[1:]:
        found = join(found, column)
    return found


def neighbors_of_set(graphs: GraphSet) -> Ints:
    """[E] target of each arc, numbered over the whole set."""
    return graphs.col.astype(np.int64) + np.repeat(graphs.ptr[:-1], graphs.arc_counts)


def stable_colors(graphs: GraphSet, color: Hashes | None = None) -> Hashes:
    """[N] stable Weisfeiler-Lehman colors: nodes of one color that no number of refinement rounds distinguishes.

    Within a graph the colors are an equitable partition: nodes of one color have equally many neighbors of any other.

    Args:
        graphs: the set; each graph is refined until its number of colors stops growing.
        color: [N] initial colors; by default degrees and node labels.
    """
    col = neighbors_of_set(graphs)
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    if color is None:
        color = mix(graphs.degrees)
        if graphs.node_labels is not None:
            color = join(color, rows(graphs.node_labels))
    count = _colors_of_graphs(graph, color, len(graphs))
    while True:
        finer = join(color, sums(mix(color)[col], graphs.rowptr))
        found = _colors_of_graphs(graph, finer, len(graphs))
        gained = found > count
        if not gained.any():
            return color
        # finished graphs keep their colors, so that these do not depend on the other graphs of the set
        color, count = np.where(gained[graph], finer, color), np.maximum(count, found)


def _colors_of_graphs(graph: Ints, color: Hashes, graphs: int) -> Ints:
    """[G] number of colors of each graph."""
    _, first = np.unique(join(graph, color), return_index=True)
    return np.bincount(graph[first], minlength=graphs)


def wl_hashes(graphs: GraphSet, rounds: int = 4) -> Hashes:
    """[G] Weisfeiler-Lehman hash of each graph.

    A node starts with its degree, labels and attributes; in each round it takes in its neighbors' colors together with
    the labels, attributes and weights of the edges between. Isomorphic graphs always agree; graphs that agree may still
    differ (regular graphs of one size without labels all agree). Self-loops are ignored, as in all formulas.
    """
    color = mix(_node_values(graphs) + mix(graphs.degrees))
    for _ in range(rounds):
        gathered = np.zeros_like(color)
        for block in _strides(graphs):
            message = mix(color[block.target] + block.values)
            gathered[block.nodes] = np.add.reduceat(message, block.starts)
        color = mix(color * np.uint64(3) + gathered)
    return sums(mix(color), graphs.ptr)


def stored_hashes(graphs: GraphSet) -> Hashes:
    """[G] hash of each graph as stored: node order, labels, attributes, weights and self-loops all count."""
    position = (np.arange(graphs.num_nodes) - np.repeat(graphs.ptr[:-1], graphs.sizes)).astype(np.uint64)
    value = mix(_node_values(graphs) + mix(position))
    for block in _strides(graphs):
        ends = (position[block.source] << np.uint64(32)) + position[block.target]
        value[block.nodes] += np.add.reduceat(mix(mix(ends) + block.values), block.starts)
    if graphs.loops is not None:
        loops = graphs.loops
        value[loops.node] += mix(_values(len(loops.node), loops.labels, loops.attributes, loops.weight) + np.uint64(1))
    return sums(mix(value), graphs.ptr)


class _Stride(NamedTuple):
    """All arcs of some consecutive nodes."""

    nodes: Array
    """Nodes that have arcs."""
    starts: Array
    """Position of the first arc of each of them within the stride."""
    source: Array
    target: Array
    values: Hashes
    """Hashes of the labels, attributes and weights of the arcs."""


def _strides(graphs: GraphSet) -> Iterator[_Stride]:
    rowptr = graphs.rowptr
    cuts = np.unique(np.searchsorted(rowptr, np.arange(0, len(graphs.col) + STRIDE, STRIDE)).clip(0, graphs.num_nodes))
    first = np.repeat(graphs.ptr[:-1], graphs.sizes)
    for low, high in pairwise(cuts):
        degrees = np.diff(rowptr[low : high + 1])
        nodes = low + np.flatnonzero(degrees)
        if not len(nodes):
            continue
        arcs = slice(int(rowptr[low]), int(rowptr[high]))
        source = np.repeat(np.arange(low, high), degrees)
        parts = (graphs.edge_labels, graphs.edge_attr, graphs.edge_weight)
        values = _values(len(source), *(None if part is None else part[arcs] for part in parts))
        yield _Stride(nodes, rowptr[nodes] - arcs.start, source, graphs.col[arcs] + first[source], values)


def _node_values(graphs: GraphSet) -> Hashes:
    return _values(graphs.num_nodes, graphs.node_labels, graphs.x)


def _values(count: int, *tables: Array | None) -> Hashes:
    """[count] hash of each row of the tables side by side; zeros if there is no table."""
    value = np.zeros(count, dtype=np.uint64)
    for table in tables:
        if table is None:
            continue
        for column in table.reshape(count, -1).T:
            # + 0.0 turns −0.0 into 0.0
            bits = column.astype(np.float64) + 0.0 if column.dtype.kind == "f" else column.astype(np.int64)
            value = mix(value + bits.view(np.uint64))
    return value
