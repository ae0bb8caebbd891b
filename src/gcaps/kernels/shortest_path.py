"""The shortest-path kernel (Borgwardt and Kriegel, 2005)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from gcaps.data.arrays import Array, Floats, Ints, pointer
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.kernels.base import Bag, FeatureKernel
from gcaps.kernels.hashing import Names, join, mix, rows
from gcaps.kernels.progress import steps

_WORK = 20_000_000
"""Breadth-first steps (nodes × arcs) of one portion of graphs."""

Paths = tuple[Array, Array, Array, Array, Array]
"""ptr [G+1]; low, high, length, count [T]: see :func:`gcaps.kernels.distances.hop_counts`."""


class ShortestPath(FeatureKernel):
    """k(G, H) = number of pairs of a path of G and one of H with the same end labels and the same length.

    Paths are ordered pairs of different, connected nodes: φ counts triples (label, label, length). Without node labels
    the length alone counts. On weighted graphs a path's length is the sum of its weights in units of ``bin_width``,
    rounded to the nearest integer.

    Args:
        labels: compare the labels of the ends.
        bin_width: unit of length on weighted graphs; None: the median weight of the training graphs.
        normalize: divide by √(k(G, G) k(H, H)).
        threads: threads of the breadth-first search.
        verbose: show a progress bar.
    """

    def __init__(
        self,
        *,
        labels: bool = True,
        bin_width: float | None = None,
        normalize: bool = False,
        threads: int = 2,
        verbose: bool = False,
    ) -> None:
        self.labels, self.bin_width, self.normalize = labels, bin_width, normalize
        self.threads, self.verbose = threads, verbose

    def pairwise(self, graphs: GraphSet) -> bool:
        """Only a fitted unit of length depends on the training graphs."""
        return graphs.edge_weight is None or self.bin_width is not None

    def _fit(self, graphs: GraphSet) -> None:
        if self.bin_width is not None and not self.bin_width > 0:
            raise ConfigError(f"bin_width must be positive, not {self.bin_width}")
        weight = np.ones(1) if graphs.edge_weight is None or not graphs.num_edges else graphs.edge_weight
        self.bin_width_ = self.bin_width or float(np.median(weight))
        super()._fit(graphs)

    def bag(self, graphs: GraphSet) -> Bag:
        """Triples (label, label, length). An unordered pair with count c stands for (a, b) and (b, a): √2 c, and 2c
        for a = b, give the inner product over ordered pairs."""
        name = rows(graphs.node_labels) if self.labels and graphs.node_labels is not None else mix(graphs.degrees * 0)
        local, by_label, names, names_ptr = label_ranks(graphs, name)
        parts = self._hops(graphs, local, by_label) if graphs.edge_weight is None else self._weighted(graphs, local)
        ptr = pointer(np.concatenate([np.diff(part[0]) for part in parts]))
        low, high, length, count = (np.concatenate([part[k] for part in parts]).astype(np.int64) for k in range(1, 5))
        first = np.repeat(names_ptr[:-1], np.diff(ptr))
        ends = mix(names[first + low]) + mix(names[first + high])  # a sum, so that the order of the ends is no matter
        weight = np.where(low == high, 2.0, np.sqrt(2.0))
        return Bag(ptr, join(ends, length), weight * count)

    def _hops(self, graphs: GraphSet, local: Ints, by_label: Ints) -> list[Paths]:
        from gcaps.kernels.distances import hop_counts

        def search(part: tuple[int, int]) -> Paths:
            found: Paths = hop_counts(*part, graphs.ptr, graphs.rowptr, graphs.col, local, by_label)
            return found

        portions = balanced(graphs.sizes * (graphs.arc_counts + graphs.sizes), _WORK)
        with ThreadPoolExecutor(self.threads) as pool:
            return list(steps(pool.map(search, portions), len(portions), "shortest paths", self.verbose))

    def _weighted(self, graphs: GraphSet, local: Ints) -> list[Paths]:
        found = []
        for number in steps(range(len(graphs)), len(graphs), "shortest paths", self.verbose):
            nodes = slice(graphs.ptr[number], graphs.ptr[number + 1])
            found.append(_binned(graphs.subset([number]), local[nodes], self.bin_width_))
        return found


def label_ranks(graphs: GraphSet, name: Names) -> tuple[Ints, Ints, Names, Ints]:
    """Number each graph's labels 0, 1, … on their own.

    Returns:
        [N] the number of each node's label; [N] each graph's nodes in ascending order of it, counted within the graph;
        the labels of graph 0, of graph 1, …; and [G+1] where each graph's labels begin.
    """
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    order = np.lexsort([name, graph])
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(graph) > 0) | (name[order][1:] != name[order][:-1])
    rank = np.cumsum(new) - 1
    first = np.append(rank, new.sum())[graphs.ptr]
    local = np.empty_like(rank)
    local[order] = rank - first[graph]
    return local, order - graphs.ptr[graph], name[order][new], first


def balanced(work: Array, limit: int) -> list[tuple[int, int]]:
    """Cut a row of graphs into portions (first, behind the last) of about ``limit`` work each."""
    portion = np.cumsum(work) // limit
    cuts = np.flatnonzero(np.diff(portion)) + 1
    edges = [0, *cuts.tolist(), len(work)]
    return [(a, b) for a, b in pairwise(edges) if b > a]


def _binned(graph: GraphSet, label: Ints, width: float) -> Paths:
    """One weighted graph's paths."""
    n = graph.num_nodes
    A = csr_array((graph.edge_weight, graph.col, graph.rowptr), shape=(n, n))
    distance: Floats = dijkstra(A, directed=False)
    i, j = np.triu_indices(n, 1)
    reached = np.isfinite(distance[i, j])
    i, j = i[reached], j[reached]
    ends = np.sort(np.stack([label[i], label[j]]), axis=0)
    triple = np.stack([*ends, np.rint(distance[i, j] / width).astype(np.int64)])
    kinds, count = np.unique(triple, axis=1, return_counts=True)
    return np.array([0, len(count)]), kinds[0], kinds[1], kinds[2], count
