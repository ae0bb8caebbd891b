"""Checks of a set's arrays at the speed of reading: nothing from a file reaches compiled code before they have passed.

Arrays are gone through in pieces whose pages are let go of afterwards, so that a memory-mapped set larger than memory
can be checked.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit

from gcaps.data.arrays import Array, Ints
from gcaps.data.graphset import OWNERS, GraphSet
from gcaps.errors import GcapsError

PIECE = 1 << 23
"""Most bytes that are checked at a time."""
FEW = 8
"""Arcs for each node up to which rows count as short."""
MAX_COLUMNS = 1 << 20
"""Columns of a table of labels, attributes or targets."""
_KINDS = {
    **dict.fromkeys(("ptr", "rowptr", "loops.node"), ("<i8", 1)),
    "col": ("<i4", 1),
    **dict.fromkeys(("node_labels", "edge_labels", "loops.labels"), ("<i8", 2)),
    **dict.fromkeys(("x", "edge_attr", "loops.attributes"), ("f", 2)),
    **dict.fromkeys(("edge_weight", "loops.weight"), ("f", 1)),
    "given_ids": ("Uiub", 1),
    "y": ("Ubif", 0),
}
"""Type (or kinds of types) of each array and its number of dimensions, 0 for one or two."""
_FAULTS = (
    "",
    "",
    "has a node whose first arc comes after its last, or does not exist",
    "has an arc whose target is not a node of it, or comes twice or in the wrong order",
    "has an arc without its reverse",
    "has an edge with two weights",
)
Report = Callable[[str, str | None], GcapsError]
"""Makes the error from what is wrong and the array at fault."""


def check_structure(graphs: GraphSet, report: Report) -> None:
    """Check that the arrays of a set are what :class:`GraphSet` says, and hold no NaN where there is a number.

    Pointers ascend from 0 to the number of rows; the neighbors of each node are other nodes of its graph, in ascending
    order, and have it as a neighbor in turn, with the same weight
    (:func:`first_fault`); weights are positive; numbers are finite, but for missing targets; strings are Unicode.

    Raises:
        GcapsError: made by ``report``.
    """
    arrays = graphs.arrays()
    for key, array in arrays.items():
        _check_kind(key, array, report)
    _check_counts(graphs, report)
    _check_arcs(graphs, report)
    for key, array in arrays.items():
        _check_values(key, array, report)
    for name, column in graphs.columns.items():
        _check_values(f"column {name}", column, report)
    if graphs.loops is not None:
        node = graphs.loops.node
        if len(node) and (node[0] < 0 or node[-1] >= graphs.num_nodes or (np.diff(node) <= 0).any()):
            raise report("are not nodes in ascending order", "loops.node")


def _check_kind(key: str, array: Array, report: Report) -> None:
    kinds, dimensions = _KINDS[key]
    fits = array.dtype.str == kinds if kinds[0] == "<" else array.dtype.kind in kinds
    if not fits or array.ndim not in ((dimensions,) if dimensions else (1, 2)):
        raise report(f"is {array.dtype} with {array.ndim} dimensions, which is not its type", key)
    if array.ndim == 2 and array.shape[1] > MAX_COLUMNS:
        raise report(f"has {array.shape[1]:,} columns, more than {MAX_COLUMNS:,}", key)


def _check_counts(graphs: GraphSet, report: Report) -> None:
    """Check the numbers of rows, and both ends of the pointers."""
    for key, pointer, last in (("ptr", graphs.ptr, len(graphs.rowptr) - 1), ("rowptr", graphs.rowptr, len(graphs.col))):
        if not len(pointer) or pointer[0] != 0 or pointer[-1] != last:
            raise report(f"does not lead from 0 to {last:,}", key)
    counts = {"graphs": len(graphs), "nodes": len(graphs.rowptr) - 1, "arcs": len(graphs.col)}
    arrays = graphs.arrays()
    for key, owner in OWNERS.items():
        if key in arrays and len(arrays[key]) != counts[owner]:
            raise report(f"has {len(arrays[key]):,} rows for {counts[owner]:,} {owner}", key)
    for name, column in graphs.columns.items():
        if column.shape != (len(graphs),) or column.dtype.kind not in "Ubiuf":
            raise report(f"is {column.dtype} {column.shape} for {len(graphs):,} graphs", f"column {name}")
    if graphs.target_names and graphs.y is not None:
        width = 1 if graphs.y.ndim == 1 else graphs.y.shape[1]
        if len(graphs.target_names) != width:
            raise report(f"has {width} columns for {len(graphs.target_names)} names", "y")
    if graphs.loops is not None:
        for key, rows in graphs.loops._asdict().items():
            if rows is not None and len(rows) != len(graphs.loops.node):
                raise report(f"has {len(rows):,} rows for {len(graphs.loops.node):,} loops", f"loops.{key}")


def _check_arcs(graphs: GraphSet, report: Report) -> None:
    ptr, rowptr, col = (_read_only(array) for array in (graphs.ptr, graphs.rowptr, graphs.col))
    size = largest_step(ptr)
    if size < 0:
        raise report("does not ascend", "ptr")
    weight = graphs.edge_weight
    left, right = np.random.default_rng().integers(0, 2**64, size=(2, size), dtype=np.uint64)
    cursor = np.empty(0 if weight is None else size, dtype=np.int64)
    done = 0
    while done < len(graphs):
        first = done
        fault, done = first_fault(ptr, rowptr, col, left, right, first, PIECE // 4)
        if not fault and weight is not None:
            fault, done = first_weight_fault(ptr, rowptr, col, _read_only(weight), cursor, first, done)
        if fault:
            raise report(f"graph {done}: {_FAULTS[fault]}", None)
        for array in (graphs.rowptr, graphs.col, weight):
            let_go(array)


@njit(cache=True, nogil=True)
def largest_step(ptr: Array) -> int:
    """Return the largest difference of two consecutive numbers, −1 if any is negative."""
    largest = 0
    for i in range(len(ptr) - 1):
        if ptr[i + 1] < ptr[i]:
            return -1
        largest = max(largest, ptr[i + 1] - ptr[i])
    return largest


@njit(cache=True, nogil=True)
def first_fault(
    ptr: Ints, rowptr: Ints, col: Array, left: Array, right: Array, first: int, arcs: int
) -> tuple[int, int]:
    """Check graphs from ``first`` on, until at least ``arcs`` arcs have been seen.

    That every arc has its reverse is checked by a random projection, which reads each arc once: with the arcs U to
    larger and L to smaller numbers, Σ_U r_u s_v = Σ_L r_v s_u (modulo 2^64) if L is the transpose of U; if it is not,
    the sums are equal with a probability below 2^-58 over the secret random numbers r and s.

    Args:
        ptr: [G+1] ascending from 0 to the number of nodes.
        rowptr: [N+1]
        col: [E]
        left: [largest number of nodes] the numbers r, drawn for this check.
        right: the numbers s.
        first: graph to begin with.
        arcs: number of arcs after which to stop.

    Returns:
        The number of the fault, 0 for none, and its graph; without a fault, the graph to go on with.
    """
    limit = rowptr[ptr[first]] + arcs
    for g in range(first, len(ptr) - 1):
        start, n = ptr[g], ptr[g + 1] - ptr[g]
        if rowptr[start + n] - rowptr[start] <= FEW * n:
            fault = short_rows_fault(start, n, rowptr, col, left, right)
        else:
            fault = long_rows_fault(start, n, rowptr, col, left, right)
        if fault:
            return fault, g
        if n and rowptr[start + n] >= limit:
            return 0, g + 1
    return 0, len(ptr) - 1


@njit(cache=True, nogil=True)
def short_rows_fault(start: int, n: int, rowptr: Ints, col: Array, left: Array, right: Array) -> int:
    """Check a graph whose nodes have few arcs: without branches, which a processor would predict wrongly."""
    balance = np.uint64(0)
    wrong: np.bool_ = np.bool_(False)
    end = rowptr[start]
    if end < 0:
        return 2
    for u in range(n):
        begin, end = end, rowptr[start + u + 1]
        if end < begin or end > len(col):
            return 2
        below, above = np.uint64(0), np.uint64(0)
        before = np.int64(-1)
        for a in range(np.uint64(begin), np.uint64(end)):
            v = np.int64(col[a])
            wrong |= (v <= before) | (v == u)
            before = v
            at = min(np.uint64(v), np.uint64(n - 1))  # as unsigned, a negative one is large
            smaller = np.uint64((v - u) >> np.int64(63))  # all bits are those of the sign
            below += left[at] & smaller
            above += right[at] & ~smaller
        wrong |= before >= n
        balance += left[np.uint64(u)] * above - right[np.uint64(u)] * below
    return 3 if wrong else 4 if balance != np.uint64(0) else 0


@njit(cache=True, nogil=True)
def long_rows_fault(start: int, n: int, rowptr: Ints, col: Array, left: Array, right: Array) -> int:
    """Check a graph whose nodes have many arcs: those to smaller nodes, then those to larger ones."""
    balance = np.uint64(0)
    for u in range(n):
        begin, end = rowptr[start + u], rowptr[start + u + 1]
        if begin < 0 or end < begin or end > len(col):
            return 2
        row, count, at = col[begin:end], np.uint64(end - begin), np.uint64(0)
        below, above = np.uint64(0), np.uint64(0)
        before = np.int32(-1)
        while at < count:
            v = row[at]
            if v >= u:
                break
            if v <= before:
                return 3
            before = v
            below += left[np.uint64(v)]
            at += np.uint64(1)
        before = np.int32(u)
        while at < count:
            v = row[at]
            if v <= before or v >= n:
                return 3
            before = v
            above += right[np.uint64(v)]
            at += np.uint64(1)
        balance += left[u] * above - right[u] * below
    return 4 if balance != np.uint64(0) else 0


@njit(cache=True, nogil=True)
def first_weight_fault(
    ptr: Ints, rowptr: Ints, col: Array, weight: Array, cursor: Ints, first: int, last: int
) -> tuple[int, int]:
    """Compare the two weights of each edge of sound graphs ``first`` to ``last`` − 1; see :func:`first_fault`.

    The neighbors u < v of v are met in ascending order when each u is visited, so a cursor in the row of v moves
    through them.
    """
    for g in range(first, last):
        start, n = ptr[g], ptr[g + 1] - ptr[g]
        for u in range(n):
            cursor[u] = rowptr[start + u]
        for u in range(n):
            for a in range(cursor[u], rowptr[start + u + 1]):
                v = col[a]
                c = cursor[v]
                if c >= rowptr[start + v + 1] or weight[a] != weight[c]:
                    return 5, g
                cursor[v] = c + 1
    return 0, last


def _check_values(key: str, array: Array, report: Report) -> None:
    """Check that numbers are finite (a missing target may be NaN), strings Unicode and booleans 0 or 1."""
    kind = array.dtype.kind
    may_be_nan = key == "y" or key.startswith("column ")
    if kind not in "fUb" or not array.size:
        return
    for piece in pieces(array):
        if kind == "f":
            sound = bool((~np.isinf(piece) if may_be_nan else np.isfinite(piece)).all())
            sound &= "weight" not in key or bool((piece > 0).all())
            problem = "holds a weight that is not a positive number" if "weight" in key else "holds NaN or infinity"
        elif kind == "U":
            codes = piece.view(np.uint32) if piece.dtype.itemsize else np.zeros(0, np.uint32)
            sound = bool(codes.max(initial=0) <= 0x10FFFF) and not ((codes >= 0xD800) & (codes <= 0xDFFF)).any()
            problem = "holds characters that do not exist"
        else:
            sound, problem = bool(piece.view(np.uint8).max() <= 1), "holds booleans that are neither true nor false"
        if not sound:
            raise report(problem, key)


def pieces(array: Array) -> Iterator[Array]:
    """Yield consecutive rows in contiguous pieces; pages of a mapped array are released after each."""
    rows = max(1, PIECE // max(1, array.nbytes // max(1, len(array))))
    for first in range(0, len(array), rows):
        yield np.ascontiguousarray(array[first : first + rows])
        let_go(array)


def let_go(array: Array | None) -> None:
    """Give back the memory of the pages of a mapped array that were read; they can be read again."""
    base: Any = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = getattr(base, "base", None)
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def _read_only(array: Array) -> Array:
    """Return a view that compiled code sees as one type, mapped or not."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view
