"""Building a saved GraphSet from a stream: memory is that of one chunk, however many graphs go through."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from gcaps.data.arrays import Array, Ints
from gcaps.data.columns import place
from gcaps.data.graphset import Graph, GraphSet, SelfLoops
from gcaps.data.growing import GrowingArray
from gcaps.data.objects import from_objects, kind_of, numbers_in
from gcaps.data.shelf import shelved
from gcaps.data.storage import open_saved, require_replaceable, write_page
from gcaps.data.targets import kind
from gcaps.errors import DataError, GcapsError

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

One: TypeAlias = "GraphSet | Graph | Data | nx.Graph"
BUFFER = 1 << 18
"""Numbers that single graphs may hold before they are joined and written."""
_TABLES = {
    "node_labels": "node labels",
    "x": "node attributes",
    "edge_labels": "edge labels",
    "edge_attr": "edge attributes",
}


def write_graphs(graphs: Iterable[One], path: str | Path, name: str | None = None) -> GraphSet:
    """Write graphs, whatever yields them, to the folder ``path`` and open it.

    Args:
        graphs: GraphSets (chunks), :class:`Graph` or PyG ``Data`` objects or NetworkX graphs, one after the other.
        path: the folder, by convention ``NAME.gset``; a set that stood there before is replaced at the very end.
        name: of the set; by default that of the folder.
    """
    with GraphSetWriter(path, name) as writer:
        for graph in graphs:
            writer.add(graph)
    return open_saved(path)


class GraphSetWriter:
    """A saved GraphSet that is written chunk by chunk, as a context manager.

    What is written is what :meth:`GraphSet.save` would write of all graphs together. It takes its place when the block
    ends well; if it does not, nothing of it is left.

    Args:
        path: the folder, by convention ``NAME.gset``.
        name: of the set; by default that of the folder.
    """

    def __init__(self, path: str | Path, name: str | None = None) -> None:
        self.path = Path(path)
        self.name = self.path.name.removesuffix(".gset") if name is None else name
        self.num_graphs = self._nodes = self._arcs = self._loops = 0
        self._first: dict[str, int] = {}
        self._notes: Counter[str] = Counter()
        self._arrays: dict[str, GrowingArray] = {}
        self._buffer: list[Any] = []
        self._buffered = 0
        self._sound = True
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        require_replaceable(self.path)
        self._folder = self._exit.enter_context(shelved(self.path))
        self._folder.mkdir()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            if kind is None:
                self._finish()
        except BaseException as failure:
            self._abandon()
            self._exit.__exit__(type(failure), failure, failure.__traceback__)
            raise
        if kind is not None:
            self._abandon()
        return self._exit.__exit__(kind, error, trace)

    @property
    def scratch(self) -> Path:
        """A folder beside the arrays for what is needed on the way; it vanishes with the writer."""
        folder = self._folder.parent / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    def add(self, graph: One) -> None:
        """The next graph, or a GraphSet with the next graphs."""
        if isinstance(graph, GraphSet):
            self.extend(graph)
            return
        if self._buffer and kind_of(graph) != kind_of(self._buffer[0]):
            self._flush()
        self._buffer.append(graph)
        self._buffered += numbers_in(graph) + 64
        if self._buffered >= BUFFER:
            self._flush()

    def extend(self, graphs: GraphSet) -> None:
        """The next graphs.

        Raises:
            DataError: the graphs do not go with those before; they are called ``graphs[i]``, counted over the stream.
        """
        self._flush()
        for chunk in graphs.chunks():
            self._extend(chunk if graphs.given_ids is not None else replace(chunk, given_ids=None))
        self._notes.update(graphs.notes)

    def _flush(self) -> None:
        if not self._buffer:
            return
        listed, self._buffer, self._buffered = self._buffer, [], 0
        self._sound = False
        try:
            chunk = from_objects(listed, self.name)
        except DataError as error:
            raise _renumbered(error, self.num_graphs) from error
        # other objects say by the absence of weights that there are none, a Graph that all are one
        self._extend(chunk, strict=kind_of(listed[0]) != "graph")
        self._notes.update(chunk.notes)

    def _extend(self, graphs: GraphSet, *, strict: bool = False) -> None:
        self._sound = False
        loops = graphs.loops or SelfLoops(np.zeros(0, dtype=np.int64))
        edges = graphs.arc_counts + np.diff(np.searchsorted(loops.node, graphs.ptr))
        self._check(graphs, edges, strict)
        try:
            self._append(graphs, loops)
        except OSError as error:
            raise GcapsError(f"{self.path}: cannot be written ({error.strerror or error})") from error
        self.num_graphs += len(graphs)
        self._nodes += graphs.num_nodes
        self._arcs += len(graphs.col)
        self._loops += len(loops.node)
        self._sound = True

    def _check(self, graphs: GraphSet, edges: Ints, strict: bool) -> None:
        """The chunk has the fields of those before; ``edges`` [G] are its graphs' arcs and loops."""
        owners = {"node": graphs.sizes, "edge": edges, "graph": np.ones(len(graphs), dtype=np.int64)}
        for owner, rows in owners.items():
            if rows.any():
                self._first.setdefault(owner, self.num_graphs + int(np.flatnonzero(rows)[0]))
        self._check_presence("y", "label", graphs.y, owners["graph"])
        known = self._arrays.get("y")
        self._check_kind("label", graphs.y, None if known is None else known.dtype)
        named = self._arrays.get("given_ids")
        positions = np.dtype(np.int64) if self.num_graphs else None
        self._check_kind("id", graphs.ids, positions if named is None else named.dtype)
        for key, what in _TABLES.items():
            table: Array | None = getattr(graphs, key)
            self._check_presence(key, what, table, owners[_owner(key)])
            known = self._arrays.get(key)
            if table is not None and known is not None and table.shape[1:] != known.width:
                problem = f"{what}: {table.shape[1]} columns; {place(self._first[key])} has {known.width[0]}"
                raise DataError(problem, place(self.num_graphs))
        if strict:
            self._check_presence("edge_weight", "edge weight", graphs.edge_weight, edges)

    def _check_presence(self, key: str, what: str, table: Array | None, rows: Ints) -> None:
        """All graphs with rows have the field, or none has."""
        owner = _owner(key)
        if table is None:
            if key not in self._first or not rows.any():
                return
            missing, has = self.num_graphs + int(np.flatnonzero(rows)[0]), self._first[key]
        elif key in self._first or self._first.get(owner, self.num_graphs) >= self.num_graphs:
            self._first.setdefault(key, self.num_graphs)
            return
        else:
            missing, has = self._first[owner], self.num_graphs
        raise DataError(f"has no {what} while {place(has)} has; give it to all graphs or to none", place(missing))

    def _check_kind(self, what: str, values: Array | None, before: np.dtype[Any] | None) -> None:
        """The values are of the kind of those before: numbers do not silently become strings."""
        if values is not None and len(values) and before is not None and kind(values.dtype) != kind(before):
            problem = f"has the {what} {values[0].item()!r} while {place(0)} has a {kind(before)}; convert one of them"
            raise DataError(problem, place(self.num_graphs))

    def _append(self, graphs: GraphSet, loops: SelfLoops) -> None:
        old = 1 if self.num_graphs else 0  # a pointer begins with 0 once
        self._array("ptr", np.int64).append(graphs.ptr[old:] + self._nodes)
        self._array("rowptr", np.int64).append(graphs.rowptr[old:] + self._arcs)
        self._array("col", np.int32).append(graphs.col)
        if graphs.y is not None:
            self._array("y", graphs.y.dtype, graphs.y.shape[1:]).append(graphs.y)
        self._append_ids(graphs.given_ids, len(graphs))
        for key in _TABLES:
            table: Array | None = getattr(graphs, key)
            if table is not None:
                self._array(key, table.dtype, table.shape[1:]).append(table)
        if len(loops.node):
            self._array("loops.node", np.int64).append(loops.node + self._nodes)
        for key in ("labels", "attributes"):
            rows: Array | None = getattr(loops, key)
            if rows is not None:
                self._array(f"loops.{key}", rows.dtype, rows.shape[1:]).append(rows)
        self._append_weight("edge_weight", graphs.edge_weight, self._arcs, len(graphs.col))
        if len(loops.node) or "loops.node" in self._arrays:
            weight = loops.weight
            if weight is None and graphs.edge_weight is not None:
                weight = np.zeros(0, dtype=graphs.edge_weight.dtype)
            self._append_weight("loops.weight", weight, self._loops, len(loops.node))

    def _append_ids(self, ids: Array | None, count: int) -> None:
        """Graphs without a name of their own are called by their positions in the stream, which need not be written."""
        positions = np.arange(self.num_graphs, self.num_graphs + count)
        ids = positions if ids is None else ids
        if "given_ids" not in self._arrays and np.array_equal(ids, positions):
            return
        named = self._array("given_ids", ids.dtype)
        for first in range(named.rows, self.num_graphs, BUFFER):
            named.append(np.arange(first, min(first + BUFFER, self.num_graphs)))
        named.append(ids)

    def _append_weight(self, key: str, weight: Array | None, before: int, count: int) -> None:
        """Weights that come late, or are absent later on, are one in the graphs that have none."""
        if weight is None and key not in self._arrays and not (key == "loops.weight" and "edge_weight" in self._arrays):
            return
        if key not in self._arrays:
            dtype = self._arrays["edge_weight"].dtype if weight is None else weight.dtype
            self._array(key, dtype).fill(before, 1)
        if weight is None:
            self._arrays[key].fill(count, 1)
        else:
            self._arrays[key].append(weight)

    def _array(self, key: str, dtype: Any, width: tuple[int, ...] = ()) -> GrowingArray:
        if key not in self._arrays:
            self._arrays[key] = GrowingArray(self._folder / f"{key}.npy", dtype, width)
        return self._arrays[key]

    def _finish(self) -> None:
        self._flush()
        if not self._sound:
            raise GcapsError(f"{self.path}: an error on the way left graphs out; nothing was written")
        if not self.num_graphs:
            raise DataError(f"{self.name}: there are no graphs")
        try:
            for array in self._arrays.values():
                array.close()
        except OSError as error:
            raise GcapsError(f"{self.path}: cannot be written ({error.strerror or error})") from error
        order = [f.name for f in fields(GraphSet)] + [f"loops.{key}" for key in SelfLoops._fields]
        facts = {key: (self._arrays[key].dtype, self._arrays[key].shape) for key in order if key in self._arrays}
        write_page(self._folder, self.name, self._notes, facts)

    def _abandon(self) -> None:
        for array in self._arrays.values():
            array.discard()


def _owner(key: str) -> str:
    """Whether an array has a row for each graph, node or edge."""
    return {"y": "graph", "x": "node"}.get(key, key[:4])


def _renumbered(error: DataError, first: int) -> DataError:
    """The error about a chunk's graphs, with graphs counted over the whole stream, of which ``first`` came before."""

    def shifted(text: str) -> str:
        return re.sub(r"(?<=graphs\[)\d+(?=\])|(?<= of graph )\d+", lambda m: str(int(m[0]) + first), text)

    return DataError(shifted(error.problem), None if error.file is None else shifted(error.file), error.line)
