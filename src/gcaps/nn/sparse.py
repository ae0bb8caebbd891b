"""Sparse matrices in compressed rows (CSR) as plain tensors, and their product with a dense matrix."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class CSR(NamedTuple):
    """A sparse n × n matrix in compressed rows."""

    rowptr: Tensor
    """[n+1]"""
    col: Tensor
    """[e]"""
    value: Tensor | None
    """[e], or None if every entry is one."""
    loops: bool = False
    """Whether self-loops are stored, with weight zero; see :func:`from_edge_index`."""
    row: Tensor | None = None
    """[e] row of each entry, in an exported program: entries may then be in any order."""

    def matmul(self, x: Tensor) -> Tensor:
        """Product with x [n, c]."""
        if self.row is not None:
            terms = x.index_select(0, self.col)
            terms = terms if self.value is None else terms * self.value.to(x.dtype).unsqueeze(1)
            return x.new_zeros(self.rowptr.size(0) - 1, x.size(1)).index_add(0, self.row, terms)
        return F.embedding_bag(
            # The fastest sparse product of torch on CPU (about 3 times as fast as MKL's CSR product); it sums each row
            # in a fixed order and takes plain tensors, which can be traced and exported.
            self.col,
            x,
            self.rowptr,
            mode="sum",
            per_sample_weights=None if self.value is None else self.value.to(x.dtype),
            include_last_offset=True,
        )

    def rows(self) -> Tensor:
        """[e] row of each entry."""
        if self.row is not None:
            return self.row
        count = self.rowptr.diff()
        nodes = torch.arange(count.size(0), device=count.device)
        return torch.repeat_interleave(nodes, count, output_size=self.col.size(0))

    def row_sums(self, like: Tensor) -> Tensor:
        """[n] sum of each row, in the type of ``like``."""
        if self.value is None:
            return self.rowptr.diff().to(like.dtype)
        return torch.zeros(self.rowptr.size(0) - 1, dtype=like.dtype, device=like.device).index_add(
            0, self.rows(), self.value.to(like.dtype)
        )

    def without_loops(self) -> CSR:
        """The matrix without the self-loops that it stores with weight zero."""
        if not self.loops:
            return self
        rows = self.rows()
        keep = rows != self.col
        value = None if self.value is None else self.value[keep]
        return CSR(pointer(rows[keep], self.rowptr.size(0) - 1), self.col[keep], value)


def from_edge_index(edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> tuple[CSR, CSR, Tensor]:
    """The matrix A with A[target, source] = weight (PyG's flow from source to target), and its transpose.

    The third tensor is the position in ``edge_index`` of each entry of A, row by row.

    Edges may come in any order; the weights of repeated edges add up, as in PyG; self-loops are removed. While
    compiling, entries cannot be removed: self-loops are then kept with weight zero.
    """
    source, target = edge_index
    keep = source != target
    loops = torch.compiler.is_compiling()
    if loops:
        edge_weight = keep.to(torch.get_default_dtype()) if edge_weight is None else edge_weight * keep
    else:
        source, target = source[keep], target[keep]
        edge_weight = None if edge_weight is None else edge_weight[keep]
    A, order = _compressed(target, source, edge_weight, num_nodes, loops)
    A_t, _ = _compressed(source, target, edge_weight, num_nodes, loops)
    return A, A_t, order if loops else keep.nonzero().squeeze(1)[order]


def _compressed(row: Tensor, col: Tensor, weight: Tensor | None, num_nodes: int, loops: bool) -> tuple[CSR, Tensor]:
    order = torch.argsort(row * num_nodes + col, stable=True)
    return CSR(pointer(row, num_nodes), col[order], None if weight is None else weight[order], loops), order


def pointer(index: Tensor, size: int) -> Tensor:
    """[size+1] offsets at which each of the numbers 0 … size−1 begins in the sorted index."""
    if torch.compiler.is_compiling():  # the length of bincount's result depends on the values of its input
        count = index.new_zeros(size).scatter_add(0, index, torch.ones_like(index))
    else:
        count = torch.bincount(index, minlength=size)
    return torch.cat([count.new_zeros(1), count.cumsum(0)])
