"""The fingerprint of a set, or of some of its graphs, read in strides: memory does not grow with the set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer, strides
from gcaps.data.selection import OWNERS, Selection

if TYPE_CHECKING:
    from gcaps.data.graphset import GraphSet

STRIDE = 1 << 19
"""Nodes that are hashed together."""


def fingerprint(graphs: GraphSet, indices: Sequence[int] | Array | None = None) -> str:
    """SHA-256 over all arrays of the set, or of its subset at ``indices``, with their names, types and shapes."""
    if indices is None:
        every = graphs.arrays()
        every.pop("given_ids", None)
        arrays = {key: (array, array.shape, _rows(array)) for key, array in every.items()}
    else:
        arrays = _chosen(graphs, graphs.positions(indices))
    digest = hashlib.sha256()
    for key, (array, shape, parts) in sorted(arrays.items()):
        text = array.dtype.kind == "U"
        digest.update(f"{key}:{'U' if text else array.dtype.str}:{shape};".encode())
        for part in parts:
            digest.update(_encoded(part) if text else np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _encoded(strings: Array) -> bytes:
    """Strings one after the other; how wide their array is does not count."""
    return "".join(json.dumps(value) for value in strings.tolist()).encode()


def _rows(array: Array) -> Iterator[Array]:
    return (array[first : first + STRIDE] for first in range(0, len(array), STRIDE))


def _chosen(graphs: GraphSet, chosen: Ints) -> dict[str, tuple[Array, tuple[int, ...], Iterator[Array]]]:
    """For each array of the subset: one of its type, its shape, and its rows piece by piece."""
    sizes = graphs.sizes[chosen]
    first_arc = graphs.rowptr[graphs.ptr[chosen]]
    rows = {
        "graphs": len(chosen),
        "nodes": int(sizes.sum()),
        "arcs": int((graphs.rowptr[graphs.ptr[chosen + 1]] - first_arc).sum()),
    }
    pieces = [chosen[first:last] for first, last in strides(sizes, STRIDE)]

    def selections() -> Iterator[Selection]:
        return (Selection.of(graphs.ptr, graphs.rowptr, piece) for piece in pieces)

    def gathered(array: Array, key: str) -> Iterator[Array]:
        return (array[where.rows(key)] for where in selections())

    def rowptr() -> Iterator[Ints]:
        yield np.zeros(1, dtype=np.int64)
        before = 0
        for where in selections():
            part = where.rowptr(graphs.rowptr)[1:] + before
            before = int(part[-1])
            yield part

    ptr = pointer(sizes)
    found = {
        "ptr": (ptr, ptr.shape, _rows(ptr)),
        "rowptr": (graphs.rowptr, (rows["nodes"] + 1,), rowptr()),
    }
    for key, array in graphs.arrays().items():
        if key in OWNERS and key != "given_ids":
            found[key] = (array, (rows[OWNERS[key]], *array.shape[1:]), gathered(array, key))
    loops = graphs.loops_of(chosen, ptr)
    if loops is not None:
        there = {f"loops.{key}": array for key, array in loops._asdict().items() if array is not None}
        found |= {key: (array, array.shape, _rows(array)) for key, array in there.items()}
    return found
