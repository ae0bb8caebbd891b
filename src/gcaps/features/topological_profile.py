"""Local topological profile: histograms of degrees and of structural scores of edges (Adamczyk and Czech, 2023)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numba import njit
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from gcaps.config import check_parameters
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError

DESCRIPTORS = ("degree", "min", "max", "mean", "deviation", "betweenness", "jaccard", "local_degree")
"""Descriptors of nodes (the first five, those of the local degree profile) and of edges."""
SEARCH_LIMIT = 2_000_000_000
"""Nodes × arcs of a graph above which betweenness is estimated from some nodes."""


class Profile(NamedTuple):
    """Descriptors of all nodes and edges of a set."""

    nodes: Floats
    """[N, 5]"""
    edges: Floats
    """[E/2, 3], one row for each edge."""
    node_graph: Ints
    """[N] graph of each node."""
    edge_graph: Ints
    """[E/2] graph of each edge."""


def topological_profile(graphs: GraphSet) -> Profile:
    """Compute the descriptors of all nodes and edges; edge weights and labels are ignored.

    - degree of a node, and minimum, maximum, mean and standard deviation (with n − 1) of its neighbors' degrees, 0
      where there are none;
    - edge betweenness: Σ over pairs of nodes of the share of their shortest paths that pass the edge (Brandes, 2008),
      in nodes × arcs steps. Above :data:`SEARCH_LIMIT`, the sum is estimated from the paths of as many nodes, drawn at
      random, as the limit allows, times the inverse of their share;
    - Jaccard index of an edge: common neighbors of its ends over neighbors of either;
    - local degree score of an edge: the larger, over its ends v, of 1 − log(rank)/log(deg v), where the rank is 1 plus
      the number of v's neighbors with a larger degree than the edge's other end; 1 where v has one neighbor.
    """
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    arc_graph = np.repeat(np.arange(len(graphs)), graphs.arc_counts)
    source = np.repeat(np.arange(graphs.num_nodes), graphs.degrees)
    once = source < graphs.col + graphs.ptr[:-1][arc_graph]
    scores = np.zeros((len(graphs.col), 3))
    nodes = np.zeros((graphs.num_nodes, 5))
    _fill_nodes(graphs.ptr, graphs.rowptr, graphs.col, nodes)
    for g in range(len(graphs)):
        n, arcs = int(graphs.sizes[g]), int(graphs.arc_counts[g])
        sources = np.arange(n)
        if n * arcs > SEARCH_LIMIT:
            sources = np.random.default_rng(n).permutation(n)[: max(1, SEARCH_LIMIT // arcs)]
        _fill_edges(int(graphs.ptr[g]), n, graphs.rowptr, graphs.col, sources, scores)
    return Profile(nodes, scores[once], graph, arc_graph[once])


class LocalTopologicalProfile(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Histograms of the descriptors of each graph, a vector for any classifier.

    Args:
        bins: number of bins of each of the eight histograms.
        ranges: bins between the extremes of the ``"training"`` graphs, where values beyond them count in the first and
            the last bin; or between those of each ``"graph"``, as in the authors' code.
        share: divide each histogram by its sum.

    Attributes:
        low_, high_: [8] ends of the bins where they are those of the training graphs.
    """

    def __init__(
        self, bins: int = 50, *, ranges: Literal["training", "graph"] = "training", share: bool = False
    ) -> None:
        self.bins, self.ranges, self.share = bins, ranges, share

    def fit(self, X: Any, y: object = None, *, indices: Array | None = None) -> Self:
        """Find the ranges of the training graphs.

        Args:
            X: graphs in any form that :func:`gcaps.load` takes; a PreparedSet keeps their descriptors.
            y: ignored.
            indices: positions of the training graphs in the set; by default all.
        """
        check_parameters(self)
        if self.bins < 1:
            raise ConfigError(f"bins must be at least 1, not {self.bins}")
        prepared = PreparedSet.of(_graphs(X))
        profile, chosen = _profile(prepared), np.zeros(len(prepared.graphs), dtype=bool)
        chosen[slice(None) if indices is None else prepared.graphs.positions(indices)] = True
        parts = profile.nodes[chosen[profile.node_graph]], profile.edges[chosen[profile.edge_graph]]
        self.low_ = np.concatenate([part.min(axis=0, initial=np.inf) for part in parts])
        self.high_ = np.concatenate([part.max(axis=0, initial=-np.inf) for part in parts])
        none = self.low_ > self.high_  # no nodes, or no edges
        self.low_[none], self.high_[none] = 0.0, 1.0
        return self

    @property
    def num_features(self) -> int:
        """Columns of :meth:`transform`."""
        return len(DESCRIPTORS) * self.bins

    @property
    def _n_features_out(self) -> int:
        check_is_fitted(self)
        return self.num_features

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "low_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        return tags

    def transform(self, X: Any) -> Floats:
        """[G, 8 · bins] float64 features of every graph."""
        check_is_fitted(self)
        prepared = PreparedSet.of(_graphs(X))
        profile, count = _profile(prepared), len(prepared.graphs)
        columns = [
            *((values, profile.node_graph) for values in profile.nodes.T),
            *((values, profile.edge_graph) for values in profile.edges.T),
        ]
        found = [
            self._histogram(values, graph, count, low, high)
            for (values, graph), low, high in zip(columns, self.low_, self.high_, strict=True)
        ]
        return np.concatenate(found, axis=1)

    def _histogram(self, values: Floats, graph: Ints, graphs: int, low: float, high: float) -> Floats:
        """[graphs, bins] histogram of the values [n] of each graph [n]."""
        first, last = np.full(graphs, low), np.full(graphs, high)
        if self.ranges == "graph":
            first, last = np.full(graphs, np.inf), np.full(graphs, -np.inf)
            np.minimum.at(first, graph, values)
            np.maximum.at(last, graph, values)
        same = first >= last
        first, width = np.where(same, first - 0.5, first), np.where(same, 1.0, last - first)
        place = np.floor((values - first[graph]) / width[graph] * self.bins).astype(np.int64)
        cell = graph * self.bins + np.clip(place, 0, self.bins - 1)
        counts = np.bincount(cell, minlength=graphs * self.bins).reshape(graphs, self.bins).astype(np.float64)
        if self.share:
            counts /= np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return counts


