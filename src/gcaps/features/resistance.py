"""Harmonic distances (effective resistances) between the nodes of a graph (Eq. 9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array, sparray, spmatrix
from scipy.sparse.csgraph import connected_components

from gcaps.data.arrays import Array, Floats, Ints, counting_argsort, pointer, ranges
from gcaps.data.graphset import GraphSet

CHUNK = 1 << 22
"""Matrix entries that are inverted together: 32 MiB of them."""

_GOLDEN = 0.6180339887498949


def settle(distance: Floats) -> Floats:
    """Round distances to 26 bits so that the same distance has the same bits whatever the node order was.

    Resistances are rationals, many of them exactly on the edges of round numbers, and computed ones carry noise of
    some 1e-13 that depends on the order of the nodes. Cells of the rounding grid are shifted by the golden ratio, of
    all numbers the farthest from rationals, so that no resistance sits on the edge of a cell. 0 stays 0.
    """
    mantissa, exponent = np.frexp(distance)
    settled: Floats = np.ldexp(np.floor(mantissa * 2.0**26 + _GOLDEN), exponent - 26)
    return settled


class Components(NamedTuple):
    """Some connected components of equal size n, and the distances within each."""

    nodes: Ints
    """[b, n] their nodes, counted over the whole set."""
    distance: Floats
    """[b, n, n]"""


def component_distances(graphs: GraphSet) -> Iterator[Components]:
    """Harmonic distances within every connected component of every graph, components of equal size together.

    Per component: Cholesky factorisation and inverse of L + J/n, which is positive definite and whose inverse is
    L⁺ + J/n; the J/n cancels in S = L⁺_xx + L⁺_yy − 2 L⁺_xy. Distances are clamped at 0 and :func:`settle`-d.
    """
    first = np.repeat(graphs.node_ptr[:-1], graphs.arc_counts)
    col = graphs.neighbors + first
    weight = np.ones(len(col)) if graphs.edge_weight is None else graphs.edge_weight.astype(np.float64)
    yield from _distances(graphs.edge_ptr, col, weight)


def harmonic_distances(A: Array | sparray | spmatrix) -> Floats:
    """S [N, N] of one graph from its symmetric weighted adjacency matrix; ∞ between components (Eq. 9, 1/λ).

    Self-loops carry no current and are ignored.
    """
    matrix = csr_array(A, dtype=np.float64)
    if matrix.shape[0] != matrix.shape[1] or (matrix != matrix.T).nnz:
        raise ValueError("the adjacency matrix must be square and symmetric")
    if matrix.nnz and (matrix.data.min() < 0 or not np.isfinite(matrix.data).all()):
        raise ValueError("edge weights must be finite and not negative")
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    out = np.full(matrix.shape, np.inf)
    for nodes, distance in _distances(matrix.indptr, matrix.indices, matrix.data):
        out[nodes[:, :, None], nodes[:, None, :]] = distance
    return out


def _distances(edge_ptr: Array, col: Array, weight: Array) -> Iterator[Components]:
    num_nodes = len(edge_ptr) - 1
    A = csr_array((weight, col, edge_ptr), shape=(num_nodes, num_nodes))
    count, component = connected_components(A, directed=False)
    order = counting_argsort(component, count)
    size = np.bincount(component, minlength=count)
    first = pointer(size)
    for n in np.unique(size):
        same = np.flatnonzero(size == n)
        step = max(1, CHUNK // int(n) ** 2)
        for some in np.split(same, range(step, len(same), step)):
            nodes = order[first[some][:, None] + np.arange(n)].astype(np.int64)
            yield Components(nodes, _block_distances(nodes, np.asarray(edge_ptr), col, weight))


def _block_distances(nodes: Ints, edge_ptr: Array, col: Array, weight: Array) -> Floats:
    """[b, n, n] from [b, n] nodes of b components."""
    b, n = nodes.shape
    if n == 1:
        return np.zeros((b, 1, 1))
    flat = nodes.ravel()
    place = np.argsort(flat, kind="stable")
    degree = edge_ptr[flat + 1] - edge_ptr[flat]
    arcs = ranges(edge_ptr[flat], degree)
    row = np.repeat(np.arange(b * n), degree)
    target = place[np.searchsorted(flat, col[arcs], sorter=place)] % n
    L = np.full((b * n, n), 1.0 / n)
    np.subtract.at(L, (row, target), weight[arcs])
    strength = np.bincount(row, weights=weight[arcs], minlength=b * n)
    L[np.arange(b * n), np.tile(np.arange(n), b)] += strength
    factor = torch.linalg.cholesky(torch.from_numpy(L.reshape(b, n, n)))
    inverse = torch.cholesky_inverse(factor).numpy()
    diagonal = np.diagonal(inverse, axis1=1, axis2=2)
    distance = diagonal[:, :, None] + diagonal[:, None, :] - (inverse + inverse.transpose(0, 2, 1))
    distance[:, np.arange(n), np.arange(n)] = 0
    return settle(np.maximum(distance, 0))
