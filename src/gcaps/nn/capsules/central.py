"""Standardised central moments of the closed neighborhood: mean, variance, skewness, kurtosis, … (Figure 1)."""

from __future__ import annotations

import torch
from torch import Tensor

from gcaps.nn.capsules.function import CapsuleFunction
from gcaps.nn.filters import Filter
from gcaps.nn.neighborhood import closed_mean, from_neighbors, row_sum, to_edges

FLAT = 1e-6
"""A neighborhood whose variance is below this share of its mean square counts as constant: in float32 the difference is
rounding noise."""
TINY = 1e-20


def central_moments(x: Tensor, capsule_size: int, M: Filter) -> list[Tensor]:
    """[μ, σ², γ_3, γ_4, …] of each closed neighborhood, weights a_ik, a_ii = 1.

    μ = Σ a x / Σ a,  σ² = Σ a (x − μ)² / Σ a,  γ_p = Σ a ((x − μ)/σ)^p / Σ a.

    Figure 1 calls the second one "std." but prints a variance; the printed formula is followed. Where the variance
    vanishes every γ_p is 0, with a finite gradient: σ² is guarded by a millionth of the neighborhood's mean square.
    """
    mean = closed_mean(x, M)
    if capsule_size == 1:
        return [mean]
    # two passes: differences first, since E[x²] − μ² loses all digits of a small variance beside a large mean
    own, others = x - mean, from_neighbors(x, M) - to_edges(mean, M)
    weight = None if M.A.value is None else M.A.value.unsqueeze(1)
    total = (1 + M.A.row_sums(x)).unsqueeze(1)

    def closed(at_node: Tensor, at_edges: Tensor) -> Tensor:
        """The weighted mean of a value at the node and values at its edges."""
        return (at_node + row_sum(at_edges if weight is None else weight * at_edges, M)) / total

    variance = closed(own.square(), others.square())
    out = [mean, variance]
    if capsule_size > 2:
        scale = torch.rsqrt(variance + FLAT * closed_mean(x.square(), M) + TINY)
        own, others = own * scale, others * to_edges(scale, M)
        at_node, at_edges = own.square(), others.square()
        for _ in range(3, capsule_size + 1):
            at_node, at_edges = at_node * own, at_edges * others
            out.append(closed(at_node, at_edges))
    return out


class Central(CapsuleFunction):
    """See :func:`central_moments`."""

    def forward(self, x: Tensor, M: Filter) -> list[Tensor]:
        """P statistics [n, c]."""
        return central_moments(x, self.capsule_size, M)
