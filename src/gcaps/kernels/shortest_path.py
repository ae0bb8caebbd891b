"""Shortest-path kernel (Borgwardt and Kriegel, 2005)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numba import njit
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from gcaps.data.arrays import Array, Floats, Ints, pointer
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, join, mix, rows
from gcaps.errors import ConfigError, ModelError
from gcaps.kernels.base import DAMAGED, FeatureKernel, State, SubstructureCounts, map_threads, split_work

_WORK = 20_000_000
"""Steps of the breadth-first searches (nodes × arcs) of the graphs of one task."""

Paths = tuple[Array, Array, Array, Array, Array]
"""ptr [G+1]; low, high, length, count [T]: see :func:`hop_counts`."""


class ShortestPath(FeatureKernel):
    """Shortest-path kernel: the number of pairs of a path of G and a path of H with equal end labels and equal length.

    Paths are ordered pairs of different, connected nodes: φ counts triples (label, label, length). Without node labels,
    φ counts lengths. On weighted graphs the length of a path is the sum of its weights in units of ``bin_width``,
    rounded to the nearest integer.

    Args:
        labels: compare the labels of the ends.
        bin_width: unit of length on weighted graphs; None: the median weight of the training graphs.
        normalize: divide by √(k(G, G) k(H, H)).
        n_jobs: number of threads.
        verbose: show a progress bar.
    """

    def __init__(
        self,
        *,
        labels: bool = True,
        bin_width: float | None = None,
        normalize: bool = True,
        n_jobs: int | None = 2,
        verbose: bool = False,
    ) -> None:
        self.labels, self.bin_width, self.normalize = labels, bin_width, normalize
        self.n_jobs, self.verbose = n_jobs, verbose

    def pairwise(self, graphs: GraphSet) -> bool:
        """Return whether ``bin_width`` is given or not needed; otherwise it depends on the training graphs."""
        return graphs.edge_weight is None or self.bin_width is not None

    def state(self) -> State:
        """Vocabulary, training counts and the unit of length."""
        arrays, values = super().state()
        return arrays, {**values, "bin_width": self.bin_width_}

    def restore(self, arrays: Mapping[str, Array], values: Mapping[str, Any]) -> Self:
        """See :meth:`GraphKernel.restore`."""
        width = values.get("bin_width")
        if not isinstance(width, float) or not 0 < width < np.inf:
            raise ModelError(f"{DAMAGED} (bin_width is {width!r})")
        self.bin_width_ = width
        return super().restore(arrays, values)

    def _fit(self, graphs: GraphSet) -> None:
        if self.bin_width is not None and not self.bin_width > 0:
            raise ConfigError(f"bin_width must be positive, not {self.bin_width}")
        weight = np.ones(1) if graphs.edge_weight is None or not graphs.num_edges else graphs.edge_weight
        self.bin_width_ = float(self.bin_width or np.median(weight))
        super()._fit(graphs)

    def count_substructures(self, graphs: GraphSet) -> SubstructureCounts:
        """Count triples (label, label, length).

        An unordered pair of labels with count c represents (a, b) and (b, a): √2 c, and 2c for a = b, give the inner
        product over ordered pairs.
        """
        label = rows(graphs.node_labels) if self.labels and graphs.node_labels is not None else mix(graphs.degrees * 0)
        local, by_label, labels, labels_ptr = label_ranks(graphs, label)
        parts = self._hops(graphs, local, by_label) if graphs.edge_weight is None else self._weighted(graphs, local)
        ptr = pointer(np.concatenate([np.diff(part[0]) for part in parts]))
        low, high, length, count = (np.concatenate([part[k] for part in parts]).astype(np.int64) for k in range(1, 5))
        first = np.repeat(labels_ptr[:-1], np.diff(ptr))
        ends = mix(labels[first + low]) + mix(labels[first + high])  # a sum does not depend on the order of the ends
        weight = np.where(low == high, 2.0, np.sqrt(2.0))
        return SubstructureCounts(ptr, join(ends, length), weight * count)

    def _hops(self, graphs: GraphSet, local: Ints, by_label: Ints) -> list[Paths]:
        def search(part: tuple[int, int]) -> Paths:
            found: Paths = hop_counts(*part, graphs.ptr, graphs.rowptr, graphs.col, local, by_label)
            return found

        parts = split_work(graphs.sizes * (graphs.arc_counts + graphs.sizes), _WORK)
        return map_threads(search, parts, "shortest paths", self.n_jobs, self.verbose)

    def _weighted(self, graphs: GraphSet, local: Ints) -> list[Paths]:
        def search(g: int) -> Paths:
            return _binned_lengths(graphs.subset([g]), local[graphs.ptr[g] : graphs.ptr[g + 1]], self.bin_width_)

        return map_threads(search, range(len(graphs)), "shortest paths", self.n_jobs, self.verbose)


def label_ranks(graphs: GraphSet, label: Hashes) -> tuple[Ints, Ints, Hashes, Ints]:
    """Number the labels of each graph 0, 1, … independently of other graphs.

    Returns:
        The number of each node's label, [N]; each graph's nodes, counted within the graph, in ascending order of it,
        [N]; the labels of graph 0, of graph 1, …; and the position where the labels of each graph begin, [G+1].
    """
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    order = np.lexsort([label, graph])
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(graph) > 0) | (label[order][1:] != label[order][:-1])
    rank = np.cumsum(new) - 1
    first = np.append(rank, new.sum())[graphs.ptr]
    local = np.empty_like(rank)
    local[order] = rank - first[graph]
    return local, order - graphs.ptr[graph], label[order][new], first


def _binned_lengths(graph: GraphSet, label: Ints, width: float) -> Paths:
    """Return the paths of one weighted graph, as :func:`hop_counts` does."""
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


@njit(cache=True, nogil=True)
def hop_counts(first: int, last: int, ptr: Array, rowptr: Array, col: Array, label: Array, by_label: Array) -> Paths:
    """Count the paths of the graphs first..last−1 by breadth-first search from every node.

    Args:
        first, last: range of graphs.
        ptr, rowptr, col: arrays of the GraphSet.
        label: [N] number of each node's label among those of its graph.
        by_label: [N] each graph's nodes, counted within the graph, in ascending order of their label.

    Returns:
        ``out_ptr`` [graphs+1] and ``low``, ``high``, ``length``, ``count`` [T]: for each graph the number of unordered
        pairs of different nodes with labels low ≤ high at distance length.
    """
    largest = 1
    for g in range(first, last):
        largest = max(largest, ptr[g + 1] - ptr[g])
    distance = np.empty(largest, dtype=np.int32)
    queue = np.empty(largest, dtype=np.int32)
    size = 1024
    low = np.empty(size, dtype=np.int32)
    high = np.empty(size, dtype=np.int32)
    length = np.empty(size, dtype=np.int32)
    count = np.empty(size, dtype=np.int64)
    out_ptr = np.zeros(last - first + 1, dtype=np.int64)
    table = np.zeros(1, dtype=np.int64)
    touched = np.empty(1, dtype=np.int64)
    used = 0
    for g in range(first, last):
        base = ptr[g]
        n = ptr[g + 1] - base
        labels = label[base + by_label[base + n - 1]] + 1 if n > 0 else 0
        if labels * n > len(table):
            table = np.zeros(labels * n, dtype=np.int64)
            touched = np.empty(labels * n, dtype=np.int64)
        filled = 0
        for position in range(n):
            source = by_label[base + position]
            own = label[base + source]
            for v in range(n):
                distance[v] = -1
            distance[source] = 0
            queue[0] = source
            head, tail = 0, 1
            while head < tail and tail < n:
                u = queue[head]
                head += 1
                for arc in range(rowptr[base + u], rowptr[base + u + 1]):
                    v = col[arc]
                    if distance[v] < 0:
                        distance[v] = distance[u] + 1
                        queue[tail] = v
                        tail += 1
            for k in range(1, tail):
                v = queue[k]
                other = label[base + v]
                if other > own or (other == own and v > source):
                    cell = other * n + distance[v]
                    if table[cell] == 0:
                        touched[filled] = cell
                        filled += 1
                    table[cell] += 1
            if position == n - 1 or label[base + by_label[base + position + 1]] != own:
                if used + filled > size:
                    size = max(2 * size, used + filled)
                    low, high = _enlarged(low, size), _enlarged(high, size)
                    length, count = _enlarged(length, size), _enlarged(count, size)
                for k in range(filled):
                    cell = touched[k]
                    low[used], high[used], length[used] = own, cell // n, cell % n
                    count[used] = table[cell]
                    table[cell] = 0
                    used += 1
                filled = 0
        out_ptr[g - first + 1] = used
    return out_ptr, low[:used], high[:used], length[:used], count[:used]


@njit(cache=True, nogil=True)
def _enlarged(array: Array, size: int) -> Array:
    """Copy an array into a longer one."""
    longer = np.empty(size, dtype=array.dtype)
    longer[: len(array)] = array
    return longer
