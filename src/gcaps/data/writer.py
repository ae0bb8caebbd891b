"""Write a saved GraphSet from a stream of graphs, in the memory of one chunk."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike

from gcaps.data.arrays import Array, Ints
from gcaps.data.assemble import place
from gcaps.data.graphset import OWNERS, Graph, GraphSet, SelfLoops, Skipped
from gcaps.data.io.objects import KINDS, from_objects, kind_of, numbers_in
from gcaps.data.storage import COLUMN, ArrayFacts, Description, open_saved, require_replaceable, write_page
from gcaps.data.targets import kind
from gcaps.errors import DataError, GcapsError
from gcaps.files import replacing

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

    from gcaps.data.molecules.preparation import MoleculePreparation

One: TypeAlias = "GraphSet | Graph | Data | nx.Graph | Any"
BUFFER = 1 << 18
"""Numbers that single graphs may hold before they are assembled and written."""
STRIDE = 1 << 20
"""Rows that are filled in or converted together."""
_TABLES = {
    "node_labels": "node labels",
    "x": "node attributes",
    "edge_labels": "edge labels",
    "edge_attr": "edge attributes",
}


def write_graphs(graphs: Iterable[One], path: str | Path, name: str | None = None) -> GraphSet:
    """Write graphs from any iterable to the folder ``path`` and open it.

    Args:
        graphs: GraphSets (chunks), :class:`Graph` or PyG ``Data`` objects or NetworkX graphs.
        path: folder, by convention ``NAME.gset``; a set that is there is replaced at the end.
        name: of the set; by default that of the folder.
    """
    with GraphSetWriter(path, name) as writer:
        for graph in graphs:
            writer.add(graph)
    return open_saved(path)


class GraphSetWriter:
    """Context manager that writes a GraphSet chunk by chunk.

    The files are those that :meth:`GraphSet.save` would write for all graphs together. They appear at ``path`` when the
    block ends without an exception; otherwise nothing is left.

    Args:
        path: folder, by convention ``NAME.gset``.
        name: of the set; by default that of the folder.
    """

    def __init__(self, path: str | Path, name: str | None = None) -> None:
        self.path = Path(path)
        self.name = self.path.name.removesuffix(".gset") if name is None else name
        self.num_graphs = self._nodes = self._arcs = self._loops = 0
        self._first: dict[str, int] = {}
        self._notes: Counter[str] = Counter()
        self._arrays: dict[str, GrowingArray] = {}
        self._target_names: tuple[str, ...] = ()
        self._columns: tuple[str, ...] | None = None
        self._label_names: dict[int, str] = {}
        self._preparation: MoleculePreparation | None = None
        self._skipped: list[Skipped] = []
        self._buffer: list[Any] = []
        self._buffered = 0
        self._kind: str | None = None
        self._sound = True
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        require_replaceable(self.path)
        self._folder = self._exit.enter_context(replacing(self.path))
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
        """Temporary folder, removed with the writer."""
        folder = self._folder.parent / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    def add(self, graph: One) -> None:
        """Write the next graph, or the next graphs of a GraphSet."""
        if isinstance(graph, GraphSet):
            self.extend(graph)
            return
        kind = kind_of(graph)
        if self._kind is None:
            self._kind = kind
        elif kind != self._kind and not {kind, self._kind} <= {"graph", "networkx", "pyg"}:
            here, first = (KINDS.get(key, f"an object of type {key}") for key in (kind, self._kind))
            raise DataError(f"is {here} while {place(0)} is {first}", place(self.num_graphs + len(self._buffer)))
        if self._buffer and kind != kind_of(self._buffer[0]):
            self._flush()
        self._buffer.append(graph)
        self._buffered += numbers_in(graph) + 64
        if self._buffered >= BUFFER:
            self._flush()

    def extend(self, graphs: GraphSet) -> None:
        """Write the next graphs; they keep their ids, or are called by their positions in the stream.

        Rows that were skipped are counted over the whole stream.

        Raises:
            DataError: the graphs do not match those before; the message names them ``graphs[i]`` by position in the
                stream.
        """
        self._flush()
        for chunk in graphs.chunks():
            self._extend(chunk if graphs.given_ids is not None else replace(chunk, given_ids=None))
        self._skipped += graphs.skipped
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
        # a Graph without weights has weights 1; other objects without weights do not match those with weights
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
        """Raise a DataError if the chunk lacks fields of earlier ones; ``edges`` [G] counts arcs and loops."""
        owners = {"nodes": graphs.sizes, "arcs": edges, "graphs": np.ones(len(graphs), dtype=np.int64)}
        for owner, rows in owners.items():
            if rows.any():
                self._first.setdefault(owner, self.num_graphs + int(np.flatnonzero(rows)[0]))
        known = self._arrays.get("y")
        if graphs.y is not None and known is not None and graphs.y.shape[1:] != known.width:
            several = [(*shape, 1)[0] for shape in (graphs.y.shape[1:], known.width)]
            problem = f"has {several[0]} targets while {place(0)} has {several[1]}; give all graphs the same"
            raise DataError(problem, place(self.num_graphs))
        if self._columns is not None and tuple(graphs.columns) != self._columns:
            problem = f"has the columns {tuple(graphs.columns)} while {place(0)} has {self._columns}"
            raise DataError(problem, place(self.num_graphs))
        self._check_kind("label", graphs.y, None if known is None else known.dtype)
        named = self._arrays.get("given_ids")
        positions = np.dtype(np.int64) if self.num_graphs else None
        self._check_kind("id", graphs.ids, positions if named is None else named.dtype)
        for key, what in _TABLES.items():
            table: Array | None = getattr(graphs, key)
            self._check_presence(key, what, table, owners[OWNERS[key]])
            known = self._arrays.get(key)
            if table is not None and known is not None and table.shape[1:] != known.width:
                problem = f"{what}: {table.shape[1]} columns; {place(self._first[key])} has {known.width[0]}"
                raise DataError(problem, place(self.num_graphs))
        if strict:
            self._check_presence("edge_weight", "edge weight", graphs.edge_weight, edges)

    def _check_presence(self, key: str, what: str, table: Array | None, rows: Ints) -> None:
        """Raise a DataError if some graphs with rows have the field and others do not."""
        owner = OWNERS[key]
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
        """Raise a DataError if values are of another kind than before, rather than turn numbers into strings."""
        if values is not None and len(values) and before is not None and kind(values.dtype) != kind(before):
            problem = f"has the {what} {values[0].item()!r} while {place(0)} has a {kind(before)}; convert one of them"
            raise DataError(problem, place(self.num_graphs))

    def _append(self, graphs: GraphSet, loops: SelfLoops) -> None:
        old = 1 if self.num_graphs else 0  # a pointer has one leading 0
        self._array("ptr", np.int64).append(graphs.ptr[old:] + self._nodes)
        self._array("rowptr", np.int64).append(graphs.rowptr[old:] + self._arcs)
        self._array("col", np.int32).append(graphs.col)
        self._append_targets(graphs.y, len(graphs))
        for i, column in enumerate(graphs.columns.values()):
            self._array(f"{COLUMN}{i}", column.dtype).append(column)
        self._columns = tuple(graphs.columns)
        self._target_names = self._target_names or graphs.target_names
        self._label_names.update(graphs.label_names)
        self._preparation = graphs.preparation
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

    def _append_targets(self, y: Array | None, count: int) -> None:
        """Append targets; those of graphs without any, before or after, are missing: NaN, or the empty string."""
        known = self._arrays.get("y")
        if y is None and known is None:
            return
        dtype, width = (y.dtype, y.shape[1:]) if y is not None else (known.dtype, known.width)  # type: ignore[union-attr]
        none: Array = np.array("" if dtype.kind == "U" else np.nan)
        if known is None and self.num_graphs:
            self._array("y", dtype if dtype.kind == "U" else np.float64, width)
            for first in range(0, self.num_graphs, STRIDE):
                self._arrays["y"].append(np.full((min(STRIDE, self.num_graphs - first), *width), none))
        self._array("y", dtype, width).append(np.full((count, *width), none) if y is None else y)

    def _append_ids(self, ids: Array | None, count: int) -> None:
        """Append ids, by default positions in the stream; positions alone are not written."""
        positions = np.arange(self.num_graphs, self.num_graphs + count)
        ids = positions if ids is None else ids
        if "given_ids" not in self._arrays and np.array_equal(ids, positions):
            return
        named = self._array("given_ids", ids.dtype)
        for first in range(named.rows, self.num_graphs, BUFFER):
            named.append(np.arange(first, min(first + BUFFER, self.num_graphs)))
        named.append(ids)

    def _append_weight(self, key: str, weight: Array | None, before: int, count: int) -> None:
        """Append weights; graphs without weights, before or after, get 1."""
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
            raise GcapsError(f"{self.path}: graphs are missing because of an earlier error; nothing was written")
        if not self.num_graphs:
            raise DataError(f"{self.name}: there are no graphs")
        try:
            for array in self._arrays.values():
                array.close()
        except OSError as error:
            raise GcapsError(f"{self.path}: cannot be written ({error.strerror or error})") from error
        columns = self._columns or ()
        order = [f.name for f in fields(GraphSet)] + [f"loops.{key}" for key in SelfLoops._fields]
        order += [f"{COLUMN}{i}" for i in range(len(columns))]
        facts = {key: self._arrays[key].facts() for key in order if key in self._arrays}
        described = Description(
            *(self.name, self._notes, self._target_names, columns),
            *(self._label_names, tuple(self._skipped), self._preparation),
        )
        write_page(self._folder, described, facts)

    def _abandon(self) -> None:
        for array in self._arrays.values():
            array.discard()


def _renumbered(error: DataError, first: int) -> DataError:
    """Return the error with graphs numbered over the whole stream, in which ``first`` came before the chunk."""

    def shifted(text: str) -> str:
        return re.sub(r"(?<=graphs\[)\d+(?=\])|(?<= of graph )\d+", lambda m: str(int(m[0]) + first), text)

    return DataError(shifted(error.problem), None if error.file is None else shifted(error.file), error.line)


class GrowingArray:
    """An .npy file that rows are appended to; after :meth:`close` it is what ``np.save`` would have written.

    NumPy pads the header of an .npy file so that the number of rows can be changed in place.

    Args:
        file: path of the new file.
        dtype: type of the entries.
        width: shape of a row, () for a single number.
    """

    def __init__(self, file: Path, dtype: DTypeLike, width: tuple[int, ...] = ()) -> None:
        self.file, self.dtype, self.width, self.rows = file, np.dtype(dtype), tuple(width), 0
        self._stream: IO[bytes] = file.open("xb+")
        self._digest = hashlib.sha256()
        self._write_header()

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, columns)."""
        return (self.rows, *self.width)

    def facts(self) -> ArrayFacts:
        """Return type, shape and checksum."""
        return ArrayFacts(dtype=self.dtype.str, shape=self.shape, sha256=self._digest.hexdigest())

    def append(self, rows: Array) -> None:
        """Append rows of this width; if their type is wider, earlier rows are converted to it."""
        wider = np.promote_types(self.dtype, rows.dtype)
        if wider != self.dtype:
            self._widen(wider)
        written = np.ascontiguousarray(rows, dtype=self.dtype)
        content = written.view(np.uint8).data if written.dtype.kind == "U" and written.nbytes else written.data
        self._stream.write(content)
        self._digest.update(content)
        self.rows += len(rows)

    def fill(self, count: int, value: float) -> None:
        """Append ``count`` rows of the same value."""
        for first in range(0, count, STRIDE):
            self.append(np.full((min(STRIDE, count - first), *self.width), value, dtype=self.dtype))

    def close(self) -> None:
        """Complete the header and close the file."""
        self._stream.seek(0)
        self._write_header()
        self._stream.close()

    def discard(self) -> None:
        """Close the incomplete file."""
        with suppress(OSError):  # unwritten data does not matter any more
            self._stream.close()

    def _write_header(self) -> None:
        facts = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": self.shape}
        npy.write_array_header_1_0(self._stream, facts)

    def _widen(self, dtype: np.dtype[np.generic]) -> None:
        self.close()
        spare = self.file.with_suffix(".narrow")
        self.file.rename(spare)
        narrow = np.load(spare, mmap_mode="r" if self.rows else None, allow_pickle=False)
        self.__init__(self.file, dtype, self.width)  # type: ignore[misc]
        for first in range(0, len(narrow), STRIDE):
            self.append(narrow[first : first + STRIDE].astype(dtype))
        del narrow
        spare.unlink()
