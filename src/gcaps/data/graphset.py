"""GraphSet: all graphs of a data set in flat arrays, and selections of its graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, overload

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints, Ints32, pointer, ranges, strides

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

    from gcaps.data.molecules.preparation import MoleculePreparation

OWNERS = {
    **dict.fromkeys(("y", "given_ids"), "graphs"),
    **dict.fromkeys(("node_labels", "x"), "nodes"),
    **dict.fromkeys(("col", "edge_labels", "edge_attr", "edge_weight"), "arcs"),
}
"""Arrays of a GraphSet with one row for each graph, node or arc."""
DESCRIPTIONS = ("name", "target_names", "loops", "notes", "columns", "label_names", "skipped", "preparation")
"""Fields of a GraphSet that are not arrays."""


class SelfLoops(NamedTuple):
    """Self-loops, kept apart from the adjacency matrix, which has none (paper, section 3: "with no self-loops")."""

    node: Ints
    """[S] node, numbered over the whole set, in ascending order."""
    labels: Ints | None = None
    """[S, ·] as :attr:`GraphSet.edge_labels`."""
    attributes: Floats | None = None
    """[S, ·] as :attr:`GraphSet.edge_attr`."""
    weight: Floats | None = None
    """[S] as :attr:`GraphSet.edge_weight`."""

    def take(self, which: Array) -> SelfLoops:
        """Return the loops at the positions ``which``."""
        return SelfLoops(*(None if a is None else a[which] for a in self))  # type: ignore[arg-type]


class Skipped(NamedTuple):
    """A row of the source that could not be made a graph."""

    row: int
    """Position among the graphs of the source, counted from 0."""
    id: str
    reason: str


class Graph(NamedTuple):
    """One graph of a set: views of the set's arrays."""

    edge_index: Ints
    """[2, E] both directions of every edge, without self-loops, sorted by source, then target."""
    num_nodes: int
    y: Any
    """Target as in the source; None if there is none."""
    node_labels: Ints | None
    x: Floats | None
    edge_labels: Ints | None
    edge_attr: Floats | None
    edge_weight: Floats | None
    loops: SelfLoops | None


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphSet:
    """All graphs of a data set in flat arrays (compressed sparse rows over all nodes).

    G graphs with N nodes and E arcs in all; an undirected edge is two arcs. The adjacency is symmetric and has every
    arc once and no self-loops. Nodes of one graph are consecutive, and therefore its arcs, so any subset of graphs is a
    few array look-ups.
    """

    name: str
    ptr: Ints
    """[G+1] graph g owns the nodes ptr[g] … ptr[g+1]−1."""
    rowptr: Ints
    """[N+1] node v owns the arcs rowptr[v] … rowptr[v+1]−1."""
    col: Ints32
    """[E] target of each arc, numbered within its graph, ascending for each node."""
    y: Array | None = None
    """[G] target of each graph, or [G, T] several targets, as in the source: strings, booleans, int64 or float64.

    A missing value is NaN among numbers and the empty string among strings.
    """
    target_names: tuple[str, ...] = ()
    """Name of each column of ``y``; empty if they have none."""
    given_ids: Array | None = None
    """[G] names of the graphs; None if they are called by their positions. See :attr:`ids`."""
    node_labels: Ints | None = None
    """[N, ·] categorical node labels in one or more columns, as in the source."""
    x: Floats | None = None
    """[N, ·] continuous node attributes."""
    edge_labels: Ints | None = None
    """[E, ·] categorical labels of the arcs."""
    edge_attr: Floats | None = None
    """[E, ·] continuous attributes of the arcs."""
    edge_weight: Floats | None = None
    """[E] positive weights a_ij = a_ji; None if all are 1."""
    loops: SelfLoops | None = None
    """Self-loops of the source; no formula uses them."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """Changes by the reader: number of duplicate arcs dropped, missing directions added, and so on."""
    columns: Mapping[str, Array] = field(default_factory=dict)
    """[G] further columns of the source's table by name, such as ``smiles``; splits use them, training does not."""
    label_names: Mapping[int, str] = field(default_factory=dict)
    """Names of node and edge labels that are strings in the source."""
    skipped: tuple[Skipped, ...] = ()
    """Rows of the source that could not be made a graph; the graphs fill the other positions in order."""
    preparation: MoleculePreparation | None = None
    """Conversion of molecules to graphs; None if the graphs are not molecules."""

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @overload
    def __getitem__(self, which: int | np.integer[Any]) -> Graph: ...
    @overload
    def __getitem__(self, which: slice | Sequence[int] | Array | tuple[Any, EllipsisType]) -> GraphSet: ...
    def __getitem__(self, which: Any) -> Graph | GraphSet:
        """Return one graph for ``gs[3]``, a set for ``gs[3:9]``, ``gs[[4, 1]]`` and ``gs[mask]``."""
        if isinstance(which, tuple) and len(which) == 2 and which[1] is Ellipsis:
            which = which[0]  # scikit-learn takes rows of anything with a shape as [rows, ...]
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
        """(G,): scikit-learn's splitters and searches treat a set as a column of graphs."""
        return (len(self),)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs."""
        return int(self.ptr[-1])

    @property
    def num_edges(self) -> int:
        """Number of undirected edges of all graphs, without self-loops."""
        return len(self.col) // 2

    @cached_property
    def num_classes(self) -> int:
        """Number of distinct values of ``y``; 0 without ``y``."""
        from gcaps.data.targets import missing

        return 0 if self.y is None else len(np.unique(self.y[~missing(self.y)]))

    @cached_property
    def ids(self) -> Array:
        """[G] name of each graph, by default its position in the set it was read from; subsets keep them."""
        return np.arange(len(self)) if self.given_ids is None else self.given_ids

    @cached_property
    def sizes(self) -> Ints:
        """[G] number of nodes of each graph."""
        return np.diff(self.ptr)

    @cached_property
    def arc_counts(self) -> Ints:
        """[G] number of arcs of each graph."""
        return np.diff(self.rowptr[self.ptr])

    @property
    def mapped(self) -> bool:
        """Whether the arrays are memory-mapped files, so that the set should be read piece by piece."""
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
        """[N] number of neighbors of each node."""
        return np.diff(self.rowptr)

    def degrees_of(self, nodes: Array) -> Ints:
        """[n] number of neighbors of some nodes, without reading the others."""
        degrees: Ints = self.rowptr[nodes + 1] - self.rowptr[nodes]
        return degrees

    def subset(self, indices: Sequence[int] | Array) -> GraphSet:
        """Return the graphs at ``indices`` (or under a boolean mask), in that order.

        Consecutive graphs are not copied: the result has views of this set's arrays.
        """
        where = Selection.of(self.ptr, self.rowptr, self.positions(indices))
        taken: dict[str, Any] = {key: array[where.rows(key)] for key, array in self.arrays().items() if key in OWNERS}
        taken["given_ids"] = self.ids[where.rows("given_ids")]
        return replace(
            self,
            ptr=where.ptr,
            rowptr=where.rowptr(self.rowptr),
            loops=self.loops_of(where.graphs, where.ptr),
            columns={name: column[where.rows("y")] for name, column in self.columns.items()},
            skipped=(),
            **taken,
        )

    def chunks(self, nodes: int = 1 << 20, indices: Sequence[int] | Array | None = None) -> Iterator[GraphSet]:
        """Yield the set (or its graphs at ``indices``) in pieces of at most ``nodes`` nodes; a larger graph is alone.

        Pieces are in order and have no notes.
        """
        chosen = np.arange(len(self)) if indices is None else self.positions(indices)
        for first, last in strides(self.sizes[chosen], nodes):
            yield replace(self.subset(chosen[first:last]), notes={})

    def positions(self, indices: Sequence[int] | Array) -> Ints:
        """Return graph numbers 0..G−1 for numbers, which may be negative, or a mask."""
        given = np.asarray(indices)
        if given.dtype == bool:
            if given.shape != (len(self),):
                raise IndexError(f"mask of shape {given.shape} for a set of {len(self)} graphs")
            return np.flatnonzero(given)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise IndexError(f"graphs are selected by a list of integers or a mask, not by {given.dtype} {given.shape}")
        given = given.astype(np.int64)
        outside = (given < -len(self)) | (given >= len(self))
        if outside.any():
            raise IndexError(f"graph {given[outside][0]} of a set of {len(self)}")
        return np.where(given < 0, given + len(self), given)

    def loops_of(self, chosen: Ints, ptr: Ints) -> SelfLoops | None:
        """Return the self-loops of the graphs ``chosen``, whose nodes begin at ``ptr`` [n+1] in the subset."""
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
        """Return all arrays that are not None by name; these are saved and, but for ids, fingerprinted."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in DESCRIPTIONS}
        if self.loops is not None:
            found |= {f"loops.{key}": value for key, value in self.loops._asdict().items()}
        return {key: value for key, value in found.items() if value is not None}

    def fingerprint(self, indices: Sequence[int] | Array | None = None) -> str:
        """SHA-256 of all arrays with their names, types and shapes; name, ids and notes of the set do not count.

        With ``indices``, that of the subset, which is read piece by piece.
        """
        from gcaps.data.storage import fingerprint

        return fingerprint(self, indices)

    def save(self, path: str | Path) -> None:
        """Write the set to the folder ``path``, which :meth:`open` maps into memory."""
        from gcaps.data.storage import save

        save(self, path)

    @staticmethod
    def open(path: str | Path, verify: bool = False) -> GraphSet:
        """Open a saved set with memory-mapped arrays, whose structure is checked at the speed of reading.

        With ``verify``, the checksums of all arrays too.
        """
        from gcaps.data.storage import open_saved

        return open_saved(path, verify)

    @staticmethod
    def from_pyg(graphs: Sequence[Data], name: str = "pyg") -> GraphSet:
        """Convert PyTorch Geometric ``Data`` objects; see :func:`gcaps.data.from_pyg`."""
        from gcaps.data.io.pyg import from_pyg

        return from_pyg(graphs, name)

    def to_pyg(self) -> list[Data]:
        """Convert to PyTorch Geometric ``Data`` objects; :meth:`from_pyg` gives the same set back."""
        from gcaps.data.io.pyg import to_pyg

        return to_pyg(self)

    @staticmethod
    def from_networkx(graphs: Sequence[nx.Graph], y: Sequence[Any] | None = None, name: str = "nx") -> GraphSet:
        """Convert NetworkX graphs; see :func:`gcaps.data.from_networkx`."""
        from gcaps.data.io.networkx import from_networkx

        return from_networkx(graphs, y, name)

    def to_networkx(self) -> list[nx.Graph]:
        """Convert to NetworkX graphs; :meth:`from_networkx` gives the same set back."""
        from gcaps.data.io.networkx import to_networkx

        return to_networkx(self)


