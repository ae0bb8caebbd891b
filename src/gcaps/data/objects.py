"""Graphs that come as Python objects: our own Graph, PyTorch Geometric's Data, NetworkX graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gcaps.data.arrays import Array, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.columns import Column, place, require_finite, require_positive
from gcaps.data.graphset import Graph, GraphSet
from gcaps.data.networkx import from_networkx
from gcaps.data.pyg import from_pyg
from gcaps.data.targets import target_array
from gcaps.errors import DataError


def kind_of(graph: Any) -> str:
    """``"graph"``, ``"networkx"`` or ``"pyg"``."""
    if isinstance(graph, Graph):
        return "graph"
    return "networkx" if hasattr(graph, "is_multigraph") else "pyg"


def from_objects(graphs: Sequence[Any], name: str) -> GraphSet:
    """A set of objects of one kind, told by the first of them."""
    kind = kind_of(graphs[0]) if graphs else "pyg"
    if kind == "graph":
        return from_graphs(graphs, name)
    return from_networkx(graphs, name=name) if kind == "networkx" else from_pyg(graphs, name)


def numbers_in(graph: Any) -> int:
    """About how many numbers an object holds: what its memory goes by."""
    kind = kind_of(graph)
    if kind == "networkx":
        return int(graph.number_of_nodes() + graph.number_of_edges())
    values = graph if kind == "graph" else graph.to_dict().values() if hasattr(graph, "to_dict") else ()
    return sum(int(np.prod(value.shape)) for value in values if hasattr(value, "shape"))


def from_graphs(graphs: Sequence[Graph], name: str = "graphs") -> GraphSet:
    """A set of :class:`Graph` objects, as iterating over a set gives them or as one makes them by hand.

    Their edges may come in any order, twice or in one direction, as in any source. Weights that only some graphs have
    are one in the others.

    Raises:
        DataError: naming the graph as ``graphs[i]``.
    """
    if not graphs:
        raise DataError(f"{name}: there are no graphs")
    ends = [_with_loops(np.asarray(graph.edge_index), graph, i) for i, graph in enumerate(graphs)]
    sizes = np.array([graph.num_nodes for graph in graphs], dtype=np.int64)
    graph_of = np.repeat(np.arange(len(graphs)), [e.shape[1] for e in ends])
    local = np.concatenate(ends, axis=1)
    outside = np.flatnonzero(((local < 0) | (local >= sizes[graph_of])).any(axis=0))
    if len(outside):
        g = graph_of[outside[0]]
        u, v = local[:, outside[0]]
        raise DataError(f"edge_index joins nodes {u} and {v}; there are nodes 0 to {sizes[g] - 1}", place(g))
    columns = {
        "node_labels": Column("node labels", int),
        "x": Column("node attributes", float),
        "edge_labels": Column("edge labels", int),
        "edge_attr": Column("edge attributes", float),
    }
    for i, graph in enumerate(graphs):
        for key, column in columns.items():
            rows = graph.num_nodes if key in ("node_labels", "x") else ends[i].shape[1]
            column.add(_joined(graph, key), rows)
    joined = {key: column.joined() for key, column in columns.items()}
    require_finite(joined["x"], np.repeat(np.arange(len(graphs)), sizes), "node attributes")
    require_finite(joined["edge_attr"], graph_of, "edge attributes")
    weight = _weights(graphs, ends)
    if weight is not None:
        require_positive(weight, graph_of)
    ptr = pointer(sizes)
    source, target = local + ptr[graph_of]
    return assemble(
        name,
        ptr,
        EdgeRows(source, target, joined["edge_labels"], joined["edge_attr"], weight),
        y=target_array([graph.y for graph in graphs]),
        node_labels=joined["node_labels"],
        x=joined["x"],
    )


def _with_loops(edge_index: Array, graph: Graph, i: int) -> Array:
    """[2, arcs + loops]"""
    if graph.num_nodes < 1:
        raise DataError("has no nodes; remove it", place(i))
    if edge_index.ndim != 2 or len(edge_index) != 2 or (edge_index.size and edge_index.dtype.kind not in "iu"):
        shape = list(edge_index.shape)
        raise DataError(f"edge_index is {edge_index.dtype} {shape}; it should be integers [2, edges]", place(i))
    edge_index = edge_index.astype(np.int64)
    return edge_index if graph.loops is None else np.concatenate([edge_index, [graph.loops.node] * 2], axis=1)


def _joined(graph: Graph, key: str) -> Array | None:
    """The graph's own table, that of its self-loops below where the rows are edges."""
    own: Array | None = getattr(graph, key)
    if own is None or graph.loops is None or key in ("node_labels", "x"):
        return own
    theirs = graph.loops.labels if key == "edge_labels" else graph.loops.attributes
    return own if theirs is None else np.concatenate([own, theirs])


def _weights(graphs: Sequence[Graph], ends: list[Array]) -> Array | None:
    if all(graph.edge_weight is None for graph in graphs):
        return None
    parts: list[Array] = []
    for i, (graph, both) in enumerate(zip(graphs, ends, strict=True)):
        if graph.edge_weight is None:
            parts.append(np.ones(both.shape[1], dtype=np.float32))
            continue
        loops = () if graph.loops is None or graph.loops.weight is None else (graph.loops.weight,)
        parts.append(np.concatenate([graph.edge_weight, *loops]))
        if len(parts[-1]) != both.shape[1]:
            raise DataError(f"edge weights: {len(parts[-1])} rows where {both.shape[1]} are due", place(i))
    return np.concatenate(parts)
