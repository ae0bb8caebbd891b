"""The loops behind receptive fields: breadth-first assembly and the canonical order of what ties."""

from __future__ import annotations

import numpy as np
from numba import njit

from gcaps.data.arrays import Array

MOST = 512
"""Orders of one field that are followed at the same time. Fields have at most 16 nodes and twins count once; what is
left of their symmetries stays far below."""


@njit(cache=True)
def assemble(ptr: Array, rowptr: Array, col: Array, rank: Array, k: int) -> tuple[Array, Array]:
    """For every node the first k nodes by distance from it, then by rank; and their distances.

    Args:
        ptr, rowptr, col: a GraphSet's.
        rank: [N] what comes first among nodes at the same distance; equal ranks go by node number.
        k: nodes of a field.

    Returns:
        fields [N, k] int32, nodes counted within their graph, −1 where the component has fewer; distances [N, k] int32.
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
                        # insertion into the sorted part [first, filled) of the field, which may push one out
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
    """[size] bit j of entry i: whether the nodes i and j of a field are neighbors."""
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
    """The order of a field's nodes that respects ``group`` and has the largest adjacency code.

    The code lists, position by position, to which of the nodes before it the node there is adjacent; of all orders
    in which groups ascend the one with the lexicographically largest code is taken, so two isomorphic fields (with
    groups) give the same adjacency matrix. All prefixes with the best code so far are followed; of twins (same group,
    same neighbors but for each other), whose exchange changes nothing, only one is tried at a position.

    Args:
        bits: [size] adjacency, see :func:`adjacency_bits`.
        group: [size] ascending; equal for nodes that tie.
    """
    size = len(bits)
    orders = np.empty((MOST, size), dtype=np.int64)
    following = np.empty((MOST, size), dtype=np.int64)
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
                if code == best and found < MOST:
                    following[found, :position] = orders[o, :position]
                    following[found, position] = v
                    found += 1
        orders, following = following, orders
        alive = found
    first: Array = orders[0].copy()
    return first


@njit(cache=True)
def break_ties(ptr: Array, rowptr: Array, col: Array, rank: Array, fields: Array, distances: Array) -> None:
    """Put the nodes of each field that tie in distance and rank into their canonical order, in place."""
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
