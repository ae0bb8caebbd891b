"""Symmetry in numbers: layers are equivariant under node order, networks and readouts invariant.

    f(P X, P L Pᵀ) = P f(X, L)  for a layer,      f(P X, P L Pᵀ) = f(X, L)  for a whole network,

with any permutation matrix P (section 1 of the paper). Both functions give the largest deviation, which is rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from gcaps.data.graphset import GraphSet
from gcaps.testing import OfGraphs, assert_permutation_invariant

Layer = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""(x [n, c], edge_index [2, e], edge_weight [e] or None) to outputs [n, …]."""


@torch.no_grad()
def equivariance_error(
    layer: Layer, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, seed: int = 0
) -> float:
    """The largest |f(P X, P L Pᵀ) − P f(X, L)| for one random P.

    Args:
        layer: a :class:`gcaps.nn.GraphCapsuleConv`, or whatever is called like one. Batch normalisation should be in
            evaluation mode, so that both calls use the same statistics.
        x: [n, c] node features.
        edge_index: [2, e].
        edge_weight: [e].
        seed: decides P.
    """
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed)).to(x.device)
    rank = torch.argsort(order)
    expected = layer(x, edge_index, edge_weight)[order]
    found = layer(x[order], rank[edge_index], edge_weight)
    return float((found - expected).abs().max())


def invariance_error(function: OfGraphs, graphs: GraphSet, permutations: int = 2) -> float:
    """The largest |f(P X, P L Pᵀ) − f(X, L)| over all ``graphs`` and so many random P each.

    :func:`gcaps.testing.assert_permutation_invariant` without a tolerance: it measures and never fails, except on
    values that are not finite.

    Args:
        function: from G graphs to an array [G, …], for example a network's logits.
        graphs: where to measure; :func:`gcaps.testing.hostile_graphs` are the hardest.
        permutations: node orders tried.
    """
    return assert_permutation_invariant(function, graphs, atol=math.inf, permutations=permutations)
