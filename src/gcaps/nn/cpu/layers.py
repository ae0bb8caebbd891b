"""Compiled passes of a capsule layer (Eq. 5 with raw moments) over the blocks of a batch.

Batch normalisation needs statistics of all nodes, so a pass is what lies between two normalisations. Each block goes
through the whole pass while it is in the cache. U and G [P, b, (K+1)·h] hold, for each capsule component p and each
node of a block, the K+1 orders of the filter polynomial side by side; with relations or gates they hold order 0, and
:mod:`gcaps.nn.cpu.relations` has the others. A block has the nodes a … z − 1. Sums over nodes are taken in float64.
Loops over nodes and entries call no functions: compiled code counts references to every array that it passes.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from gcaps.nn.cpu.blocks import Array, compiled_part, over_blocks
from gcaps.nn.cpu.relations import add_one_hot, add_relations, add_to_table, relations_backward
from gcaps.nn.cpu.state import Gradient, Layer, Nodes, Output, Relations


@over_blocks
def first_layer(
    nodes: Nodes,
    rows: Relations,
    one_hot_index: Array,
    table: Array,
    x: Array,
    layer: Layer,
    shift: Array,
    statistics: Array,
) -> None:
    """First layer, on one-hot columns (indices [n, ·] into the rows of table [P, ·, (K+1)·h]) and dense columns x.

    Writes the layer's powers and argument of normalisation, and the statistics [C, 2, P·h] of each block.
    """
    cuts, weight, powers = nodes.cuts, layer.weight, layer.powers
    for b in prange(len(cuts) - 1):
        a, z = cuts[b], cuts[b + 1]
        U = np.zeros((len(weight), z - a, weight.shape[2]), weight.dtype)
        mixed = np.empty((z - a, weight.shape[2]), weight.dtype)
        write_powers(a, z, x, 0, layer.inverse_bound, powers)
        for p in range(len(weight)):
            add_one_hot(np.arange(a, z), one_hot_index, table[p], U[p])
            if x.shape[1]:
                np.dot(powers[p, a:z], weight[p], mixed)
                add_rows(mixed, U[p])
        if len(rows.ptr):
            add_relations(b, nodes, rows, one_hot_index, layer, U)
        apply_filter(a, z, nodes, U, layer, shift, statistics[b])


@over_blocks
def next_layer(
    nodes: Nodes,
    rows: Relations,
    one_hot_index: Array,
    before: Layer,
    Z: Array,
    layer: Layer,
    shift: Array,
    statistics: Array,
) -> None:
    """Normalise and activate the layer ``before``, then mix and filter; see :func:`first_layer`."""
    cuts, weight, powers = nodes.cuts, layer.weight, layer.powers
    for b in prange(len(cuts) - 1):
        a, z = cuts[b], cuts[b + 1]
        U = np.empty((len(weight), z - a, weight.shape[2]), weight.dtype)
        activate(a, z, before, Z, layer.inverse_bound, powers)
        for p in range(len(weight)):
            np.dot(powers[p, a:z], weight[p], U[p])
        if len(rows.ptr):
            add_relations(b, nodes, rows, one_hot_index, layer, U)
        apply_filter(a, z, nodes, U, layer, shift, statistics[b])


@over_blocks
def last_output(cuts: Array, layer: Layer, Z: Array, no_powers: Array) -> None:
    """Normalise and activate the last layer; ``no_powers`` is an empty array."""
    for b in prange(len(cuts) - 1):
        activate(cuts[b], cuts[b + 1], layer, Z, 0.0, no_powers)


@over_blocks
def last_backward(cuts: Array, output: Output, layer: Layer, grad: Array, sums: Array) -> None:
    """Gradient behind the normalisation of the last layer, and sums [C, 2, P·h] for those of γ and β."""
    for b in prange(len(cuts) - 1):
        a, z = cuts[b], cuts[b + 1]
        copy_columns(a, z, output.grad, layer.column, grad)
        gate(a, z, grad, output.Z, layer, sums[b])


@over_blocks
def layer_backward(
    nodes: Nodes,
    rows: Relations,
    one_hot_index: Array,
    layer: Layer,
    gradient: Gradient,
    before: Layer,
    output: Output,
    weight_grad: Array,
    relation_grad: Array,
    relation_table_grad: Array,
    gate_grad: Array,
    grad_before: Array,
    sums: Array,
) -> None:
    """Backward pass of one capsule layer.

    Args:
        nodes: with the transpose of the filter.
        rows: by relations, the same.
        one_hot_index: that of the first layer.
        layer: the layer.
        gradient: behind its normalisation.
        before: the layer before it.
        output: outputs of all layers and the gradient at them.
        weight_grad: [S, P, c, (K+1)·h] written, partial sums over blocks of the gradient of its weight.
        relation_grad: [S, P, R, c, K·h] partial sums of the gradient of the weights of relations are added.
        relation_table_grad: not used.
        gate_grad: [P, e] gradient of the entries of the transposed filter is added; empty if there are no gates.
        grad_before: [n, ·] written, gradient behind the normalisation of the layer before.
        sums: [C, 2, ·] written, sums for the gradients of γ and β of the layer before.
    """
    cuts, weight, powers = nodes.cuts, layer.weight, layer.powers
    blocks, shares = len(cuts) - 1, len(weight_grad)
    for s in prange(shares):
        product = np.empty(weight.shape[1:], weight.dtype)
        for b in range(s * blocks // shares, (s + 1) * blocks // shares):
            a, z = cuts[b], cuts[b + 1]
            G = np.empty((len(weight), z - a, weight.shape[2]), weight.dtype)
            through = np.empty((len(weight), z - a, weight.shape[1]), weight.dtype)
            filter_backward(a, z, nodes, layer, gradient, G)
            for p in range(len(weight)):
                if b == s * blocks // shares:
                    np.dot(powers[p, a:z].T, G[p], weight_grad[s, p])
                else:
                    np.dot(powers[p, a:z].T, G[p], product)
                    add_rows(product, weight_grad[s, p])
                np.dot(G[p], weight[p].T, through[p])
            if len(rows.ptr):
                grads = (relation_grad[s], relation_table_grad[s], gate_grad)
                relations_backward(b, nodes, rows, one_hot_index, layer, G, *grads, through)
            copy_columns(a, z, output.grad, before.column, grad_before)
            powers_backward(a, z, powers, layer.inverse_bound, through, grad_before)
            gate(a, z, grad_before, output.Z, before, sums[b])


@over_blocks
def first_backward(
    nodes: Nodes,
    rows: Relations,
    layer: Layer,
    gradient: Gradient,
    one_hot_index: Array,
    weight_grad: Array,
    table_grad: Array,
    relation_grad: Array,
    relation_table_grad: Array,
    gate_grad: Array,
) -> None:
    """Gradients of the weights of the first layer: of its dense and of its one-hot columns.

    Both [S, P, ·, (K+1)·h] are zero at the start; each share of the blocks adds its part. For ``relation_grad`` and
    ``gate_grad`` see :func:`layer_backward`.
    """
    cuts, powers, dtype = nodes.cuts, layer.powers, layer.weight.dtype
    blocks, shares = len(cuts) - 1, len(table_grad)
    for s in prange(shares):
        product = np.empty(weight_grad.shape[2:], dtype)
        for b in range(s * blocks // shares, (s + 1) * blocks // shares):
            a, z = cuts[b], cuts[b + 1]
            G = np.empty((weight_grad.shape[1], z - a, weight_grad.shape[3]), dtype)
            filter_backward(a, z, nodes, layer, gradient, G)
            if len(rows.ptr):
                grads = (relation_grad[s], relation_table_grad[s], gate_grad)
                relations_backward(b, nodes, rows, one_hot_index, layer, G, *grads, np.empty((0, 0, 0), dtype))
            for p in range(len(G)):
                if powers.shape[2]:
                    np.dot(powers[p, a:z].T, G[p], product)
                    add_rows(product, weight_grad[s, p])
                add_to_table(np.arange(a, z), one_hot_index, G[p], table_grad[s, p])


@compiled_part
def write_powers(a: int, z: int, x: Array, column: int, inverse_bound: float, powers: Array) -> None:
    """powers[p−1] = x, bounded(x)², …, bounded(x)^P in the rows a … z − 1, with x / √(1 + (x · inverse_bound)²).

    ``column`` is the first of the columns of x.
    """
    one, c, w = x.dtype.type(1), x.dtype.type(inverse_bound * inverse_bound), powers.shape[2]
    for i in range(a, z):
        for j in range(w):
            powers[0, i, j] = x[i, column + j]
        if len(powers) > 1:
            for j in range(w):
                v = x[i, column + j]
                powers[1, i, j] = v * v / (one + c * v * v)
        for p in range(2, len(powers)):
            for j in range(w):
                v = x[i, column + j]
                powers[p, i, j] = powers[p - 1, i, j] * v / np.sqrt(one + c * v * v)


@compiled_part
def powers_backward(a: int, z: int, powers: Array, inverse_bound: float, grads: Array, total: Array) -> None:
    """total += grads[0] + Σ_p grads[p−1] · d bounded(x)^p / dx, p = 2..P, with x = powers[0], for the rows a … z − 1.

    d bounded(x)^p / dx = p · bounded(x)^(p−1) · q³ with q = (1 + (x · inverse_bound)²)^−½; the first power is x itself.
    ``grads`` has the rows of the block only.
    """
    one, c, w = total.dtype.type(1), total.dtype.type(inverse_bound * inverse_bound), total.shape[1]
    for i in range(a, z):
        for j in range(w):
            total[i, j] += grads[0, i - a, j]
        if len(grads) > 1:
            for j in range(w):
                x = powers[0, i, j]
                q = one / (one + c * x * x)
                total[i, j] += (x + x) * q * q * grads[1, i - a, j]
        for p in range(3, len(grads) + 1):
            for j in range(w):
                x = powers[0, i, j]
                q = one / np.sqrt(one + c * x * x)
                total[i, j] += total.dtype.type(p) * (x * q) ** (p - 1) * q * q * q * grads[p - 1, i - a, j]


@compiled_part
def activate(a: int, z: int, layer: Layer, Z: Array, inverse_bound: float, powers: Array) -> None:
    """Output of a layer in Z, max(γ · (pre − mean) · inverse + β, 0), and its powers unless that array is empty."""
    pre, column = layer.pre, layer.column
    w, zero = pre.shape[1], pre.dtype.type(0)
    scale, shift = np.empty(w, pre.dtype), np.empty(w, pre.dtype)
    for j in range(w):
        scale[j] = layer.gamma[j] * layer.inverse[j]
        shift[j] = layer.beta[j] - layer.mean[j] * scale[j]
    for i in range(a, z):
        for j in range(w):
            y = scale[j] * pre[i, j] + shift[j]
            Z[i, column + j] = y if y > zero else zero
    if len(powers):
        write_powers(a, z, Z, column, inverse_bound, powers)


@compiled_part
def gate(a: int, z: int, grad: Array, Z: Array, layer: Layer, sums: Array) -> None:
    """Set grad to 0 where the activation was 0; sums [2, w] = Σ_i grad_i and Σ_i grad_i · (pre_i − mean)."""
    w, zero = grad.shape[1], grad.dtype.type(0)
    pre, mean, column = layer.pre, layer.mean, layer.column
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


@compiled_part
def copy_columns(a: int, z: int, source: Array, column: int, out: Array) -> None:
    """out = source[:, column : column + w] in the rows a … z − 1."""
    w = out.shape[1]
    for i in range(a, z):
        to, row = out[i], source[i, column : column + w]
        for j in range(w):
            to[j] = row[j]


@compiled_part
def add_rows(rows: Array, out: Array) -> None:
    """out += rows"""
    for i in range(len(rows)):
        row, to = rows[i], out[i]
        for j in range(len(row)):
            to[j] += row[j]


@compiled_part
def add_product(a: int, z: int, nodes: Nodes, U: Array, read: int, write: int, h: int) -> None:
    """U[:, write : write + h] += M U[:, read : read + h] for the rows of a block."""
    rowptr, col, value, diagonal = nodes.rowptr, nodes.col, nodes.value, nodes.diagonal
    for i in range(a, z):
        if len(diagonal):
            for j in range(h):
                U[i - a, write + j] += diagonal[i] * U[i - a, read + j]
        if len(value):
            for e in range(rowptr[i], rowptr[i + 1]):
                for j in range(h):
                    U[i - a, write + j] += value[e] * U[col[e] - a, read + j]
        else:
            for e in range(rowptr[i], rowptr[i + 1]):
                for j in range(h):
                    U[i - a, write + j] += U[col[e] - a, read + j]


@compiled_part
def apply_filter(a: int, z: int, nodes: Nodes, U: Array, layer: Layer, shift: Array, statistics: Array) -> None:
    """pre = U_0 + M (U_1 + M (U_2 + …)); statistics [2, P·h]: means of its columns and Σ_i m_i (pre_i − mean)².

    m_i is the multiplicity of row i. Both come from sums of d = pre − shift and of d²: one pass, which is precise if
    the shift is close to the mean.
    """
    multiplicity, h, pre = nodes.multiplicity, layer.hidden, layer.pre
    count = 0.0
    orders = U.shape[2] // h
    statistics[:] = 0
    sums, squares = statistics[0], statistics[1]
    for p in range(len(U)):
        for k in range(orders - 1, 0, -1):
            add_product(a, z, nodes, U[p], k * h, (k - 1) * h, h)
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


@compiled_part
def filter_backward(a: int, z: int, nodes: Nodes, layer: Layer, gradient: Gradient, G: Array) -> None:
    """G_0 = scale · grad − m (constant + slope · (pre − mean)), the gradient of the normalisation; G_k = Mᵀ G_(k−1)."""
    multiplicity, h = nodes.multiplicity, layer.hidden
    pre, mean, grad, coefficients = layer.pre, layer.mean, gradient.grad, gradient.coefficients
    orders = G.shape[2] // h
    for p in range(len(G)):
        left, right = p * h, p * h + h
        s, k = coefficients[0, left:right], coefficients[2, left:right]
        c, all_c, all_k = np.empty(h, grad.dtype), np.empty(h, grad.dtype), np.empty(h, grad.dtype)
        for j in range(h):
            c[j] = coefficients[1, left + j] - k[j] * mean[left + j]
            all_c[j], all_k[j] = c[j], k[j]
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
        G[p, :, h:] = 0
        for order in range(1, orders):
            add_product(a, z, nodes, G[p], (order - 1) * h, order * h, h)
