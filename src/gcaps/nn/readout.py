"""Permutation-invariant readouts: [M, C(·)], mean and covariance of a graph's nodes (Eq. 7)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.nn.fused import readout as fused
from gcaps.nn.sparse import CSR, pointer
from gcaps.nn.tracing import tracing


def segments(
    index: Tensor | None, ptr: Tensor | None, num_nodes: int, dim_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """(index [n], ptr [B+1]) from either of the two, or from neither: then all nodes are one graph's.

    ``index`` must be ascending, as in every PyG batch; ``dim_size`` is B at least.
    """
    if index is None and ptr is None:
        ptr = num_nodes * torch.arange(2)
    if ptr is None:
        assert index is not None
        if tracing():  # the sums that are recorded take rows in any order
            ptr = pointer(index, num_segments(index) if dim_size is None else dim_size)
        else:
            if bool((index[1:] < index[:-1]).any()):
                raise ValueError("index must be ascending: nodes of a graph stand next to each other")
            ptr = pointer(index, dim_size or 0)
    elif dim_size is not None and dim_size > ptr.size(0) - 1:
        ptr = torch.cat([ptr, ptr[-1:].expand(dim_size - ptr.size(0) + 1)])
    if index is None:
        index = torch.repeat_interleave(
            torch.arange(ptr.size(0) - 1, device=ptr.device), ptr.diff(), output_size=num_nodes
        )
    return index, ptr


def every_node(x: Tensor, index: Tensor, ptr: Tensor, multiplicity: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """(x, index, ptr) with each row as often as it counts (see :attr:`gcaps.batching.Batch.multiplicity`)."""
    if multiplicity is None:
        return x, index, ptr
    often = multiplicity.long()
    until = torch.nn.functional.pad(often.cumsum(0), (1, 0))
    return x.repeat_interleave(often, 0), index.repeat_interleave(often), until[ptr]


def num_segments(index: Tensor) -> int:
    """How many graphs ``index`` names; in a recorded program, a number that each run finds for itself."""
    last: int = index.max().item()  # type: ignore[assignment]  # int() would fix the number while recording
    return last + 1


def segment_mean(x: Tensor, index: Tensor, ptr: Tensor) -> Tensor:
    """[B, c] the mean of each graph's rows of x [n, c]; 0 for a graph without nodes."""
    if tracing():
        size = ptr.diff().clamp_min(1).unsqueeze(1)
        return x.new_zeros(size.size(0), x.size(1)).index_add(0, index, x) / size
    mean: Tensor = _SegmentMean.apply(x, index, ptr)  # type: ignore[no-untyped-call]
    return mean


class _SegmentMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, ptr: Tensor) -> Tensor:
        size = ptr.diff().clamp_min(1).unsqueeze(1)
        ctx.index, ctx.size = index, size
        return CSR(ptr, torch.arange(len(index), device=x.device), None).matmul(x) / size

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return (grad / ctx.size).index_select(0, ctx.index), None, None


def segment_covariance(x: Tensor, mean: Tensor, index: Tensor, ptr: Tensor) -> Tensor:
    """[B, c, c] C = (1/N)(Z − μ)ᵀ(Z − μ) of each graph's rows Z of x, given their mean (Eq. 7).

    No loop over graphs: all are padded with zero rows, which add nothing, to the largest and share one batched product;
    where that would waste much, graphs whose sizes round up to the same power of two share one. A recorded program
    knows no largest graph; it adds up n outer products, [n, c, c] unless the compiler fuses them: set a rank there.
    """
    if tracing():
        centred = x - mean.index_select(0, index)
        size = ptr.diff().clamp_min(1).to(x.dtype)[:, None, None]
        outer = centred.unsqueeze(2) * centred.unsqueeze(1)
        return x.new_zeros(size.size(0), x.size(1), x.size(1)).index_add(0, index, outer) / size
    covariance: Tensor = _SegmentCovariance.apply(x, mean, index, ptr)  # type: ignore[no-untyped-call]
    return covariance


