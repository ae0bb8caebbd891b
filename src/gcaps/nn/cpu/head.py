"""Fully connected layers as one operation on CPU: batch normalisation, ReLU, dropout and linear layers.

Unlike torch's modules, whose rounding depends on the number of threads, these functions give the same bits for any
number, and with them the whole network does. Recorded results depend on their rounding. Forward and backward on 64
graphs are 1.1 times as fast as torch's modules, less than 1 % of an epoch (``python benchmarks/compiled.py``).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.nn.cpu.blocks import Array, compiled, is_supported, one_blas_thread
from gcaps.nn.distributed import is_distributed
from gcaps.nn.regularization import BatchNorm, Dropout


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
        params = [p for layer in self if isinstance(layer, BatchNorm | nn.Linear) for p in (layer.weight, layer.bias)]
        fused: Tensor = HeadFunction.apply(x, list(self), *params)  # type: ignore[no-untyped-call]
        return fused


class _Normalized(NamedTuple):
    x: Array
    found: Array
    """[2, w] mean and 1/√(variance + ε)."""
    out: Array
    """The output, after dropout."""
    relu: bool
    beside: int
    """Columns after these that were passed on."""


class _Dropped(NamedTuple):
    mask: Array
    level: int
    scale: float


class HeadFunction(torch.autograd.Function):
    """All layers in one operation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layers: list[nn.Module], *params: Tensor) -> Tensor:
        """Output of the last layer."""
        current = x.detach().contiguous().numpy()
        weights = [p.detach().numpy() for p in params]
        saved: list[Any] = []
        given = iter(zip(weights[::2], weights[1::2], strict=True))
        with one_blas_thread():
            for number, layer in enumerate(layers):
                if isinstance(layer, BatchNorm):
                    relu = isinstance(layers[number + 1], nn.ReLU) if number + 1 < len(layers) else False
                    current, beside = _split(current, layer.beside)
                    found, out = np.empty((2, current.shape[1]), current.dtype), np.empty_like(current)
                    assert layer.running_mean is not None
                    assert layer.running_var is not None
                    running = layer.running_mean.numpy(), layer.running_var.numpy()
                    normalize(current, *next(given), running, layer.momentum or 0.0, layer.eps, relu, found, out)
                    if layer.num_batches_tracked is not None:
                        layer.num_batches_tracked.add_(1)
                    saved.append(_Normalized(current, found, out, relu, layer.beside))
                    current = out if beside is None else np.concatenate([out, beside], axis=1)
                elif isinstance(layer, Dropout) and layer.p:
                    dropped = _Dropped(layer.draw(current.shape).numpy(), layer.level, layer.scale)
                    drop(dropped.mask, dropped.level, dropped.scale, current)
                    saved.append(dropped)
                elif isinstance(layer, nn.Linear):
                    out = np.empty((len(current), layer.out_features), current.dtype)
                    linear(current, *next(given), out)
                    saved.append(current)
                    current = out
        ctx.saved, ctx.weights = saved, weights
        return torch.from_numpy(current)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Gradients at x and of the parameters."""
        current = grad.contiguous().numpy().copy()
        grads: list[Tensor] = []
        weights = [*ctx.weights]
        with one_blas_thread():
            for part in reversed(ctx.saved):
                if isinstance(part, _Dropped):
                    drop(part.mask, part.level, part.scale, current)
                    continue
                bias, weight = weights.pop(), weights.pop()
                of_weight, of_bias = np.empty_like(weight), np.empty_like(bias)
                if isinstance(part, _Normalized):
                    active = part.out if part.relu else part.out[:0]
                    current, beside = _split(current, part.beside)
                    normalize_backward(part.x, weight, part.found, active, current, of_weight, of_bias)
                    current = current if beside is None else np.concatenate([current, beside], axis=1)
                else:
                    before = np.empty_like(part)
                    linear_backward(part, weight, current, of_weight, of_bias, before)
                    current = before
                grads += [torch.from_numpy(of_bias), torch.from_numpy(of_weight)]
        return torch.from_numpy(current), None, *reversed(grads)


def _split(x: Array, beside: int) -> tuple[Array, Array | None]:
    """Return the columns that are normalised, and those beside them if there are any."""
    return (np.ascontiguousarray(x[:, :-beside]), x[:, -beside:]) if beside else (x, None)


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
    """Batch normalisation, with ``relu`` followed by ReLU; found [2, w] = mean and 1/√(variance + ε).

    Updates the running mean and variance as torch does.
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


@compiled
def normalize_backward(
    x: Array, gamma: Array, found: Array, active: Array, grad: Array, grad_gamma: Array, grad_beta: Array
) -> None:
    """Replace grad by the gradient at x; ``active`` is the output of the ReLU, or empty if there is none."""
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
    scale, constant, slope = np.empty_like(mean), np.empty_like(mean), np.empty_like(mean)
    for j in range(w):
        scale[j] = gamma[j] * inverse[j]
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
    """Gradients of :func:`linear`."""
    np.dot(grad.T, x, grad_weight)
    np.dot(grad, weight, grad_x)
    grad_bias[:] = 0
    for i in range(len(grad)):
        row = grad[i]
        for j in range(len(row)):
            grad_bias[j] += row[j]


@compiled
def drop(mask: Array, level: int, scale: float, x: Array) -> None:
    """x · scale where mask ≥ level, 0 elsewhere, in place; also its gradient."""
    zero, s = x.dtype.type(0), x.dtype.type(scale)
    for i in range(len(x)):
        row, bits = x[i], mask[i]
        for j in range(len(row)):
            row[j] = row[j] * s if bits[j] >= level else zero
