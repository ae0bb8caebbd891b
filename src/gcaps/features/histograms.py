"""Distance histograms of all nodes, or of all graphs, in one pass over a set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from threading import Lock
from typing import NamedTuple

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.features.binning import GRID, Bins, Piece, count_grid, count_pairs, largest_distances
from gcaps.features.quotient import Network, Quotient, graph_keys, network_of, quotient
from gcaps.features.sketch import PARTNERS, PROJECTIONS, sketched
from gcaps.features.sweep import MEMORY, Family, Progress, dense_bytes, family_solver, sweep


class Rows(NamedTuple):
    """Histograms of classes of nodes that have the same one."""

    counts: Floats
    """[K, bins + 2] float32."""
    class_of: Ints
    """[N] row of each node."""


class Options(NamedTuple):
    """How distances are computed."""

    method: str = "auto"
    """``"exact"``, ``"sketch"``, or ``"auto"``: exact if the memory allows it."""
    memory: int = MEMORY
    """Bytes that matrices of distances may take at a time."""
    partners: int = PARTNERS
    """Sampled partners of each node in a sketch."""
    projections: int = PROJECTIONS
    """Random projections of a sketch."""
    random_state: int = 0
    """Seed of a sketch."""
    n_jobs: int | None = None
    """Threads; by default numba's number."""


class Weights(NamedTuple):
    """How often classes of nodes count, [K] each."""

    partners: Ints
    """As partners of nodes of other classes."""
    twins: Ints
    """As partners of nodes of their own class."""
    nodes: Ints
    """Nodes of the class."""


