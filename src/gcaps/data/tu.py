"""The TU collection's format (https://chrsmrrs.github.io/datasets), from a folder or straight from its zip."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gcaps.data.archive import Files
from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet
from gcaps.data.text import read_table, table_strides
from gcaps.errors import DataError


def read_tu(path: str | Path, *, labelled: bool = True) -> GraphSet:
    """Read ``DS_A.txt``, ``DS_graph_indicator.txt``, ``DS_graph_labels.txt`` and what else of the format is there.

    Args:
        path: a folder or a zip that holds the files.
        labelled: graph labels must be there and name at least two classes.

    Raises:
        DataError: naming file, line and remedy, for whatever the format does not allow.
    """
    files = Files(path)
    try:
        return TUReader(files, labelled).read()
    finally:
        files.close()


class TUReader:
    """One data set's files, and what the format demands of them."""

    def __init__(self, files: Files, labelled: bool) -> None:
        self.files, self.labelled = files, labelled
        found = [name.removesuffix("_A.txt") for name in files.names if name.endswith("_A.txt")]
        if len(found) != 1:
            what = "no file NAME_A.txt" if not found else f"{len(found)} data sets ({', '.join(found)})"
            raise DataError(f"holds {what}; a TU data set has exactly one NAME_A.txt", str(files.path))
        self.name = found[0]

    def table(self, part: str, kind: str = "integer", columns: int | None = 1) -> Array | None:
        """The table ``NAME_part.txt``, or None where the set has none."""
        name = f"{self.name}_{part}.txt"
        if name not in self.files.names:
            return None
        with self.files.open(name) as stream:
            return read_table(stream, self.place(part), kind, columns)

    def place(self, part: str) -> str:
        """How errors call the file ``NAME_part.txt``."""
        return self.files.place(f"{self.name}_{part}.txt")

    def read(self) -> GraphSet:
        """The whole set, in memory."""
        labels = self.graph_labels()
        graph_of = self.graph_of_node(None if labels is None else len(labels))
        num_graphs = int(graph_of.max()) + 1
        num_nodes = len(graph_of)
        node_labels = self.table("node_labels", columns=None)
        node_attributes = self.table("node_attributes", "number", None)
        for part, table in (("node_labels", node_labels), ("node_attributes", node_attributes)):
            self.require_rows(part, None if table is None else len(table), num_nodes, "graph_indicator")
        rows = self.edges(graph_of)
        if (graph_of[1:] < graph_of[:-1]).any():
            order = np.argsort(graph_of, kind="stable")
            rank = np.empty(num_nodes, dtype=np.int64)
            rank[order] = np.arange(num_nodes)
            rows.source, rows.target, graph_of = rank[rows.source], rank[rows.target], graph_of[order]
            node_labels = None if node_labels is None else node_labels[order]
            node_attributes = None if node_attributes is None else node_attributes[order]
        return assemble(
            self.name,
            pointer(np.bincount(graph_of, minlength=num_graphs)),
            rows,
            y=labels,
            node_labels=None if node_labels is None else node_labels.astype(np.int64),
            x=node_attributes,
        )

    def graph_labels(self) -> Ints | None:
        """[G] the labels as the source writes them."""
        labels = self.table("graph_labels")
        if not self.labelled:
            return None if labels is None else labels[:, 0].astype(np.int64)
        if labels is None:
            raise DataError(
                "is missing; training and evaluation need a label for each graph", self.place("graph_labels")
            )
        if (labels == labels[0]).all():
            problem = f"all {len(labels)} graphs have the label {labels[0, 0]}; a classifier needs at least two classes"
            raise DataError(problem, self.place("graph_labels"))
        return labels[:, 0].astype(np.int64)

    def graph_of_node(self, num_graphs: int | None) -> Array:
        """[N] the graph of each node, counted from 0; every graph has at least one."""
        table = self.table("graph_indicator")
        if table is None:
            raise DataError("is missing", self.place("graph_indicator"))
        graph_of = table[:, 0] - 1
        total = int(graph_of.max()) + 1 if num_graphs is None else num_graphs
        self.require_graphs(graph_of, total)
        self.require_enough_nodes(total, len(graph_of))
        self.require_no_empty_graph(np.bincount(graph_of, minlength=total))
        return graph_of

    def require_graphs(self, graph_of: Array, num_graphs: int, first: int = 0) -> None:
        """DataError at the first line that names a graph that is not there; ``first`` lines came before."""
        outside = np.flatnonzero((graph_of < 0) | (graph_of >= num_graphs))
        if len(outside):
            problem = f"names graph {graph_of[outside[0]] + 1}; there are graphs 1 to {num_graphs}"
            raise DataError(problem, self.place("graph_indicator"), first + int(outside[0]) + 1)

    def require_enough_nodes(self, num_graphs: int, num_nodes: int) -> None:
        """DataError where there are more graphs than nodes."""
        if num_graphs > num_nodes:
            counted = f"{num_graphs} graphs, but {self.place('graph_indicator')} has only {num_nodes} nodes"
            raise DataError(f"{counted}: at least one graph would have none", self.place("graph_labels"))

    def require_no_empty_graph(self, sizes: Array) -> None:
        """DataError where a graph has no nodes."""
        empty = np.flatnonzero(sizes == 0)
        if len(empty):
            problem = f"graph {empty[0] + 1} has no nodes in {self.place('graph_indicator')}; remove the graph"
            raise DataError(problem, self.place("graph_labels"), int(empty[0]) + 1)

    def edges(self, graph_of: Array) -> EdgeRows:
        """All rows, nodes counted from 0."""
        table = np.concatenate([np.zeros((0, 2), dtype=np.int32), *self.edge_strides()])
        self.require_nodes(table, len(graph_of))
        table -= 1
        source, target = table[:, 0], table[:, 1]
        self.require_one_graph(table, graph_of[source], graph_of[target])
        labels = self.table("edge_labels", columns=None)
        attributes = self.table("edge_attributes", "number", None)
        for part, values in (("edge_labels", labels), ("edge_attributes", attributes)):
            self.require_rows(part, None if values is None else len(values), len(source), "A")
        return EdgeRows(source, target, None if labels is None else labels.astype(np.int64), attributes)

    def edge_strides(self) -> Iterator[Array]:
        """The rows of ``NAME_A.txt`` as they stand there; a set without any edge is a set."""
        with self.files.open(f"{self.name}_A.txt") as stream:
            try:
                yield from table_strides(stream, self.place("A"), "integer", 2)
            except DataError as error:
                if error.line is not None or error.problem != "is empty":
                    raise

    def require_nodes(self, table: Array, num_nodes: int, first: int = 0) -> None:
        """DataError where a row [R, 2], nodes counted from 1, names a node that is not there."""
        for column in (0, 1):
            ends = table[:, column]
            if len(ends) and (ends.min() < 1 or ends.max() > num_nodes):
                line = int(np.flatnonzero((ends < 1) | (ends > num_nodes))[0])
                problem = f"names node {ends[line]}; there are nodes 1 to {num_nodes}"
                raise DataError(problem, self.place("A"), first + line + 1)

    def require_one_graph(self, table: Array, of_source: Array, of_target: Array, first: int = 0) -> None:
        """DataError where a row [R, 2], nodes counted from 0, joins nodes of two graphs."""
        across = np.flatnonzero(of_source != of_target)
        if len(across):
            row = across[0]
            problem = (
                f"the edge joins node {table[row, 0] + 1} of graph {of_source[row] + 1} and node {table[row, 1] + 1} "
                f"of graph {of_target[row] + 1}; both ends must lie in one graph"
            )
            raise DataError(problem, self.place("A"), first + int(row) + 1)

    def require_rows(self, part: str, count: int | None, rows: int, other: str) -> None:
        """DataError where the table is there and has not as many rows as another."""
        if count is not None and count != rows:
            problem = f"has {count} rows, but {self.place(other)} has {rows}; the two must agree"
            raise DataError(problem, self.place(part))
