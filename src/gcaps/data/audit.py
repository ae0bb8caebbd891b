"""What is in a data set, and what in it would spoil a fair comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gcaps.data.arrays import Array, Ints
from gcaps.data.fingerprints import stored_hashes, wl_hashes
from gcaps.data.graphset import GraphSet


@dataclass(frozen=True)
class Duplicates:
    """Graphs that occur more than once."""

    groups: int
    """Groups of two or more that are the same."""
    graphs: int
    """Graphs in these groups."""
    conflicting_groups: int
    """Groups whose graphs do not all have the same class: whoever sees them as the same cannot get all right."""
    conflicting_graphs: int
    """Graphs in those."""


@dataclass(frozen=True)
class Facts:
    """A data set in numbers."""

    name: str
    graphs: int
    classes: Mapping[Any, int]
    """How many graphs each class has, by the class's name in the source; empty where there are no labels."""
    nodes_min: int
    nodes_mean: float
    nodes_max: int
    edges_mean: float
    """Undirected edges a graph, self-loops not counted."""
    node_labels: tuple[int, ...]
    """Distinct values of each column; empty where there are none."""
    node_attributes: int
    """Columns."""
    edge_labels: tuple[int, ...]
    edge_attributes: int
    weighted: bool
    self_loops: int
    disconnected: int
    """Graphs in more than one piece."""
    edgeless: int
    """Graphs without any edge."""
    identical: Duplicates
    """Graphs that are stored alike to the last number."""
    look_alikes: Duplicates
    """Graphs that Weisfeiler-Lehman refinement does not tell apart: every pair of isomorphic graphs is among them, and
    perhaps some that are not isomorphic, so these are upper bounds."""
    notes: Mapping[str, int]
    """What reading did to the source."""


def facts(graphs: GraphSet) -> Facts:
    """Count everything that :class:`Facts` holds; seconds for tens of millions of edges."""
    sizes = graphs.sizes
    names, codes = (np.zeros(0, dtype=np.int64), None)
    if graphs.y is not None:
        names, codes = np.unique(graphs.y, return_inverse=True)
    counts = np.zeros(0, dtype=np.int64) if codes is None else np.bincount(codes)
    return Facts(
        name=graphs.name,
        graphs=len(graphs),
        classes=dict(zip(names.tolist(), counts.tolist(), strict=True)),
        nodes_min=int(sizes.min(initial=graphs.num_nodes)),
        nodes_mean=graphs.num_nodes / max(len(graphs), 1),
        nodes_max=int(sizes.max(initial=0)),
        edges_mean=graphs.num_edges / max(len(graphs), 1),
        node_labels=_distinct(graphs.node_labels),
        node_attributes=0 if graphs.x is None else graphs.x.shape[1],
        edge_labels=_distinct(graphs.edge_labels),
        edge_attributes=0 if graphs.edge_attr is None else graphs.edge_attr.shape[1],
        weighted=graphs.edge_weight is not None,
        self_loops=0 if graphs.loops is None else len(graphs.loops.node),
        disconnected=int((_components(graphs) > 1).sum()),
        edgeless=int((graphs.arc_counts == 0).sum()),
        identical=_duplicates(stored_hashes(graphs), codes),
        look_alikes=_duplicates(wl_hashes(graphs), codes),
        notes=dict(graphs.notes),
    )


def _distinct(labels: Ints | None) -> tuple[int, ...]:
    return () if labels is None else tuple(len(np.unique(column)) for column in labels.T)


def _components(graphs: GraphSet) -> Ints:
    """[G] how many connected components each graph has, from one search over the whole set."""
    first = np.repeat(graphs.ptr[:-1], graphs.arc_counts)
    col: Array = graphs.col + first
    index = np.int32 if max(len(col), graphs.num_nodes) < 2**31 else np.int64
    A = csr_array(
        (np.ones(len(col), dtype=np.float64), col.astype(index), graphs.rowptr.astype(index)),
        shape=(graphs.num_nodes, graphs.num_nodes),
    )
    count, component = connected_components(A, directed=False)
    graph_of_node = np.repeat(np.arange(len(graphs)), graphs.sizes)
    graph_of_component = np.zeros(count, dtype=np.int64)
    graph_of_component[component] = graph_of_node
    return np.bincount(graph_of_component, minlength=len(graphs))


def _duplicates(hashes: Array, labels: Ints | None) -> Duplicates:
    _, group, size = np.unique(hashes, return_inverse=True, return_counts=True)
    several = size > 1
    conflict = np.zeros(len(size), dtype=bool)
    if labels is not None:
        lowest, highest = np.full(len(size), np.iinfo(np.int64).max), np.full(len(size), -1)
        np.minimum.at(lowest, group, labels)
        np.maximum.at(highest, group, labels)
        conflict = lowest < highest
    return Duplicates(int(several.sum()), int(size[several].sum()), int(conflict.sum()), int(size[conflict].sum()))
