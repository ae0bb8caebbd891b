"""Graphs in tables: one edge a row, and optionally one node a row and one graph a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble, without_empty
from gcaps.data.graphset import GraphSet
from gcaps.data.io.columns import ColumnType, choose_targets, matching, normal, position, stacked
from gcaps.data.io.fields import LABEL_KEYS
from gcaps.data.io.tables import ObjectTable, Table, TextTable, ending, parquet_table
from gcaps.data.labels import LabelNames
from gcaps.data.reading import Reading, listed
from gcaps.errors import DataError

GRAPH = ("graph_id", "graph", "graphid", "graph_index", "graph_name", "gid", "graph_indicator")
SOURCE = ("source", "src", "from", "u", "node1", "node_1", "source_id", "source_node", "start", "node_from")
TARGET = ("target", "dst", "to", "v", "node2", "node_2", "target_id", "target_node", "end", "node_to", "destination")
NODE = ("node_id", "node", "id", "nodeid", "node_index", "name")
WEIGHT = ("weight", "weights", "edge_weight")
FOLDER = {"edges": ("edges", "edge"), "nodes": ("nodes", "node"), "graphs": ("graphs", "labels", "graph", "targets")}
"""Names, without ending, of the tables of a folder."""
_ENDINGS = (".csv", ".tsv", ".tab", ".parquet", ".pq")


def is_edge_table(names: Sequence[str]) -> bool:
    """Whether columns are those of a table of edges: it has a source and a target."""
    lower = [normal(name) for name in names]
    pairs = zip(SOURCE, TARGET, strict=False)
    return "smiles" not in lower and any(a in lower and b in lower for a, b in pairs)


def tables_of(folder: Path) -> dict[str, Path]:
    """Return the tables of a folder: its ``edges``, and ``nodes`` and ``graphs`` if they are there."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if ending(path) in _ENDINGS:
            name = path.name.split(".")[0].lower()
            for part, names in FOLDER.items():
                if name in names:
                    found.setdefault(part, path)
    return found if "edges" in found else {}


def open_any_table(path: str | Path) -> Table:
    """Open a table of text or a parquet file."""
    path = Path(path)
    return parquet_table(path) if ending(path) in (".parquet", ".pq") else TextTable(path)


