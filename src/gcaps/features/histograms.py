"""Distance histograms of all nodes, or of all graphs, in one pass over a set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.features.binning import GRID, Bins, Piece, count_grid, count_pairs, largest_distances
from gcaps.features.quotient import Network, Quotient, graph_keys, network_of, quotient
from gcaps.features.sketch import PARTNERS, PROJECTIONS, sketched
from gcaps.features.spectral import Family, solver
from gcaps.features.sweep import MEMORY, Progress, dense_bytes, sweep

_MAXIMA: dict[tuple[str, bytes], float] = {}
"""The largest distance of graphs met before, by :func:`graph_keys`: folds of one set share most of their graphs."""
_REMEMBERED = 1 << 20
_LOCK = Lock()
T = TypeVar("T")


_KNOWN: WeakKeyDictionary[GraphSet, dict[str, Any]] = WeakKeyDictionary()
"""What was found out about sets that are still in use: every fold transforms the same one."""


def _known(graphs: GraphSet, what: str, compute: Callable[[], T]) -> T:
    """What is remembered of a set; computed the first time."""
    memory = _KNOWN.setdefault(graphs, {})
    if what not in memory:
        memory[what] = compute()
    found: T = memory[what]
    return found


class Rows(NamedTuple):
    """Histograms of classes of nodes that have the same one."""

    counts: Floats
    """[K, bins + 2] float32"""
    class_of: Ints
    """[N]"""


class Reach(NamedTuple):
    """How distances are found."""

    method: str = "auto"
    """``"exact"``, ``"sketch"``, or ``"auto"``: exact wherever the memory allows it."""
    memory: int = MEMORY
    """Bytes that matrices of distances may take at a time."""
    partners: int = PARTNERS
    """Of each node, in a sketch."""
    projections: int = PROJECTIONS
    """Random projections of a sketch."""
    seed: int = 0
    """Of a sketch."""
    jobs: int | None = None
    """Threads; by default as many as numba's."""


class Tally(NamedTuple):
    """[K] each: how often a class counts as a partner, how many twins its node has, how many nodes it stands for."""

    size: Ints
    others: Ints
    multiplicity: Ints


