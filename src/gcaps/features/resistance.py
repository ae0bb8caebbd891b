"""Harmonic distances (effective resistances) between the nodes of a graph (Eq. 9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, sparray, spmatrix

from gcaps.data.arrays import Array, Floats, Ints, counting_argsort, pointer
from gcaps.data.graphset import GraphSet

if TYPE_CHECKING:
    from gcaps.features.quotient import Network


class Components(NamedTuple):
    """Connected components of equal size n, and the distances within each."""

    nodes: Ints
    """[b, n] nodes, numbered over the whole set."""
    distance: Floats
    """[b, n, n]"""


def component_distances(graphs: GraphSet) -> Iterator[Components]:
    """Yield the harmonic distances within every connected component of every graph."""
    from gcaps.features.quotient import network_of

    yield from _distances(network_of(graphs), np.asarray(graphs.ptr))


def harmonic_distances(A: Array | sparray | spmatrix) -> Floats:
    """Harmonic distances S [N, N] of one graph (Eq. 9 with f = 1/λ), ∞ between components.

    Exact up to rounding in float64. Twins are merged (:mod:`gcaps.features.quotient`), nodes of small degree are
    eliminated and substituted back (:mod:`gcaps.features.elimination`), and the rest is solved by Cholesky
    factorisation. Self-loops carry no current and are ignored.

    Args:
        A: [N, N] symmetric adjacency matrix with weights ≥ 0, dense or sparse.
    """
    from gcaps.features.quotient import Network

    matrix = csr_array(A, dtype=np.float64)
    if matrix.shape[0] != matrix.shape[1] or (matrix != matrix.T).nnz:
        raise ValueError("the adjacency matrix must be square and symmetric")
    if matrix.nnz and (matrix.data.min() < 0 or not np.isfinite(matrix.data).all()):
        raise ValueError("edge weights must be finite and not negative")
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    out = np.full(matrix.shape, np.inf)
    ends = np.array([0, len(out)])
    network = Network(
        matrix.indptr.astype(np.int64), np.zeros(len(out), dtype=np.int64), matrix.indices.astype(np.int32), matrix.data
    )
    for nodes, distance in _distances(network, ends):
        out[nodes[:, :, None], nodes[:, None, :]] = distance
    return out


def _distances(network: Network, ptr: Ints) -> Iterator[Components]:
    from gcaps.features.binning import Piece
    from gcaps.features.quotient import quotient
    from gcaps.features.sweep import sweep

    q = quotient(network, ptr)
    member = counting_argsort(q.class_of, len(q.head)).astype(np.int64)
    owned = pointer(q.size)

    def spread_out(piece: Piece, some: Ints) -> list[Components]:
        """Distances between nodes from those between classes of twins."""
        found = []
        for number, p in enumerate(some):
            first, last = q.component_ptr[p], q.component_ptr[p + 1]
            k = last - first
            rows = piece.rows[piece.row_ptr[number] : piece.row_ptr[number + 1]] - first
            row_of = np.empty(k, dtype=np.int64)
            row_of[rows] = np.arange(k)
            nodes = member[owned[first] : owned[last]]
            own = q.class_of[nodes]
            R = piece.R[piece.start[number] : piece.start[number] + k * k].reshape(k, k)
            S = R[np.ix_(row_of[own - first], row_of[own - first])]
            S += q.spread[own][:, None] + q.spread[own]
            twins = own[:, None] == own
            S[twins] = np.broadcast_to(q.within[own], S.shape)[twins]
            np.fill_diagonal(S, 0)
            found.append(Components(nodes[None], np.maximum(S, 0)[None]))
        return found

    for some in sweep(network, q, spread_out, memory=1 << 62, n_jobs=1):
        yield from some
