"""Nodes that no network can tell apart, merged into one row each: smaller batches with the same outcome.

Nodes of one stable color (see :mod:`gcaps.data.colors`) with the same features have the same capsules in every layer,
whatever the weights. Leaves of one hub and members of one clique are of that kind, so an ego network of twenty actors
may have four rows, and its arcs become few. A row stands for m nodes: row a has A_ab arcs to row b, b's nodes among the
neighbors of any one node of a, and m_a A_ab = m_b A_ba. Means, covariances and batch statistics count a row m times.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from gcaps.data.arrays import Floats, Ints, Ints32, pointer, ranges, strides
from gcaps.data.colors import stable_colors
from gcaps.data.graphset import GraphSet
from gcaps.data.names import Names, join, rows
from gcaps.features import NodeMatrix

WORTHWHILE = 0.7
"""Merging begins to pay where this share of the rows is left, or less."""
PIECE = 1 << 20
"""Arcs that are looked at at a time."""


@dataclass(frozen=True)
class MergedNodes:
    """G graphs of N nodes as K rows; arrays are named as those of a GraphSet."""

    ptr: Ints
    """[G+1] graph g owns the rows ptr[g] … ptr[g+1]−1."""
    rowptr: Ints
    """[K+1]"""
    col: Ints32
    """[E'] the other end of each arc, counted within its graph."""
    edge_weight: Floats
    """[E'] A_ab"""
    head: Ints
    """[K] one node of each row."""
    multiplicity: Floats
    """[K] m, how many nodes each row stands for."""


def merged_nodes(graphs: GraphSet, x: NodeMatrix) -> MergedNodes | None:
    """The rows that graphs with node features x [N, d] have; None where edges have weights or it would not pay."""
    if graphs.edge_weight is not None or not graphs.num_nodes:
        return None
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    structural = join(graph, _structural_colors(graphs))
    kinds = len(np.unique(structural))
    if kinds > WORTHWHILE * graphs.num_nodes:
        return None
    colors = join(structural, _content(x))
    if len(np.unique(colors)) > kinds:  # features tell more than labels and structure
        colors = stable_colors(graphs, colors)
    _, head, row, multiplicity = np.unique(
        join(graph, colors), return_index=True, return_inverse=True, return_counts=True
    )
    if len(head) > WORTHWHILE * graphs.num_nodes:
        return None
    order = np.argsort(head)  # rows in the order of their graphs
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    head, row, multiplicity = head[order], place[row], multiplicity[order]
    degrees = graphs.degrees_of(head)
    others = graphs.col[ranges(graphs.rowptr[head], degrees)]
    ends = row[others + np.repeat(graphs.ptr[graph[head]], degrees)]
    arcs = csr_array((np.ones(len(ends), np.float32), ends, pointer(degrees)), shape=(len(head), len(head)))
    arcs.sum_duplicates()
    ptr = np.searchsorted(head, graphs.ptr)
    first = np.repeat(ptr[:-1], np.diff(arcs.indptr[ptr]))
    return MergedNodes(
        ptr.astype(np.int64),
        arcs.indptr.astype(np.int64),
        (arcs.indices - first).astype(np.int32),
        arcs.data,
        head,
        multiplicity.astype(np.float32),
    )


_known: WeakKeyDictionary[GraphSet, Names] = WeakKeyDictionary()


def _structural_colors(graphs: GraphSet) -> Names:
    """Stable colors without features, found once for a set: features are fitted anew for each fold.

    Some graphs at a time, since a color's name does not depend on the set it was met in.
    """
    if graphs not in _known:
        parts = (graphs.subset(np.arange(a, b)) for a, b in strides(graphs.arc_counts, PIECE))
        _known[graphs] = np.concatenate([stable_colors(part) for part in parts])
    return _known[graphs]


def _content(x: NodeMatrix) -> Names:
    """[N] a name for each row of features, the same for equal rows."""
    one_hot_index = x.one_hot_index if x.one_hot_index.shape[1] else np.zeros((len(x), 1), np.int32)
    if not x.dense.shape[1]:
        return rows(one_hot_index)
    bits = np.ascontiguousarray(x.dense + np.float32(0)).view(np.int32)  # + 0 mends −0
    return join(rows(one_hot_index), rows(bits))
