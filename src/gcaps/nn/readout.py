"""The permutation-invariant readout [M, C(·)]: mean and covariance of the nodes of a graph (Eq. 7)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.nn.cpu import readout as cpu
from gcaps.nn.cpu.blocks import is_supported
from gcaps.nn.sparse import CSR, pointer


def segments(x: Tensor, index: Tensor | None, ptr: Tensor | None, dim_size: int | None = None) -> tuple[Tensor, Tensor]:
    """(index [n], ptr [B+1]) of the rows of x from either of the two; without both, all rows are one graph.

    ``index`` must be ascending, as in every PyG batch; ``dim_size`` is a lower bound of B.
    """
    num_nodes = x.size(0)
    if index is None and ptr is None:
        ptr = num_nodes * torch.arange(2, device=x.device)
    if ptr is None:
        assert index is not None
        if torch.compiler.is_compiling():  # the sums that are recorded take rows in any order
            ptr = pointer(index, num_segments(index) if dim_size is None else dim_size)
        else:
            if bool((index[1:] < index[:-1]).any()):
                raise ValueError("index must be ascending: the nodes of a graph must be adjacent")
            ptr = pointer(index, dim_size or 0)
    elif dim_size is not None and dim_size > ptr.size(0) - 1:
        ptr = torch.cat([ptr, ptr[-1:].expand(dim_size - ptr.size(0) + 1)])
    if index is None:
        index = torch.repeat_interleave(
            torch.arange(ptr.size(0) - 1, device=ptr.device), ptr.diff(), output_size=num_nodes
        )
    return index, ptr


def repeat_rows(x: Tensor, index: Tensor, ptr: Tensor, multiplicity: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """(x, index, ptr) with row i repeated multiplicity[i] times (see :attr:`gcaps.batching.Batch.multiplicity`)."""
    if multiplicity is None:
        return x, index, ptr
    count = multiplicity.long()
    offset = torch.nn.functional.pad(count.cumsum(0), (1, 0))
    return x.repeat_interleave(count, 0), index.repeat_interleave(count), offset[ptr]


def num_segments(index: Tensor) -> int:
    """Number of graphs in ``index``; while compiling, a symbolic number."""
    last: int = index.max().item()  # type: ignore[assignment]  # int() would make it a constant of the program
    torch._check(last >= 0)  # type: ignore[no-untyped-call]
    return last + 1


def segment_mean(x: Tensor, index: Tensor, ptr: Tensor) -> Tensor:
    """[B, c] mean of the rows of each graph in x [n, c]; 0 for a graph without nodes."""
    if torch.compiler.is_compiling():
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


def segment_sum(x: Tensor, index: Tensor, ptr: Tensor, count: Tensor | None) -> Tensor:
    """[B, c] sum of the rows of each graph in x [n, c], each counted ``count`` [n] times, or once."""
    if torch.compiler.is_compiling():
        rows = x if count is None else x * count.unsqueeze(1)
        return x.new_zeros(ptr.size(0) - 1, x.size(1)).index_add(0, index, rows)
    total: Tensor = _SegmentSum.apply(x, index, ptr, count)  # type: ignore[no-untyped-call]
    return total


class _SegmentSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, ptr: Tensor, count: Tensor | None) -> Tensor:
        ctx.index, ctx.count = index, count
        return CSR(ptr, torch.arange(len(index), device=x.device), count).matmul(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        rows = grad.index_select(0, ctx.index)
        return rows if ctx.count is None else rows.mul_(ctx.count.unsqueeze(1)), None, None, None


def segment_covariance(x: Tensor, mean: Tensor, index: Tensor, ptr: Tensor) -> Tensor:
    """[B, c, c] C = (1/N)(Z − μ)ᵀ(Z − μ) of the rows Z of each graph in x, given their mean (Eq. 7).

    Graphs are padded with zero rows to the size of the largest and multiplied in one batched product; if that would
    waste too much, in one product for each group of graphs whose sizes round up to the same power of two. While
    compiling, the largest size is not known: the program sums n outer products, [n, c, c] unless the compiler fuses
    them. Set a rank in that case.
    """
    if torch.compiler.is_compiling():
        centred = x - mean.index_select(0, index)
        size = ptr.diff().clamp_min(1).to(x.dtype)[:, None, None]
        outer = centred.unsqueeze(2) * centred.unsqueeze(1)
        return x.new_zeros(size.size(0), x.size(1), x.size(1)).index_add(0, index, outer) / size
    covariance: Tensor = _SegmentCovariance.apply(x, mean, index, ptr)  # type: ignore[no-untyped-call]
    return covariance


MAX_PADDING = 3e7
"""Multiplications by padding zeros that cost less than splitting the product into groups."""


class _Group(NamedTuple):
    """Graphs that are multiplied in one batched product."""

    graphs: Tensor | slice
    """Their indices."""
    rows: Tensor | slice
    """Indices of their nodes."""
    place: Tensor
    """Position of each of these nodes in the padded stack."""
    height: int
    """Number of graphs."""
    width: int
    """Number of rows that each graph is padded to."""


def _groups(index: Tensor, ptr: Tensor, columns: int) -> list[_Group]:
    sizes = ptr.diff()
    largest = int(sizes.max()) if len(sizes) else 0
    place = torch.arange(len(index), device=ptr.device) - ptr[:-1][index]
    if (len(sizes) * largest - len(index)) * columns**2 <= MAX_PADDING:
        return [_Group(slice(None), slice(None), index * largest + place, len(sizes), largest)]
    size_class = torch.ceil(torch.log2(sizes.clamp_min(1).double())).long()
    found = []
    for exponent in torch.unique(size_class).tolist():
        member = size_class == exponent
        graphs, rows = torch.nonzero(member).squeeze(1), torch.nonzero(member[index]).squeeze(1)
        width = int(sizes[graphs].max())
        order = torch.cumsum(member, 0) - 1
        found.append(_Group(graphs, rows, order[index[rows]] * width + place[rows], len(graphs), width))
    return found


class _SegmentCovariance(torch.autograd.Function):
    """C and its gradient dZ = (1/N)(Z − μ)(G + Gᵀ); there is none through μ, since centred rows sum to 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mean: Tensor, index: Tensor, ptr: Tensor) -> Tensor:
        centred = x - mean.index_select(0, index)
        size = ptr.diff().clamp_min(1).to(x.dtype)[:, None, None]
        out = x.new_zeros(len(ptr) - 1, x.size(1), x.size(1))
        ctx.groups, ctx.size = _groups(index, ptr, x.size(1)), size
        ctx.save_for_backward(centred)
        for group in ctx.groups:
            padded = _padded(centred, group)
            out[group.graphs] = torch.bmm(padded.transpose(1, 2), padded)
        return out.div_(size)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (centred,) = ctx.saved_tensors
        both = (grad + grad.transpose(1, 2)) / ctx.size
        out = torch.empty_like(centred)
        for group in ctx.groups:
            product = torch.bmm(_padded(centred, group), both[group.graphs])
            out[group.rows] = product.flatten(0, 1).index_select(0, group.place)
        return out, None, None, None


