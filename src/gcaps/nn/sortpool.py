"""Max-sort pooling (DGCNN's), the readout that the paper's Proposition 1 speaks about, with ties decided by content."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcaps.nn.fused.readout import can_fuse
from gcaps.nn.fused.sorting import sort_rows
from gcaps.nn.readout import segments


def content_order(x: Tensor, index: Tensor, ptr: Tensor) -> Tensor:
    """The order of the rows of x [n, c] by graph, then by last column descending, ties by the column before, and so on.

    Rows that tie in every column are equal, so any order of them gives the same result: pooling with this order is
    invariant under node order. (PyG's SortAggregation leaves ties to the node order.)
    """
    if can_fuse(x):
        order = torch.empty(len(x), dtype=torch.int64)
        sort_rows(x.contiguous().numpy(), ptr.numpy(), order.numpy(), torch.empty_like(order).numpy())
        return order
    order = torch.arange(x.size(0), device=x.device)
    for column in range(x.size(1)):
        order = order[torch.sort(x[order, column], descending=True, stable=True).indices]
    return order[torch.sort(index[order], stable=True).indices]


def max_sort_pool(x: Tensor, k: int, index: Tensor | None = None, ptr: Tensor | None = None) -> Tensor:
    """[B, k·c] the first k rows of each graph in content order, zeros where it has fewer."""
    index, ptr = segments(index, ptr, x.size(0))
    order = content_order(x.detach(), index, ptr)
    sizes = ptr.diff()
    offset = torch.arange(k, device=x.device)
    present = offset < sizes[:, None]
    padded_order = torch.cat([order, order.new_full((1,), x.size(0))])
    rows = padded_order[torch.where(present, ptr[:-1, None] + offset, x.size(0))]
    padded = torch.cat([x, x.new_zeros(1, x.size(1))])
    return padded[rows].flatten(1)


class MaxSortPool(nn.Module):
    """Sort each graph's nodes by content and keep the first k (Section 4.1 of the paper, DGCNN's SortPooling).

    Shapes:
        - **input:** [n, c] with ``index`` (ascending) or ``ptr``; **output:** [B, k·c].
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        if k < 1:
            raise ValueError("k starts at 1")
        self.k = k

    def forward(self, x: Tensor, index: Tensor | None = None, ptr: Tensor | None = None) -> Tensor:
        """See :func:`max_sort_pool`."""
        return max_sort_pool(x, self.k, index, ptr)

    def extra_repr(self) -> str:
        """The arguments, as in the constructor."""
        return f"k={self.k}"
