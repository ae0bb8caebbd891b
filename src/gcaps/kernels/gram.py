"""Dense product X Yᵀ of sparse matrices with few frequent and many rare columns."""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from gcaps.data.arrays import Array, Floats

_DENSE = 0.06
"""Columns that are nonzero in at least this share of the rows are multiplied densely."""
_BLOCK = 1 << 24
"""Entries of a dense block."""


def gram(X: csr_array, Y: csr_array | None = None) -> Floats:
    """Return X Yᵀ, [n, m], or X Xᵀ, [n, n], in float64.

    Frequent columns are multiplied densely, block by block, rare ones entry by entry; in X Xᵀ, columns with a single
    entry only contribute to the diagonal.
    """
    if Y is None:
        return _symmetric(X)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X and Y have {X.shape[1]} and {Y.shape[1]} columns")
    x, y = (np.bincount(m.indices, minlength=m.shape[1]) for m in (X, Y))
    frequent = x * y > (_DENSE**2) * X.shape[0] * Y.shape[0]
    K = np.zeros((X.shape[0], Y.shape[0]))
    for part in _blocks(np.flatnonzero(frequent), X.shape[0] + Y.shape[0]):
        K += dense_columns(X, part) @ dense_columns(Y, part).T
    rare = ~frequent & (x > 0) & (y > 0)
    left, right = take_columns(X, rare), take_columns(Y, rare).tocsc()
    _add_products(K, left.indptr, left.indices, left.data, right.indptr, right.indices, right.data)
    return K


def _symmetric(X: csr_array) -> Floats:
    n, width = X.shape
    count = np.bincount(X.indices, minlength=width)
    frequent = count > _DENSE * n
    blocks = (dense_columns(X, part) for part in _blocks(np.flatnonzero(frequent), n))
    first = next(blocks, None)
    K: Floats = np.zeros((n, n)) if first is None else first @ first.T
    for block in blocks:
        K += block @ block.T
    left = take_columns(X, ~frequent & (count > 1))
    right = left.tocsc()
    _add_products(K, left.indptr, left.indices, left.data, right.indptr, right.indices, right.data)
    np.fill_diagonal(K, squares(X))
    return K


def squares(X: csr_array) -> Floats:
    """Return the squared length of each row, [n]."""
    found: Floats = np.asarray(X.power(2).sum(axis=1), dtype=np.float64)
    return found


def take_columns(X: csr_array, keep: Array) -> csr_array:
    """Return the columns selected by a mask."""
    inside = keep[X.indices]
    ptr = np.concatenate([[0], np.cumsum(inside)])[X.indptr]
    number = np.cumsum(keep) - 1
    return csr_array((X.data[inside], number[X.indices[inside]], ptr), shape=(X.shape[0], int(keep.sum())))


def dense_columns(X: csr_array, columns: Array) -> Floats:
    """Return some columns as a dense matrix, [n, columns]."""
    keep = np.zeros(X.shape[1], dtype=bool)
    keep[columns] = True
    block: Floats = take_columns(X, keep).toarray()
    return block


def _blocks(columns: Array, rows: int) -> list[Array]:
    if not len(columns):
        return []
    return np.array_split(columns, -(-len(columns) * rows // _BLOCK))


@njit(cache=True, nogil=True)
def _add_products(
    K: Array, indptr: Array, indices: Array, data: Array, y_indptr: Array, y_indices: Array, y_data: Array
) -> None:
    """Compute K += X Yᵀ from X in CSR and Y in CSC format."""
    for i in range(len(indptr) - 1):
        for a in range(indptr[i], indptr[i + 1]):
            value = data[a]
            column = indices[a]
            for b in range(y_indptr[column], y_indptr[column + 1]):
                K[i, y_indices[b]] += value * y_data[b]


def intersections(X: csr_array, Y: csr_array | None = None) -> Floats:
    """Return Σ_c min(x_ic, y_jc) for rows of X [n, ·] and Y [m, ·] ≥ 0, [n, m] in float64; by default for Y = X.

    Column indices of a row must be different, as in the output of ``sum_duplicates``.
    """
    if Y is not None and X.shape[1] != Y.shape[1]:
        raise ValueError(f"X and Y have {X.shape[1]} and {Y.shape[1]} columns")
    right = (X if Y is None else Y).tocsc()
    K = np.zeros((X.shape[0], right.shape[0]))
    _add_minima(K, X.indptr, X.indices, X.data, right.indptr.copy(), right.indptr, right.indices, right.data, Y is None)
    if Y is None:
        _mirror(K)
    return K


@njit(cache=True, nogil=True)
def _add_minima(
    K: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    start: Array,
    y_indptr: Array,
    y_indices: Array,
    y_data: Array,
    symmetric: bool,
) -> None:
    """Compute K += Σ min from X in CSR and Y in CSC format; of a symmetric matrix only j ≥ i.

    ``start`` [c] is the first entry of column c that counts, which in a symmetric matrix is that of row i.
    """
    for i in range(len(indptr) - 1):
        for a in range(indptr[i], indptr[i + 1]):
            value = data[a]
            column = indices[a]
            for b in range(start[column], y_indptr[column + 1]):
                K[i, y_indices[b]] += min(value, y_data[b])
            if symmetric:
                start[column] += 1


@njit(cache=True, nogil=True)
def _mirror(K: Array) -> None:
    """Copy what is above the diagonal below it."""
    for i in range(len(K)):
        for j in range(i):
            K[i, j] = K[j, i]
