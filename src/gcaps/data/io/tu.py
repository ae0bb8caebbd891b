"""Reader of the TU collection's format (https://chrsmrrs.github.io/datasets), from a folder or directly from a zip.

Tables of numbers are parsed by NumPy 16 MiB at a time, and every line is still checked.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from gcaps.data.arrays import Array, pointer
from gcaps.data.assemble import EdgeRows, assemble, without_empty
from gcaps.data.graphset import GraphSet
from gcaps.data.io.archive import Files
from gcaps.data.reading import Reading, listed
from gcaps.errors import DataError
from gcaps.files import max_line

STRIDE = 1 << 24
"""Bytes of a table that are parsed together."""
_COMMA_TO_SPACE = bytes.maketrans(b",", b" ")
_DTYPE = {"integer": np.int64, "number": np.float64}
_LEGAL = {"integer": b"0123456789-+ \t\r,\n", "number": b"0123456789-+.eE \t\r,\n"}
_FIELD = {
    "integer": re.compile(rb"[ \t]*[-+]?\d{1,18}[ \t]*"),
    "number": re.compile(rb"[ \t]*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[ \t]*"),
}


def read_tu(path: str | Path, *, labelled: bool = True, reading: Reading | None = None) -> GraphSet:
    """Read ``NAME_A.txt``, ``NAME_graph_indicator.txt``, ``NAME_graph_labels.txt`` and the optional tables.

    Targets are the graph labels or, if there are none, the numbers of ``NAME_graph_attributes.txt``.

    Args:
        path: folder or zip with the files.
        labelled: require targets, and graph labels of at least two classes.
        reading: ``labelled`` and the other options of :func:`gcaps.load`.

    Raises:
        DataError: the files break the format; the message names file, line and remedy.
    """
    files = Files(path)
    try:
        return TUReader(files, reading or Reading(labelled=labelled)).read()
    finally:
        files.close()


class TUReader:
    """Files of one data set, and the checks that the format demands.

    Args:
        files: the files.
        reading: whether targets are required, and what becomes of graphs without nodes.
    """

    def __init__(self, files: Files, reading: Reading) -> None:
        self.files, self.reading, self.labelled = files, reading, reading.labelled
        found = [name.removesuffix("_A.txt") for name in files.names if name.endswith("_A.txt")]
        if len(found) != 1:
            what = "no file NAME_A.txt" if not found else f"{len(found)} data sets ({', '.join(found)})"
            raise DataError(f"holds {what}; a TU data set has exactly one NAME_A.txt", str(files.path))
        self.name = found[0]

    def table(self, part: str, kind: str = "integer", columns: int | None = 1) -> Array | None:
        """Return the table ``NAME_part.txt`` [rows, columns], or None if there is no such file."""
        name = f"{self.name}_{part}.txt"
        if name not in self.files.names:
            return None
        with self.files.open(name) as stream:
            return read_table(stream, self.place(part), kind, columns)

    def place(self, part: str) -> str:
        """Return the path of ``NAME_part.txt`` for error messages."""
        return self.files.place(f"{self.name}_{part}.txt")

    def read(self) -> GraphSet:
        """Read the whole set into memory."""
        labels = self.graph_labels()
        graph_of = self.graph_of_node(None if labels is None else len(labels))
        num_graphs = int(graph_of.max()) + 1 if labels is None else len(labels)
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
        made = assemble(
            self.name,
            pointer(np.bincount(graph_of, minlength=num_graphs)),
            rows,
            y=labels,
            node_labels=None if node_labels is None else node_labels.astype(np.int64),
            x=node_attributes,
        )
        return without_empty(made, self.reading.empty)

    def graph_labels(self) -> Array | None:
        """[G] labels as in the file, or [G] or [G, T] graph attributes; None if there are none."""
        labels = self.table("graph_labels")
        if labels is None and (values := self.table("graph_attributes", "number", None)) is not None:
            return values[:, 0] if values.shape[1] == 1 else values
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
        """[N] graph of each node, numbered from 0; every graph has at least one node."""
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
        """Raise a DataError at the first line with an unknown graph; ``first`` lines came before these."""
        outside = np.flatnonzero((graph_of < 0) | (graph_of >= num_graphs))
        if len(outside):
            problem = f"names graph {graph_of[outside[0]] + 1}; there are graphs 1 to {num_graphs}"
            raise DataError(problem, self.place("graph_indicator"), first + int(outside[0]) + 1)

    def require_enough_nodes(self, num_graphs: int, num_nodes: int) -> None:
        """Raise a DataError if there are more graphs than nodes, unless graphs without nodes are dropped."""
        if num_graphs > num_nodes and self.reading.empty == "error":
            counted = f"{num_graphs} graphs, but {self.place('graph_indicator')} has only {num_nodes} nodes"
            problem = f"{counted}: at least one graph would be empty; leave such graphs out with --empty drop"
            raise DataError(problem, self.place("graph_labels"))

    def require_no_empty_graph(self, sizes: Array) -> None:
        """Raise a DataError if a graph has no nodes, unless such graphs are dropped."""
        empty = np.flatnonzero(sizes == 0)
        if len(empty) and self.reading.empty == "error":
            others = f" (nor have graphs {listed(map(str, empty[1:] + 1), 5)})" if len(empty) > 1 else ""
            where = self.place("graph_indicator")
            remedy = "remove the graph, or leave it out: --empty drop"
            problem = f"graph {empty[0] + 1} has no nodes in {where}{others}; {remedy}"
            raise DataError(problem, self.place("graph_labels"), int(empty[0]) + 1)

    def edges(self, graph_of: Array) -> EdgeRows:
        """Read all edges, nodes numbered from 0."""
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
        """Yield the rows of ``NAME_A.txt``, nodes numbered from 1; the file may be empty."""
        with self.files.open(f"{self.name}_A.txt") as stream:
            try:
                yield from table_strides(stream, self.place("A"), "integer", 2)
            except DataError as error:
                if error.line is not None or error.problem != "is empty":
                    raise

    def require_nodes(self, table: Array, num_nodes: int, first: int = 0) -> None:
        """Raise a DataError if a row of ``table`` [R, 2], nodes numbered from 1, has an unknown node."""
        for column in (0, 1):
            ends = table[:, column]
            if len(ends) and (ends.min() < 1 or ends.max() > num_nodes):
                line = int(np.flatnonzero((ends < 1) | (ends > num_nodes))[0])
                problem = f"names node {ends[line]}; there are nodes 1 to {num_nodes}"
                raise DataError(problem, self.place("A"), first + line + 1)

    def require_one_graph(self, table: Array, of_source: Array, of_target: Array, first: int = 0) -> None:
        """Raise a DataError if a row of ``table`` [R, 2], nodes numbered from 0, joins two graphs."""
        across = np.flatnonzero(of_source != of_target)
        if len(across):
            row = across[0]
            problem = (
                f"the edge joins node {table[row, 0] + 1} of graph {of_source[row] + 1} and node {table[row, 1] + 1} "
                f"of graph {of_target[row] + 1}; both ends must lie in one graph"
            )
            raise DataError(problem, self.place("A"), first + int(row) + 1)

    def require_rows(self, part: str, count: int | None, rows: int, other: str) -> None:
        """Raise a DataError if the table ``part`` exists and has not ``rows`` rows, as ``other`` has."""
        if count is not None and count != rows:
            problem = f"has {count} rows, but {self.place(other)} has {rows}; the two must agree"
            raise DataError(problem, self.place(part))


def read_table(stream: IO[bytes], file: str, kind: str, columns: int | None = None) -> Array:
    """Read a comma-separated table as an array [rows, columns].

    Args:
        stream: the text, read once and piece by piece.
        file: its path for error messages.
        kind: ``"integer"`` (int64, or int32 if all values fit) or ``"number"`` (float64).
        columns: required number of columns; by default that of the first row.

    Raises:
        DataError: at the first line that does not hold ``columns`` finite numbers of that kind.
    """
    return np.concatenate(list(table_strides(stream, file, kind, columns)))


def table_strides(stream: IO[bytes], file: str, kind: str, columns: int | None = None) -> Iterator[Array]:
    """Yield the rows of :func:`read_table` in consecutive arrays of some hundred thousand rows; at least one array."""
    rows = 0
    while chunk := stream.read(STRIDE):
        chunk += stream.readline(max_line())
        if not chunk.endswith(b"\n") and stream.read(1):
            raise DataError(f"has a line of more than {max_line():,} characters; refused", file)
        if not chunk.endswith(b"\n"):
            chunk += b"\n"
        if not chunk.strip():
            continue
        if columns is None:
            columns = chunk[: chunk.index(b"\n")].count(b",") + 1
        table = _parse(chunk.rstrip() + b"\n", kind, columns)
        if table is None:
            raise _first_error(chunk, file, rows, kind, columns)
        rows += len(table)
        yield table
    if not rows:
        raise DataError("is empty", file)


def _parse(chunk: bytes, kind: str, columns: int) -> Array | None:
    """Return the numbers of a chunk of lines, or None if one of them is malformed.

    Every line has columns−1 commas and no empty field, so there are at least as many numbers as fields; if there are
    exactly as many, each field is one number.
    """
    if chunk.translate(None, _LEGAL[kind]):
        return None
    bare = chunk.translate(None, b" \t\r")
    if bare.startswith((b",", b"\n")) or any(pair in bare for pair in (b",,", b",\n", b"\n,", b"\n\n")):
        return None
    separators = bare.translate(None, b"0123456789-+.eE")
    line = b"," * (columns - 1) + b"\n"
    if separators != line * (len(separators) // columns):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # raised where NumPy stops before the end
        try:
            numbers = np.fromstring(chunk.translate(_COMMA_TO_SPACE), dtype=_DTYPE[kind], sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    if len(numbers) != len(separators) or not np.isfinite(numbers).all():
        return None
    if kind == "integer":
        low, high = numbers.min(), numbers.max()  # not np.abs, which is negative for the smallest int64
        if low <= -(10**18) or high >= 10**18:
            return None
        if low >= -(2**31) and high < 2**31:
            numbers = numbers.astype(np.int32)
    return numbers.reshape(-1, columns)


def _first_error(chunk: bytes, file: str, rows: int, kind: str, columns: int) -> DataError:
    """Return the error for the first malformed line of a chunk; ``rows`` lines came before it."""
    for number, line in enumerate(chunk.rstrip().split(b"\n"), start=rows + 1):
        entries = line.rstrip(b"\r").split(b",")
        if not line.strip():
            return DataError("is a blank line between rows; delete it", file, number)
        for entry in entries:
            if not _FIELD[kind].fullmatch(entry) or not np.isfinite(float(entry)):
                shown = entry.decode("utf-8", "replace").strip()[:40]
                wanted = "an integer" if kind == "integer" else "a finite number"
                return DataError(f"{shown!r} is not {wanted}", file, number)
        if len(entries) != columns:
            return DataError(f"has {len(entries)} columns, expected {columns}", file, number)
    return DataError("is not a table of numbers", file, rows + 1)
