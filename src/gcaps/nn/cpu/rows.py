"""Compiled sums of rows of a table that indices choose: products of one-hot matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcaps.nn.cpu.blocks import Array, compiled


def chosen_rows(table: Tensor, index: Tensor) -> Tensor:
    """[n, w] sum of the rows of table [d, w] that each row of index [n, c] (int32) names; −1 names none."""
    out: Tensor = _Chosen.apply(table, index)  # type: ignore[no-untyped-call]
    return out


class _Chosen(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor) -> Tensor:
        out = table.new_empty(len(index), table.size(1))
        ctx.index, ctx.rows = index, len(table)
        gather(table.detach().contiguous().numpy(), index.contiguous().numpy(), out.numpy())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        out = grad.new_zeros(ctx.rows, grad.size(1))
        scatter(grad.contiguous().numpy(), ctx.index.contiguous().numpy(), out.numpy())
        return out, None


@compiled
def gather(table: Array, index: Array, out: Array) -> None:
    """out_i = Σ_c table[index_ic]"""
    zero = table.dtype.type(0)
    for i in range(len(index)):
        to = out[i]
        at = index[i, 0]
        if at >= 0:
            row = table[at]
            for j in range(table.shape[1]):
                to[j] = row[j]
        else:
            for j in range(table.shape[1]):
                to[j] = zero
        for c in range(1, index.shape[1]):
            at = index[i, c]
            if at >= 0:
                row = table[at]
                for j in range(table.shape[1]):
                    to[j] += row[j]


@compiled
def scatter(grad: Array, index: Array, out: Array) -> None:
    """out[index_ic] += grad_i"""
    for i in range(len(index)):
        row = grad[i]
        for c in range(index.shape[1]):
            at = index[i, c]
            if at >= 0:
                to = out[at]
                for j in range(out.shape[1]):
                    to[j] += row[j]
