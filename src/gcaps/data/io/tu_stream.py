"""Convert a TU data set that is larger than memory: read in strides, assembled and written in blocks of graphs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer, strides
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet, Skipped
from gcaps.data.io.archive import Files
from gcaps.data.io.tu import TUReader, table_strides
from gcaps.data.reading import Reading
from gcaps.data.writer import GraphSetWriter
from gcaps.errors import DataError

BLOCK = 1 << 20
"""Nodes, and edge rows, that are assembled together; a graph is never split."""
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the amount done and the total."""
Block: TypeAlias = tuple[int, int, EdgeRows]
"""Graphs [first, last) and all their edges, nodes numbered over the whole set."""


def convert_tu(
    path: str | Path,
    out: str | Path,
    *,
    labelled: bool = True,
    reading: Reading | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the set that :func:`gcaps.data.read_tu` would return to the folder ``out``; the files are the same.

    Memory holds the size and label of every graph and one block of graphs, or the largest graph. If the edges are
    listed graph by graph, as in all sets of the collection, one pass over them suffices; otherwise they are first
    sorted into one file a block.

    Args:
        path: folder or zip with the files.
        out: folder to write.
        labelled: require targets, and graph labels of at least two classes.
        reading: ``labelled`` and the other options of :func:`gcaps.load`.
        progress: called after each block with the number of graphs done and the total.

    Raises:
        DataError: as for :func:`gcaps.data.read_tu`.
    """
    files = Files(path)
    try:
        reader = _StreamReader(files, reading or Reading(labelled=labelled), progress)
        try:
            reader.write(out, reader.blocks_in_order)
        except _OutOfOrder:
            reader.write(out, reader.blocks_by_sorting)
    finally:
        files.close()


class _OutOfOrder(Exception):  # noqa: N818 - control flow, not an error
    """An edge belongs to a graph whose block has been written already."""


class _StreamReader(TUReader):
    """Reads one data set in blocks."""

    def __init__(self, files: Files, reading: Reading, progress: Progress | None) -> None:
        super().__init__(files, reading)
        self.progress = progress

    def write(self, out: str | Path, blocks: Callable[[Path], Iterator[Block]]) -> None:
        """Write the set to the folder ``out``."""
        labels = self.graph_labels()
        with GraphSetWriter(out, self.name) as writer:
            self.lay_out(None if labels is None else len(labels), writer.scratch)
            node_labels = self.node_rows("node_labels", "integer", writer.scratch)
            node_attributes = self.node_rows("node_attributes", "number", writer.scratch)
            for first, last, rows in blocks(writer.scratch):
                ptr = self.ptr[first : last + 1] - self.ptr[first]
                rows.source, rows.target = rows.source - self.ptr[first], rows.target - self.ptr[first]
                count = int(ptr[-1])
                chunk = assemble(
                    self.name,
                    ptr,
                    rows,
                    y=None if labels is None else labels[first:last],
                    node_labels=None if node_labels is None else self.next_rows(node_labels, count).astype(np.int64),
                    x=None if node_attributes is None else self.next_rows(node_attributes, count),
                )
                writer.extend(self.dropped(chunk, first))
                if self.progress is not None:
                    self.progress(last, len(self.ptr) - 1)
            for table in (node_labels, node_attributes):
                if table is not None:
                    self.require_rows(table.name, table.count_all(), int(self.ptr[-1]), "graph_indicator")

    @staticmethod
    def dropped(chunk: GraphSet, first: int) -> GraphSet:
        """Return the graphs of a block that have nodes, with their ids; ``first`` graphs came before it."""
        chunk = replace(chunk, given_ids=np.arange(first, first + len(chunk)))
        if chunk.sizes.all():
            return chunk
        skipped = tuple(Skipped(int(i), str(i), "has no nodes") for i in chunk.ids[chunk.sizes == 0])
        return replace(chunk.subset(chunk.sizes > 0), skipped=skipped)

    def next_rows(self, table: _RowReader, count: int) -> Array:
        """Return the next ``count`` rows of a node table."""
        rows = table.take(count)
        if len(rows) < count:
            self.require_rows(table.name, table.count_all(), int(self.ptr[-1]), "graph_indicator")
        return rows

    def strides_of(self, part: str, kind: str = "integer", columns: int | None = 1) -> Iterator[Array]:
        """Yield the rows of ``NAME_part.txt``, some at a time."""
        with self.files.open(f"{self.name}_{part}.txt") as stream:
            yield from table_strides(stream, self.place(part), kind, columns)

    def rows_of(self, part: str, kind: str) -> _RowReader | None:
        """Return a reader of the table ``NAME_part.txt``, or None if there is no such file."""
        if f"{self.name}_{part}.txt" not in self.files.names:
            return None
        return _RowReader(part, self.strides_of(part, kind, None))

    def lay_out(self, num_graphs: int | None, scratch: Path) -> None:
        """Compute ``ptr`` and, if nodes are not listed graph by graph, the position ``rank`` of each node."""
        if f"{self.name}_graph_indicator.txt" not in self.files.names:
            raise DataError("is missing", self.place("graph_indicator"))
        total = num_graphs
        if total is None:
            facts = [(int(part.min()), int(part.max()), len(part)) for part in self.strides_of("graph_indicator")]
            total = max(largest for _, largest, _ in facts)
            if min(smallest for smallest, _, _ in facts) < 1:
                deque(self.graph_strides(total), maxlen=0)  # raises at the line
            self.require_enough_nodes(total, sum(count for _, _, count in facts))
        sizes = np.zeros(total, dtype=np.int64)
        latest, in_order = 0, True
        for graph_of in self.graph_strides(total):
            in_order &= bool(graph_of[0] >= latest and (graph_of[1:] >= graph_of[:-1]).all())
            latest = int(graph_of[-1])
            sizes += np.bincount(graph_of, minlength=total)
        self.require_enough_nodes(total, int(sizes.sum()))
        self.require_no_empty_graph(sizes)
        self.ptr = pointer(sizes)
        self.rank = None if in_order else self.ranked(scratch)

    def graph_strides(self, num_graphs: int) -> Iterator[Array]:
        """Yield the graph of each node, numbered from 0, some at a time."""
        lines = 0
        for part in self.strides_of("graph_indicator"):
            self.require_graphs(part[:, 0] - 1, num_graphs, lines)
            lines += len(part)
            yield part[:, 0] - 1

    def ranked(self, scratch: Path) -> Array:
        """[N] position of each node when nodes are sorted stably by graph; memory-mapped."""
        rank = np.lib.format.open_memmap(scratch / "rank.npy", mode="w+", dtype=np.int64, shape=(int(self.ptr[-1]),))
        free = self.ptr[:-1].copy()
        line = 0
        for graph_of in self.graph_strides(len(free)):
            order = np.argsort(graph_of, kind="stable")
            count = np.bincount(graph_of, minlength=len(free))
            rank[line + order] = np.repeat(free - pointer(count)[:-1], count) + np.arange(len(order))
            free += count
            line += len(graph_of)
        return np.asarray(rank)

    def node_rows(self, part: str, kind: str, scratch: Path) -> _RowReader | None:
        """Return a reader of a node table whose rows are sorted by graph."""
        table = self.rows_of(part, kind)
        if table is None or self.rank is None:
            return table
        num_nodes, line = len(self.rank), 0
        moved: Array | None = None
        for rows in self.strides_of(part, kind, None):
            if moved is None:
                moved = np.lib.format.open_memmap(
                    scratch / f"{part}.npy",
                    mode="w+",
                    dtype=np.int64 if kind == "integer" else np.float64,
                    shape=(num_nodes, rows.shape[1]),
                )
            inside = rows[: max(num_nodes - line, 0)]
            moved[self.rank[line : line + len(inside)]] = inside
            line += len(rows)
        self.require_rows(part, line, num_nodes, "graph_indicator")
        assert moved is not None
        return _RowReader(part, (moved[first : first + BLOCK] for first in range(0, num_nodes, BLOCK)))

    def edge_rows(self) -> Iterator[tuple[Ints, EdgeRows]]:
        """Yield edges some at a time: the graph of each, and the rows, with nodes numbered from 0 by graph."""
        tables = {
            "labels": self.rows_of("edge_labels", "integer"),
            "attributes": self.rows_of("edge_attributes", "number"),
        }
        there = {key: table for key, table in tables.items() if table is not None}
        lines = 0
        for table in self.edge_strides():
            self.require_nodes(table, int(self.ptr[-1]), lines)
            table = table - 1
            ends = table if self.rank is None else self.rank[table]
            graph_of, of_target = (np.searchsorted(self.ptr, ends[:, k], side="right") - 1 for k in (0, 1))
            self.require_one_graph(table, graph_of, of_target, lines)
            lines += len(table)
            beside = {key: rows.take(len(table)) for key, rows in there.items()}
            # if a table is too short, the remaining edges are only counted for the message
            if all(len(values) == len(table) for values in beside.values()):
                if "labels" in beside:
                    beside["labels"] = beside["labels"].astype(np.int64)
                yield graph_of, EdgeRows(ends[:, 0], ends[:, 1], **beside)
        for rows in there.values():
            self.require_rows(rows.name, rows.count_all(), lines, "A")

    def blocks_in_order(self, scratch: Path) -> Iterator[Block]:
        """Yield blocks in one pass; raise _OutOfOrder if the edges are not listed graph by graph."""
        num_graphs = len(self.ptr) - 1
        done, current = 0, 0
        held: list[tuple[Ints, EdgeRows]] = []
        for graph_of, rows in self.edge_rows():
            if graph_of.min() < done:
                raise _OutOfOrder
            held.append((graph_of, rows))
            current = max(current, int(graph_of.max()))
            if current > done and sum(len(g) for g, _ in held) >= BLOCK:
                graph_of, rows = _joined(held)
                yield from self.divided(done, current, graph_of, rows)
                left = np.flatnonzero(graph_of >= current)
                held, done = [(graph_of[left], rows.take(left))], current
        none = np.zeros(0, dtype=np.int64)
        yield from self.divided(done, num_graphs, *(_joined(held) if held else (none, EdgeRows(none, none))))

    def divided(self, first: int, last: int, graph_of: Ints, rows: EdgeRows) -> Iterator[Block]:
        """Yield the graphs [first, last) in blocks of at most BLOCK nodes."""
        for low, high in strides(np.diff(self.ptr[first : last + 1]), BLOCK):
            inside = np.flatnonzero((graph_of >= first + low) & (graph_of < first + high))
            yield first + low, first + high, rows.take(inside)

    def blocks_by_sorting(self, scratch: Path) -> Iterator[Block]:
        """Yield blocks of edges in any order: count them, sort them into files, read the files."""
        sizes = np.diff(self.ptr)
        for graph_of, _ in self.edge_rows():
            sizes += np.bincount(graph_of, minlength=len(sizes))
        cuts = list(strides(sizes, BLOCK))
        block_of = np.repeat(np.arange(len(cuts)), [last - first for first, last in cuts])
        sorted_rows = _BlockFiles(scratch)
        for graph_of, rows in self.edge_rows():
            sorted_rows.add(block_of[graph_of], rows)
        for number, (first, last) in enumerate(cuts):
            yield first, last, sorted_rows.pop(number)


def _joined(held: list[tuple[Ints, EdgeRows]]) -> tuple[Ints, EdgeRows]:
    if len(held) == 1:
        return held[0]
    return np.concatenate([graph_of for graph_of, _ in held]), EdgeRows.joined([rows for _, rows in held])


class _RowReader:
    """Rows that arrive in arrays of any length, taken in numbers that the caller chooses.

    Args:
        name: of the table.
        strides: arrays [·, columns], at least one.
    """

    def __init__(self, name: str, strides: Iterator[Array]) -> None:
        self.name = name
        self._strides = strides
        self._rest: Array | None = None
        self._taken = 0

    def take(self, count: int) -> Array:
        """Return the next ``count`` rows, or as many as there are left."""
        rest = next(self._strides) if self._rest is None else self._rest
        parts, missing = [rest[:count]], count - len(rest)
        while missing > 0 and (following := next(self._strides, None)) is not None:
            rest = following
            parts.append(rest[:missing])
            count, missing = missing, missing - len(rest)
        self._rest = rest[count:]
        taken = parts[0] if len(parts) == 1 else np.concatenate(parts)
        self._taken += len(taken)
        return taken

    def count_all(self) -> int:
        """Read the remaining rows and return the total number of rows."""
        left = sum(map(len, self._strides)) + (0 if self._rest is None else len(self._rest))
        self._rest = np.zeros(0)
        return self._taken + left


class _BlockFiles:
    """Edges sorted into one file for each block and field, in their original order.

    Args:
        folder: where the files are written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._like: dict[str, Array] = {}

    def add(self, block_of: Ints, rows: EdgeRows) -> None:
        """Append each row to its block's files, which are closed again: there may be thousands."""
        order = np.argsort(block_of, kind="stable")
        blocks, starts = np.unique(block_of[order], return_index=True)
        for block, which in zip(blocks, np.split(order, starts[1:]), strict=True):
            for key, values in vars(rows.take(which)).items():
                if values is not None:
                    self._like.setdefault(key, _wide(values[:0]))
                    with self._file(int(block), key).open("ab") as file:
                        file.write(np.ascontiguousarray(values, dtype=self._like[key].dtype).data)

    def pop(self, block: int) -> EdgeRows:
        """Return all rows of a block and remove its files."""
        parts: dict[str, Array] = {"source": np.zeros(0, dtype=np.int64), "target": np.zeros(0, dtype=np.int64)}
        for key, like in self._like.items():
            file = self._file(block, key)
            parts[key] = like
            if file.exists():
                parts[key] = np.fromfile(file, dtype=like.dtype).reshape(-1, *like.shape[1:])
                file.unlink()
        return EdgeRows(**parts)

    def _file(self, block: int, key: str) -> Path:
        return self.folder / f"{block}.{key}"


def _wide(values: Array) -> Array:
    """Return integers as int64; tables of small ones are read as int32."""
    return values.astype(np.int64) if values.dtype.kind == "i" else values
