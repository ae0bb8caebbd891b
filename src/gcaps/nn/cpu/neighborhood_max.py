"""Compiled maximum over closed neighborhoods of chosen nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcaps.nn.cpu.blocks import Array, compiled


def closed_max(x: Tensor, rowptr: Tensor, col: Tensor, nodes: Tensor) -> Tensor:
    """[n', c] largest values of each of the ``nodes`` [n'] and its neighbors; the first of equal values counts."""
    out: Tensor = _Max.apply(x, rowptr, col, nodes)  # type: ignore[no-untyped-call]
    return out


class _Max(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rowptr: Tensor, col: Tensor, nodes: Tensor) -> Tensor:
        out = x.new_empty(len(nodes), x.size(1))
        ctx.source = torch.empty(out.shape, dtype=torch.int32)
        ctx.rows = len(x)
        given = rowptr.numpy(), col.numpy(), nodes.numpy(), x.detach().contiguous().numpy()
        forward(*given, out.numpy(), ctx.source.numpy())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        out = grad.new_zeros(ctx.rows, grad.size(1))
        backward(grad.contiguous().numpy(), ctx.source.numpy(), out.numpy())
        return out, None, None, None


@compiled
def forward(rowptr: Array, col: Array, nodes: Array, x: Array, out: Array, source: Array) -> None:
    """Write the largest values, and the row that each comes from."""
    for number in range(len(nodes)):
        i = nodes[number]
        to, where, row = out[number], source[number], x[i]
        for k in range(x.shape[1]):
            to[k] = row[k]
            where[k] = i
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            other = x[j]
            for k in range(x.shape[1]):
                larger = other[k] > to[k]
                to[k] = other[k] if larger else to[k]
                where[k] = j if larger else where[k]


@compiled
def backward(grad: Array, source: Array, out: Array) -> None:
    """Add every gradient to the row that its value came from."""
    for i in range(len(grad)):
        for k in range(grad.shape[1]):
            out[source[i, k], k] += grad[i, k]
