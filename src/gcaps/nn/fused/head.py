"""A sequence of batch normalisations, activations, dropouts and linear layers as one operation on CPU."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.nn.distributed import training_together
from gcaps.nn.dropout import Dropout
from gcaps.nn.fused import head_kernels as kernels
from gcaps.nn.fused.blocks import Array, one_blas_thread
from gcaps.nn.norm import BatchNorm
from gcaps.nn.tracing import tracing


class Head(nn.Sequential):
    """torch's Sequential; in training on CPU its layers are computed without torch's cost of calling each.

    Args:
        layers: :class:`~gcaps.nn.norm.BatchNorm`, with an ``nn.ReLU`` behind it or not,
            :class:`~gcaps.nn.dropout.Dropout` behind either, and ``nn.Linear``.
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
                raise TypeError(f"a head has no {type(layer).__name__} behind {type(before).__name__}")

    def forward(self, x: Tensor) -> Tensor:
        """The last layer's output."""
        if not (self.training and len(x) > 1 and self._can_fuse(x)):
            out: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
            return out
        params = [p for layer in self if isinstance(layer, BatchNorm | nn.Linear) for p in (layer.weight, layer.bias)]
        fused: Tensor = _Head.apply(x, list(self), *params)  # type: ignore[no-untyped-call]
        return fused

    @staticmethod
    def _can_fuse(x: Tensor) -> bool:
        kind = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
        return kind and not tracing() and not training_together()


class _Normalized(NamedTuple):
    x: Array
    found: Array
    """[2, w] mean and 1/deviation."""
    out: Array
    """What dropout left of the output."""
    relu: bool


class _Dropped(NamedTuple):
    mask: Array
    level: int
    scale: float


class _Head(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, layers: list[nn.Module], *params: Tensor) -> Tensor:
        current = x.detach().contiguous().numpy()
        weights = [p.detach().numpy() for p in params]
        saved: list[Any] = []
        given = iter(zip(weights[::2], weights[1::2], strict=True))
        with one_blas_thread():
            for number, layer in enumerate(layers):
                if isinstance(layer, BatchNorm):
                    relu = isinstance(layers[number + 1], nn.ReLU) if number + 1 < len(layers) else False
                    found, out = np.empty((2, current.shape[1]), current.dtype), np.empty_like(current)
                    assert layer.running_mean is not None
                    assert layer.running_var is not None
                    running = layer.running_mean.numpy(), layer.running_var.numpy()
                    kernels.normalize(
                        current, *next(given), running, layer.momentum or 0.0, layer.eps, relu, found, out
                    )
                    if layer.num_batches_tracked is not None:
                        layer.num_batches_tracked.add_(1)
                    saved.append(_Normalized(current, found, out, relu))
                    current = out
                elif isinstance(layer, Dropout) and layer.p:
                    dropped = _Dropped(layer.draw(current.shape).numpy(), layer.level, layer.scale)
                    kernels.drop(dropped.mask, dropped.level, dropped.scale, current)
                    saved.append(dropped)
                elif isinstance(layer, nn.Linear):
                    out = np.empty((len(current), layer.out_features), current.dtype)
                    kernels.linear(current, *next(given), out)
                    saved.append(current)
                    current = out
        ctx.saved, ctx.weights = saved, weights
        return torch.from_numpy(current)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        current = grad.contiguous().numpy().copy()
        grads: list[Tensor] = []
        weights = [*ctx.weights]
        with one_blas_thread():
            for part in reversed(ctx.saved):
                if isinstance(part, _Dropped):
                    kernels.drop(part.mask, part.level, part.scale, current)
                    continue
                bias, weight = weights.pop(), weights.pop()
                of_weight, of_bias = np.empty_like(weight), np.empty_like(bias)
                if isinstance(part, _Normalized):
                    active = part.out if part.relu else part.out[:0]
                    kernels.normalize_backward(part.x, weight, part.found, active, current, of_weight, of_bias)
                else:
                    before = np.empty_like(part)
                    kernels.linear_backward(part, weight, current, of_weight, of_bias, before)
                    current = before
                grads += [torch.from_numpy(of_bias), torch.from_numpy(of_weight)]
        return torch.from_numpy(current), None, *reversed(grads)