def _padded(centred: Tensor, group: _Group) -> Tensor:
    """[height, width, c] the rows of a group's graphs, padded with zeros."""
    rows = centred[group.rows]
    stack = rows.new_zeros(group.height * group.width, rows.size(1)).index_copy_(0, group.place, rows)
    return stack.view(group.height, group.width, rows.size(1))


def upper_triangle(C: Tensor) -> Tensor:
    """[B, c(c+1)/2] upper triangle of symmetric matrices [B, c, c], row by row, with the diagonal."""
    i, j = torch.triu_indices(C.size(1), C.size(2), device=C.device)
    triangle: Tensor = C[:, i, j]
    return triangle


def signed_root(x: Tensor) -> Tensor:
    """sign(x)·(√(|x| + ε) − √ε): a square root with a finite gradient at 0."""
    epsilon = 1e-4
    magnitude: Tensor = torch.sqrt(x.abs() + epsilon) - epsilon**0.5
    return torch.sign(x) * magnitude


class MeanCovariance(nn.Module):
    r"""Mean and covariance of the node features of each graph (Eq. 7), invariant to the order of the nodes.

    .. math::
        \mu = \frac{1}{N}\sum_i \mathbf{z}_i, \qquad
        \mathbf{C} = \frac{1}{N} (\mathbf{Z} - \mu)^\top (\mathbf{Z} - \mu), \qquad
        f = [\mu, \mathrm{triu}(\mathbf{C})]

    Args:
        in_channels: columns D of the node features.
        rank: project Z to this many learned columns before taking C; by default, C has all columns.
        reduce: ``"mean"``, or ``"sum"`` for N μ and N C, which depend on the size of a graph.
        root: take the signed square root of the entries of C, which have heavy tails.
        count: append log(1 + N).

    Shapes:
        - **input:** node features [n, D]; ``index`` [n] (ascending) or ``ptr`` [B+1], as in PyG's ``Aggregation``.
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
            raise ValueError(f"unknown reduce {reduce!r}; choose mean or sum")
        if rank is not None and not rank >= 1:
            raise ValueError(f"rank must be at least 1, not {rank}")
        self.in_channels, self.rank, self.reduce, self.root, self.count = in_channels, rank, reduce, root, count
        self.projection = None if rank is None else nn.Linear(in_channels, rank, bias=False)

    @property
    def options(self) -> cpu.Options:
        """Options of the compiled function."""
        return cpu.Options(self.reduce == "sum", self.root, self.count)

    @property
    def out_channels(self) -> int:
        """D + r(r+1)/2, plus one with ``count``; r is the rank, or D."""
        return self.length(self.in_channels, self.rank, self.count)

    @staticmethod
    def length(in_channels: int, rank: int | None, count: bool) -> int:
        """:attr:`out_channels` of a module with these arguments."""
        r = in_channels if rank is None else rank
        return in_channels + r * (r + 1) // 2 + int(count)

    def reset_parameters(self) -> None:
        """Reset the projection, if there is one."""
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
        """[μ, triu C] of each graph; PyG's ``Aggregation`` signature, and how many nodes each row represents [n]."""
        if dim not in (-2, 0) or x.dim() != 2:
            raise ValueError("MeanCovariance aggregates the rows of a matrix [n, D]")
        index, ptr = segments(x, index, ptr, dim_size)
        projection = None if self.projection is None else self.projection.weight
        if is_supported(x):
            return cpu.mean_covariance(x, projection, ptr, self.options, multiplicity)
        x, index, ptr = repeat_rows(x, index, ptr, multiplicity)
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
        """Arguments of the constructor."""
        return f"{self.in_channels}, rank={self.rank}, reduce={self.reduce!r}, root={self.root}, count={self.count}"
