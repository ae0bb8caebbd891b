"""Convert PyTorch Geometric ``Data`` objects to a GraphSet and back, without loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

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
from gcaps.data.graphset import GraphSet
from gcaps.data.labels import LabelNames
from gcaps.data.reading import Empty, Reading
from gcaps.data.targets import target_array
from gcaps.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data


def from_pyg(
    graphs: Iterable[Data], name: str = "pyg", *, empty: Empty = "error", reading: Reading | None = None
) -> GraphSet:
    """Convert ``Data`` objects (a list, a PyG data set or a ``Batch``) to a set.

    ==============================  ==================================================
    ``x`` of floats, of integers    node attributes (type kept), node labels
    ``node_label``                  node labels: integers, or a list of strings
    ``edge_attr`` likewise          edge attributes, edge labels
    ``edge_label``                  edge labels
    ``edge_weight``                 weights, positive and the same in both directions
    ``y``, one value or [1, T]      target, or T targets: numbers, booleans or strings
    ``num_nodes``                   needed only without x and node_label
    ==============================  ==================================================

    Self-loops are kept apart, and an edge given in one direction gets the other (``notes`` counts both). If nothing
    states the number of nodes of a graph, it is the largest node of an edge plus one, as in PyG, and
    ``notes["guessed_sizes"]`` counts the graph. ``empty`` and ``reading`` are options of :func:`gcaps.load`.

    Raises:
        DataError: a graph is malformed or does not match the others; the message names it ``graphs[i]``.
    """
    if hasattr(graphs, "to_data_list"):
        graphs = graphs.to_data_list()
    parts = _Parts()
    for data in graphs:
        parts.add(data)
    return without_empty(parts.assembled(name), empty if reading is None else reading.empty)


class _Parts:
    """Fields of the graphs, collected graph by graph and concatenated once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.guessed = 0
        self.edges: list[Array] = []
        self.y: list[Any] = []
        self.names = LabelNames()
        self.node_labels = Column("x of integers or node_label", int)
        self.x = Column("x of floats", float)
        self.edge_labels = Column("edge_attr of integers or edge_label", int)
        self.edge_attr = Column("edge_attr of floats", float)
        self.edge_weight = Column("edge_weight", float)

    def add(self, data: Any) -> None:
        i = len(self.sizes)
        if hasattr(data, "node_types"):
            raise DataError("has several kinds of nodes; convert it with .to_homogeneous() first", place(i))
        if not hasattr(data, "to_dict"):
            raise DataError(f"is an object of type {type(data).__name__}, not a PyG Data object", place(i))
        given: dict[str, Any] = data.to_dict()
        if given.get("edge_index") is None and given.get("adj_t") is not None:
            raise DataError("has adj_t instead of edge_index; do not apply ToSparseTensor before gcaps", place(i))
        edges = given.get("edge_index")
        if _is_sparse(edges):
            remedy = "convert it: edge_index, edge_weight = torch_geometric.utils.to_edge_index(adjacency)"
            raise DataError(f"edge_index is a sparse matrix, not a list of edges; {remedy}", place(i))
        edge_index = checked_edge_index(np.zeros((2, 0), dtype=np.int64) if edges is None else _array(edges), i)
        tables = {key: _table(given[key], key, i, self.names) for key in _TABLES if given.get(key) is not None}
        num_nodes = self._num_nodes(given.get("num_nodes"), tables, edge_index, i)
        self.sizes.append(num_nodes)
        self.edges.append(edge_index)
        for features, named, labels, attributes, rows in (
            ("x", "node_label", self.node_labels, self.x, num_nodes),
            ("edge_attr", "edge_label", self.edge_labels, self.edge_attr, edge_index.shape[1]),
        ):
            x, label = tables.get(features), tables.get(named)
            if x is not None and x.dtype.kind != "f":
                if label is not None:
                    raise DataError(f"has integers both in {features} and in {named}; drop one of them", place(i))
                x, label = None, x
            labels.add(label, rows)
            attributes.add(x, rows)
        weight = tables.get("edge_weight")
        if weight is not None and weight.dtype.kind != "f":
            weight = weight.astype(np.float64)
        self.edge_weight.add(weight, edge_index.shape[1])
        self.y.append(_target(given.get("y"), i))

    def _num_nodes(self, stated: Any, tables: dict[str, Array], edge_index: Array, i: int) -> int:
        counts: dict[str, int] = {key: len(tables[key]) for key in ("x", "node_label") if key in tables}
        if stated is not None:
            counts["num_nodes"] = int(stated)
        if len(set(counts.values())) > 1:
            stated_by = ", ".join(f"{count} by {key}" for key, count in counts.items())
            raise DataError(f"has contradictory numbers of nodes: {stated_by}", place(i))
        if not counts:
            if not edge_index.size:
                return 0
            self.guessed += 1
        return next(iter(counts.values()), int(edge_index.max(initial=-1)) + 1)

    def assembled(self, name: str) -> GraphSet:
        if not self.sizes:
            raise DataError(f"{name}: there are no graphs")
        sizes = np.array(self.sizes, dtype=np.int64)
        local = np.concatenate(self.edges, axis=1)
        graph_of = np.repeat(np.arange(len(sizes)), [edges.shape[1] for edges in self.edges])
        require_nodes(local, sizes, graph_of)
        weight = self.edge_weight.joined()
        if weight is not None:
            if weight.shape[1] != 1:
                raise DataError(f"edge_weight has {weight.shape[1]} columns, expected 1", place(0))
            require_positive(weight[:, 0], graph_of)
        x, edge_attr = self.x.joined(), self.edge_attr.joined()
        require_finite(x, np.repeat(np.arange(len(sizes)), sizes), "x")
        require_finite(edge_attr, graph_of, "edge_attr")
        ptr = pointer(sizes)
        source, target = local + ptr[graph_of]
        made = assemble(
            name,
            ptr,
            EdgeRows(source, target, self.edge_labels.joined(), edge_attr, None if weight is None else weight[:, 0]),
            y=target_array(self.y),
            node_labels=self.node_labels.joined(),
            x=x,
        )
        made = replace(made, label_names=dict(self.names))
        return replace(made, notes={**made.notes, "guessed_sizes": self.guessed}) if self.guessed else made


