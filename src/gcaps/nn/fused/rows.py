"""What happens to the nodes of one block, compiled: moments, filters, normalisation, forwards and backwards.

U and G [P, b, (K+1)·h] hold, for each capsule component p and node of a block, the K+1 orders of the filter polynomial
next to each other. A block has the nodes a … z − 1. Sums over nodes are taken in float64. Rows are sliced before the
innermost loops, which are many and short: that lets the compiler vectorise them.
"""

from __future__ import annotations

import numpy as np

from gcaps.nn.fused.blocks import Array, compiled

Sparse = tuple[Array, Array, Array, Array]
"""A filter matrix: rowptr, col, value (empty where all are one) and diagonal (empty where it is zero)."""
Norm = tuple[Array, Array, Array, Array]
"""A normalisation: mean, 1/deviation, γ and β."""


@compiled
def powers_of(row: Array, inverse_bound: float, i: int, powers: Array) -> None:
    """powers[p−1, i] = row, bounded(row)², …, bounded(row)^P.

    bounded(x) = x / √(1 + (x · inverse_bound)²); an inverse bound of 0 leaves x as it is.
    """
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
def normalize(
    a: int, z: int, pre: Array, norm: Norm, Z: Array, column: int, inverse_bound: float, powers: Array
) -> None:
    """Z[:, column:column + w] = max(γ · (pre − mean)/deviation + β, 0), and its powers if wanted."""
    mean, inverse, gamma, beta = norm
    w, zero = pre.shape[1], pre.dtype.type(0)
    scale = gamma * inverse
    shift = beta - mean * scale
    for i in range(a, z):
        row, out = pre[i], Z[i, column : column + w]
        for j in range(w):
            y = scale[j] * row[j] + shift[j]
            out[j] = y if y > zero else zero
        if len(powers):
            powers_of(out, inverse_bound, i, powers)


@compiled
def add_rows(rows: Array, to: Array) -> None:
    """to += rows"""
    for i in range(len(rows)):
        row, out = rows[i], to[i]
        for j in range(len(row)):
            out[j] += row[j]


@compiled
def add_row(U: Array, column: int, i: int, a: int, M: Sparse, out: Array) -> None:
    """out += (M U[:, column:column + h])_i; row r of U belongs to node a + r."""
    rowptr, col, value, diagonal = M
    h = len(out)
    if len(diagonal):
        row = U[i - a, column : column + h]
        for j in range(h):
            out[j] += diagonal[i] * row[j]
    if len(value):
        for e in range(rowptr[i], rowptr[i + 1]):
            row = U[col[e] - a, column : column + h]
            for j in range(h):
                out[j] += value[e] * row[j]
    else:
        for e in range(rowptr[i], rowptr[i + 1]):
            row = U[col[e] - a, column : column + h]
            for j in range(h):
                out[j] += row[j]


@compiled
def gather(
    a: int, z: int, multiplicity: Array, U: Array, h: int, M: Sparse, shift: Array, pre: Array, statistics: Array
) -> None:
    """pre = U_0 + M (U_1 + M (U_2 + …)); statistics [2, P·h]: its columns' means, and Σ_i m_i (pre_i − mean)².

    Both come from sums of d = pre − shift and of d²: one pass, and exact enough where the shift is near the mean.
    Row i counts m_i = times[i] times, or once where ``times`` is empty.
    """
    count = 0.0
    orders = U.shape[2] // h
    statistics[:] = 0
    sums, squares = statistics[0], statistics[1]
    for p in range(len(U)):
        for k in range(orders - 2, 0, -1):
            for i in range(a, z):
                add_row(U[p], (k + 1) * h, i, a, M, U[p, i - a, k * h : k * h + h])
        if orders > 1:
            for i in range(a, z):
                add_row(U[p], h, i, a, M, U[p, i - a, :h])
    for i in range(a, z):
        row = pre[i]
        for p in range(len(U)):
            own, out = U[p, i - a, :h], row[p * h : p * h + h]
            for j in range(h):
                out[j] = own[j]
        m = np.float64(multiplicity[i]) if len(multiplicity) else 1.0
        count += m
        for j in range(len(sums)):
            d = np.float64(row[j] - shift[j])
            sums[j] += m * d
            squares[j] += m * d * d
    for j in range(len(sums)):
        mean = sums[j] / count
        squares[j] = max(squares[j] - sums[j] * mean, 0.0)
        sums[j] = mean + shift[j]


