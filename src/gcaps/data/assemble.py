"""Build a GraphSet from raw edge rows: sort, coalesce, symmetrise, separate self-loops. All readers end here.

Readers of objects collect fields graph by graph in :class:`Column`; error messages call a graph ``graphs[i]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gcaps.data.arrays import LARGEST, Array, Floats, Ints, counting_argsort, pointer
from gcaps.data.graphset import GraphSet, SelfLoops, Skipped
from gcaps.data.reading import listed
from gcaps.errors import DataError


@dataclass
class EdgeRows:
    """Edges as a source lists them: one arc a row, in any order, possibly repeated or in one direction only."""

    source: Array
    """[R] nodes numbered over the whole set."""
    target: Array
    """[R]"""
    labels: Ints | None = None
    attributes: Floats | None = None
    weight: Floats | None = None

    def take(self, which: Array) -> EdgeRows:
        """Return the rows ``which`` (positions or mask), in that order."""
        return EdgeRows(
            self.source[which],
            self.target[which],
            None if self.labels is None else self.labels[which],
            None if self.attributes is None else self.attributes[which],
            None if self.weight is None else self.weight[which],
        )

    @classmethod
    def joined(cls, parts: Sequence[EdgeRows]) -> EdgeRows:
        """Concatenate parts that have the same fields."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        joined: Any = [None if column[0] is None else np.concatenate(column) for column in columns]
        return cls(*joined)


def assemble(
    name: str,
    ptr: Ints,
    rows: EdgeRows,
    *,
    y: Array | None = None,
    node_labels: Ints | None = None,
    x: Floats | None = None,
) -> GraphSet:
    """Build a set.

    The first of several rows with the same arc counts; an arc without its reverse gets one with the same values.
    ``notes`` of the result counts ``rows``, ``duplicate_arcs``, ``conflicting_duplicates`` (same arc, other label or
    attribute), ``one_way_arcs`` and ``self_loops``.

    Args:
        name: of the set.
        ptr: [G+1] graph g owns the nodes ptr[g] … ptr[g+1]−1.
        rows: edges and self-loops.
        y: [G] targets.
        node_labels: [N, ·] categorical node labels.
        x: [N, ·] node attributes.

    Raises:
        DataError: an edge has two different weights.
    """
    notes = {"rows": len(rows.source)}
    is_loop = rows.source == rows.target
    loops: SelfLoops | None = None
    if is_loop.any():
        found, _, _ = _coalesced(rows.take(is_loop), ptr)
        loops = SelfLoops(found.source.astype(np.int64), found.labels, found.attributes, found.weight)
        rows = rows.take(~is_loop)
    arcs, duplicates, conflicts = _coalesced(rows, ptr)
    arcs, one_way = _symmetrised(arcs, ptr)
    notes |= {"duplicate_arcs": duplicates, "conflicting_duplicates": conflicts, "one_way_arcs": one_way}
    notes["self_loops"] = 0 if loops is None else len(loops.node)
    first_node = np.repeat(ptr[:-1], np.diff(ptr))
    return GraphSet(
        name=name,
        ptr=ptr,
        rowptr=pointer(np.bincount(arcs.source, minlength=int(ptr[-1]))),
        col=(arcs.target - first_node[arcs.source]).astype(np.int32),
        y=y,
        node_labels=node_labels,
        x=x,
        edge_labels=arcs.labels,
        edge_attr=arcs.attributes,
        edge_weight=arcs.weight,
        loops=loops,
        notes=notes,
    )


def _keys(first: Array, second: Array, num_nodes: int) -> Ints:
    """One number for each arc, ordered as (first, second)."""
    return first.astype(np.int64) * num_nodes + second


def _ends(arcs: EdgeRows, which: int, ptr: Ints) -> str:
    """Ends of an arc for error messages, numbered from 0 within their graph."""
    graph = int(np.searchsorted(ptr, arcs.source[which], side="right")) - 1
    return f"nodes {arcs.source[which] - ptr[graph]} and {arcs.target[which] - ptr[graph]} of graph {graph}"


