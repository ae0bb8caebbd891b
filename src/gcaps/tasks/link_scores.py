"""Scores of pairs of nodes by their common neighbors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from gcaps.data.arrays import Floats, Ints
from gcaps.tasks.graph import NodeGraph


def common_neighbors(graph: NodeGraph, pairs: Ints) -> Floats:
    """Number of nodes [m] that are neighbors of both nodes of each pair [m, 2]."""
    return _shared(graph, pairs, np.ones(len(graph)))


def adamic_adar(graph: NodeGraph, pairs: Ints) -> Floats:
    """Σ 1 / ln d_k over the common neighbors k, which have degrees d_k of at least two."""
    degree = np.bincount(graph.edge_index[0], minlength=len(graph))
    return _shared(graph, pairs, 1 / np.log(np.maximum(degree, 2)))


def resource_allocation(graph: NodeGraph, pairs: Ints) -> Floats:
    """Σ 1 / d_k over the common neighbors k."""
    degree = np.bincount(graph.edge_index[0], minlength=len(graph))
    return _shared(graph, pairs, 1 / np.maximum(degree, 1))


def _shared(graph: NodeGraph, pairs: Ints, weight: Floats) -> Floats:
    """[m] sum of the weights of the common neighbors."""
    n, (source, target) = len(graph), graph.edge_index
    A = sparse.csr_array((np.ones(len(source)), (source, target)), shape=(n, n))
    found: Floats = (A[pairs[:, 0]] * A[pairs[:, 1]]) @ weight
    return found


LINK_SCORES: dict[str, Callable[[NodeGraph, Ints], Floats]] = {
    "common-neighbors": common_neighbors,
    "adamic-adar": adamic_adar,
    "resource-allocation": resource_allocation,
}
"""Scores by name."""
