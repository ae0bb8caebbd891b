"""Merge nodes that no network can distinguish into one row each: smaller batches with the same result.

Nodes with the same stable color (:func:`gcaps.data.hashing.stable_colors`) and the same features have the same values
in every layer, whatever the weights. Leaves of one hub and members of one clique are of that kind, so an ego network of
twenty actors may have four rows and few arcs. A row represents m nodes: A_ab is the number of neighbors in row b of any
node in row a, and m_a A_ab = m_b A_ba. Means, covariances and batch statistics count a row m times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcaps.data.arrays import Floats, Ints, Ints32, pointer, ranges, strides
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, join, rows, stable_colors
from gcaps.data.prepared import PreparedSet
from gcaps.features.structural import NodeMatrix

MAX_SHARE = 0.7
"""Nodes are merged if at most this share of the rows is left; above it, merging costs more than it saves."""
PIECE = 1 << 20
"""Arcs that are colored together."""


@dataclass(frozen=True)
class MergedNodes:
    """G graphs of N nodes as K rows; arrays are named as those of a GraphSet."""

    ptr: Ints
    """[G+1] graph g owns the rows ptr[g] … ptr[g+1]−1."""
    rowptr: Ints
    """[K+1] row a owns the arcs rowptr[a] … rowptr[a+1]−1."""
    col: Ints32
    """[E'] target row of each arc, numbered within its graph."""
    edge_weight: Floats
    """[E'] A_ab."""
    head: Ints
    """[K] one node of each row."""
    multiplicity: Floats
    """[K] number of nodes m of each row."""
    row: Ints
    """[N] row of each node, numbered over the whole set."""


def merged_nodes(graphs: GraphSet, x: NodeMatrix, prepared: PreparedSet | None = None) -> MergedNodes | None:
    """Return the rows of graphs with node features x [N, d]; None if edges have weights or merging would not pay.

    Args:
        graphs: the set.
        x: features of its nodes.
        prepared: keeps the stable colors, which do not depend on x, for the next call.
    """
    if graphs.edge_weight is not None or not graphs.num_nodes:
        return None
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    structural = join(graph, structural_colors(graphs, prepared))
    kinds = len(np.unique(structural))
    if kinds > MAX_SHARE * graphs.num_nodes:
        return None
    colors = join(structural, _content(x))
    if len(np.unique(colors)) > kinds:  # features distinguish more than labels and structure
        colors = stable_colors(graphs, colors)
    head, row, multiplicity = classes(join(graph, colors))
    if len(head) > MAX_SHARE * graphs.num_nodes:
        return None
    degrees = graphs.degrees_of(head)
    others = graphs.col[ranges(graphs.rowptr[head], degrees)]
    ends = row[others + np.repeat(graphs.ptr[graph[head]], degrees)]
    from scipy.sparse import csr_array

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
        row,
    )


def classes(colors: Hashes) -> tuple[Ints, Ints, Ints]:
    """Classes of nodes of the same color: first node, class of each node [N], and size, in the order of first nodes."""
    _, head, row, multiplicity = np.unique(colors, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(head)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return head[order], place[row], multiplicity[order]


def structural_colors(graphs: GraphSet, prepared: PreparedSet | None = None) -> Hashes:
    """[N] stable colors without features, kept in ``prepared``: features are fitted again for each fold, colors not."""

    def compute() -> Hashes:
        # piece by piece to bound memory; a color does not depend on the other graphs of its set
        parts = (graphs.subset(np.arange(first, last)) for first, last in strides(graphs.arc_counts, PIECE))
        return np.concatenate([stable_colors(part) for part in parts])

    return compute() if prepared is None else prepared.get("structural colors", compute)


def _content(x: NodeMatrix) -> Hashes:
    """[N] hash of each row of features."""
    one_hot_index = x.one_hot_index if x.one_hot_index.shape[1] else np.zeros((len(x), 1), np.int32)
    if not x.dense.shape[1]:
        return rows(one_hot_index)
    bits = np.ascontiguousarray(x.dense + np.float32(0)).view(np.int32)  # + 0 turns −0 into 0
    return join(rows(one_hot_index), rows(bits))
