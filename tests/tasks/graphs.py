"""Small graphs for the tests of gcaps.tasks."""

import numpy as np
from scipy import sparse

from gcaps.tasks import NodeGraph


def community_graph(nodes=60, classes=3, features=12, seed=0, sparse_x=False):
    """A planted partition with features that hint at the class, and a split of its nodes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, nodes)
    i, j = np.triu_indices(nodes, 1)
    linked = rng.random(len(i)) < np.where(y[i] == y[j], 0.25, 0.02)
    x = (rng.random((nodes, features)) < 0.15).astype(np.float32)
    x[np.arange(nodes), y] = 1
    order = rng.permutation(nodes)
    parts = {"train": order[:20], "validation": order[20:40], "test": order[40:]}
    return NodeGraph.from_arrays(
        sparse.csr_array(x) if sparse_x else x, np.stack([i, j], axis=1)[linked], np.array(list("abcdef"))[y], **parts
    )


HOSTILE = {
    "no edges": (5, []),
    "one node": (1, []),
    "disconnected": (6, [(0, 1), (3, 4), (4, 5)]),
    "self-loops": (4, [(0, 0), (0, 1), (2, 2)]),
    "duplicates": (4, [(0, 1), (1, 0), (0, 1), (2, 3)]),
    "hub": (9, [(0, i) for i in range(1, 9)]),
}
"""Number of nodes and edges of graphs that are often handled wrongly."""


def hostile_graph(name, features=5, seed=0, weighted=False):
    nodes, edges = HOSTILE[name]
    rng = np.random.default_rng(seed)
    weight = rng.random(len(edges)) + 0.5 if weighted else None
    return NodeGraph.from_arrays(rng.standard_normal((nodes, features)), edges, edge_weight=weight)
