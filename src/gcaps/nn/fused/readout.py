"""Mean and covariance of a graph's nodes as one operation on CPU: the vector [μ, triu C, log(1 + N)] (Eq. 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcaps.nn.fused import readout_kernels as kernels
from gcaps.nn.fused.kernels import Array
from gcaps.nn.tracing import tracing

NARROW = 64
"""Columns up to which compiled loops beat batched matrix products."""
SLACK = 1.3
"""Graphs share a batched product where none is padded to more than this times its size."""


class Options(NamedTuple):
    """As those of :class:`gcaps.nn.MeanCovariance`."""

    total: bool
    """Sums in the place of means."""
    root: bool
    size: bool
    """Whether log(1 + N) comes last."""


def can_fuse(x: Tensor) -> bool:
    """Whether :func:`mean_covariance` takes this matrix."""
    return not tracing() and x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)


def mean_covariance(x: Tensor, projection: Tensor | None, ptr: Tensor, options: Options) -> Tensor:
    """[B, D + r(r+1)/2 (+ 1)] the vectors of the graphs, from x [n, D] and a projection [r, D]."""
    found: Tensor = _MeanCovariance.apply(x, projection, ptr, options)  # type: ignore[no-untyped-call]
    return found


class _MeanCovariance(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, projection: Tensor | None, ptr: Tensor, options: Options) -> Tensor:
        x = x.detach().contiguous()
        y = x.clone() if projection is None else x @ projection.detach().t()
        where, D, r = ptr.numpy(), x.size(1), y.size(1)
        sizes = np.diff(where)
        out = np.empty((len(sizes), D + r * (r + 1) // 2 + options.size), x.numpy().dtype)
        middle = np.empty((len(sizes), r), out.dtype)
        kernels.means(x.numpy(), where, out)
        kernels.means(y.numpy(), where, middle)
        kernels.centre(y.numpy(), where, middle)
        if options.total:
            out[:, :D] *= sizes[:, None]
        if options.size:
            out[:, -1] = np.log1p(sizes)
        scale = (np.ones(len(sizes)) if options.total else 1 / np.maximum(sizes, 1)).astype(out.dtype)
        ctx.buckets = [_Bucket.of(y, where, graphs) for graphs in _alike(sizes, r)]
        for bucket in ctx.buckets:
            kernels.pack(bucket.outer_sums(where), bucket.graphs, scale, options.root, D, out)
        ctx.ptr, ctx.scale, ctx.options, ctx.columns = where, scale, options, r
        result = torch.from_numpy(out)
        ctx.save_for_backward(x, projection, result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, projection, out = ctx.saved_tensors
        given, found = grad.contiguous().numpy(), out.detach().numpy()
        through = np.empty((len(x), ctx.columns), found.dtype)
        for bucket in ctx.buckets:
            S = np.empty((len(bucket.graphs), ctx.columns, ctx.columns), found.dtype)
            kernels.unpack(given, found, bucket.graphs, ctx.scale, ctx.options.root, x.size(1), S)
            bucket.products(S, ctx.ptr, through)
        grad_y = torch.from_numpy(through)
        grad_projection = None
        if projection is not None and ctx.needs_input_grad[1]:
            grad_projection = grad_y.t() @ x
        grad_x = grad_y if projection is None else grad_y @ projection.detach()
        kernels.add_means_backward(given, ctx.ptr, ctx.options.total, grad_x.numpy())
        return grad_x, grad_projection, None, None


class _Bucket(NamedTuple):
    """Graphs whose covariances are computed together, by compiled loops or, padded, by one batched product."""

    graphs: Array
    rows: Array
    """[n, r] the centred rows of all graphs, or [b, width, r] those of these graphs, padded."""

    @classmethod
    def of(cls, centred: Tensor, ptr: Array, graphs: Array) -> _Bucket:
        """The bucket of some graphs of centred rows [n, r]."""
        if centred.size(1) <= NARROW:
            return cls(graphs, centred.numpy())
        width = int(np.diff(ptr)[graphs].max())
        padded = np.empty((len(graphs), width, centred.size(1)), centred.numpy().dtype)
        kernels.pad(centred.numpy(), ptr, graphs, padded)
        return cls(graphs, padded)

    def outer_sums(self, ptr: Array) -> Array:
        """[b, r, r] Σ_i c_i c_iᵀ."""
        r = self.rows.shape[-1]
        if self.rows.ndim == 2:
            C = np.empty((len(self.graphs), r, r), self.rows.dtype)
            kernels.outer_sums(self.rows, ptr, C)
            return C
        padded = torch.from_numpy(self.rows)
        return torch.bmm(padded.transpose(1, 2), padded).numpy()

    def products(self, S: Array, ptr: Array, out: Array) -> None:
        """out_i = S_g c_i for the nodes of these graphs."""
        if self.rows.ndim == 2:
            kernels.products(S, self.rows, ptr, out)
            return
        found = torch.bmm(torch.from_numpy(self.rows), torch.from_numpy(S))
        kernels.cut(found.numpy(), ptr, self.graphs, out)


def _alike(sizes: Array, columns: int) -> Iterator[Array]:
    """The graphs, all at once where columns are few, else in buckets of similar size."""
    if columns <= NARROW:
        yield np.arange(len(sizes))
        return
    order = np.argsort(sizes, kind="stable")
    first = 0
    while first < len(order):
        last = int(np.searchsorted(sizes[order], max(SLACK * sizes[order[first]], 1), side="right"))
        yield order[first:last]
        first = last