class Selection(NamedTuple):
    """Rows of some graphs in the arrays of a set: slices if the graphs are consecutive, else positions."""

    graphs: Ints
    nodes: slice | Ints
    arcs: slice | Ints
    ptr: Ints
    """[n+1] of the chosen graphs."""

    @classmethod
    def of(cls, ptr: Ints, rowptr: Ints, chosen: Ints) -> Self:
        """Find the rows of the graphs ``chosen``, reading the pointers of these graphs only."""
        first, last = ptr[chosen], ptr[chosen + 1]
        if len(chosen) and chosen[-1] - chosen[0] == len(chosen) - 1 and (np.diff(chosen) == 1).all():
            nodes = slice(int(first[0]), int(last[-1]))
            arcs = slice(int(rowptr[nodes.start]), int(rowptr[nodes.stop]))
            return cls(chosen, nodes, arcs, np.append(first, last[-1]) - first[0])
        first_arc = rowptr[first]
        sizes = last - first
        return cls(chosen, ranges(first, sizes), ranges(first_arc, rowptr[last] - first_arc), pointer(sizes))

    def rows(self, key: str) -> slice | Ints:
        """Return the rows of the array ``key``, one of :data:`OWNERS`."""
        owner = OWNERS[key]
        if owner == "nodes":
            return self.nodes
        if owner == "arcs":
            return self.arcs
        if isinstance(self.nodes, slice):
            return slice(int(self.graphs[0]), int(self.graphs[-1]) + 1)
        return self.graphs

    def rowptr(self, rowptr: Array) -> Ints:
        """[n+1] of the chosen nodes, from that of all nodes."""
        if not isinstance(self.nodes, slice):
            return pointer(rowptr[self.nodes + 1] - rowptr[self.nodes])
        part: Ints = rowptr[self.nodes.start : self.nodes.stop + 1]
        return part - part[0] if part[0] else part
