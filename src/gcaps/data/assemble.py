"""From raw edge rows to a GraphSet: sort, coalesce, symmetrise, set self-loops aside. Every reader ends here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints, counting_argsort, pointer
from gcaps.data.graphset import GraphSet, SelfLoops
from gcaps.errors import DataError


@dataclass
class EdgeRows:
    """Edges as a source lists them: one row an arc, in any order, perhaps twice, perhaps in one direction only."""

    source: Array
    """[R] nodes counted over the whole set."""
    target: Array
    labels: Ints | None = None
    attributes: Floats | None = None
    weight: Floats | None = None

    def take(self, which: Array) -> EdgeRows:
        """The rows ``which`` (positions or mask), in that order."""
        return EdgeRows(
            self.source[which],
            self.target[which],
            None if self.labels is None else self.labels[which],
            None if self.attributes is None else self.attributes[which],
            None if self.weight is None else self.weight[which],
        )

    @classmethod
    def joined(cls, parts: Sequence[EdgeRows]) -> EdgeRows:
        """One after the other; all have the same fields."""
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
    """Build the set; ``y`` [G] is what the source says of the graphs.

    Of rows that name the same arc the first counts; an arc whose reverse is missing gets one with the same values.
    ``notes`` of the result counts what was done: ``rows``, ``duplicate_arcs``, ``conflicting_duplicates`` (same arc,
    other label or attribute), ``one_way_arcs``, ``self_loops``.
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
    """One number an arc, ordered as (first, second)."""
    return first.astype(np.int64) * num_nodes + second


def _ends(arcs: EdgeRows, which: int, ptr: Ints) -> str:
    """The ends of an arc as errors call them: both counted from 0, the nodes within their graph."""
    graph = int(np.searchsorted(ptr, arcs.source[which], side="right")) - 1
    return f"nodes {arcs.source[which] - ptr[graph]} and {arcs.target[which] - ptr[graph]} of graph {graph}"


def _coalesced(rows: EdgeRows, ptr: Ints) -> tuple[EdgeRows, int, int]:
    """Sorted by (source, target), each arc once; how many rows that dropped, and how many of them disagreed."""
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
                f"the edge between {_ends(repeated, other[0], ptr)} (counted from 0) stands twice, with "
                f"weights {kept.weight[original[other[0]]]:g} and {repeated.weight[other[0]]:g}; merge them first"
            )
    conflict = np.zeros(len(original), dtype=bool)
    for mine, theirs in ((kept.labels, repeated.labels), (kept.attributes, repeated.attributes)):
        if mine is not None and theirs is not None:
            conflict |= (mine[original] != theirs).any(axis=1)
    return kept, int(again.sum()), int(conflict.sum())


def _symmetrised(arcs: EdgeRows, ptr: Ints) -> tuple[EdgeRows, int]:
    """With every missing reverse added; how many were missing. ``arcs`` are coalesced."""
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
            f"the edge between {_ends(arcs, a, ptr)} (counted from 0) weighs {arcs.weight[a]:g} in one direction "
            f"and {arcs.weight[reverse[a]]:g} in the other; gcaps' graphs are undirected: average the two first"
        )
