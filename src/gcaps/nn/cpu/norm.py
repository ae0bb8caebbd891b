"""Compiled batch normalisation, with ReLU, of rows that represent several nodes each (merged nodes).

One pass over the rows for the statistics and one for the output: rows are summed in single precision in blocks that
stay in the cache, blocks in float64 with Chan's formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcaps.nn.cpu.blocks import Array, compiled

ROWS = 32
"""Rows of a block."""


def normalized(x: Tensor, gamma: Tensor, beta: Tensor, state: State, multiplicity: Tensor | None, relu: bool) -> Tensor:
    """[n, w] γ (x − mean)/√(variance + ε) + β, with ``relu`` its positive part, by the statistics of the rows of x.

    Args:
        x: [n, w].
        gamma: [w].
        beta: [w].
        state: running statistics, updated as torch does, their momentum, and ε.
        multiplicity: [n] number of rows that each row counts as; None if each is one.
        relu: apply ReLU.
    """
    out: Tensor = _Normalize.apply(x, gamma, beta, state, multiplicity, relu)  # type: ignore[no-untyped-call]
    return out


State = tuple[Tensor, Tensor, float, float]
"""Running mean [w] and variance [w], momentum, ε."""


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gamma: Tensor, beta: Tensor, state: State, multiplicity: Tensor | None, relu: bool
    ) -> Tensor:
        x = x.detach().contiguous()
        rows, count = x.numpy(), _count(multiplicity, x)
        mean, variance = np.empty(x.size(1)), np.empty(x.size(1))
        total = statistics(rows, count, mean, variance)
        running_mean, running_variance, momentum, epsilon = state
        running_mean.lerp_(torch.from_numpy(mean).to(x.dtype), momentum)
        running_variance.lerp_(torch.from_numpy(variance * (total / max(total - 1, 1))).to(x.dtype), momentum)
        inverse = 1 / np.sqrt(variance + epsilon)
        out = torch.empty_like(x)
        with np.errstate(over="ignore", invalid="ignore"):  # values of a training that diverges
            scale = gamma.detach().numpy() * inverse
            shift = beta.detach().numpy() - mean * scale
            affine(rows, scale.astype(rows.dtype), shift.astype(rows.dtype), relu, out.numpy())
        ctx.save_for_backward(x, gamma, out if relu else None)
        ctx.known = count, total, mean, inverse
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, gamma, out = ctx.saved_tensors
        count, total, mean, inverse = ctx.known
        rows, given = x.numpy(), grad.contiguous().numpy()
        active = np.empty((0, 0), rows.dtype) if out is None else out.detach().numpy()
        centre = mean.astype(rows.dtype)
        plain, products = np.empty(len(mean)), np.empty(len(mean))
        gradient_sums(rows, centre, active, given, plain, products)
        scale = gamma.detach().numpy() * inverse
        constant = scale * plain / total
        slope = scale * inverse * inverse * products / total
        of_x = torch.empty_like(x)
        scale, constant, slope = (part.astype(rows.dtype) for part in (scale, constant, slope))
        gradient(rows, count, centre, active, given, scale, constant, slope, of_x.numpy())
        of_gamma, of_beta = (torch.from_numpy(part).to(x.dtype) for part in (products * inverse, plain))
        return of_x, of_gamma, of_beta, None, None, None


def _count(multiplicity: Tensor | None, x: Tensor) -> Array:
    """[n] multiplicities, or an empty array."""
    return np.empty(0, x.numpy().dtype) if multiplicity is None else multiplicity.to(x.dtype).numpy()


@compiled
def statistics(x: Array, count: Array, mean: Array, variance: Array) -> float:
    """Write mean and (biased) variance [w] of the rows of x, counted ``count`` times; return their number."""
    n, w = x.shape
    zero = x.dtype.type(0)
    own, squares = np.empty(w, x.dtype), np.empty(w, x.dtype)
    total = 0.0
    mean[:] = 0
    variance[:] = 0
    for a in range(0, n, ROWS):
        z = min(a + ROWS, n)
        own[:] = zero
        squares[:] = zero
        if len(count):
            rows = zero
            for i in range(a, z):
                m = count[i]
                rows += m
                row = x[i]
                for j in range(w):
                    own[j] += m * row[j]
            for j in range(w):
                own[j] /= rows
            for i in range(a, z):
                m = count[i]
                row = x[i]
                for j in range(w):
                    d = row[j] - own[j]
                    squares[j] += m * (d * d)
            number = np.float64(rows)
        else:
            for i in range(a, z):
                row = x[i]
                for j in range(w):
                    own[j] += row[j]
            for j in range(w):
                own[j] /= x.dtype.type(z - a)
            for i in range(a, z):
                row = x[i]
                for j in range(w):
                    d = row[j] - own[j]
                    squares[j] += d * d
            number = np.float64(z - a)
        together = total + number
        for j in range(w):
            step = own[j] - mean[j]
            mean[j] += step * (number / together)
            variance[j] += squares[j] + step * step * (total * number / together)
        total = together
    for j in range(w):
        variance[j] /= max(total, 1.0)
    return total


@compiled
def affine(x: Array, scale: Array, shift: Array, relu: bool, out: Array) -> None:
    """out = scale · x + shift, with ``relu`` its positive part."""
    zero = x.dtype.type(0)
    for i in range(len(x)):
        row, to = x[i], out[i]
        if relu:
            for j in range(x.shape[1]):
                v = scale[j] * row[j] + shift[j]
                to[j] = v if v > zero else zero
        else:
            for j in range(x.shape[1]):
                to[j] = scale[j] * row[j] + shift[j]


@compiled
def gradient_sums(x: Array, centre: Array, active: Array, grad: Array, plain: Array, products: Array) -> None:
    """Write Σ g and Σ g (x − centre) over the rows; ``active`` is the output of the ReLU, or empty if there is none."""
    n, w = x.shape
    zero = x.dtype.type(0)
    first, second = np.empty(w, x.dtype), np.empty(w, x.dtype)
    plain[:] = 0
    products[:] = 0
    for a in range(0, n, ROWS):
        first[:] = zero
        second[:] = zero
        for i in range(a, min(a + ROWS, n)):
            row, g = x[i], grad[i]
            if len(active):
                live = active[i]
                for j in range(w):
                    value = g[j] if live[j] > zero else zero
                    first[j] += value
                    second[j] += value * (row[j] - centre[j])
            else:
                for j in range(w):
                    first[j] += g[j]
                    second[j] += g[j] * (row[j] - centre[j])
        for j in range(w):
            plain[j] += first[j]
            products[j] += second[j]


@compiled
def gradient(
    x: Array,
    count: Array,
    centre: Array,
    active: Array,
    grad: Array,
    scale: Array,
    constant: Array,
    slope: Array,
    out: Array,
) -> None:
    """out = scale · g − m (constant + slope · (x − centre)) for rows that count m times."""
    n, w = x.shape
    zero, m = x.dtype.type(0), x.dtype.type(1)
    for i in range(n):
        row, g, to = x[i], grad[i], out[i]
        if len(count):
            m = count[i]
        if len(active):
            live = active[i]
            for j in range(w):
                value = g[j] if live[j] > zero else zero
                to[j] = scale[j] * value - m * (constant[j] + slope[j] * (row[j] - centre[j]))
        else:
            for j in range(w):
                to[j] = scale[j] * g[j] - m * (constant[j] + slope[j] * (row[j] - centre[j]))
