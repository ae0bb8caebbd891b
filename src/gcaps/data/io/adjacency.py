"""Adjacency matrices in an .npz file: a stack of dense matrices, one matrix a graph, or one sparse matrix for all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble, without_empty
from gcaps.data.graphset import GraphSet
from gcaps.data.io.tables import stem
from gcaps.data.npy import read_npz as read_arrays
from gcaps.data.reading import Reading, listed
from gcaps.errors import DataError
from gcaps.files import MAX_PARSED_BYTES, max_unpacked, read_bytes

FREE = 1 << 29
"""Unpacked size that is allowed for any .npz file (512 MiB): adjacency matrices are mostly zeros."""
STACK = ("adjacency", "adj", "a", "adjacencies", "arr_0")
GRAPH_OF = ("batch", "graph_indicator", "graph", "graph_of_node")
SIZES = ("sizes", "num_nodes", "n")
ATTRIBUTES = ("x", "features", "node_features", "node_attributes", "attributes")
LABELS = ("node_labels", "node_label", "labels_of_nodes")
TARGETS = ("y", "label", "labels", "target", "targets", "graph_labels")
_NUMBERED = re.compile(r"(?:adj|adjacency|a|arr|graph)_?(\d+)", re.IGNORECASE)


def read_npz(path: str | Path, reading: Reading) -> GraphSet:
    """Read graphs from an .npz file, without pickled objects.

    Adjacency: ``adjacency`` [G, n, n]; or ``adj_0``, ``adj_1``, … [n_i, n_i], as ``np.savez(file, *matrices)`` writes
    them; or the parts ``indptr``, ``indices``, ``data`` of one sparse matrix for all nodes with ``batch`` [N], the
    graph of each node. Entries are weights if any differs from 1. Optional: ``sizes`` [G] of padded matrices, ``x`` and
    ``node_labels`` with a row for each node (of all graphs, or padded [G, n, ·]), ``y`` [G] or [G, T].

    Raises:
        DataError: the file is malformed; the message says what was expected.
    """
    path = Path(path)
    arrays = _arrays(path)
    rows, sizes = _edges(arrays, path)
    num_nodes = int(sizes.sum())
    found: dict[str, Array] = {}
    for field, names in (("x", ATTRIBUTES), ("node_labels", LABELS)):
        table = _first(arrays, names)
        if table is not None:
            found[field] = _node_table(table, sizes, num_nodes, field, path)
    y = _target(arrays, reading, len(sizes), path)
    labels, x = found.get("node_labels"), found.get("x")
    if x is not None and x.dtype.kind != "f":
        x = x.astype(np.float64)
    if x is not None and not np.isfinite(x).all():
        raise DataError("x holds NaN or infinity; replace it", str(path))
    labels = None if labels is None else labels.astype(np.int64)
    made = assemble(stem(path), pointer(sizes), rows, y=y, node_labels=labels, x=x)
    return without_empty(made, reading.empty, lambda i: f"{path}: graph {i}")


def _arrays(path: Path) -> dict[str, Array]:
    content = read_bytes(path, MAX_PARSED_BYTES)
    return read_arrays(content, str(path), max_unpacked(len(content), MAX_PARSED_BYTES, FREE))


def _first(arrays: dict[str, Array], names: tuple[str, ...]) -> Array | None:
    lower = {name.lower(): array for name, array in arrays.items()}
    return next((lower[name] for name in names if name in lower), None)


class _Entries(NamedTuple):
    row: Ints
    col: Ints
    value: Array


def _edges(arrays: dict[str, Array], path: Path) -> tuple[EdgeRows, Ints]:
    """Return all edges and the size of each graph."""
    if {"indptr", "indices"} <= arrays.keys():
        entries, sizes = _sparse(arrays, path)
    else:
        stack = _first(arrays, STACK)
        numbered = {int(m[1]): arrays[k] for k in arrays if (m := _NUMBERED.fullmatch(k)) and arrays[k].ndim == 2}
        if stack is not None and stack.ndim == 3:
            sizes = _sizes(arrays, stack, path)
            entries = _dense([one[:n, :n] for one, n in zip(stack, sizes.tolist(), strict=True)], path)
        elif numbered:
            matrices = [numbered[key] for key in sorted(numbered)]
            sizes = np.array([len(one) for one in matrices], dtype=np.int64)
            entries = _dense(matrices, path)
        elif stack is not None and stack.ndim == 2:
            sizes, entries = np.array([len(stack)]), _dense([stack], path)
        else:
            wanted = "adjacency [graphs, n, n], or adj_0, adj_1, …, or indptr, indices and batch"
            raise DataError(f"has no adjacency: it holds {listed(arrays)}; expected {wanted}", str(path))
    if entries.value.dtype.kind == "f" and not np.isfinite(entries.value).all():
        raise DataError("the adjacency holds NaN or infinity; replace it", str(path))
    if (entries.value < 0).any():
        raise DataError("the adjacency has negative entries; weights are positive", str(path))
    weight = None if (entries.value == 1).all() else entries.value.astype(np.float64)
    return EdgeRows(entries.row, entries.col, weight=weight), sizes


def _sizes(arrays: dict[str, Array], stack: Array, path: Path) -> Ints:
    given = _first(arrays, SIZES)
    if given is None:
        return np.full(len(stack), stack.shape[1], dtype=np.int64)
    if given.shape != (len(stack),) or given.dtype.kind not in "iu" or (given > stack.shape[1]).any():
        raise DataError(f"sizes should be {len(stack)} integers of at most {stack.shape[1]}", str(path))
    return given.astype(np.int64)


def _dense(matrices: list[Array], path: Path) -> _Entries:
    if not matrices:
        raise DataError("holds no matrix", str(path))
    rows, cols, values = [], [], []
    first = 0
    for i, one in enumerate(matrices):
        if one.ndim != 2 or one.shape[0] != one.shape[1] or one.dtype.kind not in "fiub":
            raise DataError(f"matrix {i} is {one.dtype} {one.shape}; an adjacency is square and of numbers", str(path))
        row, col = np.nonzero(one)
        rows.append(row + first)
        cols.append(col + first)
        values.append(one[row, col].astype(np.float64))
        first += len(one)
    return _Entries(np.concatenate(rows), np.concatenate(cols), np.concatenate(values))


def _sparse(arrays: dict[str, Array], path: Path) -> tuple[_Entries, Ints]:
    graph_of = _first(arrays, GRAPH_OF)
    indptr, indices = arrays["indptr"], arrays["indices"]
    if graph_of is None:
        problem = "has one sparse matrix and nothing that says which graph a node belongs to; add batch [nodes]"
        raise DataError(problem, str(path))
    num_nodes = len(indptr) - 1
    wrong = (
        len(graph_of) != num_nodes
        or (np.diff(indptr) < 0).any()
        or indptr[-1] != len(indices)
        or (len(indices) and (indices.min() < 0 or indices.max() >= num_nodes))
        or (np.diff(graph_of) < 0).any()
        or (num_nodes and graph_of[0] < 0)
    )
    if wrong:
        problem = "indptr, indices and batch do not agree; batch has the graph of each node, in ascending order"
        raise DataError(problem, str(path))
    row = np.repeat(np.arange(num_nodes), np.diff(indptr))
    values = arrays.get("data", np.ones(len(indices)))
    if len(values) != len(indices):
        raise DataError(f"data has {len(values)} entries, indices {len(indices)}", str(path))
    kept = values != 0
    row, col, values = row[kept], indices[kept].astype(np.int64), values[kept]
    if (graph_of[row] != graph_of[col]).any():
        raise DataError("an edge joins nodes of two graphs", str(path))
    return _Entries(row, col, values), np.bincount(graph_of.astype(np.int64))


def _node_table(table: Array, sizes: Ints, num_nodes: int, field: str, path: Path) -> Array:
    """[N, ·] rows of a node table, which may be padded [G, n, ·]."""
    if table.dtype.kind not in "fiub":
        raise DataError(f"{field} is of type {table.dtype}; it should be numbers", str(path))
    padded = table.ndim >= 2 and len(table) == len(sizes) and (table.ndim == 3 or len(table) != num_nodes)
    if padded:
        table = np.concatenate([one[:n] for one, n in zip(table, sizes.tolist(), strict=True)])
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != num_nodes:
        raise DataError(f"{field} has {len(table)} rows, expected {num_nodes}, one for each node", str(path))
    return table


def _target(arrays: dict[str, Array], reading: Reading, num_graphs: int, path: Path) -> Array | None:
    names = TARGETS if reading.targets is None else tuple(name.lower() for name in reading.targets)
    y = _first(arrays, names)
    if y is None:
        if reading.targets is not None and reading.labelled:
            raise DataError(f"has no array {reading.targets[0]!r}; it has {listed(arrays)}", str(path))
        return None
    if len(y) != num_graphs or y.ndim not in (1, 2) or y.dtype.kind not in "fiubU":
        raise DataError(f"y is {y.dtype} {y.shape}; expected a target for each of {num_graphs} graphs", str(path))
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    return y.astype(np.float64) if y.dtype.kind == "f" else y.astype(np.int64) if y.dtype.kind in "iu" else y
