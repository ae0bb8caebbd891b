"""Convert NetworkX graphs to a GraphSet and back.

NetworkX keeps a dictionary for each node and edge, so values are gathered one by one, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import Column, EdgeRows, assemble, place, require_finite, require_positive
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import target_array
from gcaps.errors import DataError

if TYPE_CHECKING:
    import networkx as nx


def from_networkx(graphs: Iterable[nx.Graph], y: Sequence[Any] | None = None, name: str = "nx") -> GraphSet:
    """Convert undirected NetworkX graphs to a set; nodes are numbered in the order in which a graph lists them.

    Node attributes: ``"label"`` (an integer or several), ``"attributes"`` (numbers). Edge attributes: the same two and
    ``"weight"`` (positive). All nodes of a set have such a field or none, and so do all edges.

    Args:
        graphs: the graphs.
        y: targets; by default ``graph.graph["label"]`` of each graph.
        name: of the set.

    Raises:
        DataError: a graph is malformed or does not match the others; the message names it ``graphs[i]``.
    """
    graphs = list(graphs)
    if not graphs:
        raise DataError(f"{name}: there are no graphs")
    if y is not None and len(y) != len(graphs):
        raise DataError(f"{name}: {len(y)} targets for {len(graphs)} graphs")
    node_labels, x = Column("node 'label'", int), Column("node 'attributes'", float)
    edge_labels, edge_attr = Column("edge 'label'", int), Column("edge 'attributes'", float)
    edge_weight = Column("edge 'weight'", float)
    sizes: list[int] = []
    ends: list[Array] = []
    for i, graph in enumerate(graphs):
        _require_plain(graph, i)
        nodes = list(graph.nodes(data=True))
        number = {node: k for k, (node, _) in enumerate(nodes)}
        edges = list(graph.edges(data=True))
        sizes.append(len(nodes))
        ends.append(np.array([(number[u], number[v]) for u, v, _ in edges], dtype=np.int64).reshape(-1, 2).T)
        of_nodes, of_edges = [values for _, values in nodes], [values for *_, values in edges]
        node_labels.add(_gathered(of_nodes, "node", "label", i), len(nodes))
        x.add(_gathered(of_nodes, "node", "attributes", i), len(nodes))
        edge_labels.add(_gathered(of_edges, "edge", "label", i), len(edges))
        edge_attr.add(_gathered(of_edges, "edge", "attributes", i), len(edges))
        edge_weight.add(_gathered(of_edges, "edge", "weight", i), len(edges))
    graph_of_edge = np.repeat(np.arange(len(graphs)), [e.shape[1] for e in ends])
    weight, described = edge_weight.joined(), edge_attr.joined()
    attributes = x.joined()
    require_finite(attributes, np.repeat(np.arange(len(graphs)), sizes), "'attributes' of a node")
    require_finite(described, graph_of_edge, "'attributes' of an edge")
    if weight is not None:
        require_positive(weight[:, 0], graph_of_edge)
    ptr = pointer(np.array(sizes))
    u, v = np.concatenate(ends, axis=1) + ptr[graph_of_edge]
    once = EdgeRows(u, v, edge_labels.joined(), described, None if weight is None else weight[:, 0])
    # both directions, so that notes do not count every edge as one-way; a self-loop has only one
    rows = once.take(np.concatenate([np.arange(len(u)), np.flatnonzero(u != v)]))
    rows.source, rows.target = np.concatenate([u, v[u != v]]), np.concatenate([v, u[u != v]])
    return assemble(
        name,
        ptr,
        rows,
        y=target_array([graph.graph.get("label") for graph in graphs] if y is None else list(y)),
        node_labels=node_labels.joined(),
        x=attributes,
    )


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
        node_values = {"label": _scalars(one.node_labels, True), "attributes": _scalars(one.x, False)}
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
                "label": _scalars(labels, True, which),
                "attributes": _scalars(attributes, False, which),
                "weight": _scalars(None if weight is None else weight[:, None], True, which),
            }
            values = _dictionaries(edge_values, len(which))
            graph.add_edges_from(zip(*ends.tolist(), values, strict=True))
        made.append(graph)
    return made


def _require_plain(graph: Any, i: int) -> None:
    if not hasattr(graph, "is_directed"):
        raise DataError(f"is an object of type {type(graph).__name__}, not a NetworkX graph", place(i))
    if graph.is_directed():
        raise DataError("is directed; graphs must be undirected: graph.to_undirected() first", place(i))
    if graph.is_multigraph():
        raise DataError("is a multigraph; merge its parallel edges first: networkx.Graph(graph)", place(i))
    if not len(graph):
        raise DataError("has no nodes; remove it", place(i))


def _gathered(dictionaries: list[dict[str, Any]], owner: str, key: str, i: int) -> Array | None:
    """[rows, columns] values under ``key``; None if no dictionary has it."""
    values = [entry[key] for entry in dictionaries if entry.get(key) is not None]
    if not values:
        return None
    if len(values) != len(dictionaries):
        missing = len(dictionaries) - len(values)
        raise DataError(
            f"{missing} of {len(dictionaries)} {owner}s have no {key!r}; give it to all or to none", place(i)
        )
    wanted = "an integer or a tuple of integers" if key == "label" else "a number" if key == "weight" else "numbers"
    try:
        table = np.array(values)
    except (ValueError, TypeError) as error:
        raise DataError(f"the {key!r} of its {owner}s differ in length", place(i)) from error
    table = table[:, None] if table.ndim == 1 else table
    kinds = "iub" if key == "label" else "fiub"
    if table.ndim != 2 or (table.dtype.kind not in kinds and table.size) or (key == "weight" and table.shape[1] != 1):
        raise DataError(
            f"the {key!r} of a {owner} is {wanted}, not {values[0]!r}; number or convert it first", place(i)
        )
    if key == "label":
        return table.astype(np.int64)
    return table if table.dtype.kind == "f" else table.astype(np.float64)


def _scalars(table: Array | None, unwrap: bool, which: Ints | None = None) -> list[Any] | None:
    """Return rows as tuples, or as single values if ``unwrap`` and there is one column.

    Values become Python numbers, except floats narrower than float64, which stay NumPy's to keep their type.
    """
    if table is None:
        return None
    table = table if which is None else table[which]
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
