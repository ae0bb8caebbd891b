"""One 64-bit number for each graph of a set: equal graphs have equal numbers, and others practically never do.

Sums of well-mixed hashes are hashes of multisets, so a graph's number is a sum over its nodes, a node's a sum over its
arcs, and the whole set is done in a few strides over its arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet

Hashes = NDArray[np.uint64]
STRIDE = 1 << 21
"""Arcs that are hashed together."""


def wl_hashes(graphs: GraphSet, rounds: int = 4) -> Hashes:
    """[G] the Weisfeiler-Lehman colouring of each graph after so many rounds.

    A node begins with its degree, labels and attributes; in each round it takes in its neighbors' colours together
    with the labels, attributes and weights of the edges between. Isomorphic graphs always agree; graphs that agree
    may still differ (regular graphs of one size without labels all agree). Self-loops do not count, as no formula uses
    them.
    """
    colour = _mixed(_node_values(graphs) + _mixed(graphs.degrees.astype(np.uint64)))
    for _ in range(rounds):
        gathered = np.zeros_like(colour)
        for block in _strides(graphs):
            message = _mixed(colour[block.target] + block.values)
            gathered[block.nodes] = np.add.reduceat(message, block.starts)
        colour = _mixed(colour * np.uint64(3) + gathered)
    return _summed(_mixed(colour), graphs)


def stored_hashes(graphs: GraphSet) -> Hashes:
    """[G] of each graph as it is stored: node order, labels, attributes, weights and self-loops all count."""
    position = np.arange(graphs.num_nodes, dtype=np.uint64) - np.repeat(graphs.ptr[:-1], graphs.sizes).astype(np.uint64)
    value = _mixed(_node_values(graphs) + _mixed(position))
    for block in _strides(graphs):
        ends = (position[block.source] << np.uint64(32)) + position[block.target]
        value[block.nodes] += np.add.reduceat(_mixed(_mixed(ends) + block.values), block.starts)
    if graphs.loops is not None:
        loops = graphs.loops
        value[loops.node] += _mixed(_rows(len(loops.node), loops.labels, loops.attributes, loops.weight) + np.uint64(1))
    return _summed(_mixed(value), graphs)


class _Stride(NamedTuple):
    """Some arcs that stand next to each other, all those of their nodes."""

    nodes: Array
    """The nodes that have arcs."""
    starts: Array
    """Where the arcs of each of them begin within the stride."""
    source: Array
    target: Array
    values: Hashes
    """Labels, attributes and weights of the arcs."""


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
        values = _rows(len(source), *(None if part is None else part[arcs] for part in parts))
        yield _Stride(nodes, rowptr[nodes] - arcs.start, source, graphs.col[arcs] + first[source], values)


def _node_values(graphs: GraphSet) -> Hashes:
    return _rows(graphs.num_nodes, graphs.node_labels, graphs.x)


def _rows(count: int, *tables: Array | None) -> Hashes:
    """[count] a hash of each row of the tables side by side; zeros where there is no table."""
    value = np.zeros(count, dtype=np.uint64)
    for table in tables:
        if table is None:
            continue
        for column in table.reshape(count, -1).T:
            # + 0.0 makes one zero of the two that floats have
            bits = column.astype(np.float64) + 0.0 if column.dtype.kind == "f" else column.astype(np.int64)
            value = _mixed(value + bits.view(np.uint64))
    return value


def _summed(values: Hashes, graphs: GraphSet) -> Hashes:
    """[G] the sum over the nodes of each graph; no graph is without nodes."""
    if not len(graphs):
        return np.zeros(0, dtype=np.uint64)
    total: Hashes = np.add.reduceat(values, graphs.ptr[:-1])
    return total


def _mixed(values: Hashes) -> Hashes:
    """SplitMix64: every bit of the input moves every bit of the output."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
