"""Compiled parts of the passes of a capsule layer (Eq. 5 with raw moments) over a block of a batch.

U and G [b, P, K+1, h] hold, for each node of a block and each capsule component p, the K+1 orders of the filter
polynomial side by side; with relations or gates they hold order 0, and :mod:`gcaps.nn.cpu.relations` has the others. A
block has the nodes a … z − 1. Sums over nodes are taken in float64.

Loops over nodes and entries call no functions and take no slices: compiled code counts references to every array that
it passes. The last index of an array is the variable of the innermost loop alone, since a sum could be negative for all
that the compiler knows, and the loop is then not vectorised.
"""

from __future__ import annotations

import numpy as np

from gcaps.nn.cpu.blocks import Array, compiled_part
from gcaps.nn.cpu.products import multiply, multiply_transposed
from gcaps.nn.cpu.state import Layer, Nodes, Norm


@compiled_part
def mix(a: int, z: int, layer: Layer, U: Array, add: bool) -> None:
    """U_p = (F^⊙p) W_p for the rows a … z − 1; with ``add`` it is added."""
    weight = layer.weight
    P, c, orders = weight.shape
    if c == 0:
        return
    given, width, n = layer.input.shape[1], P * orders, len(layer.input)
    first = a * given + layer.read
    multiply(z - a, orders, c, layer.input, first, given, weight, 0, orders, U, 0, width, add)
    for p in range(1, P):
        first, top = ((p - 1) * n + a) * c, p * c * orders
        multiply(z - a, orders, c, layer.powers, first, c, weight, top, orders, U, p * orders, width, add)


@compiled_part
def mix_backward(a: int, z: int, layer: Layer, G: Array, weight_grad: Array, add: bool) -> None:
    """Gradient (F^⊙p)ᵀ G_p of the weights from the rows a … z − 1; with ``add`` it is added."""
    P, c, orders = weight_grad.shape
    if c == 0:
        return
    given, width, n = layer.input.shape[1], P * orders, len(layer.input)
    first = a * given + layer.read
    multiply_transposed(c, orders, z - a, layer.input, first, given, G, 0, width, weight_grad, 0, orders, add)
    for p in range(1, P):
        first, top = ((p - 1) * n + a) * c, p * c * orders
        multiply_transposed(
            c, orders, z - a, layer.powers, first, c, G, p * orders, width, weight_grad, top, orders, add
        )


@compiled_part
def choose_rows(a: int, z: int, one_hot_index: Array, table: Array, U: Array) -> None:
    """U_p += the rows of the table for the one-hot columns of the nodes a … z − 1."""
    P, _, width = table.shape
    out = U.reshape(z - a, P, width)
    for i in range(a, z):
        for c in range(one_hot_index.shape[1]):
            row = one_hot_index[i, c]
            if row >= 0:
                for p in range(P):
                    for j in range(width):
                        out[i - a, p, j] += table[p, row, j]


@compiled_part
def add_rows_chosen(a: int, z: int, one_hot_index: Array, G: Array, table_grad: Array) -> None:
    """Add G_p of the nodes a … z − 1 to the rows of the table [P, ·, (K+1)·h] for their one-hot columns."""
    P, _, width = table_grad.shape
    given = G.reshape(z - a, P, width)
    for i in range(a, z):
        for c in range(one_hot_index.shape[1]):
            row = one_hot_index[i, c]
            if row >= 0:
                for p in range(P):
                    for j in range(width):
                        table_grad[p, row, j] += given[i - a, p, j]


@compiled_part
def write_powers(a: int, z: int, layer: Layer) -> None:
    """Powers of the dense columns x of the first layer in the rows a … z − 1; see :func:`activate`."""
    x, powers = layer.input, layer.powers
    c = x.dtype.type(layer.inverse_bound * layer.inverse_bound)
    one = x.dtype.type(1)
    for p in range(len(powers)):
        for i in range(a, z):
            for j in range(powers.shape[2]):
                v = x[i, j]
                if p == 0:
                    powers[0, i, j] = v * v / (one + c * v * v)
                else:
                    powers[p, i, j] = powers[p - 1, i, j] * v / np.sqrt(one + c * v * v)


@compiled_part
def activate(a: int, z: int, norm: Norm, Z: Array, inverse_bound: float, powers: Array) -> None:
    """Output of a layer in Z, y = max(γ · (pre − mean) · inverse + β, 0), and its powers.

    powers[p−2] = bounded(y)^p, p = 2..P, in the rows a … z − 1, with y / √(1 + (y · inverse_bound)²).
    """
    pre = norm.pre
    w, zero, one = pre.shape[1], pre.dtype.type(0), pre.dtype.type(1)
    c, own = pre.dtype.type(inverse_bound * inverse_bound), norm.column // w
    out = Z.reshape(len(Z), -1, w)
    scale, shift = np.empty(w, pre.dtype), np.empty(w, pre.dtype)
    for j in range(w):
        scale[j] = norm.gamma[j] * norm.inverse[j]
        shift[j] = norm.beta[j] - norm.mean[j] * scale[j]
    for i in range(a, z):
        for j in range(w):
            y = scale[j] * pre[i, j] + shift[j]
            out[i, own, j] = y if y > zero else zero
        if len(powers):
            for j in range(w):
                y = out[i, own, j]
                powers[0, i, j] = y * y / (one + c * y * y)
        for p in range(1, len(powers)):
            for j in range(w):
                y = out[i, own, j]
                powers[p, i, j] = powers[p - 1, i, j] * y / np.sqrt(one + c * y * y)


