"""Undirected edges of graphs, and graphs without some of them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.graphset import GraphSet


class EdgesOf(NamedTuple):
    """The undirected edges of one graph."""

    ends: Ints
    """[m, 2] nodes u < v of each edge, ascending."""
    forward: Ints
    """[m] position of the arc u → v among the graph's arcs."""
    back: Ints
    """[m] position of the arc v → u."""


def edges_of(graphs: GraphSet) -> list[EdgesOf]:
    """Return the undirected edges of each graph."""
    source = np.repeat(np.arange(graphs.num_nodes), graphs.degrees)
    target = graphs.col.astype(np.int64) + np.repeat(graphs.ptr[:-1], graphs.arc_counts)
    forward, back = np.flatnonzero(source < target), np.flatnonzero(source > target)
    back = back[np.lexsort([source[back], target[back]])]
    first = graphs.rowptr[graphs.ptr]
    cut = np.searchsorted(forward, first[1:-1])
    found = []
    parts = zip(np.split(forward, cut), np.split(back, cut), first[:-1], graphs.ptr[:-1], strict=True)
    for ahead, behind, arc, node in parts:
        ends = np.stack([source[ahead], target[ahead]], axis=1) - node
        found.append(EdgesOf(ends, ahead - arc, behind - arc))
    return found


def keeping_arcs(graphs: GraphSet, keep: Array) -> GraphSet:
    """Return the graphs with the arcs under a mask [E], which must be symmetric; nodes stay."""
    source = np.repeat(np.arange(graphs.num_nodes), graphs.degrees)
    return replace(
        graphs,
        col=graphs.col[keep],
        rowptr=pointer(np.bincount(source[keep], minlength=graphs.num_nodes)),
        edge_labels=None if graphs.edge_labels is None else graphs.edge_labels[keep],
        edge_attr=None if graphs.edge_attr is None else graphs.edge_attr[keep],
        edge_weight=None if graphs.edge_weight is None else graphs.edge_weight[keep],
    )


def without_edges(graphs: GraphSet, forward: Ints, back: Ints) -> GraphSet:
    """Return the graphs with one edge of each removed.

    Args:
        graphs: G graphs.
        forward: [G] position of one of the edge's arcs among those of its graph.
        back: [G] position of the other.
    """
    first = graphs.rowptr[graphs.ptr[:-1]]
    keep = np.ones(len(graphs.col), dtype=bool)
    keep[first + forward] = keep[first + back] = False
    return keeping_arcs(graphs, keep)