@dataclass
class Distances:
    """The distances of a set, never all at once: each method is one pass over its components.

    Args:
        graphs: the set.
        f: the family of distances (:mod:`gcaps.features.spectral`).
        reach: exact or sketched.
        verbose: show a progress bar.
    """

    graphs: GraphSet
    f: Family = "harmonic"
    reach: Reach = field(default_factory=Reach)
    verbose: bool = False

    def __post_init__(self) -> None:
        self.solve = solver(self.f)
        self.network: Network = network_of(self.graphs)

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """[G, 2] what names each graph's structure."""
        return _known(self.graphs, "keys", lambda: graph_keys(np.array(self.graphs.ptr), *self.network))

    @cached_property
    def quotient(self) -> Quotient:
        """Components and twins of all graphs."""
        collapse, ptr = self.solve is None, np.asarray(self.graphs.ptr)
        return _known(self.graphs, f"quotient {collapse}", lambda: quotient(self.network, ptr, collapse))

    @cached_property
    def large(self) -> NDArray[np.bool_]:
        """[P] the components that are sketched."""
        width = np.diff(self.quotient.component_ptr)
        if self.reach.method == "exact" or self.solve is not None:
            return np.zeros(len(width), dtype=bool)
        beyond = width > self.reach.partners
        if self.reach.method == "auto":
            beyond &= dense_bytes(width) > self.reach.memory
        return beyond

    def taken(self) -> dict[str, int]:
        """How many graphs were done exactly, and how many were sketched."""
        sketched_graphs = len(np.unique(self.quotient.graph[self.large]))
        return {"exact": len(self.graphs) - sketched_graphs, "sketch": sketched_graphs}

    def maxima(self) -> Floats:
        """[G] the largest distance of each graph; 0 where there is none."""
        how = repr((self.f, self.reach._replace(jobs=None)))
        names = [(how, key.tobytes()) for key in self.keys]
        largest = np.array([_MAXIMA.get(name, np.nan) for name in names])
        fresh = np.isnan(largest)
        if fresh.any():
            q = self.quotient
            largest[fresh] = 0

            def consume(piece: Piece, some: Ints, _: Tally) -> None:
                found = largest_distances(*piece, q.spread, q.within)
                with _LOCK:
                    np.maximum.at(largest, q.graph[some], found)

            self._sweep(consume, np.flatnonzero(fresh[q.graph]))
            if len(_MAXIMA) + len(names) > _REMEMBERED:
                _MAXIMA.clear()
            _MAXIMA.update(zip(names, largest.tolist(), strict=True))
        return largest

    def grid(self) -> Ints:
        """[GRID] how many ordered pairs of nodes, in a sketch sampled ones, lie in each cell of the fixed grid."""
        q = self.quotient
        total = np.zeros(GRID, dtype=np.int64)

        def consume(piece: Piece, some: Ints, tally: Tally) -> None:
            found = count_grid(*piece, tally.size, tally.others, q.spread, q.within, tally.multiplicity)
            with _LOCK:
                np.add(total, found, out=total)

        self._sweep(consume)
        return total

    def of_nodes(self, bins: Bins) -> Rows:
        """The histogram of every node."""
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
        """[G, bins + 2] float64: histograms over all unordered pairs of nodes of each graph."""
        q = self.quotient
        component = np.repeat(np.arange(len(q.graph)), np.diff(q.component_ptr))
        counts = np.zeros((len(q.graph), bins.columns))
        self._count(bins, component, counts, nodes=False)
        n = q.nodes_in_component.astype(np.float64)
        some = np.flatnonzero(self.large)
        counts[some] *= (n[some] * (n[some] - 1) / np.maximum(counts[some].sum(axis=1), 1))[:, None]
        total = np.zeros((len(self.graphs), bins.columns))
        np.add.at(total, q.graph, counts / 2)  # each pair is met from both ends
        reached = np.bincount(q.graph, n**2, len(self.graphs))
        total[:, -1] = (self.graphs.sizes.astype(np.float64) ** 2 - reached) / 2
        return total

    def _count(self, bins: Bins, goal: Ints, out: Floats, nodes: bool) -> None:
        q, table = self.quotient, bins.lookup()
        once = np.ones_like(q.size)

        def consume(piece: Piece, _: Ints, tally: Tally) -> None:
            multiplicity = once if nodes else tally.multiplicity
            count_pairs(*piece, tally.size, tally.others, q.spread, q.within, *bins, table, goal, multiplicity, out)

        self._sweep(consume)

    def _sweep(self, consume: Callable[[Piece, Ints, Tally], None], which: Ints | None = None) -> None:
        q, reach = self.quotient, self.reach
        which = np.arange(len(q.graph)) if which is None else which
        jobs = reach.jobs or get_num_threads()
        tally = Tally(q.size, q.size - 1, q.size)
        with _bar(self.graphs, int(q.nodes_in_component[which].sum()), self.verbose) as progress:
            for p in which[self.large[which]]:
                for piece, drawn in sketched(
                    self.network, q, int(p), reach.partners, reach.projections, reach.seed, jobs
                ):
                    consume(piece, np.array([p]), Tally(drawn, np.maximum(drawn - 1, 0), q.size))
                if progress is not None:
                    progress(int(q.nodes_in_component[p]))
            exact = partial(sweep, self.network, q, lambda piece, some: consume(piece, some, tally))
            small = which[~self.large[which]]
            for _ in exact(solve=self.solve, which=small, memory=reach.memory, jobs=jobs, progress=progress):
                pass


@contextmanager
def _bar(graphs: GraphSet, nodes: int, shown: bool) -> Iterator[Progress | None]:
    """A bar over the nodes, where it is asked for."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{graphs.name}: distances", total=nodes)
        yield lambda done: bar.advance(task, done)
