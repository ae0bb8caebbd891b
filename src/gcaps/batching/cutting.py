"""Cut graphs out of the arrays of a set, as one block-diagonal graph."""

from __future__ import annotations

import numpy as np
from numba import njit

from gcaps.data.arrays import Array, Ints


@njit(cache=True, nogil=True, boundscheck=True)  # arrays may come from a file
def cut_out(chosen: Ints, ptr: Array, rowptr: Array, col: Array) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Nodes and arcs of some graphs, one graph after the other.

    Args:
        chosen: [B] graphs.
        ptr: [G+1] graph g owns the nodes ptr[g] … ptr[g+1]−1.
        rowptr: [N+1] node v owns the arcs rowptr[v] … rowptr[v+1]−1.
        col: [E] target of each arc, numbered within its graph.

    Returns:
        Nodes [n] and arcs [e] as positions in the set, and ``ptr`` [B+1], ``rowptr`` [n+1], ``col`` [e] and the graph
        of each node [n] of the batch.
    """
    n = e = 0
    for g in chosen:
        if g < 0:
            raise IndexError("graphs are numbered from 0")
        n += ptr[g + 1] - ptr[g]
        e += rowptr[ptr[g + 1]] - rowptr[ptr[g]]
    nodes, arcs, ends = np.empty(n, np.int64), np.empty(e, np.int64), np.empty(e, np.int64)
    first, begin, of = np.zeros(len(chosen) + 1, np.int64), np.zeros(n + 1, np.int64), np.empty(n, np.int64)
    i = j = 0
    for b in range(len(chosen)):
        g, before = chosen[b], i
        for v in range(ptr[g], ptr[g + 1]):
            for a in range(rowptr[v], rowptr[v + 1]):
                arcs[j], ends[j] = a, col[a] + before
                j += 1
            nodes[i], of[i] = v, b
            i += 1
            begin[i] = j
        first[b + 1] = i
    return nodes, arcs, first, begin, ends, of