class Distances:
    """Distances within the graphs of a set, never all in memory: each method is one pass over the components.

    Args:
        graphs: the set; of a PreparedSet, the largest distances and the components are kept for further objects.
        f: family of distances, see :mod:`gcaps.features.sweep`.
        options: how they are computed.
        verbose: show a progress bar.
    """

    def __init__(
        self,
        graphs: GraphSet | PreparedSet,
        f: Family = "harmonic",
        options: Options | None = None,
        verbose: bool = False,
    ) -> None:
        self.prepared = PreparedSet.of(graphs)
        self.graphs: GraphSet = self.prepared.graphs
        self.f, self.options, self.verbose = f, options or Options(), verbose
        self.solve = family_solver(f)
        self.network: Network = network_of(self.graphs)
        self._lock = Lock()

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """[G, 2] hash of each graph's structure."""
        return self.prepared.get("fgsd keys", lambda: graph_keys(np.array(self.graphs.ptr), *self.network))

    @cached_property
    def quotient(self) -> Quotient:
        """Components and twins of all graphs."""
        collapse, ptr = self.solve is None, np.asarray(self.graphs.ptr)
        return self.prepared.get(("fgsd quotient", collapse), lambda: quotient(self.network, ptr, collapse))

    @cached_property
    def large(self) -> NDArray[np.bool_]:
        """[P] whether a component is sketched."""
        width = np.diff(self.quotient.component_ptr)
        if self.options.method == "exact" or self.solve is not None:
            return np.zeros(len(width), dtype=bool)
        beyond = width > self.options.partners
        if self.options.method == "auto":
            beyond &= dense_bytes(width) > self.options.memory
        return beyond

    def methods(self) -> dict[str, int]:
        """Number of graphs that are computed exactly, and number that are sketched."""
        sketched_graphs = len(np.unique(self.quotient.graph[self.large]))
        return {"exact": len(self.graphs) - sketched_graphs, "sketch": sketched_graphs}

    def maxima(self) -> Floats:
        """[G] largest distance of each graph; 0 if there is none."""
        how = (self.f if isinstance(self.f, str) else tuple(self.f), self.options._replace(n_jobs=None))
        return self.prepared.get(("fgsd maxima", *how), self._maxima)

    def _maxima(self) -> Floats:
        q = self.quotient
        largest = np.zeros(len(self.graphs))

        def consume(piece: Piece, components: Ints, _: Weights) -> None:
            found = largest_distances(*piece, q.spread, q.within)
            with self._lock:
                np.maximum.at(largest, q.graph[components], found)

        self._sweep(consume)
        return largest

    def grid(self, indices: Ints | None = None) -> Ints:
        """[GRID] number of ordered pairs of nodes, in a sketch of sampled ones, in each cell of the fixed grid.

        ``indices`` are the graphs that count, by default all.
        """
        q = self.quotient
        total = np.zeros(GRID, dtype=np.int64)

        def consume(piece: Piece, _: Ints, weights: Weights) -> None:
            found = count_grid(*piece, weights.partners, weights.twins, q.spread, q.within, weights.nodes)
            with self._lock:
                np.add(total, found, out=total)

        self._sweep(consume, None if indices is None else np.flatnonzero(np.isin(q.graph, indices)))
        return total

    def of_nodes(self, bins: Bins) -> Rows:
        """Histogram of every node."""
        q = self.quotient
        own = np.arange(len(q.head))
        counts = np.zeros((len(own), bins.columns), dtype=np.float32)
        component = np.repeat(np.arange(len(q.graph)), np.diff(q.component_ptr))
        reached = q.nodes_in_component[component]
        self._count(bins, own, counts, nodes=True)
        some = np.flatnonzero(self.large[component])
        counts[some] *= ((reached[some] - 1) / np.maximum(counts[some].sum(axis=1), 1))[:, None]
        counts[:, -1] = self.graphs.sizes[q.graph[component]] - reached
        return Rows(counts, q.class_of)

    def of_graphs(self, bins: Bins) -> Floats:
        """[G, bins + 2] float64 histograms over all unordered pairs of nodes of each graph."""
        q = self.quotient
        component = np.repeat(np.arange(len(q.graph)), np.diff(q.component_ptr))
        counts = np.zeros((len(q.graph), bins.columns))
        self._count(bins, component, counts, nodes=False)
        n = q.nodes_in_component.astype(np.float64)
        some = np.flatnonzero(self.large)
        counts[some] *= (n[some] * (n[some] - 1) / np.maximum(counts[some].sum(axis=1), 1))[:, None]
        total = np.zeros((len(self.graphs), bins.columns))
        np.add.at(total, q.graph, counts / 2)  # each pair is counted from both ends
        reached = np.bincount(q.graph, n**2, len(self.graphs))
        total[:, -1] = (self.graphs.sizes.astype(np.float64) ** 2 - reached) / 2
        return total

    def _count(self, bins: Bins, goal: Ints, out: Floats, nodes: bool) -> None:
        q, table = self.quotient, bins.lookup()
        once = np.ones_like(q.size)

        def consume(piece: Piece, _: Ints, weights: Weights) -> None:
            times = once if nodes else weights.nodes
            count_pairs(*piece, weights.partners, weights.twins, q.spread, q.within, *bins, table, goal, times, out)

        self._sweep(consume)

    def _sweep(self, consume: Callable[[Piece, Ints, Weights], None], which: Ints | None = None) -> None:
        q, options = self.quotient, self.options
        which = np.arange(len(q.graph)) if which is None else which
        n_jobs = options.n_jobs or get_num_threads()
        weights = Weights(q.size, q.size - 1, q.size)
        sketch_options = (options.partners, options.projections, options.random_state, n_jobs)
        with _bar(self.graphs, int(q.nodes_in_component[which].sum()), self.verbose) as progress:
            for p in which[self.large[which]]:
                for piece, drawn in sketched(self.network, q, int(p), *sketch_options):
                    consume(piece, np.array([p]), Weights(drawn, np.maximum(drawn - 1, 0), q.size))
                if progress is not None:
                    progress(int(q.nodes_in_component[p]))
            exact = partial(sweep, self.network, q, lambda piece, some: consume(piece, some, weights))
            small = which[~self.large[which]]
            for _ in exact(solve=self.solve, which=small, memory=options.memory, n_jobs=n_jobs, progress=progress):
                pass


@contextmanager
def _bar(graphs: GraphSet, nodes: int, shown: bool) -> Iterator[Progress | None]:
    """Progress bar over the nodes."""
    if not shown:
        yield None
        return
    from rich.progress import Progress as Bar

    from gcaps.terminal import Terminal

    with Bar(console=Terminal(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{graphs.name}: distances", total=nodes)
        yield lambda done: bar.advance(task, done)