@compiled_part
def gate(a: int, z: int, grad: Array, Z: Array, norm: Norm, through: Array, inverse_bound: float, sums: Array) -> None:
    """Complete the gradient at the output y of a layer, and set it to 0 where the activation was 0.

    grad += Σ_p through[p−2] · d bounded(y)^p / dy, p = 2..P, with d bounded(y)^p / dy = p · bounded(y)^(p−1) · q³ and
    q = (1 + (y · inverse_bound)²)^−½; ``through`` has the rows of the block only.
    sums [2, w] = Σ_i grad_i and Σ_i grad_i · (pre_i − mean).
    """
    w, zero, one = grad.shape[1], grad.dtype.type(0), grad.dtype.type(1)
    pre, mean, c = norm.pre, norm.mean, grad.dtype.type(inverse_bound * inverse_bound)
    active, own = Z.reshape(len(Z), -1, w), norm.column // w
    plain, products = np.zeros(w), np.zeros(w)
    for i in range(a, z):
        if len(through):
            for j in range(w):
                y = active[i, own, j]
                q = one / (one + c * y * y)
                grad[i, j] += (y + y) * q * q * through[0, i - a, j]
        for p in range(3, len(through) + 2):
            for j in range(w):
                y = active[i, own, j]
                q = one / np.sqrt(one + c * y * y)
                grad[i, j] += grad.dtype.type(p) * (y * q) ** (p - 1) * q * q * q * through[p - 2, i - a, j]
        for j in range(w):
            grad[i, j] = grad[i, j] if active[i, own, j] > zero else zero
        for j in range(w):
            plain[j] += grad[i, j]
        for j in range(w):
            products[j] += grad[i, j] * (pre[i, j] - mean[j])
    sums[0], sums[1] = plain, products


@compiled_part
def copy_columns(a: int, z: int, source: Array, column: int, out: Array) -> None:
    """out = source[:, column : column + w] in the rows a … z − 1."""
    w = out.shape[1]
    given, own = source.reshape(len(source), -1, w), column // w
    for i in range(a, z):
        for j in range(w):
            out[i, j] = given[i, own, j]


@compiled_part
def add_product(a: int, z: int, nodes: Nodes, U: Array, read: int, write: int) -> None:
    """U[:, :, write] += M U[:, :, read] for the rows of a block; all components of a neighbor are read together."""
    rowptr, col, value, diagonal, h = nodes.rowptr, nodes.col, nodes.value, nodes.diagonal, U.shape[3]
    for i in range(a, z):
        if len(diagonal):
            for p in range(U.shape[1]):
                for j in range(h):
                    U[i - a, p, write, j] += diagonal[i] * U[i - a, p, read, j]
        for e in range(rowptr[i], rowptr[i + 1]):
            t = col[e] - a
            for p in range(U.shape[1]):
                if len(value):
                    for j in range(h):
                        U[i - a, p, write, j] += value[e] * U[t, p, read, j]
                else:
                    for j in range(h):
                        U[i - a, p, write, j] += U[t, p, read, j]


@compiled_part
def apply_filter(
    a: int, z: int, nodes: Nodes, U: Array, P: int, h: int, pre: Array, shift: Array, statistics: Array
) -> None:
    """pre = U_0 + M (U_1 + M (U_2 + …)); statistics [2, P·h]: means of its columns and Σ_i m_i (pre_i − mean)².

    m_i is the multiplicity of row i. Both come from sums of d = pre − shift and of d²: one pass, which is precise if
    the shift is close to the mean.
    """
    multiplicity, w = nodes.multiplicity, pre.shape[1]
    parts, out = U.reshape(z - a, P, -1, h), pre.reshape(len(pre), P, h)
    for k in range(parts.shape[2] - 1, 0, -1):
        add_product(a, z, nodes, parts, k, k - 1)
    count = 0.0
    sums, squares = np.zeros(w), np.zeros(w)
    for i in range(a, z):
        for p in range(P):
            for j in range(h):
                out[i, p, j] = parts[i - a, p, 0, j]
        m = np.float64(multiplicity[i]) if len(multiplicity) else 1.0
        count += m
        for j in range(w):
            d = np.float64(pre[i, j] - shift[j])
            sums[j] += m * d
            squares[j] += m * d * d
    for j in range(w):
        mean = sums[j] / count
        statistics[1, j] = max(squares[j] - sums[j] * mean, 0.0)
        statistics[0, j] = mean + shift[j]


@compiled_part
def filter_backward(
    a: int, z: int, nodes: Nodes, P: int, h: int, norm: Norm, grad: Array, coefficients: Array, G: Array
) -> None:
    """G_0 = scale · grad − m (constant + slope · (pre − mean)), the gradient of the normalisation; G_k = Mᵀ G_(k−1)."""
    multiplicity, pre, w = nodes.multiplicity, norm.pre, norm.pre.shape[1]
    s, c, k = np.empty(w, grad.dtype), np.empty(w, grad.dtype), np.empty(w, grad.dtype)
    for j in range(w):
        s[j], k[j] = coefficients[0, j], coefficients[2, j]
        c[j] = coefficients[1, j] - k[j] * norm.mean[j]
    parts, one = G.reshape(z - a, P, -1, h), grad.dtype.type(1)
    row = np.empty((P, h), grad.dtype)
    flat = row.reshape(w)
    for i in range(a, z):
        m = multiplicity[i] if len(multiplicity) else one
        for j in range(w):
            flat[j] = s[j] * grad[i, j] - m * (c[j] + k[j] * pre[i, j])
        for p in range(P):
            for j in range(h):
                parts[i - a, p, 0, j] = row[p, j]
    for order in range(1, parts.shape[2]):
        for i in range(z - a):
            for p in range(P):
                for j in range(h):
                    parts[i, p, order, j] = 0
        add_product(a, z, nodes, parts, order - 1, order)
