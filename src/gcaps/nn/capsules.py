"""Capsule functions: which instantiation parameters a capsule keeps of its neighborhood.

A capsule function turns node features F [n, c] into P matrices of the same shape; the layer filters and mixes each of
them with weights of its own (Eq. 5). It is applied node by node, so equivariance under node order is the filter's.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


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
    powers = [x]
    if capsule_size > 1:
        base = bounded(x, bound)
        power = base
        for _ in range(capsule_size - 1):
            power = power * base
            powers.append(power)
    return powers


CAPSULES: dict[str, Callable[[Tensor, int, float | None], list[Tensor]]] = {"moments": moments}
"""Capsule functions by name."""
