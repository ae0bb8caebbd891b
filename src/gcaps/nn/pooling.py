"""Readouts that mean and covariance are compared with: mean, sum and max-sort pooling."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcaps.nn.cpu.blocks import Array, compiled, is_supported
from gcaps.nn.readout import segment_mean, segment_sum, segments


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
        if multiplicity is not None or (self.total and is_supported(x)):
            count = None if multiplicity is None else multiplicity.to(x.dtype)
            sums = segment_sum(x, index, ptr, count)
            if self.total:
                return sums
            assert count is not None
            return sums / segment_sum(count.unsqueeze(1), index, ptr, None).clamp_min(1)
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
    order = content_order(x.detach(), index, ptr)
    sizes = ptr.diff()
    offset = torch.arange(k, device=x.device)
    present = offset < sizes[:, None]
    padded_order = torch.cat([order, order.new_full((1,), x.size(0))])
    rows = padded_order[torch.where(present, ptr[:-1, None] + offset, x.size(0))]
    padded = torch.cat([x, x.new_zeros(1, x.size(1))])
    return padded[rows].flatten(1)


def content_order(x: Tensor, index: Tensor, ptr: Tensor) -> Tensor:
    """Order of the rows of x [n, c] by graph, then by last column descending, ties by the column before, and so on.

    Rows that tie in every column are equal, so their order does not matter, and pooling is invariant to the order of
    the nodes. (PyG's SortAggregation breaks ties by node order.)
    """
    if is_supported(x):
        order = torch.empty(len(x), dtype=torch.int64)
        _sort_rows(x.contiguous().numpy(), ptr.numpy(), order.numpy(), torch.empty_like(order).numpy())
        return order
    order = torch.arange(x.size(0), device=x.device)
    for column in range(x.size(1)):
        order = order[torch.sort(x[order, column], descending=True, stable=True).indices]
    return order[torch.sort(index[order], stable=True).indices]


@compiled
def _is_smaller(x: Array, i: int, j: int) -> bool:
    """Whether row i of x is smaller than row j, compared from the last column to the first."""
    left, right = x[i], x[j]
    for column in range(x.shape[1] - 1, -1, -1):
        if left[column] != right[column]:
            return bool(left[column] < right[column])
    return False


@compiled
def _sort_rows(x: Array, ptr: Array, order: Array, buffer: Array) -> None:
    """order[ptr[g]:ptr[g+1]] = rows of graph g, largest first (a stable merge sort); ``buffer`` is as long as it."""
    for i in range(len(order)):
        order[i] = i
    for g in range(len(ptr) - 1):
        begin, end = ptr[g], ptr[g + 1]
        width = 1
        while width < end - begin:
            for a in range(begin, end, 2 * width):
                m, z = min(a + width, end), min(a + 2 * width, end)
                if m >= z or not _is_smaller(x, order[m - 1], order[m]):
                    continue  # already sorted
                buffer[a:z] = order[a:z]
                i, j = a, m
                for to in range(a, z):
                    if j >= z or (i < m and not _is_smaller(x, buffer[i], buffer[j])):
                        order[to] = buffer[i]
                        i += 1
                    else:
                        order[to] = buffer[j]
                        j += 1
            width *= 2