_TABLES = ("x", "node_label", "edge_attr", "edge_label", "edge_weight")


def _array(value: Any) -> Array:
    """Return a tensor or array-like as a NumPy array; NumPy has no bfloat16."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        value = value.numpy()
    return np.asarray(value)


def _is_sparse(value: Any) -> bool:
    """Whether a value is a sparse tensor of PyTorch or torch_sparse, or a SciPy matrix."""
    layout = str(getattr(value, "layout", ""))
    return "sparse" in layout or (hasattr(value, "nnz") and not hasattr(value, "layout"))


def _table(value: Any, key: str, i: int, names: LabelNames) -> Array:
    """Return a field as a matrix, booleans as the integers 0 and 1, strings as their codes."""
    table = _array(value)
    if table.dtype.kind == "U" and key in ("node_label", "edge_label"):
        distinct, inverse = np.unique(table, return_inverse=True)
        codes = np.array([names.code(str(text)) for text in distinct], dtype=np.int64)
        table = codes[inverse.reshape(table.shape)] if table.size else table.astype(np.int64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2:
        raise DataError(f"{key} has {table.ndim} dimensions; it should be a matrix with one row for each", place(i))
    if table.dtype.kind not in "fiub" or (key in ("node_label", "edge_label") and table.dtype.kind == "f"):
        wanted = (
            "labels are integers or strings" if key.endswith("label") else "give numbers; strings go into node_label"
        )
        raise DataError(f"{key} is of type {table.dtype}; {wanted}", place(i))
    return table if table.dtype.kind == "f" else table.astype(np.int64)


def _target(value: Any, i: int) -> Any:
    """Return the ``y`` of a graph as one Python value, or several as a list."""
    if value is None or isinstance(value, str):
        return value
    y = _array(value)
    if y.ndim > 2 or (y.ndim == 2 and len(y) != 1) or not y.size:
        raise DataError(f"y has shape {list(y.shape)}; a graph has one target, or several as [1, targets]", place(i))
    return y.reshape(-1)[0].item() if y.size == 1 else y.reshape(-1).tolist()


def to_pyg(graphs: GraphSet) -> list[Data]:
    """Convert a set to ``Data`` objects, one for each graph; :func:`from_pyg` gives the same set back.

    Each has ``num_nodes``, ``edge_index`` (both directions, with self-loops, sorted) and those of ``x`` (node
    attributes), ``node_label``, ``edge_attr``, ``edge_label``, ``edge_weight`` and ``y`` (a tensor or a string) that
    the set has.
    """
    import torch
    from torch_geometric.data import Data

    arcs, counts = _with_loops(graphs)
    first = np.repeat(graphs.ptr[:-1], counts)
    edges: dict[str, Array | None] = {
        "edge_attr": arcs.attributes,
        "edge_label": arcs.labels,
        "edge_weight": arcs.weight,
    }
    nodes: dict[str, Array | None] = {"x": graphs.x, "node_label": graphs.node_labels}
    fields: dict[str, list[torch.Tensor]] = {}
    for group, lengths in ((nodes, graphs.sizes), (edges, counts)):
        for key, array in group.items():
            if array is not None:
                # copies: from_numpy warns about mapped arrays, and pickling a view would pickle the whole set
                parts = torch.split(torch.from_numpy(np.array(array)), lengths.tolist())
                fields[key] = [part.clone() for part in parts]
    if graphs.y is not None:
        fields["y"] = (
            graphs.y.tolist()
            if graphs.y.dtype.kind == "U"
            else [y.clone() for y in torch.split(torch.from_numpy(np.array(graphs.y)), 1)]
        )
    both = torch.split(torch.from_numpy(np.stack([arcs.source - first, arcs.target - first])), counts.tolist(), dim=1)
    return [
        Data(edge_index=both[i].clone(), num_nodes=int(size), **{key: parts[i] for key, parts in fields.items()})
        for i, size in enumerate(graphs.sizes)
    ]


def _with_loops(graphs: GraphSet) -> tuple[EdgeRows, Ints]:
    """Return all arcs with the self-loops merged in, sorted, and the number of each graph."""
    graph_of_node = np.repeat(np.arange(len(graphs)), graphs.sizes)
    source = np.repeat(np.arange(graphs.num_nodes, dtype=np.int64), graphs.degrees)
    target = graphs.col + np.repeat(graphs.ptr[:-1], graphs.arc_counts)
    arcs = EdgeRows(source, target, graphs.edge_labels, graphs.edge_attr, graphs.edge_weight)
    loops = graphs.loops
    if loops is None:
        return arcs, graphs.arc_counts

    def joined(mine: Array | None, theirs: Array | None) -> Array | None:
        return None if mine is None or theirs is None else np.concatenate([mine, theirs])

    merged = EdgeRows(
        np.concatenate([source, loops.node]),
        np.concatenate([target, loops.node]),
        joined(arcs.labels, loops.labels),
        joined(arcs.attributes, loops.attributes),
        joined(arcs.weight, loops.weight),
    )
    counts = graphs.arc_counts + np.bincount(graph_of_node[loops.node], minlength=len(graphs))
    return merged.take(np.lexsort((merged.target, merged.source))), counts
