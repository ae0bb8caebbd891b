"""Shortest paths between all pairs of nodes of each graph, counted by their ends' labels and their length."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def hop_counts(first, last, ptr, rowptr, col, label, by_label):  # type: ignore[no-untyped-def]
    """Paths of the graphs first..last−1 by breadth-first search from every node.

    Args:
        first, last: graphs.
        ptr, rowptr, col: the set's arrays.
        label: [N] labels 0, 1, … of each graph's nodes, counted anew in every graph.
        by_label: [N] each graph's nodes in ascending order of their label, counted within the graph.

    Returns:
        ``ptr`` [graphs+1] and ``low``, ``high``, ``length``, ``count`` [T]: for each graph how many unordered pairs of
        different nodes have the labels low ≤ high and the distance length.
    """
    largest = 1
    for g in range(first, last):
        largest = max(largest, ptr[g + 1] - ptr[g])
    distance = np.empty(largest, dtype=np.int32)
    queue = np.empty(largest, dtype=np.int32)
    size = 1024
    low = np.empty(size, dtype=np.int32)
    high = np.empty(size, dtype=np.int32)
    length = np.empty(size, dtype=np.int32)
    count = np.empty(size, dtype=np.int64)
    out_ptr = np.zeros(last - first + 1, dtype=np.int64)
    table = np.zeros(1, dtype=np.int64)
    touched = np.empty(1, dtype=np.int64)
    used = 0
    for g in range(first, last):
        base = ptr[g]
        n = ptr[g + 1] - base
        labels = label[base + by_label[base + n - 1]] + 1 if n > 0 else 0
        if labels * n > len(table):
            table = np.zeros(labels * n, dtype=np.int64)
            touched = np.empty(labels * n, dtype=np.int64)
        filled = 0
        for position in range(n):
            source = by_label[base + position]
            own = label[base + source]
            for v in range(n):
                distance[v] = -1
            distance[source] = 0
            queue[0] = source
            head, tail = 0, 1
            while head < tail and tail < n:
                u = queue[head]
                head += 1
                for arc in range(rowptr[base + u], rowptr[base + u + 1]):
                    v = col[arc]
                    if distance[v] < 0:
                        distance[v] = distance[u] + 1
                        queue[tail] = v
                        tail += 1
            for k in range(1, tail):
                v = queue[k]
                other = label[base + v]
                if other > own or (other == own and v > source):
                    cell = other * n + distance[v]
                    if table[cell] == 0:
                        touched[filled] = cell
                        filled += 1
                    table[cell] += 1
            if position == n - 1 or label[base + by_label[base + position + 1]] != own:
                if used + filled > size:
                    size = max(2 * size, used + filled)
                    low, high, length = _grown(low, size), _grown(high, size), _grown(length, size)
                    longer = np.empty(size, dtype=np.int64)
                    longer[:used] = count[:used]
                    count = longer
                for k in range(filled):
                    cell = touched[k]
                    low[used], high[used], length[used] = own, cell // n, cell % n
                    count[used] = table[cell]
                    table[cell] = 0
                    used += 1
                filled = 0
        out_ptr[g - first + 1] = used
    return out_ptr, low[:used], high[:used], length[:used], count[:used]


@njit(cache=True, nogil=True)
def _grown(array, size):  # type: ignore[no-untyped-def]
    longer = np.empty(size, dtype=np.int32)
    longer[: len(array)] = array
    return longer