def _coalesced(rows: EdgeRows, ptr: Ints) -> tuple[EdgeRows, int, int]:
    """Sort by (source, target) and drop duplicates; return how many were dropped and how many of them disagreed."""
    num_nodes = int(ptr[-1])
    key = _keys(rows.source, rows.target, num_nodes)
    if (key[1:] > key[:-1]).all():
        return rows, 0, 0
    order = counting_argsort(rows.target, num_nodes)
    order = order[counting_argsort(rows.source[order], num_nodes)]
    key = key[order]
    again = np.concatenate([np.zeros(1, dtype=bool), key[1:] == key[:-1]])
    kept = rows.take(order[~again])
    repeated = rows.take(order[again])
    original = np.cumsum(~again)[again] - 1
    if rows.weight is not None:
        assert kept.weight is not None
        assert repeated.weight is not None
        other = np.flatnonzero(repeated.weight != kept.weight[original])
        if len(other):
            raise DataError(
                f"the edge between {_ends(repeated, other[0], ptr)} (numbered from 0) is given twice, with "
                f"weights {kept.weight[original[other[0]]]:g} and {repeated.weight[other[0]]:g}; merge them first"
            )
    conflict = np.zeros(len(original), dtype=bool)
    for mine, theirs in ((kept.labels, repeated.labels), (kept.attributes, repeated.attributes)):
        if mine is not None and theirs is not None:
            conflict |= (mine[original] != theirs).any(axis=1)
    return kept, int(again.sum()), int(conflict.sum())


def _symmetrised(arcs: EdgeRows, ptr: Ints) -> tuple[EdgeRows, int]:
    """Add every missing reverse to coalesced arcs; return how many were missing."""
    num_nodes = int(ptr[-1])
    reverse = counting_argsort(arcs.target, num_nodes)
    if np.array_equal(arcs.target[reverse], arcs.source) and np.array_equal(arcs.source[reverse], arcs.target):
        _require_symmetric_weights(arcs, reverse, ptr)
        return arcs, 0
    key, wanted = _keys(arcs.source, arcs.target, num_nodes), _keys(arcs.target, arcs.source, num_nodes)
    missing = arcs.take(np.flatnonzero(~np.isin(wanted, key, assume_unique=True)))
    missing.source, missing.target = missing.target, missing.source
    both, _, _ = _coalesced(EdgeRows.joined([arcs, missing]), ptr)
    _require_symmetric_weights(both, counting_argsort(both.target, num_nodes), ptr)
    return both, len(missing.source)


def _require_symmetric_weights(arcs: EdgeRows, reverse: Ints, ptr: Ints) -> None:
    if arcs.weight is None:
        return
    uneven = np.flatnonzero(arcs.weight[reverse] != arcs.weight)
    if len(uneven):
        a = uneven[0]
        raise DataError(
            f"the edge between {_ends(arcs, a, ptr)} (numbered from 0) has weight {arcs.weight[a]:g} in one "
            f"direction and {arcs.weight[reverse[a]]:g} in the other; graphs are undirected: average the two first"
        )


def without_empty(graphs: GraphSet, empty: str, names: Callable[[int], str] | None = None) -> GraphSet:
    """Drop graphs without nodes if ``empty`` is ``"drop"``: ``skipped`` lists them, and the others keep their ids.

    ``names`` gives the name of a graph in error messages, by default ``graphs[i]``.

    Raises:
        DataError: there are such graphs and ``empty`` is ``"error"``, or all graphs are such; the message lists them.
    """
    without = np.flatnonzero(graphs.sizes == 0)
    if not len(without):
        return graphs
    names = names or place
    if empty == "error":
        others = listed([names(int(i)) for i in without[1:]], 5)
        also = f" (nor have {others})" if others else ""
        raise DataError(
            f'has no nodes{also}; remove it, or leave it out: empty="drop", --empty drop', names(without[0])
        )
    if len(without) == len(graphs):
        raise DataError("has no graph with nodes", graphs.name)
    skipped = (*graphs.skipped, *(Skipped(int(i), str(graphs.ids[i]), "has no nodes") for i in without))
    return replace(graphs.subset(graphs.sizes > 0), skipped=skipped)


