"""Deviations from symmetry: layers are equivariant to the order of the nodes, networks and readouts invariant.

    f(P X, P L Pᵀ) = P f(X, L)  for a layer,      f(P X, P L Pᵀ) = f(X, L)  for a whole network,

for every permutation matrix P (section 1 of the paper). Both functions return the largest deviation, which is rounding
error for the layers and networks of gcaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from gcaps.data.graphset import GraphSet
from gcaps.testing.graphs import OfGraphs, assert_permutation_invariant

Layer = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""(x [n, c], edge_index [2, e], edge_weight [e] or None) to outputs [n, …]."""


@torch.no_grad()
def equivariance_error(
    layer: Layer, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, seed: int = 0
) -> float:
    """Largest |f(P X, P L Pᵀ) − P f(X, L)| for one random P.

    Args:
        layer: a :class:`gcaps.nn.GraphCapsuleConv`, or another function with its signature. Batch normalisation should
            be in evaluation mode, so that both calls use the same statistics.
        x: [n, c] node features.
        edge_index: [2, e].
        edge_weight: [e].
        seed: of P.
    """
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed)).to(x.device)
    rank = torch.argsort(order)
    expected = layer(x, edge_index, edge_weight)[order]
    found = layer(x[order], rank[edge_index], edge_weight)
    return float((found - expected).abs().max())


def invariance_error(function: OfGraphs, graphs: GraphSet, permutations: int = 2) -> float:
    """Largest |f(P X, P L Pᵀ) − f(X, L)| over all ``graphs`` and random P.

    As :func:`gcaps.testing.assert_permutation_invariant` without a tolerance; it only raises if values are not finite.

    Args:
        function: from G graphs to an array [G, …], for example the logits of a network.
        graphs: test graphs, for example :func:`gcaps.testing.hostile_graphs`.
        permutations: number of random P for each graph.
    """
    return assert_permutation_invariant(function, graphs, atol=math.inf, permutations=permutations)
