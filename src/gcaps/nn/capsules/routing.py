"""Routing: a learned combination of a capsule's components at each node, the paper's "second way" of managing size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcaps.nn.capsules.moments import Moments


class Routing(Moments):
    """Moments whose P components are combined to one by routing with agreement (Sabour et al., 2017), node by node.

    With u_p [h] the components of a node's capsule and learned logits b_p as a prior,

        α = softmax(b),   v = Σ_p α_p u_p,   b_p ← b_p + tanh(⟨u_p, v⟩ / √h)      (``iterations`` times)

    and v takes the place of the flattened capsule: a layer hands on h columns, not h · P.
    """

    def __init__(self, in_channels: int, capsule_size: int, bound: float | None = None, iterations: int = 3) -> None:
        super().__init__(in_channels, capsule_size, bound)
        self.iterations = iterations
        self.prior = nn.Parameter(torch.zeros(capsule_size))

    def reset_parameters(self) -> None:
        """An even prior."""
        nn.init.zeros_(self.prior)

    def combine(self, capsules: Tensor) -> Tensor:
        """[n, h, 1] from capsules [n, h, P]."""
        logits = self.prior.expand(capsules.size(0), 1, -1)
        share = torch.softmax(logits, dim=2)
        v = (share * capsules).sum(dim=2, keepdim=True)
        for _ in range(self.iterations - 1):
            # tanh keeps agreement between large capsules from deciding everything in one step
            agreement = torch.tanh((capsules * v).sum(dim=1, keepdim=True) / capsules.size(1) ** 0.5)
            logits = logits + agreement
            v = (torch.softmax(logits, dim=2) * capsules).sum(dim=2, keepdim=True)
        return v
