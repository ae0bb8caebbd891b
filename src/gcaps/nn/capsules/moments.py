"""Raw moments: the paper's own capsule function."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcaps.nn.capsules.function import CapsuleFunction
from gcaps.nn.filters import Filter
from gcaps.nn.tracing import tracing


def bounded(x: Tensor, bound: float | None) -> Tensor:
    """x / √(1 + (x/bound)²): x where |x| is well below ``bound``, and never beyond ±bound.

    Raw powers explode: with |x| ~ 10 the fourth is 10⁴. Bounding what is raised keeps every power in range, whatever
    arrives. None leaves x as it is, which is Eq. 5 to the letter.
    """
    return x if bound is None else x * torch.rsqrt(1 + (x / bound).square())


def moments(x: Tensor, capsule_size: int, bound: float | None = None) -> list[Tensor]:
    """[F, F⊙F, …]: raw powers 1..P (Eq. 5), whose filtered sums are the neighborhood's moments (Eq. 4).

    The first power is x itself; the higher ones are powers of :func:`bounded` x.
    """
    if capsule_size == 1:
        return [x]
    if tracing():
        return [x, *_powers(bounded(x, bound), capsule_size)[1:]]
    powers: tuple[Tensor, ...] = _HigherPowers.apply(x, capsule_size, bound)  # type: ignore[no-untyped-call]
    return [x, *powers]


def _powers(base: Tensor, highest: int) -> list[Tensor]:
    """Powers 1..highest."""
    powers = [base]
    for _ in range(highest - 1):
        powers.append(powers[-1] * base)
    return powers


class _HigherPowers(torch.autograd.Function):
    """bounded(x)^p for p = 2..P. By hand, because it runs in every layer and autograd's way costs twice the passes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, capsule_size: int, bound: float | None) -> tuple[Tensor, ...]:
        # bounded(x) = x·r and its derivative is r³, r = (1 + (x/bound)²)^−½
        r = None if bound is None else torch.rsqrt_(1 + x.div(bound).square_())
        base = x if r is None else x * r
        powers = _powers(base, capsule_size)
        ctx.r, ctx.count = r, capsule_size - 1
        ctx.save_for_backward(*powers[:-1])
        return tuple(powers[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        total = torch.mul(grads[0], ctx.saved_tensors[0]).mul_(2)
        for p in range(3, ctx.count + 2):
            total.addcmul_(grads[p - 2], ctx.saved_tensors[p - 2], value=p)
        if ctx.r is not None:
            total.mul_(ctx.r).mul_(ctx.r).mul_(ctx.r)
        return total, None, None


class Moments(CapsuleFunction):
    """Y_p = F^⊙p, p = 1..P (Eq. 5): with the mean filter, the raw moments of the neighborhood (Eq. 4)."""

    pointwise: ClassVar[bool] = True

    def forward(self, x: Tensor, M: Filter) -> list[Tensor]:
        """See :func:`moments`."""
        return moments(x, self.capsule_size, self.bound)
