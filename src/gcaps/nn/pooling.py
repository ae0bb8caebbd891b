"""Readouts that mean and covariance are compared with: mean, sum and max-sort pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from gcaps.nn.cpu.blocks import Array, compiled, is_supported
from gcaps.nn.readout import repeat_rows, segment_mean, segment_sum, segments


class MeanPool(nn.Module):
    """Mean of the rows of each graph, or their sum.

    Args:
        total: take sums.

    Shapes:
        - **input:** [n, c] with ``index`` (ascending) or ``ptr``, and ``multiplicity`` [n] if rows represent several
          nodes; **output:** [B, c].
    """

    def __init__(self, total: bool = False) -> None:
        super().__init__()
        self.total = total

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        multiplicity: Tensor | None = None,
    ) -> Tensor:
        """[B, c]"""
        index, ptr = segments(x, index, ptr)
        if multiplicity is not None:
            count = multiplicity.to(x.dtype)
            sums = segment_sum(x, index, ptr, count)
            return sums if self.total else sums / segment_sum(count.unsqueeze(1), index, ptr, None).clamp_min(1)
        mean = segment_mean(x, index, ptr)
        return mean * ptr.diff().unsqueeze(1) if self.total else mean

    def extra_repr(self) -> str:
        """Arguments of the constructor."""
        return f"total={self.total}"


class WithCount(nn.Module):
    """A readout with log(1 + N) appended, since means do not depend on the size of a graph."""

    def __init__(self, readout: nn.Module) -> None:
        super().__init__()
        self.readout = readout

    def forward(self, x: Tensor, index: Tensor | None = None, ptr: Tensor | None = None) -> Tensor:
        """[B, out + 1]"""
        index, ptr = segments(x, index, ptr)
        return torch.cat([self.readout(x, index, ptr), torch.log1p(ptr.diff().to(x.dtype)).unsqueeze(1)], dim=1)


class MaxSortPool(nn.Module):
    """The first k nodes of each graph, sorted by content (section 4.1 of the paper; the SortPooling of DGCNN).

    Args:
        k: number of nodes.

    Shapes:
        - **input:** [n, c] with ``index`` (ascending) or ``ptr``; **output:** [B, k·c].
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        self.k = k

    def forward(self, x: Tensor, index: Tensor | None = None, ptr: Tensor | None = None) -> Tensor:
        """See :func:`max_sort_pool`."""
        return max_sort_pool(x, self.k, index, ptr)

    def extra_repr(self) -> str:
        """Arguments of the constructor."""
        return f"k={self.k}"


def max_sort_pool(x: Tensor, k: int, index: Tensor | None = None, ptr: Tensor | None = None) -> Tensor:
    """[B, k·c] the first k rows of each graph in :func:`content_order`, padded with zeros."""
    index, ptr = segments(x, index, ptr)
    rows = first_rows([x.detach()], k, index, ptr)
    padded = torch.cat([x, x.new_zeros(1, x.size(1))])
    return padded[rows].flatten(1)  # −1 is the last row


def first_rows(parts: Sequence[Tensor], k: int, index: Tensor, ptr: Tensor, count: Tensor | None = None) -> Tensor:
    """[B, k] int64 numbers of the first k rows of each graph in :func:`content_order`, −1 after the last.

    Args:
        parts: columns of the rows, side by side.
        k: number of rows.
        index: [n] graph of each row.
        ptr: [B+1] first row of each graph.
        count: [n] number of equal rows that each row represents, which follow one another; None if each is one.
    """
    order = content_order(parts, index, ptr)
    if is_supported(parts[0]):
        rows = torch.empty(len(ptr) - 1, k, dtype=torch.int64)
        times = np.empty(0, np.float32) if count is None else count.numpy()
        _first_rows(order.numpy(), ptr.numpy(), times, rows.numpy())
        return rows
    if count is not None:
        order, _, ptr = repeat_rows(order, index, ptr, count[order])
    offset = torch.arange(k, device=ptr.device)
    present = offset < ptr.diff()[:, None]
    padded = torch.cat([order, order.new_full((1,), -1)])
    return padded[torch.where(present, ptr[:-1, None] + offset, order.size(0))]


def content_order(parts: Sequence[Tensor], index: Tensor, ptr: Tensor) -> Tensor:
    """Order of rows by graph, then by last column descending, ties by the column before, and so on.

    Rows that tie in every column are equal, so their order does not matter, and pooling is invariant to the order of
    the nodes. (PyG's SortAggregation breaks ties by node order.)

    Args:
        parts: [n, ·] columns of the rows, side by side.
        index: [n] graph of each row.
        ptr: [B+1] first row of each graph.
    """
    n = index.size(0)
    if is_supported(parts[0]):
        order = torch.empty(n, dtype=torch.int64)
        given = tuple(part.detach().contiguous().numpy() for part in parts)
        _sort_rows(given, ptr.numpy(), order.numpy(), torch.empty_like(order).numpy())
        return order
    order = torch.arange(n, device=ptr.device)
    for column in torch.cat(list(parts), dim=1).T:
        order = order[torch.sort(column[order], descending=True, stable=True).indices]
    return order[torch.sort(index[order], stable=True).indices]


@compiled
def _is_smaller(parts: tuple[Array, ...], i: int, j: int) -> bool:
    """Whether row i is smaller than row j, compared from the last column to the first."""
    for number in range(len(parts) - 1, -1, -1):
        x = parts[number]
        for column in range(x.shape[1] - 1, -1, -1):
            if x[i, column] != x[j, column]:
                return bool(x[i, column] < x[j, column])
    return False


@compiled
def _sort_rows(parts: tuple[Array, ...], ptr: Array, order: Array, buffer: Array) -> None:
    """order[ptr[g]:ptr[g+1]] = rows of graph g, largest first (a stable merge sort); ``buffer`` is as long as it."""
    for i in range(len(order)):
        order[i] = i
    for g in range(len(ptr) - 1):
        begin, end = ptr[g], ptr[g + 1]
        width = 1
        while width < end - begin:
            for a in range(begin, end, 2 * width):
                m, z = min(a + width, end), min(a + 2 * width, end)
                if m >= z or not _is_smaller(parts, order[m - 1], order[m]):
                    continue  # already sorted
                buffer[a:z] = order[a:z]
                i, j = a, m
                for to in range(a, z):
                    if j >= z or (i < m and not _is_smaller(parts, buffer[i], buffer[j])):
                        order[to] = buffer[i]
                        i += 1
                    else:
                        order[to] = buffer[j]
                        j += 1
            width *= 2


@compiled
def _first_rows(order: Array, ptr: Array, count: Array, rows: Array) -> None:
    """rows[g] = the first entries of order[ptr[g]:ptr[g+1]], each ``count`` times, then −1."""
    k = rows.shape[1]
    for g in range(len(ptr) - 1):
        to = 0
        for at in range(ptr[g], ptr[g + 1]):
            times = int(count[order[at]]) if len(count) else 1
            for _ in range(min(times, k - to)):
                rows[g, to] = order[at]
                to += 1
            if to == k:
                break
        rows[g, to:] = -1
