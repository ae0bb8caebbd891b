"""A pyramid of ever smaller graphs: which nodes stay, and how strongly they are tied without the others."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from gcaps.data.arrays import Array, Floats, Ints, pointer
from gcaps.data.graphset import GraphSet

STEPS = 8
"""Steps t behind the choice of nodes."""
ZERO = 1e-9
"""What counts as zero among them."""
WEAK = 0.0317
"""Ties weaker than this share of the strongest one of either of their ends are dropped."""
DENSE = 400
"""Nodes up to which a graph is reduced with dense matrices."""
COLUMNS = 512
"""Kept nodes whose ties are computed at a time in larger graphs."""


class Level(NamedTuple):
    """A coarser version of every graph of a set."""

    ptr: Ints
    """[G+1]"""
    rowptr: Ints
    """[N'+1]"""
    col: Array
    """[E'] int32, counted within the graph."""
    weight: Floats
    """[E'] float32."""
    kept: Array
    """[N'] int32: which node of the finer graph each one was."""


def pyramid(graphs: GraphSet, levels: int) -> list[Level]:
    """``levels`` coarser versions of each graph, one from the other.

    The pyramid of Shuman, Faraji and Vandergheynst (2016) that ECC pools with, made fast and independent of the order
    of the nodes:

    - Nodes stay by the sign of x = (I − P)ᵗ log d, P = D⁻¹ A, d the degrees, in the place of the Laplacian's largest
      eigenvector, which is not unique where eigenvalues coincide, whose sign is arbitrary, and which is all but zero
      far from the largest hub. x is the part of log d in the large eigenvectors of the random-walk Laplacian. Hubs
      stay, since x and log d have a product ≥ 0 (weighted by d). Nodes where x is zero stay: a component whose nodes
      all look alike stays as it is. Since Σ d x = 0 over a component, none vanishes.
    - Kron reduction: S = L_kk − L_kd L_dd⁻¹ L_dk is the Laplacian of what is kept, exactly.
    - Ties below a share of the strongest ones of both their ends are dropped, in the place of random sparsification,
      except where a component would fall apart.
    """
    weight = np.ones(len(graphs.col)) if graphs.edge_weight is None else graphs.edge_weight.astype(np.float64)
    fine = Level(graphs.ptr, graphs.rowptr, graphs.col, weight, np.zeros(0, dtype=np.int32))
    found = []
    for _ in range(levels):
        fine = coarser(fine)
        found.append(fine)
    return found


def coarser(fine: Level) -> Level:
    """One step up."""
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


def polarity(A: csr_array) -> Floats:
    """[N] x = (I − P)ᵗ log d of all graphs at once, 0 where it is rounding; see :func:`pyramid`."""
    degree = A.sum(axis=1)
    linked = degree > 0
    x: Floats = np.log(degree, out=np.zeros_like(degree), where=linked)
    for _ in range(STEPS):
        x = x - np.divide(A @ x, degree, out=x.copy(), where=linked)
    x[np.abs(x) <= ZERO] = 0
    return x


def reduced(A: csr_array, keep: Ints) -> csr_array:
    """The adjacency matrix of the Kron reduction of A to the nodes ``keep``, without its weak ties."""
    size = A.shape[0]
    if len(keep) == size:
        return A
    drop = np.delete(np.arange(size), keep)
    if size <= DENSE:
        return _without_weak(_dense_ties(A.toarray(), keep, drop))
    L_dd = csc_array(-A[drop][:, drop])
    L_dd.setdiag(A.sum(axis=1)[drop])
    factors, direct, between = splu(L_dd), A[keep][:, keep], A[keep][:, drop]

    def columns(first: int) -> Floats:
        some = slice(first, first + COLUMNS)
        ties: Floats = direct[:, some].toarray() + between @ factors.solve(between[some].T.toarray())
        ties[np.arange(first, first + ties.shape[1]), np.arange(ties.shape[1])] = 0
        return ties

    # several times over the columns, so that the ties never stand in memory all at once
    starts = range(0, len(keep), COLUMNS)
    strongest = np.concatenate([columns(first).max(axis=0) for first in starts])

    def chosen(part: Ints | None) -> csr_array:
        blocks = []
        for first in starts:
            ties, some = columns(first), slice(first, first + COLUMNS)
            wanted = ties >= WEAK * np.minimum(strongest[:, None], strongest[some])
            if part is not None:
                wanted |= part[:, None] != part[some]
            blocks.append(csr_array(np.where(wanted, ties, 0)))
        return csr_array(hstack(blocks))

    strong = chosen(None)
    parts, part = connected_components(strong, directed=False)
    if parts > connected_components(A, directed=False)[0]:
        strong = chosen(part)
    return _without_weak(strong)


def _dense_ties(A: Floats, keep: Ints, drop: Ints) -> Floats:
    L_dd = -A[np.ix_(drop, drop)]
    L_dd[np.arange(len(drop)), np.arange(len(drop))] = A[drop].sum(axis=1)
    between = A[np.ix_(keep, drop)]
    ties: Floats = A[np.ix_(keep, keep)] + between @ np.linalg.solve(L_dd, between.T)
    ties[np.arange(len(keep)), np.arange(len(keep))] = 0
    return ties


def _without_weak(ties: Floats | csr_array) -> csr_array:
    """Symmetric; without ties below a share of the strongest ones of both their ends, unless they hold it together."""
    both = csr_array((ties + ties.T) / 2)
    row = np.repeat(np.arange(both.shape[0]), np.diff(both.indptr))
    strongest = np.zeros(both.shape[0])
    np.maximum.at(strongest, row, both.data)
    strong = both.data >= WEAK * np.minimum(strongest[row], strongest[both.indices])
    _, part = connected_components(_chosen(both, row, strong), directed=False)
    return _chosen(both, row, (strong | (part[row] != part[both.indices])) & (both.data > 0))


def _chosen(A: csr_array, row: Ints, which: Array) -> csr_array:
    ptr = pointer(np.bincount(row[which], minlength=A.shape[0]))
    return csr_array((A.data[which], A.indices[which], ptr), shape=A.shape)


def adjacency(level: Level) -> csr_array:
    """The block-diagonal matrix of all graphs."""
    arcs = np.diff(level.rowptr[level.ptr])
    col = level.col.astype(np.int64) + np.repeat(level.ptr[:-1], arcs)
    count = level.ptr[-1]
    return csr_array((level.weight.astype(np.float64), col, level.rowptr), shape=(count, count))


def _block(A: csr_array, first: int, last: int) -> csr_array:
    """The diagonal block of one graph."""
    begin, end = A.indptr[first], A.indptr[last]
    return csr_array(
        (A.data[begin:end], A.indices[begin:end] - first, A.indptr[first : last + 1] - begin),
        shape=(last - first, last - first),
    )
