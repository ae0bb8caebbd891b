"""Test graphs, and assertions that a function of graphs depends on nothing but each graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import neighbors_of_set

OfGraphs = Callable[[GraphSet], Array]
"""A function from G graphs to an array [G, …]."""


def assert_permutation_invariant(
    function: OfGraphs, graphs: GraphSet, *, atol: float, rtol: float = 0.0, permutations: int = 2
) -> float:
    """Assert that ``function`` gives every graph the same value for any node order; return the largest deviation."""
    expected = function(graphs)
    worst = 0.0
    for seed in range(permutations):
        moved, _ = permute_nodes(graphs, seed)
        worst = max(worst, _require_close(function(moved), expected, atol, rtol, "another node order changes"))
    return worst


def assert_batch_equals_singles(function: OfGraphs, graphs: GraphSet, *, atol: float, rtol: float = 0.0) -> float:
    """Assert that ``function`` gives every graph the same value alone as among others; return the largest deviation."""
    together = function(graphs)
    alone = np.concatenate([function(graphs.subset([number])) for number in range(len(graphs))])
    return _require_close(alone, together, atol, rtol, "being alone changes")


def _require_close(found: Array, expected: Array, atol: float, rtol: float, what: str) -> float:
    if found.shape != expected.shape:
        raise AssertionError(f"{what} the shape: {found.shape} instead of {expected.shape}")
    if not np.isfinite(expected).all() or not np.isfinite(found).all():
        raise AssertionError("not every value is finite")
    deviation = np.abs(found - expected)
    excess = (deviation - atol - rtol * np.abs(expected)).reshape(len(expected), -1).max(axis=1, initial=-np.inf)
    if (excess > 0).any():
        worst = int(excess.argmax())
        raise AssertionError(
            f"{what} {int((excess > 0).sum())} of {len(expected)} graphs, most of all graph {worst}, by "
            f"{deviation[worst].max():.3g}"
        )
    return float(deviation.max(initial=0.0))


def hostile_graphs(count: int = 64, seed: int = 0, *, weighted: bool = False, largest: int = 24) -> GraphSet:
    """Generate graphs that break careless code, with two classes, node labels and attributes.

    In turn: one node; nodes without edges; a path; a clique; a star around a large hub; two components; a sparse random
    graph with isolated nodes; a random graph whose edges are repeated, in one direction only and with self-loops.

    Args:
        count: number of graphs.
        seed: of the random numbers.
        weighted: positive edge weights over six orders of magnitude.
        largest: nodes of the largest graph; stars have four times as many.
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


def example_graphs(count: int = 24, classes: int = 2, seed: int = 0) -> tuple[GraphSet, Array]:
    """Generate small graphs that every method can tell apart, and how far each is from a path to a clique.

    Graph g has 6 to 8 nodes: a path, and of the other pairs of nodes a share s(g), so that classes differ in structure;
    a share s(g) of the nodes is labelled 1, the others 0; the first of two attributes is s(g) with noise.

    Args:
        count: number of graphs; graph g has the class g mod ``classes``.
        classes: number of classes.
        seed: of the random numbers.

    Returns:
        The graphs with their classes as ``y``, and s [count], between 0 and 1, a real target.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(count) % classes
    share = (y + rng.uniform(0.2, 0.8, count)) / classes
    sizes = rng.integers(6, 9, count)
    ptr = pointer(sizes)
    ends = []
    for first, n, s in zip(ptr, sizes, share, strict=False):
        pairs = np.argwhere(np.triu(np.ones((n, n), dtype=bool), 2))
        i = np.arange(n)
        path = np.stack([i[:-1], i[1:]], axis=1)
        ends.append(first + np.concatenate([path, pairs[rng.random(len(pairs)) < s]]))
    source, target = np.concatenate(ends).T
    place = (np.arange(ptr[-1]) - np.repeat(ptr[:-1], sizes)) / np.repeat(sizes, sizes)
    of_node = np.repeat(share, sizes)
    graphs = assemble(
        "examples",
        ptr,
        EdgeRows(source, target),
        y=y,
        node_labels=(place < of_node).astype(np.int64)[:, None],
        x=np.stack([of_node + 0.1 * rng.standard_normal(ptr[-1]), rng.standard_normal(ptr[-1])], axis=1),
    )
    return graphs, share


def example_molecules(count: int = 24, classes: int = 2, seed: int = 0) -> tuple[GraphSet, Array]:
    """Generate small molecules that every method can tell apart, as :func:`example_graphs`; needs RDKit.

    Molecule g is a chain of 6 to 8 atoms, of which a share s(g) is nitrogen and the others are carbon.

    Args:
        count: number of molecules; molecule g has the class g mod ``classes``.
        classes: number of classes.
        seed: of the random numbers.

    Returns:
        The molecules with their classes as ``y``, and s [count], between 0 and 1, a real target.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(count) % classes
    share = (y + rng.uniform(0.2, 0.8, count)) / classes
    smiles = []
    for s in share:
        size = int(rng.integers(6, 9))
        smiles.append("".join(rng.permutation(np.where(np.arange(size) < round(s * size), "N", "C"))))
    return replace(load(smiles, labelled=False), y=y), share


def permute_nodes(graphs: GraphSet, seed: int = 0) -> tuple[GraphSet, Ints]:
    """Return the graphs with the nodes of each in random order, and ``order``: node v was node ``order[v]``."""
    rng = np.random.default_rng(seed)
    graph_of = np.repeat(np.arange(len(graphs)), graphs.sizes)
    order = np.lexsort([rng.random(graphs.num_nodes), graph_of])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    source = np.repeat(np.arange(graphs.num_nodes), graphs.degrees)

    def reordered(array: Array | None) -> Array | None:
        return None if array is None else array[order]

    ends = rank[source], rank[neighbors_of_set(graphs)]
    moved = assemble(
        graphs.name,
        graphs.ptr,
        EdgeRows(*ends, graphs.edge_labels, graphs.edge_attr, graphs.edge_weight),
        y=graphs.y,
        node_labels=reordered(graphs.node_labels),
        x=reordered(graphs.x),
    )
    return replace(moved, columns=graphs.columns, preparation=graphs.preparation), order
