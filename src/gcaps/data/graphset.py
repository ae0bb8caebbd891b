"""GraphSet: every graph of a data set in flat arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints, Ints32, ranges, strides
from gcaps.data.selection import OWNERS, Selection

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data


class SelfLoops(NamedTuple):
    """Self-loops, kept beside the adjacency matrix, which has none (paper, section 3: "with no self-loops")."""

    node: Ints
    """[S] the node, counted over the whole set, in ascending order."""
    labels: Ints | None = None
    """[S, ·] as :attr:`GraphSet.edge_labels`."""
    attributes: Floats | None = None
    """[S, ·] as :attr:`GraphSet.edge_attr`."""
    weight: Floats | None = None
    """[S] as :attr:`GraphSet.edge_weight`."""

    def take(self, which: Array) -> SelfLoops:
        """The loops at the positions ``which``."""
        return SelfLoops(*(None if a is None else a[which] for a in self))  # type: ignore[arg-type]


class Graph(NamedTuple):
    """One graph of a set: views of the set's arrays."""

    edge_index: Ints
    """[2, E] both directions of every edge, self-loops left out; sorted by source, then target."""
    num_nodes: int
    y: Any
    """What is to be predicted, as in the source; None where there is nothing."""
    node_labels: Ints | None
    x: Floats | None
    edge_labels: Ints | None
    edge_attr: Floats | None
    edge_weight: Floats | None
    loops: SelfLoops | None


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphSet:
    """All graphs of a data set as one stack of arrays (compressed sparse rows over all nodes).

    G graphs, N nodes and E arcs in all; an undirected edge is two arcs. The adjacency is symmetric, holds every arc
    once and no self-loop. The nodes of a graph, and therefore its arcs, stand next to each other, so any choice of
    graphs is a handful of array look-ups.
    """

    name: str
    ptr: Ints
    """[G+1] graph g owns the nodes ptr[g] … ptr[g+1]−1."""
    rowptr: Ints
    """[N+1] node v owns the arcs rowptr[v] … rowptr[v+1]−1."""
    col: Ints32
    """[E] the other end of each arc, counted within its graph, ascending for each node."""
    y: Array | None = None
    """[G] what is to be predicted of each graph, as the source says it: strings stay strings, numbers numbers."""
    given_ids: Array | None = None
    """[G] names of the graphs; None where a graph is called by its position. See :attr:`ids`."""
    node_labels: Ints | None = None
    """[N, ·] categorical node labels, one or more columns, as in the source."""
    x: Floats | None = None
    """[N, ·] continuous node attributes."""
    edge_labels: Ints | None = None
    """[E, ·] categorical labels of the arcs."""
    edge_attr: Floats | None = None
    """[E, ·] continuous attributes of the arcs."""
    edge_weight: Floats | None = None
    """[E] positive weights a_ij = a_ji; None means all one."""
    loops: SelfLoops | None = None
    """Self-loops of the source; no formula uses them."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """What reading did to the source: duplicate arcs dropped, missing directions added, and so on."""

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @overload
    def __getitem__(self, which: int | np.integer[Any]) -> Graph: ...
    @overload
    def __getitem__(self, which: slice | Sequence[int] | Array | tuple[Any, EllipsisType]) -> GraphSet: ...
    def __getitem__(self, which: Any) -> Graph | GraphSet:
        """``gs[3]`` is one graph, ``gs[3:9]``, ``gs[[4, 1]]`` and ``gs[mask]`` are sets."""
        if isinstance(which, tuple) and len(which) == 2 and which[1] is Ellipsis:
            which = which[0]  # how scikit-learn takes rows of whatever has a shape
        if isinstance(which, slice):
            return self.subset(np.arange(*which.indices(len(self))))
        if not isinstance(which, int | np.integer):
            return self.subset(which)
        if not -len(self) <= which < len(self):
            raise IndexError(f"graph {which} of a set of {len(self)}")
        return self.subset([int(which)])._single()

    def __iter__(self) -> Iterator[Graph]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        target = "no y" if self.y is None else f"y={self.y.dtype}"
        return f"GraphSet({self.name!r}, graphs={len(self)}, nodes={self.num_nodes}, edges={self.num_edges}, {target})"

    @property
    def shape(self) -> tuple[int]:
        """(G,): scikit-learn's splitters and searches take a set for a column of graphs."""
        return (len(self),)

    @property
    def num_nodes(self) -> int:
        """Nodes of all graphs together."""
        return int(self.ptr[-1])

    @property
    def num_edges(self) -> int:
        """Undirected edges of all graphs together, self-loops not counted."""
        return len(self.col) // 2

    @cached_property
    def num_classes(self) -> int:
        """How many different values ``y`` has; 0 where there is no ``y``."""
        return 0 if self.y is None else len(np.unique(self.y))

    @cached_property
    def ids(self) -> Array:
        """[G] name of each graph, by default its position in the set it was read from; subsets keep them."""
        return np.arange(len(self)) if self.given_ids is None else self.given_ids

    @cached_property
    def sizes(self) -> Ints:
        """[G] the number of nodes of each graph."""
        return np.diff(self.ptr)

    @cached_property
    def arc_counts(self) -> Ints:
        """[G] the number of arcs of each graph."""
        return np.diff(self.rowptr[self.ptr])

    @property
    def mapped(self) -> bool:
        """Whether its arrays lie in files and not in memory: such a set is to be read piece by piece."""
        return isinstance(self.col if self.col.base is None else self.col.base, np.memmap)

    def in_memory(self) -> GraphSet:
        """Return the set with its arrays read into memory."""
        if not self.mapped:
            return self
        arrays: dict[str, Any] = {key: np.array(array) for key, array in self.arrays().items()}
        loops = {key.removeprefix("loops."): arrays.pop(key) for key in list(arrays) if key.startswith("loops.")}
        return replace(self, loops=SelfLoops(**loops) if loops else None, **arrays)

    @property
    def degrees(self) -> Ints:
        """[N] the number of neighbors of each node."""
        return np.diff(self.rowptr)

    def degrees_of(self, nodes: Array) -> Ints:
        """[n] the number of neighbors of some nodes; reads nothing of the others."""
        degrees: Ints = self.rowptr[nodes + 1] - self.rowptr[nodes]
        return degrees

    def subset(self, indices: Sequence[int] | Array) -> GraphSet:
        """The graphs at ``indices`` (or under a boolean mask), in that order.

        Graphs that stand next to each other are not copied: the result views this set's arrays.
        """
        where = Selection.of(self.ptr, self.rowptr, self.positions(indices))
        taken: dict[str, Any] = {key: array[where.rows(key)] for key, array in self.arrays().items() if key in OWNERS}
        taken["given_ids"] = self.ids[where.rows("given_ids")]
        return replace(
            self,
            ptr=where.ptr,
            rowptr=where.rowptr(self.rowptr),
            loops=self.loops_of(where.graphs, where.ptr),
            **taken,
        )

    def chunks(self, nodes: int = 1 << 20, indices: Sequence[int] | Array | None = None) -> Iterator[GraphSet]:
        """The set (or its graphs at ``indices``) in pieces of at most so many nodes, in order; a larger graph is alone.

        What is computed piece by piece needs memory for one piece, however large the set is. Pieces carry no notes.
        """
        chosen = np.arange(len(self)) if indices is None else self.positions(indices)
        for first, last in strides(self.sizes[chosen], nodes):
            yield replace(self.subset(chosen[first:last]), notes={})

    def positions(self, indices: Sequence[int] | Array) -> Ints:
        """Graph numbers 0..G−1 from numbers that may count from the end, or from a mask."""
        given = np.asarray(indices)
        if given.dtype == bool:
            if given.shape != (len(self),):
                raise IndexError(f"a mask of shape {given.shape} for a set of {len(self)} graphs")
            return np.flatnonzero(given)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise IndexError(f"graphs are chosen by a row of integers or a mask, not by {given.dtype} {given.shape}")
        given = given.astype(np.int64)
        outside = (given < -len(self)) | (given >= len(self))
        if outside.any():
            raise IndexError(f"graph {given[outside][0]} of a set of {len(self)}")
        return np.where(given < 0, given + len(self), given)

    def loops_of(self, chosen: Ints, ptr: Ints) -> SelfLoops | None:
        """The self-loops of the graphs ``chosen``, whose nodes begin at ``ptr`` [n+1] from now on."""
        if self.loops is None:
            return None
        first = np.searchsorted(self.loops.node, self.ptr[chosen])
        count = np.searchsorted(self.loops.node, self.ptr[chosen + 1]) - first
        if not count.any():
            return None
        loops = self.loops.take(ranges(first, count))
        return loops._replace(node=loops.node + np.repeat(ptr[:-1] - self.ptr[chosen], count))

    def _single(self) -> Graph:
        source = np.repeat(np.arange(self.num_nodes, dtype=np.int64), self.degrees)
        return Graph(
            np.stack([source, self.col.astype(np.int64)]),
            self.num_nodes,
            None if self.y is None else self.y[0].tolist(),
            self.node_labels,
            self.x,
            self.edge_labels,
            self.edge_attr,
            self.edge_weight,
            self.loops,
        )

    def arrays(self) -> dict[str, Array]:
        """All arrays that are there, by name: what is saved, compared and fingerprinted."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("name", "loops", "notes")}
        if self.loops is not None:
            found |= {f"loops.{key}": value for key, value in self.loops._asdict().items()}
        return {key: value for key, value in found.items() if value is not None}

    def fingerprint(self, indices: Sequence[int] | Array | None = None) -> str:
        """SHA-256 over all arrays with their names, types and shapes; the set's name, ids and notes do not count.

        With ``indices`` it is that of the subset, which is read piece by piece and never held as a whole.
        """
        from gcaps.data.digest import fingerprint

        return fingerprint(self, indices)

    def save(self, path: str | Path) -> None:
        """Write the set to the folder ``path``, from which :meth:`open` maps it without reading it."""
        from gcaps.data.storage import save

        save(self, path)

    @staticmethod
    def open(path: str | Path) -> GraphSet:
        """A saved set, its arrays memory-mapped: opening costs the same for any size."""
        from gcaps.data.storage import open_saved

        return open_saved(path)

    @staticmethod
    def from_pyg(graphs: Sequence[Data], name: str = "pyg") -> GraphSet:
        """From PyTorch Geometric ``Data`` objects; see :func:`gcaps.data.pyg.from_pyg`."""
        from gcaps.data.pyg import from_pyg

        return from_pyg(graphs, name)

    def to_pyg(self) -> list[Data]:
        """As PyTorch Geometric ``Data`` objects; :meth:`from_pyg` gives the same set back."""
        from gcaps.data.pyg import to_pyg

        return to_pyg(self)

    @staticmethod
    def from_networkx(graphs: Sequence[nx.Graph], y: Sequence[Any] | None = None, name: str = "nx") -> GraphSet:
        """From NetworkX graphs; see :func:`gcaps.data.networkx.from_networkx`."""
        from gcaps.data.networkx import from_networkx

        return from_networkx(graphs, y, name)

    def to_networkx(self) -> list[nx.Graph]:
        """As NetworkX graphs; :meth:`from_networkx` gives the same set back."""
        from gcaps.data.networkx import to_networkx

        return to_networkx(self)
