"""A capsule layer as passes over the blocks of a batch: matrix products and all that lies between two normalisations.

A block is worked on from the beginning of a pass to its end while it lies in the cache.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from gcaps.nn.fused.blocks import Array, over_blocks
from gcaps.nn.fused.rows import Norm, Sparse, add_rows, gate, gather, input_backward, normalize, powers_of, spread


@over_blocks
def first_layer(
    cuts: Array,
    multiplicity: Array,
    one_hot_index: Array,
    table: Array,
    dense: Array,
    inverse_bound: float,
    powers: Array,
    weight: Array,
    h: int,
    M: Sparse,
    shift: Array,
    pre: Array,
    statistics: Array,
) -> None:
    """The layer on the input: one-hot columns [n, c] as codes into a table [P, ·, (K+1)·h], and dense ones [n, d]."""
    for b in prange(len(cuts) - 1):
        a, z = cuts[b], cuts[b + 1]
        U = np.zeros((len(weight), z - a, weight.shape[2]), weight.dtype)
        mixed = np.empty((z - a, weight.shape[2]), weight.dtype)
        for i in range(a, z):
            powers_of(dense[i], inverse_bound, i, powers)
        for p in range(len(weight)):
            for i in range(a, z):
                out = U[p, i - a]
                for c in range(one_hot_index.shape[1]):
                    if one_hot_index[i, c] >= 0:
                        row = table[p, one_hot_index[i, c]]
                        for j in range(len(out)):
                            out[j] += row[j]
            if dense.shape[1]:
                np.dot(powers[p, a:z], weight[p], mixed)
                add_rows(mixed, U[p])
        gather(a, z, multiplicity, U, h, M, shift, pre, statistics[b])


@over_blocks
def next_layer(
    cuts: Array,
    multiplicity: Array,
    before: Array,
    norm: Norm,
    Z: Array,
    column: int,
    inverse_bound: float,
    powers: Array,
    weight: Array,
    h: int,
    M: Sparse,
    shift: Array,
    pre: Array,
    statistics: Array,
) -> None:
    """Normalise and activate the layer before, then mix, filter and take the statistics of this one."""
    for b in prange(len(cuts) - 1):
        a, z = cuts[b], cuts[b + 1]
        U = np.empty((len(weight), z - a, weight.shape[2]), weight.dtype)
        normalize(a, z, before, norm, Z, column, inverse_bound, powers)
        for p in range(len(weight)):
            np.dot(powers[p, a:z], weight[p], U[p])
        gather(a, z, multiplicity, U, h, M, shift, pre, statistics[b])


@over_blocks
def last_output(cuts: Array, pre: Array, norm: Norm, Z: Array, column: int, none: Array) -> None:
    """Normalise and activate the last layer; ``none`` is an empty array of powers."""
    for b in prange(len(cuts) - 1):
        normalize(cuts[b], cuts[b + 1], pre, norm, Z, column, 0.0, none)


@over_blocks
def last_backward(
    cuts: Array, outer: Array, Z: Array, column: int, pre: Array, mean: Array, grad: Array, sums: Array
) -> None:
    """From the gradient at Z to that behind the last layer's normalisation, and what its parameters' gradient is."""
    for b in prange(len(cuts) - 1):
        a, z = cuts[b], cuts[b + 1]
        w = grad.shape[1]
        for i in range(a, z):
            to, row = grad[i], outer[i, column : column + w]
            for j in range(w):
                to[j] = row[j]
        gate(a, z, grad, Z, column, pre, mean, sums[b])


@over_blocks
def layer_backward(
    cuts: Array,
    multiplicity: Array,
    grad: Array,
    pre: Array,
    mean: Array,
    coefficients: Array,
    h: int,
    M: Sparse,
    powers: Array,
    inverse_bound: float,
    weight: Array,
    weight_grad: Array,
    outer: Array,
    Z: Array,
    column: int,
    before: Array,
    before_mean: Array,
    grad_before: Array,
    sums: Array,
) -> None:
    """From behind a layer's normalisation to behind that of the layer before; weight_grad [S, …] by share of blocks."""
    blocks, shares = len(cuts) - 1, len(weight_grad)
    for s in prange(shares):
        product = np.empty(weight.shape[1:], weight.dtype)
        for b in range(s * blocks // shares, (s + 1) * blocks // shares):
            a, z = cuts[b], cuts[b + 1]
            G = np.empty((len(weight), z - a, weight.shape[2]), weight.dtype)
            through = np.empty((len(weight), z - a, weight.shape[1]), weight.dtype)
            spread(a, z, multiplicity, grad, pre, mean, coefficients, h, M, G)
            for p in range(len(weight)):
                if b == s * blocks // shares:
                    np.dot(powers[p, a:z].T, G[p], weight_grad[s, p])
                else:
                    np.dot(powers[p, a:z].T, G[p], product)
                    add_rows(product, weight_grad[s, p])
                np.dot(G[p], weight[p].T, through[p])
            w = grad_before.shape[1]
            for i in range(a, z):
                to, row = grad_before[i], outer[i, column : column + w]
                for j in range(w):
                    to[j] = row[j]
                input_backward(i, powers, inverse_bound, through, i - a, to)
            gate(a, z, grad_before, Z, column, before, before_mean, sums[b])


@over_blocks
def first_backward(
    cuts: Array,
    multiplicity: Array,
    grad: Array,
    pre: Array,
    mean: Array,
    coefficients: Array,
    h: int,
    M: Sparse,
    powers: Array,
    one_hot_index: Array,
    weight_grad: Array,
    table_grad: Array,
) -> None:
    """The gradients of the weights of the layer on the input: of its dense and of its one-hot columns.

    Both [S, P, ·, (K+1)·h] begin as zeros; each of S shares of the blocks adds its own, since tables may be long.
    """
    blocks, shares = len(cuts) - 1, len(table_grad)
    for s in prange(shares):
        product = np.empty(weight_grad.shape[2:], grad.dtype)
        for b in range(s * blocks // shares, (s + 1) * blocks // shares):
            a, z = cuts[b], cuts[b + 1]
            G = np.empty((weight_grad.shape[1], z - a, weight_grad.shape[3]), grad.dtype)
            spread(a, z, multiplicity, grad, pre, mean, coefficients, h, M, G)
            for p in range(len(G)):
                if powers.shape[2]:
                    np.dot(powers[p, a:z].T, G[p], product)
                    add_rows(product, weight_grad[s, p])
                for i in range(a, z):
                    row = G[p, i - a]
                    for c in range(one_hot_index.shape[1]):
                        if one_hot_index[i, c] >= 0:
                            out = table_grad[s, p, one_hot_index[i, c]]
                            for j in range(len(out)):
                                out[j] += row[j]
