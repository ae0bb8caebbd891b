"""Compiled passes of the capsule layers (Eq. 5 with raw moments) over the blocks of a batch.

Batch normalisation needs statistics of all nodes, so a stage is what lies between two normalisations. Each block goes
through the whole stage while it is in the cache. U and G [b, P, K+1, h] hold, for each node of a block and each capsule
component p, the K+1 orders of the filter polynomial side by side; with relations or gates they hold order 0, and
:mod:`gcaps.nn.cpu.relations` has the others. A block has the nodes a … z − 1. Sums over nodes are taken in float64.

Loops over nodes and entries call no functions and take no slices: compiled code counts references to every array that
it passes. The last index of an array is the variable of the innermost loop alone, since a sum could be negative for all
that the compiler knows, and the loop is then not vectorised.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from gcaps.nn.cpu.blocks import Array, compiled_part, over_blocks
from gcaps.nn.cpu.layout import (
    Weights,
    gradient_coefficients,
    layer_of,
    norm_of,
    weights_of,
    write_gradient,
    write_norm_gradient,
)
from gcaps.nn.cpu.moments import add_blocks, block_counts, merge_statistics, normalization
from gcaps.nn.cpu.products import multiply, multiply_transposed
from gcaps.nn.cpu.relations import add_relations, relations_backward
from gcaps.nn.cpu.state import Layer, Nodes, Norm, Output, Relations, Stack


@over_blocks
def forward(
    nodes: Nodes,
    rows: Relations,
    one_hot_index: Array,
    stack: Stack,
    merged: Array,
    count: Array,
    first: int,
    last: int,
) -> None:
    """Forward pass from the stage ``first`` to before the stage ``last``, of the stages 0 … L.

    A stage normalises and activates the layer before, from its statistics over the whole batch, and computes the next
    layer up to its normalisation. Where several processes share a batch, they exchange statistics between stages.

    Args:
        nodes: with the filter.
        rows: of relations.
        one_hot_index: [n, ·] one-hot columns of the input that are one.
        stack: the layers; everything from ``Z`` on is written.
        merged: [2, w] mean and Σ (x − mean)² of the last layer computed.
        count: [1] number of nodes.
        first: the first stage.
        last: the stage to stop before.
    """
    blocks, w, nothing = len(nodes.cuts) - 1, stack.pre.shape[2], np.empty((0, 0, 0), stack.Z.dtype)
    counts, statistics = block_counts(nodes), np.empty((blocks, 2, w))
    for number in range(first, last):
        if number:
            running, moments = stack.running[number - 1], stack.moments[number - 1]
            normalization(merged, count[0], stack.options[number - 1], running, moments)
        if number == stack.layers:
            for b in prange(blocks):
                activate(nodes.cuts[b], nodes.cuts[b + 1], norm_of(number - 1, stack), stack.Z, 0.0, nothing)
        else:
            weights = weights_of(number, stack, rows)
            for b in prange(blocks):
                forward_block(b, number, nodes, rows, one_hot_index, stack, weights, statistics[b])
            count[0] = merge_statistics(counts, statistics, merged)


@over_blocks
def backward(
    nodes: Nodes,
    rows: Relations,
    one_hot_index: Array,
    stack: Stack,
    output: Output,
    grad: Array,
    merged: Array,
    count: Array,
    first: int,
    last: int,
    most: int,
    most_input: int,
    gradient: Array,
    gate_grad: Array,
) -> None:
    """Backward pass from the stage ``first`` down to after the stage ``last``; see :func:`forward`.

    Args:
        nodes: with the transpose of the filter.
        rows: by relations, the same.
        one_hot_index: that of the forward pass.
        stack: what the forward pass wrote; with the gates of the transpose.
        output: outputs of all layers and the gradient at them.
        grad: [n, w] written and read, the gradient behind a normalisation.
        merged: [2, w] sums for the gradients of γ and β of the last layer whose gradient was computed.
        count: [1] number of nodes.
        first: the first stage.
        last: the stage to stop after.
        most: largest number of partial sums of a weight's gradient.
        most_input: the same in the first layer.
        gradient: written, laid out as the weights.
        gate_grad: [L, P, e] gradient of the entries of the transposed filter is added; empty if there are no gates.
    """
    blocks, w, P, dtype = len(nodes.cuts) - 1, grad.shape[1], stack.size, grad.dtype
    sums = np.empty((blocks, 2, w))
    for number in range(first, last, -1):
        if number == stack.layers:
            for b in prange(blocks):
                last_block(nodes.cuts[b], nodes.cuts[b + 1], output, norm_of(number - 1, stack), grad, sums[b])
        else:
            coefficients = gradient_coefficients(number, stack, merged, count[0])
            weights = weights_of(number, stack, rows)
            weight, one_hot_weight, relation_weight, relation_table = weights
            shares = min(blocks, most if number else most_input)
            own = np.empty((shares, P, weight.shape[1], weight.shape[2]), dtype)
            table = np.zeros((shares, P, one_hot_weight.shape[1], one_hot_weight.shape[2]), dtype)
            R, rest = relation_weight.shape[1], relation_weight.shape[3]
            relation_grad = np.zeros((shares, P, R, relation_weight.shape[2], rest), dtype)
            relation_table_grad = np.zeros((shares, P, R, relation_table.shape[2], rest), dtype)
            transposed = np.ascontiguousarray(weight.transpose(0, 2, 1))
            gates = gate_grad[number if len(gate_grad) else 0 :]
            for s in prange(shares):
                for b in range(s * blocks // shares, (s + 1) * blocks // shares):
                    of_weights = own[s], table[s], relation_grad[s], relation_table_grad[s]
                    add = b > s * blocks // shares
                    backward_block(
                        b,
                        number,
                        nodes,
                        rows,
                        one_hot_index,
                        stack,
                        weights,
                        output,
                        coefficients,
                        transposed,
                        of_weights,
                        add,
                        gates,
                        grad,
                        sums[b],
                    )
            write_gradient(number, stack, own, table, relation_grad, relation_table_grad, gradient)
        if number:
            add_blocks(sums, merged)
            write_norm_gradient(number - 1, stack, merged, gradient)


@compiled_part
def forward_block(
    b: int,
    number: int,
    nodes: Nodes,
    rows: Relations,
    one_hot_index: Array,
    stack: Stack,
    weights: Weights,
    statistics: Array,
) -> None:
    """Activate the layer before, mix and filter; write the argument of the normalisation and its statistics [2, w]."""
    layer, norm, shift = layer_of(number, stack, weights), norm_of(number, stack), stack.running[number, 0]
    a, z, P = nodes.cuts[b], nodes.cuts[b + 1], stack.size
    U = np.empty((z - a, P * layer.weight.shape[2]), norm.pre.dtype)
    if number == 0:
        write_powers(a, z, layer)
        U[:] = 0
        choose_rows(a, z, one_hot_index, layer.table, U)
    else:
        activate(a, z, norm_of(number - 1, stack), stack.Z, layer.inverse_bound, layer.powers)
    mix(a, z, layer, U, number == 0)
    if len(rows.ptr):
        add_relations(b, nodes, rows, one_hot_index, layer, U)
    apply_filter(a, z, nodes, U, P, layer.hidden, norm.pre, shift, statistics)


@compiled_part
def last_block(a: int, z: int, output: Output, norm: Norm, grad: Array, sums: Array) -> None:
    """Gradient behind the normalisation of the last layer, and sums [2, w] for those of γ and β."""
    copy_columns(a, z, output.grad, norm.column, grad)
    gate(a, z, grad, output.Z, norm, np.empty((0, 0, 0), grad.dtype), 0.0, sums)


@compiled_part
def backward_block(
    b: int,
    number: int,
    nodes: Nodes,
    rows: Relations,
    one_hot_index: Array,
    stack: Stack,
    weights: Weights,
    output: Output,
    coefficients: Array,
    transposed: Array,
    grads: tuple[Array, Array, Array, Array],
    add: bool,
    gate_grad: Array,
    grad: Array,
    sums: Array,
) -> None:
    """Backward pass of one layer: add to the gradients of its weights, and replace ``grad`` by that of the one before.

    Args:
        b: number of the block.
        number: of the layer.
        nodes: with the transpose of the filter.
        rows: by relations, the same.
        one_hot_index: [n, ·] one-hot columns of the input that are one.
        stack: all layers.
        weights: see :func:`weights_of`.
        output: outputs of all layers and the gradient at them.
        coefficients: see :func:`normalization_gradient`.
        transposed: [P, ·, c] its weights.
        grads: gradients of ``layer.weight``, ``table``, ``relation_weight`` and ``relation_table`` are added.
        add: whether there is a gradient of ``layer.weight`` yet.
        gate_grad: [1…, P, e] gradient of the entries of the transposed filter is added; empty if there are no gates.
        grad: [n, w] gradient behind the normalisation.
        sums: [2, w] written, sums for the gradients of γ and β of the layer before.
    """
    a, z = nodes.cuts[b], nodes.cuts[b + 1]
    layer, norm = layer_of(number, stack, weights), norm_of(number, stack)
    P, c, orders = layer.weight.shape
    G = np.empty((z - a, P * orders), grad.dtype)
    filter_backward(a, z, nodes, P, layer.hidden, norm, grad, coefficients, G)
    mix_backward(a, z, layer, G, grads[0], add)
    gates = gate_grad[0] if len(gate_grad) else np.empty((0, 0), grad.dtype)
    if number == 0:
        if len(rows.ptr):
            nothing = np.empty((0, 0), grad.dtype), np.empty((0, 0, 0), grad.dtype)
            relations_backward(b, nodes, rows, one_hot_index, layer, G, grads[2], grads[3], gates, *nothing)
        add_rows_chosen(a, z, one_hot_index, G, grads[1])
        return
    before = norm_of(number - 1, stack)
    through = np.empty((P - 1, z - a, c), grad.dtype)
    copy_columns(a, z, output.grad, before.column, grad)
    multiply(z - a, c, orders, G, 0, P * orders, transposed, 0, c, grad, a * c, c, True)
    for p in range(1, P):
        left, top, into = p * orders, p * c * orders, (p - 1) * (z - a) * c
        multiply(z - a, c, orders, G, left, P * orders, transposed, top, c, through, into, c, False)
    if len(rows.ptr):
        relations_backward(b, nodes, rows, one_hot_index, layer, G, grads[2], grads[3], gates, grad, through)
    gate(a, z, grad, output.Z, before, through, layer.inverse_bound, sums)


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
