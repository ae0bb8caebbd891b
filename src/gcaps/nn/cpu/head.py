"""Fully connected layers as one operation on CPU: batch normalisation, ReLU, dropout and linear layers.

Unlike torch's modules, whose rounding depends on the number of threads, these functions give the same bits for any
number, and with them the whole network does. Recorded results depend on their rounding. All layers are one compiled
call forward and one back, on one vector of weights and one of statistics.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.nn.cpu.blocks import Array, compiled, compiled_part, is_supported, one_blas_thread
from gcaps.nn.cpu.running import RunningStatistics
from gcaps.nn.distributed import is_distributed
from gcaps.nn.flat import in_shapes
from gcaps.nn.regularization import BatchNorm, Dropout

LINEAR, NORM, NORM_RELU, DROP = range(4)
"""Kinds of layers: linear, normalisation without and with ReLU, dropout."""


class Head(nn.Sequential):
    """torch's Sequential whose layers are computed by compiled functions in training on CPU.

    Args:
        layers: :class:`~gcaps.nn.regularization.BatchNorm`, optionally followed by ``nn.ReLU``,
            :class:`~gcaps.nn.regularization.Dropout` after either, and ``nn.Linear``.
    """

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__(*layers)
        for before, layer in pairwise([None, *layers]):
            if isinstance(layer, nn.ReLU):
                known = isinstance(before, BatchNorm)
            elif isinstance(layer, Dropout):
                known = isinstance(before, BatchNorm | nn.ReLU)
            else:
                known = isinstance(layer, BatchNorm | nn.Linear)
            if not known:
                raise TypeError(f"a head has no {type(layer).__name__} after {type(before).__name__}")

    def forward(self, x: Tensor) -> Tensor:
        """Output of the last layer."""
        if not (self.training and len(x) > 1 and is_supported(x) and not is_distributed()):
            out: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
            return out
        fused: Tensor = HeadFunction.apply(x, Program(list(self)), *self.parameters())  # type: ignore[no-untyped-call]
        return fused


class Program:
    """What does not change from batch to batch: kinds and widths of the layers, and their running statistics.

    Args:
        layers: those of a :class:`Head`.
    """

    def __init__(self, layers: list[nn.Module]) -> None:
        kinds: list[tuple[int, int, int]] = []
        numbers: list[tuple[float, float]] = []
        norms = [layer for layer in layers if isinstance(layer, BatchNorm)]
        for layer, after in pairwise([*layers, None]):
            if isinstance(layer, BatchNorm):
                relu = isinstance(after, nn.ReLU)
                width = layer.num_features + layer.beside
                kinds.append((NORM_RELU if relu else NORM, width, layer.beside))
                numbers.append((layer.momentum or 0.0, layer.eps))
            elif isinstance(layer, nn.Linear):
                kinds.append((LINEAR, layer.out_features, 0))
                numbers.append((0.0, 0.0))
                width = layer.out_features
            elif isinstance(layer, Dropout) and layer.p:
                kinds.append((DROP, width, layer.level))
                numbers.append((layer.scale, 0.0))
        self.layers, self.numbers = np.array(kinds), np.array(numbers)
        self.values = sum(width for kind, width, _ in kinds if kind != DROP)
        """Columns of all outputs that are kept."""
        self.dropped = [width for kind, width, _ in kinds if kind == DROP]
        self.statistics = RunningStatistics(norms)

    def draw(self, rows: int) -> Array:
        """Random 16-bit integers for all dropout layers, as :meth:`Dropout.draw` draws them one after the other."""
        words = sum(-(-rows * width // 4) for width in self.dropped)
        return torch.empty(words, dtype=torch.int64).random_(-(2**63), None).numpy().view(np.int16)


class Pass(NamedTuple):
    """What a forward pass keeps for its backward pass."""

    layers: Array
    """[S, 3] kind of each layer, columns of its output, and columns that a normalisation passes on or level of
    dropout."""
    numbers: Array
    """[S, 2] momentum and ε of a normalisation, or scale of dropout."""
    x: Array
    """[B, ·] input."""
    weights: Array
    """Weight and bias of each layer, laid end to end."""
    running: Array
    """Running mean and variance of each normalisation, laid end to end."""
    found: Array
    """Likewise mean and 1/√(variance + ε) of the batch."""
    masks: Array
    """Random numbers of each dropout layer."""
    values: Array
    """Outputs of the linear layers and normalisations, laid end to end; those of dropout replace its input."""


def forward(program: Program, x: Array, weights: Array) -> tuple[Array, Pass]:
    """Return the output of the last layer, and what :func:`backward` needs."""
    running = program.statistics.read()
    kept = Pass(
        *(program.layers, program.numbers, x, weights, running, np.empty_like(running), program.draw(len(x))),
        np.empty(len(x) * program.values, x.dtype),
    )
    with one_blas_thread():
        out: Array = run(kept)
    program.statistics.write(running)
    return out, kept


def backward(kept: Pass, grad: Array, gradient: Array) -> Array:
    """Write the gradient of the weights, laid out as they are; return that at the input."""
    with one_blas_thread():
        found: Array = run_backward(kept, grad, gradient)
    return found


class HeadFunction(torch.autograd.Function):
    """All layers in one operation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, program: Program, *params: Tensor) -> Tensor:
        """Output of the last layer."""
        weights = np.concatenate([p.detach().numpy().ravel() for p in params])
        out, ctx.kept = forward(program, x.detach().contiguous().numpy(), weights)
        ctx.shapes = [p.shape for p in params]
        return torch.from_numpy(out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Gradients at x and of the parameters."""
        gradient = np.empty_like(ctx.kept.weights)
        of_x = backward(ctx.kept, grad.contiguous().numpy(), gradient)
        return torch.from_numpy(of_x), None, *in_shapes(gradient, ctx.shapes)


@compiled_part
def places(kept: Pass) -> Array:
    """[S, 5] columns of the input of each layer, and where its weights, statistics, output and mask begin."""
    layers, n = kept.layers, len(kept.x)
    found = np.zeros((len(layers) + 1, 5), np.int64)
    found[0, 0] = kept.x.shape[1]
    for s in range(len(layers)):
        kind, width, before = layers[s, 0], layers[s, 1], found[s, 0]
        for j in range(1, 5):
            found[s + 1, j] = found[s, j]
        found[s + 1, 0] = width
        if kind == DROP:
            found[s + 1, 4] += -(-n * width // 4) * 4
        elif kind == LINEAR:
            found[s + 1, 1] += (before + 1) * width
            found[s + 1, 3] += n * width
        else:
            found[s + 1, 1] += 2 * (width - layers[s, 2])
            found[s + 1, 2] += 2 * (width - layers[s, 2])
            found[s + 1, 3] += n * width
    return found


@compiled
def run(kept: Pass) -> Array:
    """Forward pass: write ``running``, ``found`` and ``values``; return the output of the last layer."""
    layers, numbers, current, weights, running, found, masks, values = kept
    at, n = places(kept), len(current)
    for s in range(len(layers)):
        kind, width, extra, first = layers[s, 0], layers[s, 1], layers[s, 2], at[s, 1]
        if kind == DROP:
            drop(masks[at[s, 4] : at[s, 4] + n * width].reshape(n, width), extra, numbers[s, 0], current)
            continue
        out = values[at[s, 3] : at[s, 3] + n * width].reshape(n, width)
        if kind == LINEAR:
            weight = weights[first : first + at[s, 0] * width].reshape(width, at[s, 0])
            linear(current, weight, weights[first + at[s, 0] * width : at[s + 1, 1]], out)
        else:
            w, where = width - extra, at[s, 2]
            normalize(
                current,
                weights[first : first + w],
                weights[first + w : first + 2 * w],
                running[where : where + 2 * w].reshape(2, w),
                numbers[s, 0],
                numbers[s, 1],
                kind == NORM_RELU,
                found[where : where + 2 * w].reshape(2, w),
                out,
            )
        current = out
    return current


@compiled
def run_backward(kept: Pass, grad: Array, gradient: Array) -> Array:
    """Backward pass of :func:`run`: write the gradient of the weights, return that at the input."""
    layers, numbers, x, weights, _, found, masks, values = kept
    at, n, current = places(kept), len(x), grad.copy()
    for s in range(len(layers) - 1, -1, -1):
        kind, width, extra, first, before = layers[s, 0], layers[s, 1], layers[s, 2], at[s, 1], at[s, 0]
        if kind == DROP:
            drop(masks[at[s, 4] : at[s, 4] + n * width].reshape(n, width), extra, numbers[s, 0], current)
            continue
        given = x if at[s, 3] == 0 else values[at[s, 3] - n * before : at[s, 3]].reshape(n, before)
        if kind == LINEAR:
            end, of_given = first + before * width, np.empty((n, before), grad.dtype)
            weight, of_weight = weights[first:end], gradient[first:end]
            linear_backward(
                given,
                weight.reshape(width, before),
                current,
                of_weight.reshape(width, before),
                gradient[end : at[s + 1, 1]],
                of_given,
            )
            current = of_given
        else:
            w, where = width - extra, at[s, 2]
            out = values[at[s, 3] : at[s, 3] + n * width].reshape(n, width)
            normalize_backward(
                given,
                weights[first : first + w],
                found[where : where + 2 * w].reshape(2, w),
                out if kind == NORM_RELU else out[:0],
                current,
                gradient[first : first + w],
                gradient[first + w : first + 2 * w],
            )
    return current


@compiled_part
def normalize(
    x: Array,
    gamma: Array,
    beta: Array,
    running: Array,
    momentum: float,
    epsilon: float,
    relu: bool,
    found: Array,
    out: Array,
) -> None:
    """Batch normalisation, with ``relu`` followed by ReLU; found [2, w] = mean and 1/√(variance + ε).

    Updates the running mean and variance as torch does. Columns beyond those of γ are passed on.
    """
    n, w, width = len(x), len(gamma), x.shape[1]
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
        running[0, j] += momentum * (mean[j] - running[0, j])
        running[1, j] += momentum * (total[j] / max(n - 1, 1) - running[1, j])
    scale, shift = np.empty_like(mean), np.empty_like(mean)
    for j in range(w):
        scale[j] = gamma[j] * inverse[j]
        shift[j] = beta[j] - mean[j] * scale[j]
    for i in range(n):
        row, to = x[i], out[i]
        for j in range(w):
            to[j] = scale[j] * row[j] + shift[j]
        if relu:
            for j in range(w):
                to[j] = to[j] if to[j] > zero else zero
        for j in range(w, width):
            to[j] = row[j]


@compiled_part
def normalize_backward(
    x: Array, gamma: Array, found: Array, active: Array, grad: Array, grad_gamma: Array, grad_beta: Array
) -> None:
    """Replace grad by the gradient at x; ``active`` is the output of the ReLU, or empty if there is none."""
    n, w = len(x), len(gamma)
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
    scale, constant, slope = np.empty_like(mean), np.empty_like(mean), np.empty_like(mean)
    for j in range(w):
        scale[j] = gamma[j] * inverse[j]
        constant[j] = scale[j] * plain[j] / n
        slope[j] = scale[j] * inverse[j] * inverse[j] * products[j] / n
    for i in range(n):
        row, g = x[i], grad[i]
        for j in range(w):
            g[j] = scale[j] * g[j] - constant[j] - slope[j] * (row[j] - mean[j])


@compiled_part
def linear(x: Array, weight: Array, bias: Array, out: Array) -> None:
    """out = x Wᵀ + b"""
    np.dot(x, weight.T, out)
    for i in range(len(out)):
        to = out[i]
        for j in range(len(bias)):
            to[j] += bias[j]


@compiled_part
def linear_backward(x: Array, weight: Array, grad: Array, grad_weight: Array, grad_bias: Array, grad_x: Array) -> None:
    """Gradients of :func:`linear`."""
    np.dot(grad.T, x, grad_weight)
    np.dot(grad, weight, grad_x)
    grad_bias[:] = 0
    for i in range(len(grad)):
        row = grad[i]
        for j in range(len(row)):
            grad_bias[j] += row[j]


@compiled_part
def drop(mask: Array, level: int, scale: float, x: Array) -> None:
    """x · scale where mask ≥ level, 0 elsewhere, in place; also its gradient."""
    zero, s = x.dtype.type(0), x.dtype.type(scale)
    for i in range(len(x)):
        row, bits = x[i], mask[i]
        for j in range(len(row)):
            row[j] = row[j] * s if bits[j] >= level else zero
