"""Max-sort pooling (DGCNN's), the readout that the paper's Proposition 1 speaks about, with ties decided by content."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcaps.nn.readout import segments
from gcaps.nn.tracing import tracing


def content_order(x: Tensor, index: Tensor) -> Tensor:
    """The order of the rows of x [n, c] by graph, then by last column descending, ties by the column before, and so on.

    Rows that tie in every column are equal, so any order of them gives the same result: pooling with this order is
    invariant under node order. (PyG's SortAggregation leaves ties to the node order.)
    """
    columns = x.size(1)
    if columns and not tracing():
        order = torch.sort(x[:, -1], descending=True, stable=True).indices
        return _ties_sorted(x, index, order[torch.sort(index[order], stable=True).indices])
    order = torch.arange(x.size(0), device=x.device)
    for column in range(columns):
        order = order[torch.sort(x[order, column], descending=True, stable=True).indices]
    return order[torch.sort(index[order], stable=True).indices]


def _ties_sorted(x: Tensor, index: Tensor, order: Tensor) -> Tensor:
    """From the order by graph and last column to the whole order: only rows that tie and differ are looked at again."""
    order, group = order.clone(), _groups(index[order], x[order, -1])
    places = torch.nonzero(torch.bincount(group)[group] > 1).squeeze(1)
    group = group[places]
    content = _names(x[order[places]])
    for column in range(x.size(1) - 2, -1, -1):
        # where a group's rows are all equal, any order of them is right
        bounds = content.new_zeros(int(group.max()) + 1 if len(group) else 0)
        least, most = (bounds.scatter_reduce(0, group, content, r, include_self=False) for r in ("amin", "amax"))
        open_ = (least != most)[group]
        places, group, content = places[open_], group[open_], content[open_]
        if not len(places):
            break
        rows = order[places]
        inner = torch.sort(x[rows, column], descending=True, stable=True).indices
        inner = inner[torch.sort(group[inner], stable=True).indices]
        order[places] = rows[inner]
        group, content = _groups(group, x[rows[inner], column]), content[inner]
    return order


def _groups(before: Tensor, values: Tensor) -> Tensor:
    """[n] 0, 0, 1, … : a new number where the group before or the value changes."""
    new = (before[1:] != before[:-1]) | (values[1:] != values[:-1])
    return torch.cat([new.new_zeros(min(len(before), 1)), new]).cumsum(0)


def _names(x: Tensor) -> Tensor:
    """[n] a 64-bit number for each row of x, the same for equal rows."""
    bits = (x + 0.0).view(torch.int64 if x.dtype == torch.float64 else torch.int32).long()  # + 0 mends −0
    name = bits.new_zeros(len(x))
    for column in bits.T:
        name = (name ^ column) * 0x5851F42D4C957F2D
        name = name ^ (name >> 29)
    return name


def max_sort_pool(x: Tensor, k: int, index: Tensor | None = None, ptr: Tensor | None = None) -> Tensor:
    """[B, k·c] the first k rows of each graph in content order, zeros where it has fewer."""
    index, ptr = segments(index, ptr, x.size(0))
    order = content_order(x.detach(), index)
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
