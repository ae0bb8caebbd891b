"""Sparse node features, such as bags of words: products with weights, powers and dropout of their entries."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcaps.nn.capsules import bounded
from gcaps.nn.sparse import CSR, pointer


class SparseRows(NamedTuple):
    """A sparse matrix X [n, c] in compressed rows, with the order of its entries in compressed columns."""

    rowptr: Tensor
    """[n+1]"""
    col: Tensor
    """[e]"""
    value: Tensor
    """[e]"""
    colptr: Tensor
    """[c+1]"""
    row: Tensor
    """[e] rows of the entries in the order of columns."""
    order: Tensor
    """[e] position of each of those entries in ``value``."""

    @classmethod
    def from_csr(cls, rowptr: Tensor, col: Tensor, value: Tensor, columns: int) -> SparseRows:
        """Return X from its compressed rows.

        Args:
            rowptr: [n+1].
            col: [e].
            value: [e].
            columns: c.
        """
        rows = torch.repeat_interleave(torch.arange(len(rowptr) - 1, device=col.device), rowptr.diff())
        order = torch.argsort(col, stable=True)
        return cls(rowptr, col, value, pointer(col, columns), rows[order], order)

    @property
    def shape(self) -> tuple[int, int]:
        """n and c."""
        return len(self.rowptr) - 1, len(self.colptr) - 1

    def matmul(self, weight: Tensor) -> Tensor:
        """X W [n, h] for W [c, h]; the gradient is Xᵀ G."""
        out: Tensor = _Product.apply(weight, self)  # type: ignore[no-untyped-call]
        return out

    def powers(self, highest: int, bound: float | None = None) -> list[SparseRows]:
        """[X, X⊙X, …] as :func:`gcaps.nn.moments`, computed on the entries only."""
        base = bounded(self.value, bound)
        return [self if p == 1 else self._replace(value=base**p) for p in range(1, highest + 1)]

    def with_row_factors(self, factor: Tensor) -> SparseRows:
        """diag(factor) X for factor [n]."""
        counts = self.rowptr.diff()
        return self._replace(value=self.value * torch.repeat_interleave(factor, counts, output_size=len(self.col)))

    def take(self, rows: Tensor) -> SparseRows:
        """Return some rows, in their order."""
        begin, counts = self.rowptr[rows], self.rowptr.diff()[rows]
        rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        position = torch.arange(int(rowptr[-1]), device=self.col.device)
        position = position + torch.repeat_interleave(begin - rowptr[:-1], counts)
        return SparseRows.from_csr(rowptr, self.col[position], self.value[position], self.shape[1])

    def to(self, device: torch.device) -> SparseRows:
        """Return the matrix on a device."""
        return SparseRows(*(tensor.to(device) for tensor in self))

    def to_dense(self) -> Tensor:
        """Return X as a dense matrix."""
        rows = torch.repeat_interleave(torch.arange(self.shape[0], device=self.col.device), self.rowptr.diff())
        return self.value.new_zeros(self.shape).index_put((rows, self.col), self.value, accumulate=True)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, X: SparseRows) -> Tensor:
        ctx.X = X
        return CSR(X.rowptr, X.col, X.value).matmul(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        X: SparseRows = ctx.X
        return CSR(X.colptr, X.row, X.value[X.order]).matmul(grad.contiguous()), None
