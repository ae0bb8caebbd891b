"""Loops over nodes and arcs, compiled: all that lies between two matrix products of a capsule layer.

U and G [P, n, (K+1)·h] hold, for each capsule component p and node, the K+1 orders of the filter polynomial next to
each other. Sums over nodes are taken in float64 and in the order of the nodes, so they do not depend on the number of
threads. Rows are sliced before the innermost loops, which are many and short: that lets the compiler vectorise them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]
Sparse = tuple[Array, Array, Array, Array]
"""A filter matrix: rowptr, col, value (empty where all are one) and diagonal (empty where it is zero)."""

compiled = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def table_rows(codes: Array, table: Array, U: Array) -> None:
    """U_pi = Σ_c table_p[codes_ic]; a negative code adds nothing. With one-hot input this is Y_p W_p."""
    for p in range(U.shape[0]):
        for i in range(U.shape[1]):
            out = U[p, i]
            out[:] = 0
            for c in range(codes.shape[1]):
                if codes[i, c] >= 0:
                    row = table[p, codes[i, c]]
                    for j in range(len(out)):
                        out[j] += row[j]


@compiled
def add_to_table(codes: Array, G: Array, table: Array) -> None:
    """table_p[codes_ic] += G_pi: with one-hot input this is Y_pᵀ G_p."""
    for p in range(G.shape[0]):
        for i in range(G.shape[1]):
            row = G[p, i]
            for c in range(codes.shape[1]):
                if codes[i, c] >= 0:
                    out = table[p, codes[i, c]]
                    for j in range(len(out)):
                        out[j] += row[j]


@compiled
def _raise(row: Array, inverse_bound: float, i: int, powers: Array) -> None:
    """powers[p−1, i] = row, bounded(row)², …, bounded(row)^P."""
    one, c, w = row.dtype.type(1), row.dtype.type(inverse_bound * inverse_bound), len(row)
    first = powers[0, i]
    for j in range(w):
        first[j] = row[j]
    if len(powers) > 1:
        square = powers[1, i]
        for j in range(w):
            square[j] = row[j] * row[j] / (one + c * row[j] * row[j])
    for p in range(2, len(powers)):
        before, power = powers[p - 1, i], powers[p, i]
        for j in range(w):
            power[j] = before[j] * row[j] / np.sqrt(one + c * row[j] * row[j])


@compiled
def moments(X: Array, inverse_bound: float, powers: Array) -> None:
    """powers [P, n, c] = X, bounded(X)², …, bounded(X)^P.

    bounded(x) = x / √(1 + (x · inverse_bound)²); an inverse bound of 0 leaves x as it is.
    """
    for i in range(len(X)):
        _raise(X[i], inverse_bound, i, powers)


@compiled
def _add_row(U: Array, a: int, i: int, M: Sparse, out: Array) -> None:
    """out += (M U[:, a:a + h])_i for U [n, ·]."""
    rowptr, col, value, diagonal = M
    h = len(out)
    if len(diagonal):
        row = U[i, a : a + h]
        for j in range(h):
            out[j] += diagonal[i] * row[j]
    if len(value):
        for e in range(rowptr[i], rowptr[i + 1]):
            row = U[col[e], a : a + h]
            for j in range(h):
                out[j] += value[e] * row[j]
    else:
        for e in range(rowptr[i], rowptr[i + 1]):
            row = U[col[e], a : a + h]
            for j in range(h):
                out[j] += row[j]


@compiled
def gather(U: Array, h: int, M: Sparse, pre: Array, statistics: Array) -> None:
    """pre [n, P·h] = U_0 + M (U_1 + M (U_2 + …)), and of each of its columns the mean and Σ_i (pre_i − mean)²."""
    n, orders = pre.shape[0], U.shape[2] // h
    statistics[:] = 0
    mean, squares = statistics[0], statistics[1]
    for p in range(len(U)):
        for k in range(orders - 2, 0, -1):
            for i in range(n):
                _add_row(U[p], (k + 1) * h, i, M, U[p, i, k * h : k * h + h])
        total = mean[p * h : p * h + h]
        for i in range(n):
            own, out = U[p, i, :h], pre[i, p * h : p * h + h]
            for j in range(h):
                out[j] = own[j]
            if orders > 1:
                _add_row(U[p], h, i, M, out)
            for j in range(h):
                total[j] += out[j]
    for j in range(len(mean)):
        mean[j] /= n
    for i in range(n):
        row = pre[i]
        for j in range(len(mean)):
            d = row[j] - mean[j]
            squares[j] += d * d


@compiled
def update_running(
    mean: Array, squares: Array, count: int, momentum: float, running_mean: Array, running_var: Array
) -> None:
    """Running mean and (unbiased) variance after a batch of ``count`` rows, as in torch's batch normalisation."""
    for j in range(len(mean)):
        running_mean[j] += momentum * (mean[j] - running_mean[j])
        running_var[j] += momentum * (squares[j] / max(count - 1, 1) - running_var[j])


