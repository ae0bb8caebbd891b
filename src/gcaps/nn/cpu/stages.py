"""Compiled forward and backward pass of all capsule layers, over the blocks of a batch.

Batch normalisation needs statistics of all nodes, so a stage is what lies between two normalisations. Each block goes
through the whole stage while it is in the cache, by the functions of :mod:`gcaps.nn.cpu.layers`. A loop over blocks
takes tuples that are arguments, and no tuple that is made before it.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from gcaps.nn.cpu.blocks import Array, compiled_part, over_blocks
from gcaps.nn.cpu.layers import (
    activate,
    add_rows_chosen,
    apply_filter,
    choose_rows,
    copy_columns,
    filter_backward,
    gate,
    mix,
    mix_backward,
    write_powers,
)
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
from gcaps.nn.cpu.products import multiply
from gcaps.nn.cpu.relations import add_relations, relations_backward
from gcaps.nn.cpu.state import Nodes, Norm, Output, Relations, Stack


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
