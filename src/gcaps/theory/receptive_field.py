"""Theorem 1: the output at a node depends only on inputs at most K·ℓ hops away.

    Let f^(ℓ)(X, L) be the output of the ℓ-th layer, with polynomial filters of degree K. Then row i of f^(ℓ) depends
    only on the input values of nodes at most K·ℓ hops away.

It holds for every capsule function of gcaps (a statistic of the closed neighborhood covers the first hop, the filter
the remaining K − 1) and for every filter that is a polynomial of M. Notes:

- The bound is tight: the output depends on inputs exactly K·ℓ hops away, for all but special weights. - Cayley filters
are rational, not polynomial: (hM + i)⁻¹ is a full matrix, so one layer sees the whole component. Entries
  decay exponentially with distance.
- The theorem is about layers without batch normalisation. In training mode, normalisation makes every node depend on
  every other; in evaluation mode it is a fixed map and the theorem holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor


def input_influence(function: Callable[[Tensor], Tensor], x: Tensor, node: int) -> Tensor:
    """[n] largest absolute derivative of the output at ``node`` with respect to the input of each node.

    Args:
        function: from node features [n, c] to outputs [n, …] on a fixed graph.
        x: [n, c] point at which derivatives are taken. They miss dependence where σ is flat: prefer a smooth σ to ReLU.
        node: the node whose output is examined.
    """
    x = x.detach().clone().requires_grad_()
    # one component at a time: derivatives of a sum of components could cancel
    components = function(x)[node].flatten()
    largest = x.new_zeros(len(x))
    for component in components:
        if component.requires_grad:
            (grad,) = torch.autograd.grad(component, x, retain_graph=True, allow_unused=True)
            if grad is not None:
                largest = torch.maximum(largest, grad.abs().flatten(1).amax(dim=1))
    return largest


def receptive_field(function: Callable[[Tensor], Tensor], x: Tensor, node: int) -> Tensor:
    """[n] whether the output at ``node`` depends on each node's input, by gradients; see :func:`input_influence`.

    No tolerance is needed: sparse products do not involve nodes out of reach, so their derivatives are exactly 0.
    """
    return input_influence(function, x, node) > 0


def hops(edge_index: Tensor, num_nodes: int, node: int) -> Tensor:
    """[n] length of the shortest path from each node to ``node``, ∞ if there is none.

    Paths follow edges from source to target, as messages do in PyG.
    """
    source, target = edge_index.cpu().numpy()
    towards = csr_array((np.ones(len(source)), (target, source)), shape=(num_nodes, num_nodes))
    return torch.from_numpy(dijkstra(towards, indices=node, unweighted=True))