def _graphs(X: Any) -> GraphSet | PreparedSet:
    return X if isinstance(X, GraphSet | PreparedSet) else load(X, labelled=False)


def _profile(prepared: PreparedSet) -> Profile:
    return prepared.get(("topological profile",), lambda: topological_profile(prepared.graphs))


@njit(cache=True, nogil=True)
def _fill_nodes(ptr: Array, rowptr: Array, col: Array, out: Array) -> None:
    """Fill degree, and minimum, maximum, mean and deviation of the neighbors' degrees."""
    for g in range(len(ptr) - 1):
        for v in range(ptr[g], ptr[g + 1]):
            degree = rowptr[v + 1] - rowptr[v]
            out[v, 0] = degree
            if degree == 0:
                continue
            low, high, total, squares = np.inf, 0.0, 0.0, 0.0
            for arc in range(rowptr[v], rowptr[v + 1]):
                u = ptr[g] + col[arc]
                other = float(rowptr[u + 1] - rowptr[u])
                low, high = min(low, other), max(high, other)
                total += other
                squares += other * other  # sums of integers: exact in any order
            out[v, 1], out[v, 2], out[v, 3] = low, high, total / degree
            if degree > 1:
                out[v, 4] = np.sqrt((squares * degree - total * total) / degree / (degree - 1))


@njit(cache=True, nogil=True)
def _fill_edges(base: int, n: int, rowptr: Array, col: Array, sources: Array, out: Array) -> None:
    """Fill betweenness, Jaccard index and local degree score of the arcs of one graph, the same for both directions."""
    start = rowptr[base]
    reverse = np.empty(rowptr[base + n] - start, dtype=np.int64)
    seen = np.zeros(n, dtype=np.int64)  # arcs into v that have been met, in ascending order of their source
    for u in range(n):
        for arc in range(rowptr[base + u], rowptr[base + u + 1]):
            v = col[arc]
            reverse[arc - start] = rowptr[base + v] + seen[v]
            seen[v] += 1
    distance, queue = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    paths, dependency = np.empty(n), np.empty(n)
    factor = n / (2.0 * len(sources)) if len(sources) else 0.0  # a pair is met from both ends
    for source in sources:
        distance[:] = -1
        paths[:] = 0.0
        dependency[:] = 0.0
        distance[source], paths[source], queue[0] = 0, 1.0, source
        head, tail = 0, 1
        while head < tail:
            u = queue[head]
            head += 1
            for arc in range(rowptr[base + u], rowptr[base + u + 1]):
                v = col[arc]
                if distance[v] < 0:
                    distance[v] = distance[u] + 1
                    queue[tail] = v
                    tail += 1
                if distance[v] == distance[u] + 1:
                    paths[v] += paths[u]
        for k in range(tail - 1, 0, -1):
            v = queue[k]
            for arc in range(rowptr[base + v], rowptr[base + v + 1]):
                u = col[arc]
                if distance[u] == distance[v] - 1:
                    part = paths[u] / paths[v] * (1.0 + dependency[v])
                    dependency[u] += part
                    out[arc, 0] += factor * part
                    out[reverse[arc - start], 0] += factor * part
    mark = np.full(n, -1, dtype=np.int64)
    for u in range(n):
        degree = rowptr[base + u + 1] - rowptr[base + u]
        for arc in range(rowptr[base + u], rowptr[base + u + 1]):
            mark[col[arc]] = u
        for arc in range(rowptr[base + u], rowptr[base + u + 1]):
            v = col[arc]
            other = rowptr[base + v + 1] - rowptr[base + v]
            common = 0
            for more in range(rowptr[base + v], rowptr[base + v + 1]):
                common += mark[col[more]] == u
            out[arc, 1] = common / (degree + other - common)
            rank = 1
            for more in range(rowptr[base + u], rowptr[base + u + 1]):
                w = col[more]
                rank += rowptr[base + w + 1] - rowptr[base + w] > other
            score = 1.0 - np.log(rank) / np.log(degree) if degree > 1 else 1.0
            out[arc, 2] = max(out[arc, 2], score)
            out[reverse[arc - start], 2] = max(out[reverse[arc - start], 2], score)