WASTE = 3e7
"""Multiplications by zero that cost less than another round of small operations."""


class _Blocks(NamedTuple):
    """Graphs that share one batched product."""

    graphs: Tensor | slice
    """Which."""
    rows: Tensor | slice
    """Their nodes."""
    place: Tensor
    """Where each of these nodes stands in the padded stack."""
    height: int
    """How many graphs."""
    width: int
    """Rows each graph is padded to."""


def _blocks(index: Tensor, ptr: Tensor, columns: int) -> list[_Blocks]:
    sizes = ptr.diff()
    largest = int(sizes.max()) if len(sizes) else 0
    place = torch.arange(len(index), device=ptr.device) - ptr[:-1][index]
    if (len(sizes) * largest - len(index)) * columns**2 <= WASTE:
        return [_Blocks(slice(None), slice(None), index * largest + place, len(sizes), largest)]
    size_class = torch.ceil(torch.log2(sizes.clamp_min(1).double())).long()
    found = []
    for exponent in torch.unique(size_class).tolist():
        member = size_class == exponent
        graphs, rows = torch.nonzero(member).squeeze(1), torch.nonzero(member[index]).squeeze(1)
        width = int(sizes[graphs].max())
        order = torch.cumsum(member, 0) - 1
        found.append(_Blocks(graphs, rows, order[index[rows]] * width + place[rows], len(graphs), width))
    return found


class _SegmentCovariance(torch.autograd.Function):
    """C and its gradient: dZ = (1/N)(Z − μ)(G + Gᵀ); nothing flows through μ, since centred rows add up to 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mean: Tensor, index: Tensor, ptr: Tensor) -> Tensor:
        centred = x - mean.index_select(0, index)
        size = ptr.diff().clamp_min(1).to(x.dtype)[:, None, None]
        out = x.new_zeros(len(ptr) - 1, x.size(1), x.size(1))
        ctx.blocks, ctx.size = _blocks(index, ptr, x.size(1)), size
        ctx.save_for_backward(centred)
        for block in ctx.blocks:
            padded = _padded(centred, block)
            out[block.graphs] = torch.bmm(padded.transpose(1, 2), padded)
        return out.div_(size)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (centred,) = ctx.saved_tensors
        both = (grad + grad.transpose(1, 2)) / ctx.size
        out = torch.empty_like(centred)
        for block in ctx.blocks:
            product = torch.bmm(_padded(centred, block), both[block.graphs])
            out[block.rows] = product.flatten(0, 1).index_select(0, block.place)
        return out, None, None, None


def _padded(centred: Tensor, block: _Blocks) -> Tensor:
    """[b, width, c] the rows of a block's graphs, zeros below."""
    rows = centred[block.rows]
    stack = rows.new_zeros(block.height * block.width, rows.size(1)).index_copy_(0, block.place, rows)
    return stack.view(block.height, block.width, rows.size(1))


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
    r"""Mean and covariance of a graph's node features (Eq. 7), a vector that does not depend on node order.

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
        multiplicity: Tensor | None = None,
    ) -> Tensor:
        """[μ, triu C] of each graph; the signature of PyG's ``Aggregation``, and how often each row counts [n]."""
        if dim not in (-2, 0) or x.dim() != 2:
            raise ValueError("MeanCovariance aggregates the rows of a matrix [n, D]")
        index, ptr = segments(index, ptr, x.size(0), dim_size)
        projection = None if self.projection is None else self.projection.weight
        if fused.can_fuse(x):
            options = fused.Options(self.reduce == "sum", self.root, self.count)
            return fused.mean_covariance(x, projection, ptr, options, multiplicity)
        x, index, ptr = every_node(x, index, ptr, multiplicity)
        mean = segment_mean(x, index, ptr)
        z, centre = (x, mean) if projection is None else (x @ projection.t(), mean @ projection.t())
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
