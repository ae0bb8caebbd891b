"""Convert Python objects to a GraphSet: our own Graph, PyTorch Geometric's Data, NetworkX graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import (
    Column,
    EdgeRows,
    assemble,
    checked_edge_index,
    place,
    require_finite,
    require_nodes,
    require_positive,
)
from gcaps.data.graphset import Graph, GraphSet
from gcaps.data.io.networkx import from_networkx
from gcaps.data.io.pyg import from_pyg
from gcaps.data.targets import target_array
from gcaps.errors import DataError


def kind_of(graph: Any) -> str:
    """Return ``"graph"``, ``"networkx"`` or ``"pyg"``."""
    if isinstance(graph, Graph):
        return "graph"
    return "networkx" if hasattr(graph, "is_multigraph") else "pyg"


def from_objects(graphs: Sequence[Any], name: str) -> GraphSet:
    """Convert objects of one kind, which is that of the first."""
    kind = kind_of(graphs[0]) if graphs else "pyg"
    if kind == "graph":
        return from_graphs(graphs, name)
    return from_networkx(graphs, name=name) if kind == "networkx" else from_pyg(graphs, name)


def numbers_in(graph: Any) -> int:
    """Approximate number of numbers in an object, a measure of its memory."""
    kind = kind_of(graph)
    if kind == "networkx":
        return int(graph.number_of_nodes() + graph.number_of_edges())
    values = graph if kind == "graph" else graph.to_dict().values() if hasattr(graph, "to_dict") else ()
    return sum(int(np.prod(value.shape)) for value in values if hasattr(value, "shape"))


def from_graphs(graphs: Sequence[Graph], name: str = "graphs") -> GraphSet:
    """Convert :class:`Graph` objects, from iterating over a set or made by hand.

    Edges may be in any order, repeated or in one direction only. If only some graphs have weights, those of the others
    are 1.

    Raises:
        DataError: a graph is malformed or does not match the others; the message names it ``graphs[i]``.
    """
    if not graphs:
        raise DataError(f"{name}: there are no graphs")
    ends = [_with_loops(graph, i) for i, graph in enumerate(graphs)]
    sizes = np.array([graph.num_nodes for graph in graphs], dtype=np.int64)
    graph_of = np.repeat(np.arange(len(graphs)), [e.shape[1] for e in ends])
    local = np.concatenate(ends, axis=1)
    require_nodes(local, sizes, graph_of)
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


def _with_loops(graph: Graph, i: int) -> Ints:
    """[2, arcs + loops]"""
    if graph.num_nodes < 1:
        raise DataError("has no nodes; remove it", place(i))
    edge_index = checked_edge_index(np.asarray(graph.edge_index), i)
    return edge_index if graph.loops is None else np.concatenate([edge_index, [graph.loops.node] * 2], axis=1)


def _joined(graph: Graph, key: str) -> Array | None:
    """Field of a graph; for edges, the rows of its self-loops come last."""
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
            raise DataError(f"edge weights: {len(parts[-1])} rows, expected {both.shape[1]}", place(i))
    return np.concatenate(parts)
