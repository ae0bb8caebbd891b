"""Convert NetworkX graphs to a GraphSet and back.

NetworkX keeps a dictionary for each node and edge, so values are gathered one by one, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble, place, require_finite, require_positive, without_empty
from gcaps.data.graphset import GraphSet
from gcaps.data.io.fields import fields_of
from gcaps.data.labels import LabelNames
from gcaps.data.reading import Directed, Empty, Reading, listed
from gcaps.data.targets import target_array
from gcaps.errors import DataError

if TYPE_CHECKING:
    import networkx as nx


TARGET_KEYS = ("label", "y", "target", "class")
"""Data of a graph that are its target, the first that any graph has."""


def from_networkx(
    graphs: Iterable[nx.Graph],
    y: Sequence[Any] | None = None,
    name: str = "nx",
    *,
    directed: Directed = "error",
    empty: Empty = "error",
    reading: Reading | None = None,
) -> GraphSet:
    """Convert NetworkX graphs to a set; nodes are numbered in the order in which a graph lists them.

    Node data: ``"label"``, ``"type"`` and the like are labels (integers or strings); ``"x"``, ``"feature"``,
    ``"attributes"`` and the like are attributes (a number or several). Under any other key, numbers are attributes and
    strings labels. Edge data: the same, and ``"weight"`` (positive). All nodes of a set have such a field or none, and
    so do all edges; other keys that only some have are ignored, with a warning. Parallel edges of multigraphs are
    merged: their weights are added, otherwise the first counts (``notes["parallel_edges"]``).

    Args:
        graphs: the graphs.
        y: targets; by default ``graph.graph["label"]`` (or ``"y"``, ``"target"``, ``"class"``) of each graph.
        name: of the set.
        directed: ``"symmetrize"`` forgets directions; of two weights of an edge, their mean counts.
        empty: ``"drop"`` leaves out graphs without nodes; they are listed in ``skipped``.
        reading: these options, and which graph data are targets (``target``), together.

    Raises:
        DataError: a graph is malformed or does not match the others; the message names it ``graphs[i]``.
    """
    reading = reading or Reading(directed=directed, empty=empty, labelled=False)
    graphs = list(graphs)
    if not graphs:
        raise DataError(f"{name}: there are no graphs")
    if y is not None and len(y) != len(graphs):
        raise DataError(f"{name}: {len(y)} targets for {len(graphs)} graphs")
    parallel = 0
    nodes: list[list[dict[str, Any]]] = []
    edges: list[list[dict[str, Any]]] = []
    ends: list[Array] = []
    for i, graph in enumerate(graphs):
        _require_graph(graph, i, reading)
        number = {node: k for k, node in enumerate(graph)}
        listed_edges = [(number[u], number[v], values) for u, v, values in graph.edges(data=True)]
        if graph.is_multigraph():
            listed_edges, merged = _merged(listed_edges, graph.is_directed())
            parallel += merged
        if graph.is_directed():
            listed_edges = _with_mean_weights(listed_edges)
        nodes.append([values for _, values in graph.nodes(data=True)])
        edges.append([values for *_, values in listed_edges])
        ends.append(np.array([pair[:2] for pair in listed_edges], dtype=np.int64).reshape(-1, 2).T)
    names = LabelNames()
    of_nodes, of_edges = fields_of(nodes, "node", names), fields_of(edges, "edge", names)
    graph_of_edge = np.repeat(np.arange(len(graphs)), [len(rows) for rows in edges])
    sizes = np.array([len(rows) for rows in nodes])
    require_finite(of_nodes.attributes, np.repeat(np.arange(len(graphs)), sizes), "'attributes' of a node")
    require_finite(of_edges.attributes, graph_of_edge, "'attributes' of an edge")
    if of_edges.weight is not None:
        require_positive(of_edges.weight, graph_of_edge)
    ptr = pointer(sizes)
    u, v = np.concatenate(ends, axis=1) + ptr[graph_of_edge]
    rows = EdgeRows(u, v, of_edges.labels, of_edges.attributes, of_edges.weight)
    # both directions, so that notes do not count every edge as one-way; a self-loop has only one
    twice = (u != v) & ~np.array([graph.is_directed() for graph in graphs])[graph_of_edge]
    reverse = rows.take(np.flatnonzero(twice))
    reverse.source, reverse.target = reverse.target, reverse.source
    rows = EdgeRows.joined([rows, reverse])
    values, target_names = (list(y), ()) if y is not None else _targets([graph.graph for graph in graphs], reading)
    made = assemble(name, ptr, rows, y=target_array(values), node_labels=of_nodes.labels, x=of_nodes.attributes)
    notes = {**made.notes, "parallel_edges": parallel} if parallel else made.notes
    made = replace(made, notes=notes, label_names=dict(names), target_names=() if made.y is None else target_names)
    return without_empty(made, reading.empty)


def to_networkx(graphs: GraphSet) -> list[nx.Graph]:
    """Convert a set to ``networkx.Graph`` objects with nodes 0, 1, …; :func:`from_networkx` gives the same set back.

    Fields are named as in :func:`from_networkx`.

    Raises:
        DataError: the labels or attributes of an edge differ by direction, which an undirected NetworkX graph cannot
            represent.
    """
    import networkx as nx

    made = []
    for i, one in enumerate(graphs):
        graph = nx.Graph()
        if one.y is not None:
            graph.graph["label"] = one.y
        node_values = {
            "label": _scalars(one.node_labels, True, names=graphs.label_names),
            "attributes": _scalars(one.x, False),
        }
        graph.add_nodes_from(zip(range(one.num_nodes), _dictionaries(node_values, one.num_nodes), strict=True))
        _require_symmetric(one.edge_index, (one.edge_labels, one.edge_attr), i)
        upper = np.flatnonzero(one.edge_index[0] < one.edge_index[1])
        batches = [(one.edge_index[:, upper], one.edge_labels, one.edge_attr, one.edge_weight, upper)]
        if one.loops is not None:
            loops = one.loops
            every = np.arange(len(loops.node))
            batches.append((np.stack([loops.node] * 2), loops.labels, loops.attributes, loops.weight, every))
        for ends, labels, attributes, weight, which in batches:
            edge_values = {
                "label": _scalars(labels, True, which, graphs.label_names),
                "attributes": _scalars(attributes, False, which),
                "weight": _scalars(None if weight is None else weight[:, None], True, which),
            }
            values = _dictionaries(edge_values, len(which))
            graph.add_edges_from(zip(*ends.tolist(), values, strict=True))
        made.append(graph)
    return made


def _require_graph(graph: Any, i: int, reading: Reading) -> None:
    if not hasattr(graph, "is_directed"):
        raise DataError(f"is an object of type {type(graph).__name__}, not a NetworkX graph", place(i))
    if graph.is_directed() and reading.directed == "error":
        remedy = 'directed="symmetrize" (--directed symmetrize) forgets directions'
        raise DataError(f"is directed; graphs must be undirected: {remedy}", place(i))


Edge: TypeAlias = tuple[int, int, dict[str, Any]]


def _merged(edges: list[Edge], directed: bool) -> tuple[list[Edge], int]:
    """Merge parallel edges: weights are added, otherwise the first counts; return how many were merged."""
    kept: dict[tuple[int, int], dict[str, Any]] = {}
    for u, v, values in edges:
        pair = (u, v) if directed else (min(u, v), max(u, v))
        if pair not in kept:
            kept[pair] = dict(values)
        elif "weight" in values and "weight" in kept[pair]:
            kept[pair]["weight"] += values["weight"]
    return [(u, v, values) for (u, v), values in kept.items()], len(edges) - len(kept)


def _with_mean_weights(arcs: list[Edge]) -> list[Edge]:
    """Give both arcs of an edge the mean of their weights."""
    weight = {(u, v): values["weight"] for u, v, values in arcs if "weight" in values}
    return [
        (u, v, {**values, "weight": (values["weight"] + weight[v, u]) / 2} if "weight" in values and (v, u) in weight
         else values)
        for u, v, values in arcs
    ]  # fmt: skip


def _targets(described: Sequence[Mapping[str, Any]], reading: Reading) -> tuple[list[Any], tuple[str, ...]]:
    """Return the target of each graph, one value or several, from the data of the graphs; and their names."""
    known = dict.fromkeys(key for values in described for key in values)
    wanted = reading.targets
    if wanted is None:
        key = next((key for key in TARGET_KEYS if key in known), None)
        return ([None] * len(described), ()) if key is None else ([values.get(key) for values in described], (key,))
    keys = [key for text in wanted for key in ([text] if text in known else text.split(","))]
    absent = [key for key in keys if key not in known]
    if absent and reading.labelled:
        there = listed(map(str, known)) or "none"
        raise DataError(f"no graph has {absent[0]!r} among its graph data for target; there are {there}")
    keys = [key for key in keys if key in known]
    if len(keys) == 1:
        return [values.get(keys[0]) for values in described], (keys[0],)
    return [[values.get(key) for key in keys] for values in described] if keys else [None] * len(described), tuple(keys)


def _scalars(
    table: Array | None, unwrap: bool, which: Ints | None = None, names: Mapping[int, str] | None = None
) -> list[Any] | None:
    """Return rows as tuples, or as single values if ``unwrap`` and there is one column.

    Values become Python numbers, except floats narrower than float64, which stay NumPy's to keep their type.
    """
    if table is None:
        return None
    table = table if which is None else table[which]
    if names and table.dtype.kind == "i":
        named = [tuple(names.get(code, code) for code in row) for row in table.tolist()]
        return [row[0] for row in named] if unwrap and table.shape[1] == 1 else list(named)
    kept = table.dtype.kind == "f" and table.dtype != np.float64
    if unwrap and table.shape[1] == 1:
        return list(table[:, 0]) if kept else list(table[:, 0].tolist())
    return [tuple(row) for row in (table if kept else table.tolist())]


def _dictionaries(fields: dict[str, list[Any] | None], rows: int) -> list[dict[str, Any]]:
    """Return one dictionary for each row, with the fields that are not None."""
    there = {key: values for key, values in fields.items() if values is not None}
    return [dict(zip(there, row, strict=True)) for row in zip(*there.values(), strict=True)] if there else [{}] * rows


def _require_symmetric(edge_index: Ints, values: Iterable[Array | None], i: int) -> None:
    reverse = np.lexsort(edge_index)
    for table in values:
        if table is not None and (table[reverse] != table).any():
            problem = "has edge labels or attributes that differ by direction; NetworkX cannot hold them, use to_pyg"
            raise DataError(problem, place(i))