@compiled
def gate(a: int, z: int, grad: Array, Z: Array, column: int, pre: Array, mean: Array, sums: Array) -> None:
    """grad = 0 where the activation was 0; sums [2, w] = Σ_i grad_i and Σ_i grad_i · (pre_i − mean)."""
    w, zero = grad.shape[1], grad.dtype.type(0)
    sums[:] = 0
    plain, products = sums[0], sums[1]
    for i in range(a, z):
        g, active, u = grad[i], Z[i, column : column + w], pre[i]
        for j in range(w):
            g[j] = g[j] if active[j] > zero else zero
        for j in range(w):
            plain[j] += g[j]
        for j in range(w):
            products[j] += g[j] * (u[j] - mean[j])


@compiled
def spread(
    a: int,
    z: int,
    multiplicity: Array,
    grad: Array,
    pre: Array,
    mean: Array,
    coefficients: Array,
    h: int,
    M: Sparse,
    G: Array,
) -> None:
    """G_0 = scale · grad − m (constant + slope · (pre − mean)), batch normalisation backwards; G_k = Mᵀ G_(k−1).

    Row i counts m_i = times[i] times, or once where ``times`` is empty; ``grad`` is that of all m_i together.
    """
    orders = G.shape[2] // h
    for p in range(len(G)):
        left, right = p * h, p * h + h
        s, k = coefficients[0, left:right], coefficients[2, left:right]
        c = coefficients[1, left:right] - k * mean[left:right]
        all_c, all_k = c.copy(), k.copy()
        for i in range(a, z):
            out, g, u = G[p, i - a, :h], grad[i, left:right], pre[i, left:right]
            if len(multiplicity):
                for j in range(h):
                    all_c[j] = multiplicity[i] * c[j]
                for j in range(h):
                    all_k[j] = multiplicity[i] * k[j]
            for j in range(h):
                out[j] = s[j] * g[j] - all_c[j]
            for j in range(h):
                out[j] -= all_k[j] * u[j]
        for order in range(1, orders):
            for i in range(a, z):
                out = G[p, i - a, order * h : order * h + h]
                out[:] = 0
                add_row(G[p], (order - 1) * h, i, a, M, out)


@compiled
def input_backward(i: int, powers: Array, inverse_bound: float, grads: Array, r: int, total: Array) -> None:
    """total += grads[0, r] + Σ_p grads[p−1, r] · d bounded(x)^p / dx, p = 2..P, where x = powers[0, i].

    d bounded(x)^p / dx = p · bounded(x)^(p−1) · q³ with q = (1 + (x · inverse_bound)²)^−½; the first power is x itself.
    """
    one, c, w = total.dtype.type(1), total.dtype.type(inverse_bound * inverse_bound), len(total)
    plain, row = grads[0, r], powers[0, i]
    for j in range(w):
        total[j] += plain[j]
    if len(grads) > 1:
        g = grads[1, r]
        for j in range(w):
            q = one / (one + c * row[j] * row[j])
            total[j] += (row[j] + row[j]) * q * q * g[j]
    for p in range(3, len(grads) + 1):
        g = grads[p - 1, r]
        for j in range(w):
            q = one / np.sqrt(one + c * row[j] * row[j])
            total[j] += total.dtype.type(p) * (row[j] * q) ** (p - 1) * q * q * q * g[j]
