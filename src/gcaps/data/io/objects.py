"""Convert Python objects to a GraphSet: our own Graph, PyTorch Geometric's Data, NetworkX graphs, molecules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
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
    without_empty,
)
from gcaps.data.graphset import Graph, GraphSet
from gcaps.data.io.networkx import from_networkx
from gcaps.data.io.pyg import from_pyg
from gcaps.data.reading import Empty, Reading
from gcaps.data.targets import target_array
from gcaps.errors import DataError

KINDS = {
    "graph": "a gcaps Graph",
    "networkx": "a NetworkX graph",
    "pyg": "a PyG Data object",
    "molecule": "an RDKit molecule",
    "text": "a string",
    "path": "a path",
    "none": "None",
}


def kind_of(graph: Any) -> str:
    """Return a key of :data:`KINDS`, or the name of the object's type if it is no graph."""
    if isinstance(graph, Graph):
        return "graph"
    if isinstance(graph, str):
        return "text"
    if isinstance(graph, Path):
        return "path"
    if graph is None:
        return "none"
    if hasattr(graph, "is_multigraph"):
        return "networkx"
    if hasattr(graph, "GetNumAtoms"):
        return "molecule"
    is_pyg = hasattr(graph, "to_dict") and (hasattr(graph, "edge_index") or hasattr(graph, "node_types"))
    return "pyg" if is_pyg else type(graph).__name__


def require_list(source: Any) -> list[Any]:
    """Return the graphs of an iterable as a list; raise a DataError for a single graph."""
    if hasattr(source, "to_data_list"):  # a PyG Batch
        return list(source.to_data_list())
    kind = kind_of(source)
    if kind in ("graph", "networkx", "molecule", "pyg") and not _is_data_set(source):
        raise DataError(f"is one graph ({KINDS[kind]}); pass a list: [graph]", "graphs")
    if isinstance(source, np.ndarray):
        if source.dtype.kind not in "OU" or source.ndim > 2 or (source.ndim == 2 and source.shape[1] != 1):
            problem = f"is an array of {source.dtype} {source.shape}; give an array or list of graphs, one each"
            raise DataError(problem, "graphs")
        return list(source.ravel().tolist())
    try:
        if isinstance(source, Mapping | bytes):
            raise TypeError
        return list(source)
    except TypeError as error:
        problem = f"is an object of type {type(source).__name__}; give a list of graphs, or a path"
        raise DataError(problem, "graphs") from error


def _is_data_set(source: Any) -> bool:
    """Whether an object that looks like PyG's Data is a data set, which has its attributes too."""
    return any(base.__name__ == "Dataset" for base in type(source).__mro__)


def require_one_kind(graphs: Sequence[Any]) -> str:
    """Return the kind of all objects; raise a DataError that names the first which is of another."""
    kinds = [kind_of(graph) for graph in graphs]
    first = next((kind for kind in kinds if kind != "none"), "none")
    for i, kind in enumerate(kinds):
        if kind != first and not (kind == "none" and first in ("molecule", "text")):
            here = KINDS.get(kind, f"an object of type {kind}")
            raise DataError(f"is {here} while {place(kinds.index(first))} is {KINDS.get(first, first)}", place(i))
    if first not in KINDS or first == "none":
        known = "PyG Data, NetworkX graphs, RDKit molecules, SMILES or gcaps Graphs"
        raise DataError(f"is an object of type {first}, not a graph; give {known}", place(0))
    return first


def from_objects(graphs: Sequence[Any], name: str, reading: Reading | None = None) -> GraphSet:
    """Convert objects, all of one kind: graphs of a library, RDKit molecules or SMILES."""
    reading = reading or Reading(labelled=False)
    if not graphs:
        raise DataError(f"{name}: there are no graphs")
    kind = require_one_kind(graphs)
    if kind in ("text", "molecule"):
        from gcaps.data.io.smiles import from_rdkit, from_smiles

        return (from_smiles if kind == "text" else from_rdkit)(graphs, replace(reading, labelled=False), name)
    if kind == "graph":
        return from_graphs(graphs, name, empty=reading.empty)
    if kind == "networkx":
        return from_networkx(graphs, name=name, reading=reading)
    return from_pyg(graphs, name, reading=reading)


def numbers_in(graph: Any) -> int:
    """Approximate number of numbers in an object, a measure of its memory."""
    kind = kind_of(graph)
    if kind == "text":
        return len(graph)
    if kind == "molecule":
        return int(graph.GetNumAtoms() + graph.GetNumBonds())
    if kind == "networkx":
        return int(graph.number_of_nodes() + graph.number_of_edges())
    values = graph if kind == "graph" else graph.to_dict().values() if hasattr(graph, "to_dict") else ()
    return sum(int(np.prod(value.shape)) for value in values if hasattr(value, "shape"))


def from_graphs(graphs: Sequence[Graph], name: str = "graphs", *, empty: Empty = "error") -> GraphSet:
    """Convert :class:`Graph` objects, from iterating over a set or made by hand.

    Edges may be in any order, repeated or in one direction only. If only some graphs have weights, those of the others
    are 1. ``empty`` is that of :func:`gcaps.load`.

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
    made = assemble(
        name,
        ptr,
        EdgeRows(source, target, joined["edge_labels"], joined["edge_attr"], weight),
        y=target_array([graph.y for graph in graphs]),
        node_labels=joined["node_labels"],
        x=joined["x"],
    )
    return without_empty(made, empty)


def _with_loops(graph: Graph, i: int) -> Ints:
    """[2, arcs + loops]"""
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
