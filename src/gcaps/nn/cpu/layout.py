"""The layers of a :class:`~gcaps.nn.cpu.state.Stack`: where weights and their gradients are in one vector of all."""

from __future__ import annotations

import numpy as np

from gcaps.nn.cpu.blocks import Array, compiled_part
from gcaps.nn.cpu.state import Layer, Norm, Relations, Stack

Weights = tuple[Array, Array, Array, Array]
"""Weights of a layer: the first four arrays of :class:`~gcaps.nn.cpu.state.Layer`."""


@compiled_part
def columns_of(number: int, stack: Stack) -> int:
    """Columns c of the input of a layer."""
    return stack.x.shape[1] + stack.one_hot if number == 0 else stack.size * stack.hidden


@compiled_part
def begin_of(number: int, stack: Stack) -> int:
    """Position of the first weight of a layer; that of its γ is the next layer's less 2 w."""
    if number == 0:
        return 0
    w, columns = stack.size * stack.hidden, stack.matrices * stack.hidden
    return stack.size * columns_of(0, stack) * columns + 2 * w + (number - 1) * (stack.size * w * columns + 2 * w)


@compiled_part
def norm_of(number: int, stack: Stack) -> Norm:
    """Return the normalisation of a layer."""
    w, end = stack.size * stack.hidden, begin_of(number + 1, stack)
    gamma, beta = stack.weights[end - 2 * w : end - w], stack.weights[end - w : end]
    moments = stack.moments[number]
    return Norm(stack.pre[number % len(stack.pre)], moments[0], moments[1], gamma, beta, number * w)


@compiled_part
def weights_of(number: int, stack: Stack, rows: Relations) -> Weights:
    """Return the weights of a layer by what they are of, see :class:`~gcaps.nn.cpu.state.Layer`."""
    P, h, c, dtype = stack.size, stack.hidden, columns_of(number, stack), stack.weights.dtype
    one_hot, R = stack.one_hot if number == 0 else 0, max(rows.ptr.shape[1] - 1, 0)
    begin = begin_of(number, stack)
    weight = stack.weights[begin : begin + P * c * stack.matrices * h].reshape(P, c, stack.matrices * h)
    width = h if R > 0 else weight.shape[2]
    rest = (weight.shape[2] - width) // max(R, 1)
    own, table = weight, np.empty((P, one_hot, width), dtype)
    relation_weight = np.empty((P, R, c - one_hot, rest), dtype)
    relation_table = np.empty((P, R, one_hot, rest), dtype)
    if one_hot or R > 0:
        own = np.empty((P, c - one_hot, width), dtype)
        for p in range(P):
            for i in range(c):
                if i < one_hot:
                    for j in range(width):
                        table[p, i, j] = weight[p, i, j] * stack.ones[p]
                else:
                    for j in range(width):
                        own[p, i - one_hot, j] = weight[p, i, j]
                for r in range(R):
                    for j in range(rest):
                        v = weight[p, i, width + r * rest + j]
                        if i < one_hot:
                            relation_table[p, r, i, j] = v * stack.ones[p]
                        else:
                            relation_weight[p, r, i - one_hot, j] = v
    return own, table, relation_weight, relation_table


@compiled_part
def layer_of(number: int, stack: Stack, weights: Weights) -> Layer:
    """Return a layer with the weights of :func:`weights_of`."""
    P, h, dtype = stack.size, stack.hidden, stack.weights.dtype
    gated, mixed = np.empty((0, 0), dtype), np.empty((0, 0, 0), dtype)
    if len(stack.gates):
        gated, mixed = stack.gates[number], stack.mixed[number]
    return Layer(
        weights[0],
        weights[1],
        weights[2],
        weights[3],
        h,
        stack.options[number, 0],
        stack.x if number == 0 else stack.Z,
        0 if number == 0 else (number - 1) * P * h,
        stack.first_powers if number == 0 else stack.powers[(number - 1) % len(stack.powers)],
        gated,
        mixed,
    )


@compiled_part
def write_gradient(
    number: int, stack: Stack, own: Array, table: Array, relations: Array, relation_table: Array, gradient: Array
) -> None:
    """Write the gradient of the weights of a layer into the vector of all.

    Args:
        number: of the layer.
        stack: all layers.
        own: [S, P, c, ·] partial sums of the gradient of :attr:`Layer.weight`.
        table: [S, P, ·, ·] of :attr:`Layer.table`, and likewise of the weights of relations.
        relations: [S, P, R, c, ·]
        relation_table: [S, P, R, ·, ·]
        gradient: [·] laid out as ``stack.weights``.
    """
    shares, P, R, one_hot, width = len(own), own.shape[1], relations.shape[2], table.shape[2], own.shape[3]
    begin, c, rest = begin_of(number, stack), own.shape[2] + one_hot, relations.shape[4]
    out = gradient[begin : begin + P * c * stack.matrices * stack.hidden].reshape(P, c, stack.matrices * stack.hidden)
    zero = out.dtype.type(0)
    for p in range(P):
        for i in range(c):
            for j in range(out.shape[2]):
                out[p, i, j] = zero
            for s in range(shares):
                if i < one_hot:
                    for j in range(width):
                        out[p, i, j] += table[s, p, i, j]
                else:
                    for j in range(width):
                        out[p, i, j] += own[s, p, i - one_hot, j]
                for r in range(R):
                    for j in range(rest):
                        if i < one_hot:
                            out[p, i, width + r * rest + j] += relation_table[s, p, r, i, j]
                        else:
                            out[p, i, width + r * rest + j] += relations[s, p, r, i - one_hot, j]
            if i < one_hot:
                for j in range(out.shape[2]):
                    out[p, i, j] *= stack.ones[p]


@compiled_part
def write_norm_gradient(number: int, stack: Stack, sums: Array, gradient: Array) -> None:
    """Write the gradient of γ and β of a layer, from sums [2, w] over the nodes, into the vector of all."""
    w, end = stack.size * stack.hidden, begin_of(number + 1, stack)
    for j in range(w):
        gradient[end - 2 * w + j] = sums[1, j] * stack.moments[number, 1, j]
        gradient[end - w + j] = sums[0, j]


@compiled_part
def gradient_coefficients(number: int, stack: Stack, sums: Array, count: float) -> Array:
    """Return [3, w] scale, constant and slope of the gradient of a normalisation, from sums [2, w] over all nodes.

    Running statistics do not depend on the batch: where they are used, constant and slope are 0.
    """
    norm, training = norm_of(number, stack), stack.options[number, 3] != 0
    coefficients = np.zeros((3, len(norm.gamma)), norm.gamma.dtype)
    for j in range(len(norm.gamma)):
        scale = norm.gamma[j] * norm.inverse[j]
        coefficients[0, j] = scale
        if training:
            coefficients[1, j] = scale * sums[0, j] / count
            coefficients[2, j] = scale * norm.inverse[j] * norm.inverse[j] * sums[1, j] / count
    return coefficients
