"""The fully connected end of the network, compiled, forwards and backwards: rows are graphs, so matrices are small."""

from __future__ import annotations

import numpy as np

from gcaps.nn.fused.blocks import Array, compiled


@compiled
def normalize(
    x: Array,
    gamma: Array,
    beta: Array,
    running: tuple[Array, Array],
    momentum: float,
    epsilon: float,
    relu: bool,
    found: Array,
    out: Array,
) -> None:
    """out = γ (x − mean)/deviation + β, with ``relu`` not below 0; found [2, w] = mean and 1/deviation.

    Running mean and variance follow as torch's do.
    """
    n, w = x.shape
    zero = x.dtype.type(0)
    total = np.zeros(w)
    for i in range(n):
        row = x[i]
        for j in range(w):
            total[j] += row[j]
    mean, inverse = found[0], found[1]
    for j in range(w):
        mean[j] = total[j] / n
    total[:] = 0
    for i in range(n):
        row = x[i]
        for j in range(w):
            d = row[j] - mean[j]
            total[j] += d * d
    for j in range(w):
        inverse[j] = 1 / np.sqrt(total[j] / n + epsilon)
        running[0][j] += momentum * (mean[j] - running[0][j])
        running[1][j] += momentum * (total[j] / max(n - 1, 1) - running[1][j])
    scale = gamma * inverse
    shift = beta - mean * scale
    for i in range(n):
        row, to = x[i], out[i]
        for j in range(w):
            to[j] = scale[j] * row[j] + shift[j]
        if relu:
            for j in range(w):
                to[j] = to[j] if to[j] > zero else zero


@compiled
def normalize_backward(
    x: Array, gamma: Array, found: Array, active: Array, grad: Array, grad_gamma: Array, grad_beta: Array
) -> None:
    """grad becomes that at x; ``active`` is the output of a ReLU behind, or empty where there is none."""
    n, w = x.shape
    zero = x.dtype.type(0)
    mean, inverse = found[0], found[1]
    plain, products = np.zeros(w), np.zeros(w)
    for i in range(n):
        row, g = x[i], grad[i]
        if len(active):
            live = active[i]
            for j in range(w):
                g[j] = g[j] if live[j] > zero else zero
        for j in range(w):
            plain[j] += g[j]
        for j in range(w):
            products[j] += g[j] * (row[j] - mean[j])
    for j in range(w):
        grad_beta[j] = plain[j]
        grad_gamma[j] = products[j] * inverse[j]
    scale = gamma * inverse
    constant, slope = np.empty_like(mean), np.empty_like(mean)
    for j in range(w):
        constant[j] = scale[j] * plain[j] / n
        slope[j] = scale[j] * inverse[j] * inverse[j] * products[j] / n
    for i in range(n):
        row, g = x[i], grad[i]
        for j in range(w):
            g[j] = scale[j] * g[j] - constant[j] - slope[j] * (row[j] - mean[j])


@compiled
def linear(x: Array, weight: Array, bias: Array, out: Array) -> None:
    """out = x Wᵀ + b"""
    np.dot(x, weight.T, out)
    for i in range(len(out)):
        to = out[i]
        for j in range(len(bias)):
            to[j] += bias[j]


@compiled
def linear_backward(x: Array, weight: Array, grad: Array, grad_weight: Array, grad_bias: Array, grad_x: Array) -> None:
    """The gradients of :func:`linear`."""
    np.dot(grad.T, x, grad_weight)
    np.dot(grad, weight, grad_x)
    grad_bias[:] = 0
    for i in range(len(grad)):
        row = grad[i]
        for j in range(len(row)):
            grad_bias[j] += row[j]


@compiled
def drop(mask: Array, level: int, scale: float, x: Array) -> None:
    """x · scale where mask ≥ level, 0 elsewhere, in place; its own gradient."""
    zero, s = x.dtype.type(0), x.dtype.type(scale)
    for i in range(len(x)):
        row, bits = x[i], mask[i]
        for j in range(len(row)):
            row[j] = row[j] * s if bits[j] >= level else zero
