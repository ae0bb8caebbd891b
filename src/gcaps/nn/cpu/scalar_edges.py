"""Compiled sums over neighborhoods where the matrix of an edge is a piecewise linear function of one number.

Θ(t) = V_0 + Σ_h ReLU(a_h t + b_h) V_h is linear in t between two neighboring breakpoints −b_h / a_h, so that

    Σ_j Θ(t_ij) x_j = Σ_s (P_s Σ_j x_j + Q_s Σ_j t_ij x_j),   j over the edges of i whose t_ij lies in piece s:

two sums of rows for an edge instead of H, and two products for each pair of a node and a piece that it has edges in,
of which there are few: edges of similar weights share pieces.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcaps.nn.cpu.blocks import Array, compiled


def piecewise_sum(x: Tensor, t: Tensor, slope: Tensor, offset: Tensor, matrices: Tensor, rows: Rows) -> Tensor:
    """[n, c'] Σ_j m_ij Θ(t_ij) x_j.

    Args:
        x: [n, c].
        t: [e] number of each edge; no gradient is computed for it.
        slope: [H] a.
        offset: [H] b.
        matrices: [H + 1, c', c] V_0 … V_H.
        rows: the edges of each node, and m.
    """
    breaks, active = pieces(slope.detach(), offset.detach())
    steps = torch.stack([active * offset, active * slope])  # [2, S, H]
    Theta = torch.einsum("psh,hij->spij", steps, matrices[1:])
    P, Q = (matrices[0] + Theta[:, 0]), Theta[:, 1]
    out: Tensor = _Sum.apply(x, torch.cat([P, Q], dim=2), t, breaks, rows)  # type: ignore[no-untyped-call]
    return out


class Rows(NamedTuple):
    """Edges of a graph by row."""

    rowptr: Tensor
    col: Tensor
    edge_count: Tensor | None
    """[e] m; None if it is one."""


def pieces(slope: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
    """(breakpoints [H] ascending, [H + 1, H] whether each unit is positive in the piece below each of them and above).

    A unit without slope has no breakpoint; it counts as one at infinity.
    """
    at = torch.where(slope == 0, torch.inf, -offset / slope)
    breaks, order = torch.sort(at, stable=True)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order))
    above = rank < torch.arange(len(order) + 1).unsqueeze(1)  # the piece lies above the breakpoint of the unit
    active = torch.where(slope == 0, offset > 0, (slope > 0) == above)
    return breaks, active.to(slope.dtype)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrices: Tensor, t: Tensor, breaks: Tensor, rows: Rows) -> Tensor:
        x, matrices = x.detach().contiguous(), matrices.detach()
        slot, node, first = slots(rows.rowptr.numpy(), t.numpy(), breaks.numpy())
        count = np.empty(0, x.numpy().dtype) if rows.edge_count is None else rows.edge_count.to(x.dtype).numpy()
        col, numbers = rows.col.numpy(), t.numpy()
        Z = x.new_zeros(len(node), 2 * x.size(1))
        gather(col, numbers, count, slot, x.numpy(), Z.numpy())
        products = x.new_empty(len(node), matrices.size(1))
        for s, (a, z) in _parts(first):
            torch.mm(Z[a:z], matrices[s].T, out=products[a:z])
        out = x.new_zeros(len(x), matrices.size(1))
        add_at(products.numpy(), node, out.numpy())
        ctx.save_for_backward(Z, matrices)
        ctx.known = (col, numbers, count, slot), node, first, x.shape
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        Z, matrices = ctx.saved_tensors
        (col, numbers, count, slot), node, first, shape = ctx.known
        products = grad.index_select(0, torch.from_numpy(node))
        of_matrices, of_Z = torch.zeros_like(matrices), torch.empty_like(Z)
        for s, (a, z) in _parts(first):
            torch.mm(products[a:z].T, Z[a:z], out=of_matrices[s])
            torch.mm(products[a:z], matrices[s], out=of_Z[a:z])
        of_x = grad.new_zeros(shape)
        push(col, numbers, count, slot, of_Z.numpy(), of_x.numpy())
        return of_x, of_matrices, None, None, None


def _parts(first: Array) -> list[tuple[int, tuple[int, int]]]:
    """Piece, first and last slot, of pieces that have slots."""
    ends = first.tolist()
    return [(s, (a, z)) for s, (a, z) in enumerate(pairwise(ends)) if z > a]


@compiled
def slots(rowptr: Array, t: Array, breaks: Array) -> tuple[Array, Array, Array]:
    """Number the pairs of a node and a piece that it has edges in, piece by piece.

    Returns:
        [e] number of the pair of each edge, [S] node of each pair, and the first pair of each piece.
    """
    slot = np.empty(len(t), np.int64)
    last = np.full(len(breaks) + 1, -1)
    first = np.zeros(len(breaks) + 2, np.int64)
    for i in range(len(rowptr) - 1):
        for e in range(rowptr[i], rowptr[i + 1]):
            low, high = 0, len(breaks)
            while low < high:
                middle = (low + high) // 2
                if breaks[middle] < t[e]:
                    low = middle + 1
                else:
                    high = middle
            slot[e] = low
            if last[low] != i:
                last[low] = i
                first[low + 1] += 1
    for s in range(len(breaks) + 1):
        first[s + 1] += first[s]
    node = np.empty(first[-1], np.int64)
    to = first[:-1].copy()
    last[:] = -1
    for i in range(len(rowptr) - 1):
        for e in range(rowptr[i], rowptr[i + 1]):
            s = slot[e]
            if last[s] != i:
                last[s] = i
                node[to[s]] = i
                to[s] += 1
            slot[e] = to[s] - 1
    return slot, node, first


@compiled
def gather(col: Array, t: Array, count: Array, slot: Array, x: Array, Z: Array) -> None:
    """Z[slot_e] += m_e [x_j, t_e x_j] over all edges e = (i, j)."""
    c = x.shape[1]
    m = x.dtype.type(1)
    for e in range(len(slot)):
        if len(count):
            m = count[e]
        row, to, with_t = x[col[e]], Z[slot[e]], m * t[e]
        for k in range(c):
            to[k] += m * row[k]
            to[c + k] += with_t * row[k]


@compiled
def push(col: Array, t: Array, count: Array, slot: Array, of_Z: Array, of_x: Array) -> None:
    """Gradient of :func:`gather`: of_x_j += m_e (of_Z[slot_e, :c] + t_e of_Z[slot_e, c:])."""
    c = of_x.shape[1]
    m = of_x.dtype.type(1)
    for e in range(len(slot)):
        if len(count):
            m = count[e]
        row, to, with_t = of_Z[slot[e]], of_x[col[e]], m * t[e]
        for k in range(c):
            to[k] += m * row[k] + with_t * row[c + k]


@compiled
def add_at(values: Array, at: Array, out: Array) -> None:
    """out[at_i] += values_i"""
    for i in range(len(at)):
        row, to = values[i], out[at[i]]
        for k in range(out.shape[1]):
            to[k] += row[k]
