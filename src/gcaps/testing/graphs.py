"""Graphs that break careless code, and the same graphs under other node orders."""

from __future__ import annotations

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet


def hostile_graphs(count: int = 64, seed: int = 0, *, weighted: bool = False, largest: int = 24) -> GraphSet:
    """``count`` graphs with two classes, node labels and attributes, in turn of these kinds.

    One node; nodes without edges; a path; a clique; a star around a huge hub; two components; a sparse random graph
    with isolated nodes; a random graph whose edges come twice, in one direction only and with self-loops.

    Args:
        count: how many.
        seed: decides everything.
        weighted: positive weights over six orders of magnitude.
        largest: nodes of the largest graph; the star has four times as many.
    """
    rng = np.random.default_rng(seed)
    sizes, sources, targets = [], [], []
    for number in range(count):
        n, edges = _hostile(number % 8, rng, largest)
        sizes.append(n)
        sources.append(edges[:, 0])
        targets.append(edges[:, 1])
    ptr = pointer(np.array(sizes))
    shift = np.repeat(ptr[:-1], [len(s) for s in sources])
    source, target = np.concatenate(sources) + shift, np.concatenate(targets) + shift
    weight = None
    if weighted:
        low, high = np.minimum(source, target), np.maximum(source, target)
        _, edge = np.unique(low * ptr[-1] + high, return_inverse=True)
        weight = 10.0 ** rng.uniform(-3, 3, edge.max(initial=0) + 1)[edge]
    return assemble(
        "hostile",
        ptr,
        EdgeRows(source, target, weight=weight),
        y=np.arange(count) // 8 % 2 if count > 8 else np.arange(count) % 2,
        node_labels=rng.integers(0, 4, (ptr[-1], 1)),
        x=rng.standard_normal((ptr[-1], 3)),
    )


def _hostile(kind: int, rng: np.random.Generator, largest: int) -> tuple[int, Ints]:
    """(nodes, edges [e, 2]) of one graph."""
    n = int(rng.integers(2, largest + 1))
    i = np.arange(n)
    path = np.stack([i[:-1], i[1:]], axis=1)
    upper = np.argwhere(np.triu(np.ones((n, n), dtype=bool), 1))
    if kind == 0:
        return 1, np.zeros((0, 2), dtype=np.int64)
    if kind == 1:
        return n, np.zeros((0, 2), dtype=np.int64)
    if kind == 2:
        return n, path
    if kind == 3:
        return n, upper
    if kind == 4:
        leaves = np.arange(1, 4 * largest)
        return 4 * largest, np.stack([np.zeros_like(leaves), leaves], axis=1)
    if kind == 5:
        return 2 * n, np.concatenate([path, upper + n])
    chosen = upper[rng.random(len(upper)) < 1.5 / n]
    if kind == 6:
        return n, chosen
    loops = np.stack([i, i], axis=1)[rng.random(n) < 0.3]
    return n, np.concatenate([chosen, chosen, chosen[::2, ::-1], loops])


def permute_nodes(graphs: GraphSet, seed: int = 0) -> tuple[GraphSet, Ints]:
    """The same graphs with the nodes of each in random order, and ``order``: new node v was ``order[v]``."""
    rng = np.random.default_rng(seed)
    graph_of = np.repeat(np.arange(len(graphs)), graphs.sizes)
    order = np.lexsort([rng.random(graphs.num_nodes), graph_of])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first = np.repeat(graphs.ptr[:-1], graphs.arc_counts)
    source = np.repeat(np.arange(graphs.num_nodes), graphs.degrees)

    def reordered(array: Array | None) -> Array | None:
        return None if array is None else array[order]

    rows = EdgeRows(rank[source], rank[graphs.col + first], graphs.edge_labels, graphs.edge_attr, graphs.edge_weight)
    moved = assemble(
        graphs.name,
        graphs.ptr,
        rows,
        y=graphs.y,
        node_labels=reordered(graphs.node_labels),
        x=reordered(graphs.x),
    )
    return moved, order
