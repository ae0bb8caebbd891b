"""Receptive fields of PATCHY-SAN: the order of the nodes of a graph, and the nodes in the field of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numba import njit
from torch import Tensor

from gcaps.batching.merging import MergedNodes
from gcaps.data.arrays import Array, Ints, pointer, ranges
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, join, mix, neighbors_of_set, stable_colors, sums

MAX_ORDERS = 512
"""Largest number of candidate orders of one field. Far fewer occur, since fields have at most 16 nodes and only one of
several twins is tried."""


@dataclass(frozen=True)
class ReceptiveFields:
    """Receptive fields of all nodes of a set, in the order of the nodes of each graph."""

    ptr: Ints
    """[G+1] of the set."""
    nodes: Array
    """[N, k] int32: row ptr[g] + i is the field of the i-th node of graph g; node numbers within g, −1 for none."""

    @staticmethod
    def of(graphs: GraphSet, k: int) -> ReceptiveFields:
        """Fields of k nodes, found breadth-first and ordered by distance, then by rank.

        Nodes are ranked by degree (largest first), then by labels, then by the number of walks of length 2, 3, … that
        start there (most first), then by stable Weisfeiler-Lehman color. The order of colors is arbitrary; walk counts
        put nodes with similar neighborhoods into similar positions. Nodes of a field that tie in distance and rank are
        put into the order with the largest adjacency code. The nodes of a graph are ordered by rank, then by the colors
        of their fields.

        The colors in each position of a field do not depend on the order of the nodes, and neither does anything that
        is a function of colors, such as labels and degrees. Other features (attributes, harmonic distances) may differ
        between nodes of one color; which of these nodes comes first, or is cut off, then depends on the node order.
        """
        colors = stable_colors(graphs)
        graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
        labels = () if graphs.node_labels is None else graphs.node_labels.T
        rank = _dense_ranks(graph, -graphs.degrees, *labels, *(~count for count in walk_counts(graphs)), colors)
        fields, distances = assemble(graphs.ptr, graphs.rowptr, graphs.col, rank, k)
        break_ties(graphs.ptr, graphs.rowptr, graphs.col, rank, fields, distances)
        content = np.zeros(len(fields), dtype=np.uint64)
        first = graphs.ptr[:-1][graph]
        for column, distance in zip(fields.T, distances.T, strict=True):
            content = join(content, np.where(column >= 0, colors[first + column] + mix(distance), np.uint64(0)))
        return ReceptiveFields(graphs.ptr, fields[np.lexsort([content, rank, graph])])

    def merge(self, nodes: MergedNodes) -> None:
        """Fields are of single nodes."""
        return

    def take(self, indices: Ints) -> dict[str, Tensor]:
        """``fields`` [n, k] of the graphs at ``indices``, with node numbers within the batch and −1 for none."""
        sizes = np.diff(self.ptr)[indices]
        fields = self.nodes[ranges(self.ptr[indices], sizes)].astype(np.int64)
        shift = np.repeat(pointer(sizes)[:-1], sizes)[:, None]
        return {"fields": torch.from_numpy(np.where(fields >= 0, fields + shift, -1))}


def walk_counts(graphs: GraphSet, longest: int = 5) -> list[Hashes]:
    """[N] for each length 2..longest: number of walks that start at each node, modulo 2⁶⁴."""
    col, count, found = neighbors_of_set(graphs), graphs.degrees.astype(np.uint64), []
    for _ in range(longest - 1):
        count = sums(count[col], graphs.rowptr)
        found.append(count)
    return found


def _dense_ranks(graph: Ints, *keys: Array) -> Ints:
    """[N] ranks 0, 1, 2, … by graph, then by the keys; equal if all keys are equal."""
    order = np.lexsort([*keys[::-1], graph])
    new = np.zeros(len(order), dtype=bool)
    for key in (graph, *keys):
        new[1:] |= key[order[1:]] != key[order[:-1]]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(new)
    return rank


@njit(cache=True)
def assemble(ptr: Array, rowptr: Array, col: Array, rank: Array, k: int) -> tuple[Array, Array]:
    """For every node, the first k nodes by distance from it, then by rank, and their distances.

    Args:
        ptr, rowptr, col: of a GraphSet.
        rank: [N] order of nodes at the same distance; ties are broken by node number.
        k: number of nodes of a field.

    Returns:
        fields [N, k] int32, node numbers within the graph, −1 if the component has fewer; distances [N, k] int32.
    """
    count = ptr[-1]
    fields = np.full((count, k), -1, dtype=np.int32)
    distances = np.full((count, k), -1, dtype=np.int32)
    largest = 0
    for g in range(len(ptr) - 1):
        largest = max(largest, ptr[g + 1] - ptr[g])
    seen = np.full(largest, -1, dtype=np.int64)
    frontier = np.empty(largest, dtype=np.int64)
    coming = np.empty(largest, dtype=np.int64)
    for g in range(len(ptr) - 1):
        base = ptr[g]
        for root in range(ptr[g + 1] - base):
            mark = base + root
            fields[mark, 0], distances[mark, 0] = root, 0
            filled, width, depth = 1, 1, 0
            frontier[0] = root
            seen[root] = mark
            while filled < k and width > 0:
                depth += 1
                first, following = filled, 0
                for f in range(width):
                    v = base + frontier[f]
                    for e in range(rowptr[v], rowptr[v + 1]):
                        u = col[e]
                        if seen[u] == mark:
                            continue
                        seen[u] = mark
                        coming[following] = u
                        following += 1
                        # insert into the sorted part [first, filled) of the field, which may push out its last node
                        at = filled
                        while at > first and (
                            rank[base + u] < rank[base + fields[mark, at - 1]]
                            or (rank[base + u] == rank[base + fields[mark, at - 1]] and u < fields[mark, at - 1])
                        ):
                            at -= 1
                        if at < k:
                            for m in range(min(filled, k - 1), at, -1):
                                fields[mark, m] = fields[mark, m - 1]
                            fields[mark, at] = u
                            filled = min(filled + 1, k)
                for m in range(first, filled):
                    distances[mark, m] = depth
                frontier, coming = coming, frontier
                width = following
    return fields, distances


@njit(cache=True)
def adjacency_bits(base: int, rowptr: Array, col: Array, nodes: Array, size: int) -> Array:
    """[size] adjacency of the nodes of a field: bit j of entry i is set if i and j are neighbors."""
    bits = np.zeros(size, dtype=np.int64)
    for i in range(size):
        begin, end = rowptr[base + nodes[i]], rowptr[base + nodes[i] + 1]
        for j in range(size):
            low, high = begin, end
            while low < high:
                middle = (low + high) // 2
                if col[middle] < nodes[j]:
                    low = middle + 1
                else:
                    high = middle
            if low < end and col[low] == nodes[j]:
                bits[i] |= 1 << j
    return bits


@njit(cache=True)
def canonical_order(bits: Array, group: Array) -> Array:
    """The order of the nodes of a field that respects ``group`` and has the largest adjacency code.

    The code lists, position by position, to which of the earlier nodes the node is adjacent. Of all orders in which
    groups ascend, the one with the lexicographically largest code is taken, so isomorphic fields (with groups) give the
    same adjacency matrix. All prefixes with the best code so far are followed; of twins (same group, same neighbors
    except for each other), which are interchangeable, only one is tried at a position.

    Args:
        bits: [size] adjacency, see :func:`adjacency_bits`.
        group: [size] ascending; equal for nodes that tie.
    """
    size = len(bits)
    orders = np.empty((MAX_ORDERS, size), dtype=np.int64)
    following = np.empty((MAX_ORDERS, size), dtype=np.int64)
    alive = 1
    for position in range(size):
        best, found = -1, 0
        for o in range(alive):
            used = 0
            for p in range(position):
                used |= 1 << orders[o, p]
            for v in range(size):
                if group[v] != group[position] or used >> v & 1:
                    continue
                twin = False
                for u in range(v):
                    if group[u] == group[v] and not used >> u & 1:
                        both = ~((1 << u) | (1 << v))
                        if bits[u] & both == bits[v] & both:
                            twin = True
                            break
                if twin:
                    continue
                code = 0
                for p in range(position):
                    code = code << 1 | (bits[v] >> orders[o, p] & 1)
                if code > best:
                    best, found = code, 0
                if code == best and found < MAX_ORDERS:
                    following[found, :position] = orders[o, :position]
                    following[found, position] = v
                    found += 1
        orders, following = following, orders
        alive = found
    first: Array = orders[0].copy()
    return first


@njit(cache=True)
def break_ties(ptr: Array, rowptr: Array, col: Array, rank: Array, fields: Array, distances: Array) -> None:
    """Put nodes of a field that tie in distance and rank into their canonical order, in place."""
    k = fields.shape[1]
    group = np.empty(k, dtype=np.int64)
    for g in range(len(ptr) - 1):
        base = ptr[g]
        for v in range(base, ptr[g + 1]):
            size, ties = 0, False
            while size < k and fields[v, size] >= 0:
                tie = (
                    size > 0
                    and distances[v, size] == distances[v, size - 1]
                    and rank[base + fields[v, size]] == rank[base + fields[v, size - 1]]
                )
                group[size] = group[size - 1] if tie else size
                ties |= tie
                size += 1
            if ties:
                bits = adjacency_bits(base, rowptr, col, fields[v], size)
                fields[v, :size] = fields[v, :size][canonical_order(bits, group[:size])]
