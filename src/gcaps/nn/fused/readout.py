"""Mean and covariance of a graph's nodes as one operation on CPU: the vector [μ, triu C, log(1 + N)] (Eq. 7)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcaps.nn.fused import readout_kernels as kernels
from gcaps.nn.fused.blocks import SHARES, cut, one_blas_thread
from gcaps.nn.tracing import tracing


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


def mean_covariance(
    x: Tensor, projection: Tensor | None, ptr: Tensor, options: Options, multiplicity: Tensor | None = None
) -> Tensor:
    """[B, D + r(r+1)/2 (+ 1)] the vectors of the graphs, from x [n, D] and a projection [r, D].

    Row i counts times[i] times, without ``times`` once.
    """
    found: Tensor = _MeanCovariance.apply(x, projection, ptr, options, multiplicity)  # type: ignore[no-untyped-call]
    return found


class _MeanCovariance(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, projection: Tensor | None, ptr: Tensor, options: Options, multiplicity: Tensor | None
    ) -> Tensor:
        x = x.detach().contiguous()
        weight = x.new_empty(0, x.size(1)) if projection is None else projection.detach().contiguous()
        where, D, r = ptr.numpy(), x.size(1), len(weight) or x.size(1)
        out = x.new_empty(len(where) - 1, D + r * (r + 1) // 2 + options.size)
        centred = np.empty((len(x), r), x.numpy().dtype)
        often = x.new_empty(0) if multiplicity is None else multiplicity.to(x.dtype)
        ctx.given = cut(where), where, often.numpy(), x.numpy(), weight.numpy(), options.total, options.root, centred
        with one_blas_thread():
            kernels.forward(*ctx.given, out.numpy())
        if options.size:
            nodes = ptr if multiplicity is None else torch.nn.functional.pad(often.double().cumsum(0), (1, 0))[ptr]
            out[:, -1] = nodes.diff().to(x.dtype).log1p_()
        ctx.save_for_backward(x, projection, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, projection, out = ctx.saved_tensors
        graphs, weight = ctx.given[0], ctx.given[4]
        grad_x = torch.empty_like(x)
        by_share = np.empty((min(len(graphs) - 1, SHARES), *weight.shape), weight.dtype)
        with one_blas_thread():
            given = (*ctx.given, out.detach().numpy(), grad.contiguous().numpy(), grad_x.numpy(), by_share)
            kernels.backward(*given)
        return grad_x, None if projection is None else torch.from_numpy(by_share).sum(0), None, None, None