def place(graph: int | np.integer) -> str:
    """Name of a graph of a list in error messages."""
    return f"graphs[{int(graph)}]"


class Column:
    """One field of all graphs: a matrix with a row for each node or edge of every graph, or of none.

    A graph without rows (no edges, for example) may have the field or not.

    Args:
        what: name of the field in error messages.
        kind: ``int`` for labels, ``float`` for attributes and weights.
    """

    def __init__(self, what: str, kind: type[int] | type[float]) -> None:
        self.what, self.kind = what, kind
        self._tables: list[Array | None] = []
        self._rows: list[int] = []

    def add(self, table: Array | None, rows: int) -> None:
        """Add the field of the next graph, which should have ``rows`` rows."""
        if table is not None and len(table) != rows:
            raise DataError(f"{self.what}: {len(table)} rows, expected {rows}", place(len(self._rows)))
        if table is not None and table.shape[1] == 0:
            table = None
        self._tables.append(table)
        self._rows.append(rows)

    def joined(self) -> Array | None:
        """Concatenate to [rows of all graphs, columns]; None if no graph has the field."""
        width: int | None = None
        parts: list[Array] = []
        first = 0
        for i, table in enumerate(self._tables):
            if table is None:
                continue
            if width is None:
                width, first = table.shape[1], i
            elif table.shape[1] != width:
                problem = f"{self.what}: {table.shape[1]} columns; {place(first)} has {width}"
                raise DataError(problem, place(i))
            parts.append(table)
        if width is None:
            return None
        missing = [
            i for i, (table, rows) in enumerate(zip(self._tables, self._rows, strict=True)) if table is None and rows
        ]
        if missing:
            problem = f"has no {self.what} while {place(first)} has; give it to all graphs or to none"
            raise DataError(problem, place(missing[0]))
        joined = np.concatenate(parts)
        return joined.astype(np.int64, copy=False) if self.kind is int else joined


def require_finite(values: Array | None, graph_of: Ints, what: str) -> None:
    """Raise a DataError for the first graph whose ``values`` [rows, columns] contain NaN or infinity."""
    if values is None or np.isfinite(values).all():
        return
    row, column = np.argwhere(~np.isfinite(values))[0]
    raise DataError(f"{what} holds {values[row, column]} in column {column}; replace it", place(graph_of[row]))


def require_positive(weight: Floats, graph_of: Ints) -> None:
    """Raise a DataError for the first graph with a weight [rows] that is not positive and finite."""
    wrong = np.flatnonzero(~((weight >= 1 / LARGEST) & (weight <= LARGEST)))
    if len(wrong):
        problem = (
            f"has an edge of weight {weight[wrong[0]]}; weights are positive float32, an edge of weight 0 is no edge"
        )
        raise DataError(problem, place(graph_of[wrong[0]]))


def checked_edge_index(edge_index: Array, graph: int) -> Ints:
    """Return edges [2, E] of one graph as int64; raise a DataError if they have another shape or type."""
    if edge_index.ndim != 2 or len(edge_index) != 2 or (edge_index.size and edge_index.dtype.kind not in "iu"):
        shape = list(edge_index.shape)
        raise DataError(f"edge_index is {edge_index.dtype} {shape}; it should be integers [2, edges]", place(graph))
    return edge_index.astype(np.int64, copy=False)


def require_nodes(ends: Ints, sizes: Ints, graph_of: Ints) -> None:
    """Raise a DataError if an edge of ``ends`` [2, E], numbered within its graph, has an unknown node.

    ``sizes`` [G] are the graphs' numbers of nodes, ``graph_of`` [E] is the graph of each edge.
    """
    outside = np.flatnonzero(((ends < 0) | (ends >= sizes[graph_of])).any(axis=0))
    if len(outside):
        g = graph_of[outside[0]]
        u, v = ends[:, outside[0]]
        raise DataError(f"edge_index joins nodes {u} and {v}; there are nodes 0 to {sizes[g] - 1}", place(g))
