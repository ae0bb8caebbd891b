"""Permutation-invariant readouts: [M, C(·)], mean and covariance of a graph's nodes (Eq. 8)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def segments(index: Tensor | None, ptr: Tensor | None, num_nodes: int) -> tuple[Tensor, Tensor]:
    """(index [n], ptr [B+1]) from either of the two, or from neither: then all nodes are one graph's.

    ``index`` must be ascending, as in every PyG batch.
    """
    if index is None and ptr is None:
        ptr = torch.tensor([0, num_nodes])
    if ptr is None:
        assert index is not None
        if len(index) and bool((index[1:] < index[:-1]).any()):
            raise ValueError("index must be ascending: nodes of a graph stand next to each other")
        count = torch.bincount(index) if len(index) else index.new_zeros(0)
        ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    if index is None:
        index = torch.repeat_interleave(
            torch.arange(len(ptr) - 1, device=ptr.device), ptr.diff(), output_size=num_nodes
        )
    return index, ptr


def segment_mean(x: Tensor, index: Tensor, ptr: Tensor) -> Tensor:
    """[B, c] the mean of each graph's rows of x [n, c]; 0 for a graph without nodes."""
    total = x.new_zeros(len(ptr) - 1, x.size(1)).index_add(0, index, x)
    return total / ptr.diff().clamp_min(1).unsqueeze(1)


def segment_covariance(x: Tensor, mean: Tensor, index: Tensor, ptr: Tensor) -> Tensor:
    """[B, c, c] C = (1/N)(Z − μ)ᵀ(Z − μ) of each graph's rows Z of x (Eq. 8).

    Graphs of similar size share one batched product: sizes are rounded up to powers of two and short graphs padded
    with zero rows, which add nothing, so the work is at most twice that of a loop over graphs.
    """
    centred = x - mean[index]
    sizes = ptr.diff()
    padded = torch.cat([centred, centred.new_zeros(1, x.size(1))])
    out = x.new_zeros(len(sizes), x.size(1), x.size(1))
    size_class = torch.ceil(torch.log2(sizes.clamp_min(1).double())).long()
    for exponent in torch.unique(size_class).tolist():
        members = torch.nonzero(size_class == exponent).squeeze(1)
        width = int(sizes[members].max())
        offset = torch.arange(width, device=ptr.device)
        rows = torch.where(offset < sizes[members, None], ptr[members, None] + offset, x.size(0))
        block = padded[rows]
        out = out.index_copy(0, members, torch.bmm(block.transpose(1, 2), block))
    covariance: Tensor = out / sizes.clamp_min(1)[:, None, None]
    return covariance


def upper_triangle(C: Tensor) -> Tensor:
    """[B, c(c+1)/2] the upper triangle of symmetric matrices [B, c, c], row by row, diagonal included."""
    i, j = torch.triu_indices(C.size(1), C.size(2), device=C.device)
    triangle: Tensor = C[:, i, j]
    return triangle


def signed_root(x: Tensor) -> Tensor:
    """sign(x)·(√(|x| + ε) − √ε): the square root's compression with a finite gradient at 0."""
    epsilon = 1e-4
    magnitude: Tensor = torch.sqrt(x.abs() + epsilon) - epsilon**0.5
    return torch.sign(x) * magnitude


class MeanCovariance(nn.Module):
    r"""Mean and covariance of a graph's node features (Eq. 8), a vector that does not depend on node order.

    .. math::
        \mu = \frac{1}{N}\sum_i \mathbf{z}_i, \qquad
        \mathbf{C} = \frac{1}{N} (\mathbf{Z} - \mu)^\top (\mathbf{Z} - \mu), \qquad
        f = [\mu, \mathrm{triu}(\mathbf{C})]

    Args:
        in_channels: columns D of the node features.
        rank: project Z to this many learned columns before C; by default C is that of all columns.
        reduce: ``"mean"``, or ``"sum"``: sums in the place of means, so that the size of a graph shows.
        root: the signed square root of C's entries, which tames heavy tails.
        count: append log(1 + N); mean and covariance are blind to size.

    Shapes:
        - **input:** node features [n, D]; ``index`` [n] (ascending) or ``ptr`` [B+1]: as PyG's ``Aggregation``.
        - **output:** [B, :attr:`out_channels`].
    """

    def __init__(
        self,
        in_channels: int,
        rank: int | None = None,
        *,
        reduce: str = "mean",
        root: bool = False,
        count: bool = False,
    ) -> None:
        super().__init__()
        if reduce not in ("mean", "sum"):
            raise ValueError(f"unknown reduce {reduce!r}; there are mean, sum")
        if rank is not None and not rank >= 1:
            raise ValueError("rank starts at 1")
        self.in_channels, self.rank, self.reduce, self.root, self.count = in_channels, rank, reduce, root, count
        self.projection = None if rank is None else nn.Linear(in_channels, rank, bias=False)

    @property
    def out_channels(self) -> int:
        """D + r(r+1)/2, and one more with ``count``; r is the rank, or D."""
        return self.length(self.in_channels, self.rank, self.count)

    @staticmethod
    def length(in_channels: int, rank: int | None, count: bool) -> int:
        """What :attr:`out_channels` would be, without allocating anything."""
        r = in_channels if rank is None else rank
        return in_channels + r * (r + 1) // 2 + int(count)

    def reset_parameters(self) -> None:
        """A fresh projection."""
        if self.projection is not None:
            self.projection.reset_parameters()

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
    ) -> Tensor:
        """[μ, triu C] of each graph; the signature of PyG's ``Aggregation``."""
        if dim not in (-2, 0) or x.dim() != 2:
            raise ValueError("MeanCovariance aggregates the rows of a matrix [n, D]")
        index, ptr = segments(index, ptr, x.size(0))
        if dim_size is not None and dim_size > len(ptr) - 1:
            ptr = torch.cat([ptr, ptr[-1:].expand(dim_size - len(ptr) + 1)])
        mean = segment_mean(x, index, ptr)
        z, centre = x, mean
        if self.projection is not None:
            z, centre = self.projection(x), self.projection(mean)
        C = upper_triangle(segment_covariance(z, centre, index, ptr))
        size = ptr.diff().to(x.dtype).unsqueeze(1)
        if self.reduce == "sum":
            mean, C = mean * size, C * size
        if self.root:
            C = signed_root(C)
        parts = [mean, C]
        if self.count:
            parts.append(torch.log1p(size))
        return torch.cat(parts, dim=1)

    def extra_repr(self) -> str:
        """The arguments, as in the constructor."""
        return f"{self.in_channels}, rank={self.rank}, reduce={self.reduce!r}, root={self.root}, count={self.count}"
