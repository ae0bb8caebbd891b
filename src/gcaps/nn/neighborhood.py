"""Differentiable sums over neighborhoods: products with A and M, closed means, and gathers between nodes and edges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcaps.nn.filters import Filter
from gcaps.nn.sparse import CSR


class _Apply(torch.autograd.Function):
    """Sparse product; its gradient is the product with the transpose."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, A: CSR, A_t: CSR) -> Tensor:
        ctx.A_t = A_t
        return A.matmul(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.A_t.matmul(grad.contiguous()), None, None


def neighbor_sum(x: Tensor, M: Filter) -> Tensor:
    """A x: weighted sum over the neighbors of each node, x [n, c]."""
    if torch.compiler.is_compiling() or (M.A.value is not None and M.A.value.requires_grad):
        return M.A.matmul(x)
    out: Tensor = _Apply.apply(x, M.A, M.A_t)  # type: ignore[no-untyped-call]
    return out


class _Closed(torch.autograd.Function):
    """x plus its sparse product."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, A: CSR, A_t: CSR) -> Tensor:
        ctx.A_t = A_t
        return A.matmul(x).add_(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        grad = grad.contiguous()
        return ctx.A_t.matmul(grad).add_(grad), None, None


def closed_sum(x: Tensor, M: Filter) -> Tensor:
    """(I + A) x, x [n, c]."""
    if torch.compiler.is_compiling() or (M.A.value is not None and M.A.value.requires_grad):
        return x + M.A.matmul(x)
    out: Tensor = _Closed.apply(x, M.A, M.A_t)  # type: ignore[no-untyped-call]
    return out


def filter_product(x: Tensor, M: Filter) -> Tensor:
    """M x, x [n, c]."""
    if M.requires_grad or torch.compiler.is_compiling():
        return M.matmul(x)
    out: Tensor = _Apply.apply(x, M.off, M.off_t)  # type: ignore[no-untyped-call]
    return out if M.diagonal is None else torch.addcmul(out, M.diagonal, x)


def closed_mean(x: Tensor, M: Filter) -> Tensor:
    """(D + I)⁻¹ (A + I) x: the mean over N(i) ∪ {i} with weights a_ik and a_ii = 1 (Eq. 3)."""
    return (x + neighbor_sum(x, M)) / (1 + M.A.row_sums(x)).unsqueeze(1)


class _Gather(torch.autograd.Function):
    """x[col] for the entries of A; its gradient is a sum over the entries of each column, in a fixed order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, M: Filter) -> Tensor:
        ctx.M = M
        return x.index_select(0, M.A.col)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        M: Filter = ctx.M
        return CSR(M.A_t.rowptr, M.transposed_order(), None).matmul(grad.contiguous()), None


class _Spread(torch.autograd.Function):
    """x[row] for the entries of A; its gradient is a sum over the entries of each row."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, A: CSR) -> Tensor:
        ctx.A = A
        return x.index_select(0, A.rows())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        A: CSR = ctx.A
        return CSR(A.rowptr, torch.arange(len(A.col), device=grad.device), None).matmul(grad.contiguous()), None


class _RowSum(torch.autograd.Function):
    """[n, c] sum of values [e, c] over the entries of each row; its gradient is x[row]."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, A: CSR) -> Tensor:
        ctx.A = A
        return CSR(A.rowptr, torch.arange(len(A.col), device=values.device), None).matmul(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad.index_select(0, ctx.A.rows()), None


def from_neighbors(x: Tensor, M: Filter) -> Tensor:
    """[e, c] row x_k for each entry (i, k) of A."""
    if torch.compiler.is_compiling():
        return x.index_select(0, M.A.col)
    out: Tensor = _Gather.apply(x, M)  # type: ignore[no-untyped-call]
    return out


def to_edges(x: Tensor, M: Filter) -> Tensor:
    """[e, c] row x_i for each entry (i, k) of A."""
    if torch.compiler.is_compiling():
        return x.index_select(0, M.A.rows())
    out: Tensor = _Spread.apply(x, M.A)  # type: ignore[no-untyped-call]
    return out


def row_sum(values: Tensor, M: Filter) -> Tensor:
    """[n, c] sum of values [e, c] over the entries of each row of A."""
    if torch.compiler.is_compiling():
        return values.new_zeros(M.A.rowptr.size(0) - 1, values.size(1)).index_add(0, M.A.rows(), values)
    out: Tensor = _RowSum.apply(values, M.A)  # type: ignore[no-untyped-call]
    return out