def read_edge_tables(edges: Table, reading: Reading, name: str | None = None) -> GraphSet:
    """Read graphs from a table of edges.

    Columns of the edges: graph, source, target, and optionally a weight; further strings, and integers under names
    such as ``type``, are edge labels, other numbers edge attributes. ``reading.nodes`` has one row for each node
    (graph, node and further columns likewise); without it, the nodes are those of the edges. ``reading.labels`` has one
    row for each graph: its id and target; without it, ``reading.target`` names a column of the edges that is constant
    in each graph.

    Raises:
        DataError: a table is malformed; the message names file and line.
    """
    rows = Columns(edges)
    graph_key, source, target = (rows.require(names, what) for names, what in _ENDS)
    node_rows = None if reading.nodes is None else Columns(open_any_table(reading.nodes))
    label_rows = None if reading.labels is None else Columns(open_any_table(reading.labels))
    own = [] if label_rows is not None or reading.targets is None else _own_targets(edges, reading)
    graphs = _Numbering()
    label_key = None if label_rows is None else _graph_column(label_rows, reading)
    if label_rows is not None and label_key is not None:
        for line, id_ in zip(label_rows.lines, label_rows.texts(label_key), strict=True):
            if graphs.add(id_) != len(graphs) - 1:
                raise label_rows.table.error(f"graph {id_!r} has two rows", line)
    nodes = _Nodes(graphs)
    names = LabelNames()
    labels: Ints | None = None
    x: Floats | None = None
    if node_rows is not None:
        key, node = node_rows.require(GRAPH, "the graph"), node_rows.require(NODE, "the node")
        nodes.from_table(node_rows, key, node)
        labels, x, _ = node_rows.fields({key, node}, names)
    ends = nodes.from_edges(rows, graph_key, source, target, known=node_rows is not None)
    order = np.argsort(nodes.graph_of, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    edge_labels, edge_attr, weight = rows.fields({graph_key, source, target, *own}, names)
    made = assemble(
        name or edges.name,
        pointer(np.bincount(nodes.graph_of, minlength=len(graphs))),
        EdgeRows(rank[ends[0]], rank[ends[1]], edge_labels, edge_attr, weight),
        node_labels=None if labels is None else labels[order],
        x=None if x is None else x[order],
    )
    made = replace(made, label_names=dict(names), given_ids=np.array(graphs.ids, dtype=np.str_))
    if label_rows is not None and label_key is not None:
        made = _with_labels(made, label_rows, label_key, reading)
    elif own:
        made = _with_own_targets(made, rows, own, graph_key, graphs)
    return without_empty(made, reading.empty, lambda i: f"graph {made.ids[i]}")


_ENDS = ((GRAPH, "the graph"), (SOURCE, "the source node"), (TARGET, "the target node"))


class Columns:
    """All cells of a table, column by column."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.text = not isinstance(table, ObjectTable)
        width = len(table.names)
        self.lines: list[int] = []
        self.cells: list[list[Any]] = [[] for _ in range(width)]
        for line, cells in table.rows():
            if len(cells) != width:
                raise table.error(f"has {len(cells)} columns, expected {width}", line)
            self.lines.append(line)
            for column, cell in zip(self.cells, cells, strict=True):
                column.append(cell)
        if not self.lines:
            raise table.error("has no rows")

    def find(self, names: Sequence[str]) -> int | None:
        """Return the position of the first of the usual names."""
        lower = [normal(name) for name in self.table.names]
        return next((lower.index(name) for name in names if name in lower), None)

    def require(self, names: Sequence[str], what: str) -> int:
        """Return the position of the first of the usual names; a DataError says which are."""
        found = self.find(names)
        if found is None:
            problem = f"has no column for {what}: call it {' or '.join(names[:3])}; it has {listed(self.table.names)}"
            raise self.table.error(problem, 1 if self.text else None)
        return found

    def texts(self, i: int) -> list[str]:
        """Return a column as text; a whole number has no decimals."""
        return [str(int(c)) if isinstance(c, float) and c.is_integer() else str(c).strip() for c in self.cells[i]]

    def array(self, i: int, what: str = "") -> Array:
        """Return a column as an array of its type; a DataError for cells that are missing or not finite."""
        type_ = self.type_of(i)
        for line, cell in zip(self.lines, self.cells[i], strict=True):
            problem = type_.problem(cell)
            if problem is None and type_.is_missing(cell):
                problem = f"has no value in column {self.table.names[i]!r}{what}"
            if problem is not None:
                raise self.table.error(problem, line)
        return type_.array(self.cells[i])

    def type_of(self, i: int) -> ColumnType:
        """Return the type of a column."""
        type_ = ColumnType(self.table.names[i], self.text, self.table.decimal_comma)
        for line, cell in zip(self.lines, self.cells[i], strict=True):
            type_.look(cell, line)
        type_.require_uniform(self.table)
        return type_

    def fields(self, taken: set[int], names: LabelNames) -> tuple[Ints | None, Floats | None, Floats | None]:
        """Return labels, attributes and weight of the rows from the columns that are not ``taken``."""
        labels: list[Array] = []
        attributes: list[Array] = []
        weight: Floats | None = None
        for i, name in enumerate(self.table.names):
            if i in taken or not name:
                continue
            values = self.array(i)
            if normal(name) in WEIGHT:
                weight = self._weight(i, values)
            elif values.dtype.kind == "U":
                distinct, inverse = np.unique(values, return_inverse=True)
                codes = np.array([names.code(str(text)) for text in distinct], dtype=np.int64)
                labels.append(codes[inverse])
            elif values.dtype.kind in "ib" and normal(name) in LABEL_KEYS:
                labels.append(values.astype(np.int64))
            else:
                attributes.append(values.astype(np.float64))
        return np.stack(labels, 1) if labels else None, np.stack(attributes, 1) if attributes else None, weight

    def _weight(self, i: int, values: Array) -> Floats:
        wrong = np.flatnonzero(values <= 0) if values.dtype.kind != "U" else np.zeros(1, dtype=np.int64)
        if len(wrong):
            problem = f"has weight {self.cells[i][wrong[0]]}; weights are positive, an edge of weight 0 is no edge"
            raise self.table.error(problem, self.lines[wrong[0]])
        return values.astype(np.float64)


class _Numbering:
    """Numbers of ids in the order in which they first occur."""

    def __init__(self) -> None:
        self.number: dict[Any, int] = {}

    def add(self, id_: Any) -> int:
        """Return the number of an id, a new one if it is new."""
        return self.number.setdefault(id_, len(self.number))

    def __len__(self) -> int:
        return len(self.number)

    @property
    def ids(self) -> list[Any]:
        """Ids in the order of their numbers."""
        return list(self.number)


class _Nodes(_Numbering):
    """Nodes of all graphs, numbered as they occur."""

    def __init__(self, graphs: _Numbering) -> None:
        super().__init__()
        self.graphs = graphs

    @property
    def graph_of(self) -> Ints:
        """[N] graph of each node."""
        return np.array([graph for graph, _ in self.number], dtype=np.int64)

    def from_table(self, rows: Columns, key: int, node: int) -> None:
        """Number the nodes of a node table."""
        for line, graph, id_ in zip(rows.lines, rows.texts(key), rows.texts(node), strict=True):
            if self.add((self.graphs.add(graph), id_)) != len(self) - 1:
                raise rows.table.error(f"node {id_!r} of graph {graph!r} has two rows", line)

    def from_edges(self, rows: Columns, key: int, source: int, target: int, known: bool) -> Ints:
        """[2, E] nodes of the edges; if they are ``known`` from a node table, others are an error."""
        ends = np.zeros((2, len(rows.lines)), dtype=np.int64)
        keys = rows.texts(key)
        for side, column in enumerate((source, target)):
            for k, (graph, id_) in enumerate(zip(keys, rows.texts(column), strict=True)):
                pair = (self.graphs.add(graph), id_)
                if known and pair not in self.number:
                    problem = f"names node {id_!r} of graph {graph!r}, which the table of nodes does not have"
                    raise rows.table.error(problem, rows.lines[k])
                ends[side, k] = self.add(pair)
        return ends


def _graph_column(rows: Columns, reading: Reading) -> int:
    if reading.id is not None:
        return position(rows.table, reading.id, "id")
    return rows.require((*GRAPH, "id", "name"), "the graph")


def with_labels(graphs: GraphSet, path: str | Path, reading: Reading) -> GraphSet:
    """Return the set with the targets of a table whose rows name the graphs by their ids."""
    rows = Columns(open_any_table(path))
    return _with_labels(graphs, rows, _graph_column(rows, reading), reading)


def _with_labels(graphs: GraphSet, rows: Columns, key: int, reading: Reading) -> GraphSet:
    table = rows.table
    choice = choose_targets(table, replace(reading, id=table.names[key]), table.sample(), {key})
    number = {id_: i for i, id_ in enumerate(rows.texts(key))}
    at = np.array([number.get(str(id_), -1) for id_ in graphs.ids])
    if (at < 0).all():
        problem = f"names none of the graphs, which are called {listed(map(str, graphs.ids[:3].tolist()))}, …"
        raise table.error(f"column {table.names[key]!r} {problem}")
    picked: dict[int, Array] = {}
    for i in (*choice.targets, *choice.columns):
        type_ = rows.type_of(i)
        cells = ["" if k < 0 else rows.cells[i][k] for k in at]
        for k, cell in zip(at, cells, strict=True):
            if (problem_of := type_.problem(cell)) is not None:
                raise table.error(problem_of, rows.lines[k])
        if (at < 0).any():
            type_.look("", 0)
        picked[i] = type_.array(cells)
    names = tuple(table.names[i] for i in choice.targets)
    y = stacked([picked[i] for i in choice.targets], names, table)
    columns = {**graphs.columns, **{table.names[i]: picked[i] for i in choice.columns}}
    return replace(graphs, y=y, target_names=names, columns=columns)


def _own_targets(edges: Table, reading: Reading) -> list[int]:
    try:
        return matching(edges, reading.targets or ())
    except DataError:
        if reading.labelled:
            raise
        return []


def _with_own_targets(graphs: GraphSet, rows: Columns, own: list[int], key: int, ids: _Numbering) -> GraphSet:
    """Take targets from columns of the edges, which are constant in each graph."""
    graph_of = np.array([ids.number[graph] for graph in rows.texts(key)])
    _, first = np.unique(graph_of, return_index=True)
    targets = []
    for i in own:
        cells = rows.texts(i)
        for k, graph in enumerate(graph_of):
            if cells[k] != cells[first[graph]]:
                raise rows.table.error(f"column {rows.table.names[i]!r} changes within a graph", rows.lines[k])
        targets.append(rows.type_of(i).array([rows.cells[i][k] for k in first]))
    names = tuple(rows.table.names[i] for i in own)
    return replace(graphs, y=stacked(targets, names, rows.table), target_names=names)