@compiled
def inverse_deviation(variance: Array, count: float, epsilon: float, inverse: Array) -> None:
    """1/√(variance/count + ε)"""
    for j in range(len(inverse)):
        inverse[j] = 1 / np.sqrt(variance[j] / count + epsilon)


@compiled
def normalization_gradient(
    sums: Array, count: float, gamma: Array, inverse: Array, scale: Array, constant: Array, slope: Array
) -> None:
    """The coefficients that :func:`spread_backward` takes, from sums over all nodes."""
    for j in range(len(gamma)):
        scale[j] = gamma[j] * inverse[j]
        constant[j] = scale[j] * sums[0, j] / count
        slope[j] = scale[j] * inverse[j] * inverse[j] * sums[1, j] / count


@compiled
def normalize(
    pre: Array,
    mean: Array,
    inverse: Array,
    gamma: Array,
    beta: Array,
    Z: Array,
    first: int,
    inverse_bound: float,
    powers: Array,
) -> None:
    """Z[:, first:first + w] = max(gamma · (pre − mean) · inverse + beta, 0), and its :func:`moments` if wanted."""
    w, zero = pre.shape[1], pre.dtype.type(0)
    scale = gamma * inverse
    shift = beta - mean * scale
    for i in range(len(pre)):
        row, out = pre[i], Z[i, first : first + w]
        for j in range(w):
            y = scale[j] * row[j] + shift[j]
            out[j] = y if y > zero else zero
        if len(powers):
            _raise(out, inverse_bound, i, powers)


@compiled
def input_backward(powers: Array, inverse_bound: float, grads: Array, grad: Array) -> None:
    """grad += grads[0] + Σ_p grads[p−1] · d bounded(x)^p / dx, p = 2..P, where x = powers[0].

    d bounded(x)^p / dx = p · bounded(x)^(p−1) · r³ with r = (1 + (x · inverse_bound)²)^−½; the first power is x itself.
    """
    one, c, w = grad.dtype.type(1), grad.dtype.type(inverse_bound * inverse_bound), grad.shape[1]
    for i in range(len(grad)):
        total, plain, row = grad[i], grads[0, i], powers[0, i]
        for j in range(w):
            total[j] += plain[j]
        if len(grads) > 1:
            g = grads[1, i]
            for j in range(w):
                q = one / (one + c * row[j] * row[j])
                total[j] += (row[j] + row[j]) * q * q * g[j]
        for p in range(3, len(grads) + 1):
            g = grads[p - 1, i]
            for j in range(w):
                r = one / np.sqrt(one + c * row[j] * row[j])
                total[j] += grad.dtype.type(p) * (row[j] * r) ** (p - 1) * r * r * r * g[j]


@compiled
def gate_backward(grad: Array, Z: Array, first: int, pre: Array, mean: Array, sums: Array) -> None:
    """grad = 0 where the activation was 0; then sums = [Σ_i grad_i, Σ_i grad_i · (pre_i − mean)]."""
    w, zero = grad.shape[1], grad.dtype.type(0)
    sums[:] = 0
    plain, products = sums[0], sums[1]
    for i in range(len(grad)):
        g, z, u = grad[i], Z[i, first : first + w], pre[i]
        for j in range(w):
            g[j] = g[j] if z[j] > zero else zero
        for j in range(w):
            plain[j] += g[j]
        for j in range(w):
            products[j] += g[j] * (u[j] - mean[j])


@compiled
def spread_backward(
    grad: Array, pre: Array, mean: Array, scale: Array, constant: Array, slope: Array, h: int, M: Sparse, G: Array
) -> None:
    """G_0 = scale · grad − constant − slope · (pre − mean), batch normalisation backwards, and G_k = Mᵀ G_(k−1)."""
    n, orders = len(grad), G.shape[2] // h
    for p in range(len(G)):
        a, b = p * h, p * h + h
        s, k, m = scale[a:b], slope[a:b], mean[a:b]
        c = constant[a:b] - k * m
        for i in range(n):
            out, g, u = G[p, i, :h], grad[i, a:b], pre[i, a:b]
            for j in range(h):
                out[j] = s[j] * g[j] - c[j]
            for j in range(h):
                out[j] -= k[j] * u[j]
        for order in range(1, orders):
            for i in range(n):
                out = G[p, i, order * h : order * h + h]
                out[:] = 0
                _add_row(G[p], (order - 1) * h, i, M, out)
