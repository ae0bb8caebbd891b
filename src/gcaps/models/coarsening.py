"""Graph coarsening for ECC: a pyramid of smaller graphs by node selection and Kron reduction."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from gcaps.batching.merging import classes
from gcaps.data.arrays import Array, Floats, Ints, pointer, ranges
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import join, mix, sums

STEPS = 8
"""Exponent t of :func:`polarity`."""
ZERO = 1e-9
"""Absolute values of :func:`polarity` up to this count as zero."""
WEAK = 0.0317
"""Edges below this fraction of the largest weight at both of their ends are dropped."""
DENSE = 400
"""Largest number of nodes of a graph that is reduced with dense matrices."""
COLUMNS = 512
"""Number of kept nodes whose edges are computed at a time in larger graphs."""


class Level(NamedTuple):
    """A coarser version of every graph of a set."""

    ptr: Ints
    """[G+1]"""
    rowptr: Ints
    """[N'+1]"""
    col: Array
    """[E'] int32, node numbers within the graph."""
    weight: Floats
    """[E'] float32."""
    kept: Array
    """[N'] int32: number of each node in the finer graph."""
    multiplicity: Floats | None = None
    """[N'] number of nodes that each row represents; None if every row is one node."""
    edge_count: Floats | None = None
    """[E'] number of edges that each arc represents; None if every arc is one edge."""


def pyramid(graphs: GraphSet, levels: int) -> list[Level]:
    """``levels`` coarser versions of each graph, each made from the one before.

    The pyramid of Shuman, Faraji and Vandergheynst (2016) that ECC uses, with changes that make it fast and independent
    of the order of the nodes:

    - A node is kept if x ≥ 0 for x = (I − P)ᵗ log d, with P = D⁻¹ A and degrees d. The original takes the sign of the
      Laplacian's largest eigenvector, which is not unique if eigenvalues coincide, has an arbitrary sign, and nearly
      vanishes far from the node of highest degree. x is the part of log d in the eigenvectors of the random-walk
      Laplacian with large eigenvalues. Nodes of high degree are kept, since the product of x and log d, weighted by d,
      is ≥ 0. A component of equivalent nodes has x = 0 and is kept as it is. Since Σ d x = 0 over a component, at least
      one of its nodes is kept.
    - The Kron reduction S = L_kk − L_kd L_dd⁻¹ L_dk is the exact Laplacian of the kept nodes, as in the original.
    - Edges whose weight is below :data:`WEAK` times the largest weight at both ends are dropped, unless they connect
      what would otherwise become separate components. The original samples edges at random.
    """
    weight = np.ones(len(graphs.col)) if graphs.edge_weight is None else graphs.edge_weight.astype(np.float64)
    fine = Level(graphs.ptr, graphs.rowptr, graphs.col, weight, np.zeros(0, dtype=np.int32))
    found = []
    for _ in range(levels):
        fine = coarser(fine)
        found.append(fine)
    return found


def coarser(fine: Level) -> Level:
    """The next level of the pyramid."""
    A = adjacency(fine)
    stays = polarity(A) >= 0
    kept = np.flatnonzero(stays)
    graph = np.repeat(np.arange(len(fine.ptr) - 1), np.diff(fine.ptr))
    ptr = pointer(np.bincount(graph[kept], minlength=len(fine.ptr) - 1))
    parts = []
    for number, (first, last) in enumerate(pairwise(fine.ptr.tolist())):
        keep = kept[ptr[number] : ptr[number + 1]] - first
        parts.append(reduced(_block(A, first, last), keep))
    sizes = [np.diff(part.indptr) for part in parts]
    return Level(
        ptr,
        pointer(np.concatenate(sizes)),
        np.concatenate([part.indices for part in parts]).astype(np.int32),
        np.concatenate([part.data for part in parts]).astype(np.float32),
        (kept - fine.ptr[graph[kept]]).astype(np.int32),
    )


def merged_level(level: Level, finer_ptr: Ints, finer_row: Ints, row_ptr: Ints) -> tuple[Level, Ints]:
    """The level with nodes merged that no network can distinguish, and the row of each node.

    See :mod:`gcaps.batching.merging`.

    Nodes are alike if they are alike in the finer graph and have edges of the same weights to nodes that are alike.

    Args:
        level: the level.
        finer_ptr: [G+1] first node of each graph in the finer level.
        finer_row: row of each of these nodes.
        row_ptr: [G+1] first of these rows of each graph.
    """
    sizes, arcs = np.diff(level.ptr), np.diff(level.rowptr[level.ptr])
    col = level.col + np.repeat(level.ptr[:-1], arcs)
    weight = level.weight.view(np.int32)
    finer = finer_row[level.kept + np.repeat(finer_ptr[:-1], sizes)]
    colors = mix(finer)
    found, known = len(np.unique(colors)), 0
    while found > known:
        known = found
        colors = join(colors, sums(join(colors[col], weight), level.rowptr))
        found = len(np.unique(colors))
    head, row, multiplicity = classes(colors)
    degrees = level.rowptr[head + 1] - level.rowptr[head]
    own = ranges(level.rowptr[head], degrees)
    begin, end, bits = np.repeat(np.arange(len(head)), degrees), row[col[own]], weight[own]
    order = np.lexsort((bits, end, begin))
    begin, end, bits = begin[order], end[order], bits[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (np.diff(begin) != 0) | (np.diff(end) != 0) | (bits[1:] != bits[:-1])
    at = np.flatnonzero(is_new)
    ptr = np.searchsorted(head, level.ptr)
    graph = np.repeat(np.arange(len(sizes)), np.diff(ptr))
    merged = Level(
        ptr,
        pointer(np.bincount(begin[at], minlength=len(head))),
        (end[at] - ptr[graph[begin[at]]]).astype(np.int32),
        bits[at].view(np.float32),
        (finer[head] - row_ptr[graph]).astype(np.int32),
        multiplicity.astype(np.float32),
        np.diff(at, append=len(order)).astype(np.float32),
    )
    return merged, row


def polarity(A: csr_array) -> Floats:
    """[N] x = (I − P)ᵗ log d of all graphs, 0 where it is rounding error; see :func:`pyramid`."""
    degree = A.sum(axis=1)
    linked = degree > 0
    x: Floats = np.log(degree, out=np.zeros_like(degree), where=linked)
    for _ in range(STEPS):
        x = x - np.divide(A @ x, degree, out=x.copy(), where=linked)
    x[np.abs(x) <= ZERO] = 0
    return x


def reduced(A: csr_array, keep: Ints) -> csr_array:
    """Adjacency matrix of the Kron reduction of A to the nodes ``keep``, without weak edges."""
    size = A.shape[0]
    if len(keep) == size:
        return A
    drop = np.delete(np.arange(size), keep)
    if size <= DENSE:
        return _drop_weak(_dense_weights(A.toarray(), keep, drop))
    L_dd = csc_array(-A[drop][:, drop])
    L_dd.setdiag(A.sum(axis=1)[drop])
    factors, direct, between = splu(L_dd), A[keep][:, keep], A[keep][:, drop]

    def columns(first: int) -> Floats:
        some = slice(first, first + COLUMNS)
        weights: Floats = direct[:, some].toarray() + between @ factors.solve(between[some].T.toarray())
        weights[np.arange(first, first + weights.shape[1]), np.arange(weights.shape[1])] = 0
        return weights

    # computed several times, so that the dense matrix is never in memory as a whole
    starts = range(0, len(keep), COLUMNS)
    largest = np.concatenate([columns(first).max(axis=0) for first in starts])

    def chosen(part: Ints | None) -> csr_array:
        blocks = []
        for first in starts:
            weights, some = columns(first), slice(first, first + COLUMNS)
            wanted = weights >= WEAK * np.minimum(largest[:, None], largest[some])
            if part is not None:
                wanted |= part[:, None] != part[some]
            blocks.append(csr_array(np.where(wanted, weights, 0)))
        return csr_array(hstack(blocks))

    strong = chosen(None)
    parts, part = connected_components(strong, directed=False)
    if parts > connected_components(A, directed=False)[0]:
        strong = chosen(part)
    return _drop_weak(strong)


def _dense_weights(A: Floats, keep: Ints, drop: Ints) -> Floats:
    L_dd = -A[np.ix_(drop, drop)]
    L_dd[np.arange(len(drop)), np.arange(len(drop))] = A[drop].sum(axis=1)
    between = A[np.ix_(keep, drop)]
    weights: Floats = A[np.ix_(keep, keep)] + between @ np.linalg.solve(L_dd, between.T)
    weights[np.arange(len(keep)), np.arange(len(keep))] = 0
    return weights


def _drop_weak(weights: Floats | csr_array) -> csr_array:
    """The symmetric part of a matrix of edge weights, without weak edges; see :func:`pyramid`."""
    both = csr_array((weights + weights.T) / 2)
    row = np.repeat(np.arange(both.shape[0]), np.diff(both.indptr))
    largest = np.zeros(both.shape[0])
    np.maximum.at(largest, row, both.data)
    strong = both.data >= WEAK * np.minimum(largest[row], largest[both.indices])
    _, part = connected_components(_chosen(both, row, strong), directed=False)
    return _chosen(both, row, (strong | (part[row] != part[both.indices])) & (both.data > 0))


def _chosen(A: csr_array, row: Ints, which: Array) -> csr_array:
    ptr = pointer(np.bincount(row[which], minlength=A.shape[0]))
    return csr_array((A.data[which], A.indices[which], ptr), shape=A.shape)


def adjacency(level: Level) -> csr_array:
    """Block-diagonal adjacency matrix of all graphs."""
    arcs = np.diff(level.rowptr[level.ptr])
    col = level.col.astype(np.int64) + np.repeat(level.ptr[:-1], arcs)
    count = level.ptr[-1]
    return csr_array((level.weight.astype(np.float64), col, level.rowptr), shape=(count, count))


def _block(A: csr_array, first: int, last: int) -> csr_array:
    """Diagonal block of one graph."""
    begin, end = A.indptr[first], A.indptr[last]
    return csr_array(
        (A.data[begin:end], A.indices[begin:end] - first, A.indptr[first : last + 1] - begin),
        shape=(last - first, last - first),
    )
