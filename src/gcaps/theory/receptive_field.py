"""Theorem 1: the output at a node depends on inputs at most K·ℓ hops away, and no further.

    Let f^(ℓ)(X, L) be the output of the ℓ-th layer, with polynomial filters of degree K. Then row i of f^(ℓ) depends
    only on the input values of nodes at most K·ℓ hops away.

Every capsule function here keeps to it (those that are a statistic of the closed neighborhood spend their first hop on
it, and the filter the remaining K − 1), and so does every filter that is a polynomial of M. Three things to know:

- The bound is reached: inputs exactly K·ℓ hops away do count, for all but special weights.
- Cayley filters are rational, not polynomial: (hM + i)⁻¹ is a full matrix, one layer sees its whole component. Entries
  decay exponentially with distance.
- The theorem speaks about input *values*, and about layers alone. Batch normalisation in training mode lets every node
  see every other; in evaluation mode it is a fixed map and the theorem holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor


def input_influence(function: Callable[[Tensor], Tensor], x: Tensor, node: int) -> Tensor:
    """[n] how much the output at ``node`` depends on each node's input: the largest absolute derivative.

    Args:
        function: from node features [n, c] to outputs [n, …], the graph held fixed.
        x: [n, c] where derivatives are taken. A place where σ is flat hides dependence: prefer a smooth σ to ReLU.
        node: whose output.
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

    No tolerance is needed: sparse products never touch what is out of reach, so its derivative is exactly 0.
    """
    return input_influence(function, x, node) > 0


def hops(edge_index: Tensor, num_nodes: int, node: int) -> Tensor:
    """[n] the number of arcs on a shortest way from each node to ``node``, ∞ where there is none.

    Arcs lead from source to target, as information does (PyG's convention).
    """
    source, target = edge_index.cpu().numpy()
    towards = csr_array((np.ones(len(source)), (target, source)), shape=(num_nodes, num_nodes))
    return torch.from_numpy(dijkstra(towards, indices=node, unweighted=True))
