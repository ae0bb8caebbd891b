"""Substructures that the counting kernels find in one graph, and the nodes that each occurrence covers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra, shortest_path

from gcaps.data.arrays import Array, Floats, Ints, strides
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, join, mix, neighbors_of_set, rows
from gcaps.explain.edges import keeping_arcs
from gcaps.explain.feature_names import label_words
from gcaps.kernels.base import GraphKernel
from gcaps.kernels.graphlet import Graphlet, adjacency_of, graphlets, isomorphism_hashes
from gcaps.kernels.shortest_path import ShortestPath
from gcaps.kernels.weisfeiler_lehman import WeisfeilerLehman, WLOptimalAssignment, color_hashes, refine

COPIES = 1 << 23
"""Nodes and arcs of all copies of a graph whose graphlets are counted together."""


class Occurrences(NamedTuple):
    """All substructures of one graph that a kernel counts, one entry for each occurrence."""

    hashes: Hashes
    """[t]"""
    counts: Floats
    """[t] amount that each adds to its column of φ."""
    spread: Callable[[Floats], Floats]
    """Contributions of occurrences [t] → contributions of nodes [n], with the same sum."""
    kind: Ints
    """[t] number of the kind, such as that of the refinement."""
    kinds: Callable[[int], str]
    """Name of a kind, for sums over features."""
    words: Callable[[int], str]
    """Description of an occurrence."""
    nodes: Callable[[int], Ints]
    """Nodes that an occurrence covers, the one in the middle first."""


def occurrences(kernel: GraphKernel, graph: GraphSet) -> Occurrences:
    """Return the substructures of a set of one graph that a kernel counts."""
    return READERS[type(kernel)](kernel, graph)


def _weisfeiler_lehman(kernel: WeisfeilerLehman, graph: GraphSet) -> Occurrences:
    """A color after h refinements covers the nodes within h steps of its node, in equal shares."""
    n, heights = graph.num_nodes, kernel.n_iter + 1
    colors = refine(graph, kernel.n_iter, labels=kernel.labels, edge_labels=kernel.compares_edge_labels(graph))
    hashes = color_hashes(colors).T.ravel()  # height by height
    node, height = np.tile(np.arange(n), heights), np.repeat(np.arange(heights), n)

    def words(i: int) -> str:
        middle, steps = _node_words(graph, int(node[i]), kernel.labels), int(height[i])
        if not steps:
            return middle
        return f"{middle} with its neighborhood within {steps} step{'s' if steps > 1 else ''}"

    def kinds(h: int) -> str:
        if h == 0:
            return "labels of nodes" if kernel.labels and graph.node_labels is not None else "degrees"
        return f"neighborhoods within {h} step{'s' if h > 1 else ''}"

    return Occurrences(
        hashes,
        np.ones(len(hashes)),
        lambda each: spread_over_balls(graph, each.reshape(heights, n)),
        height,
        kinds,
        words,
        lambda i: ball(graph, int(node[i]), int(height[i])),
    )


def spread_over_balls(graph: GraphSet, each: Floats) -> Floats:
    """Divide the value of each node at each height h equally among the nodes within h steps of it.

    Args:
        graph: a set of one graph of n nodes.
        each: [heights, n]

    Returns:
        [n] with the same sum.
    """
    n, heights = graph.num_nodes, len(each)
    A = csr_array((np.ones(len(graph.col)), graph.col, graph.rowptr), shape=(n, n))
    total: Floats = np.zeros(n)
    for first, last in strides(np.full(n, n), COPIES):
        part = slice(first, last)
        steps = dijkstra(A, directed=False, indices=np.arange(first, last), unweighted=True, limit=heights)
        for h, own in enumerate(each[:, part]):
            near = steps <= h
            total += (own / near.sum(axis=1)) @ near
    return total


def _assigned(hashes: Hashes) -> Hashes:
    """Number the occurrences of each color 0, 1, … as the optimal assignment kernel does."""
    order = np.argsort(hashes, kind="stable")
    color = hashes[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = color[1:] != color[:-1]
    start = np.flatnonzero(new)
    made = np.empty_like(hashes)
    made[order] = join(color, np.arange(len(order)) - start[np.cumsum(new) - 1])
    return made


def _assignment(kernel: WLOptimalAssignment, graph: GraphSet) -> Occurrences:
    """As Weisfeiler-Lehman; the contributions of a color are divided equally among all nodes of that color."""
    found = _weisfeiler_lehman(kernel, graph)
    _, color, count = np.unique(found.hashes, return_inverse=True, return_counts=True)
    color = color.ravel()

    def spread(each: Floats) -> Floats:
        alike: Floats = (np.bincount(color, each, len(count)) / count)[color]
        return found.spread(alike)

    return found._replace(hashes=_assigned(found.hashes), spread=spread)


def _shortest_paths(kernel: ShortestPath, graph: GraphSet) -> Occurrences:
    """A pair of nodes at a distance covers its two ends."""
    n = graph.num_nodes
    weight = np.ones(len(graph.col)) if graph.edge_weight is None else graph.edge_weight.astype(np.float64)
    A = csr_array((weight, graph.col, graph.rowptr), shape=(n, n))
    if graph.edge_weight is None:
        distance = shortest_path(A, directed=False, unweighted=True)
    else:
        distance = dijkstra(A, directed=False) / kernel.bin_width_
    u, v = np.triu_indices(n, 1)
    reached = np.isfinite(distance[u, v])
    u, v = u[reached], v[reached]
    length = np.rint(distance[u, v]).astype(np.int64)
    labelled = kernel.labels and graph.node_labels is not None
    label = rows(graph.node_labels) if labelled and graph.node_labels is not None else mix(np.zeros(n, np.int64))
    hashes = join(mix(label[u]) + mix(label[v]), length)
    counts = np.where(label[u] == label[v], 2.0, np.sqrt(2.0))
    ends = np.stack([u, v], axis=1)
    unit = "distance" if graph.edge_weight is None else "binned distance"

    def words(i: int) -> str:
        if not labelled:
            return f"two nodes at {unit} {length[i]}"
        names = sorted(label_words(graph, int(node)) for node in ends[i])
        return f"{names[0]} and {names[1]} at {unit} {length[i]}"

    return Occurrences(
        hashes,
        counts,
        lambda each: (np.bincount(u, each, n) + np.bincount(v, each, n)) / 2,
        length,
        lambda d: f"pairs at {unit} {d}",
        words,
        lambda i: ends[i],
    )


def _graphlet(kernel: Graphlet, graph: GraphSet) -> Occurrences:
    """A graphlet covers all of its nodes."""
    return _exact_graphlets(kernel, graph) if kernel.size < 5 else _sampled_graphlets(kernel, graph)


def _exact_graphlets(kernel: Graphlet, graph: GraphSet) -> Occurrences:
    """One entry for each graphlet and node: the graphlets that a node is in are those that vanish without it."""
    n, k = graph.num_nodes, kernel.size
    whole = kernel.count_substructures(graph)
    kinds = len(whole.hashes)
    if n <= k:
        inside = np.tile(whole.counts, (n, 1))
    else:
        rest = [
            kernel.count_substructures(_without_each_node(graph, first, last)).counts.reshape(-1, kinds)
            for first, last in strides(np.full(n, n + len(graph.col)), COPIES)
        ]
        inside = whole.counts - np.concatenate(rest)
    node, kind = np.repeat(np.arange(n), kinds), np.tile(np.arange(kinds), n)
    codes = {
        int(h): code for h, code in zip(isomorphism_hashes(np.array(graphlets(k)[0]), k), graphlets(k)[0], strict=True)
    }
    names = [_graphlet_words(codes[int(h)], k) for h in whole.hashes]
    return Occurrences(
        np.tile(whole.hashes, n),
        inside.ravel() / k,
        lambda each: np.bincount(node, each, n).astype(np.float64),
        kind,
        lambda number: names[number],
        lambda i: names[int(kind[i])],
        lambda i: node[i : i + 1],
    )


def _without_each_node(graph: GraphSet, first: int, last: int) -> GraphSet:
    """Return copies of a graph of n nodes: one without node ``first``, … and one without node ``last`` − 1."""
    copies, n = graph.subset(np.zeros(last - first, dtype=np.int64)), graph.num_nodes
    gone = np.zeros(copies.num_nodes, dtype=bool)
    gone[copies.ptr[:-1] + np.arange(first, last)] = True
    cut = keeping_arcs(copies, ~(np.repeat(gone, copies.degrees) | gone[neighbors_of_set(copies)]))
    removed = np.repeat(np.arange(first, last), cut.arc_counts)
    return GraphSet(
        name=copies.name,
        ptr=(n - 1) * np.arange(last - first + 1, dtype=np.int64),
        rowptr=np.concatenate([cut.rowptr[:1], cut.rowptr[1:][~gone]]),
        col=(cut.col - (cut.col > removed)).astype(cut.col.dtype),
    )


def _sampled_graphlets(kernel: Graphlet, graph: GraphSet) -> Occurrences:
    codes, nodes = kernel.sampled_nodes(graph)
    found = kernel.count_substructures(graph)
    drawn = codes >= 0
    k, n = kernel.size, graph.num_nodes
    nodes, hashes, counts = nodes[drawn], found.hashes[drawn], found.counts[drawn]
    names = {int(h): _graphlet_words(int(code), k) for h, code in zip(hashes, codes[drawn], strict=True)}
    kinds, kind = np.unique(hashes, return_inverse=True)
    return Occurrences(
        hashes,
        counts,
        lambda each: np.bincount(nodes.ravel(), np.repeat(each / k, k), n).astype(np.float64),
        kind.ravel(),
        lambda number: names[int(kinds[number])],
        lambda i: names[int(hashes[i])],
        lambda i: nodes[i],
    )


def _graphlet_words(code: int, k: int) -> str:
    """Describe a graphlet by its edges and degrees."""
    A: Array = adjacency_of(np.array([code]), k)[0]
    edges, degrees = int(A.sum()) // 2, sorted(A.sum(axis=0).tolist(), reverse=True)
    if k == 3:
        return ("three nodes without an edge", "an edge and a node apart", "a path of three", "a triangle")[edges]
    return f"{k} nodes with {edges} edge{'s' if edges != 1 else ''}, degrees {' '.join(map(str, degrees))}"


def ball(graph: GraphSet, node: int, steps: int) -> Ints:
    """Return the nodes within some steps of a node of a set of one graph, that node first."""
    reached, border = {node: None}, [node]
    for _ in range(steps):
        ahead = [int(v) for u in border for v in graph.col[graph.rowptr[u] : graph.rowptr[u + 1]]]
        border = [v for v in dict.fromkeys(ahead) if v not in reached]
        reached.update(dict.fromkeys(border))
        if not border:
            break
    return np.array(list(reached), dtype=np.int64)


def _node_words(graph: GraphSet, node: int, labelled: bool) -> str:
    if labelled and graph.node_labels is not None:
        return label_words(graph, node)
    return f"a node of degree {graph.degrees[node]}"


READERS: dict[type, Callable[..., Occurrences]] = {
    WeisfeilerLehman: _weisfeiler_lehman,
    WLOptimalAssignment: _assignment,
    ShortestPath: _shortest_paths,
    Graphlet: _graphlet,
}
"""Kernels whose values are inner products of counts."""
