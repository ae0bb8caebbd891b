"""One graph whose nodes or links are predicted: features, edges, classes and the split of its nodes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.npy import read_npz
from gcaps.errors import DataError
from gcaps.files import MAX_PARSED_BYTES, read_bytes
from gcaps.tasks.sparse_rows import SparseRows

SPLITS = {"train": ("train",), "validation": ("validation", "val"), "test": ("test",)}
"""Parts of a split, and the names of their arrays in a file and of their masks in PyG's ``Data``."""


@dataclass(frozen=True)
class NodeGraph:
    """An undirected graph with features of its nodes.

    ``edge_index`` has both directions of each edge once, and no self-loops.
    """

    x: sparse.csr_array | Floats
    """[n, c] node features."""
    edge_index: Ints
    """[2, e]"""
    edge_weight: Floats | None = None
    """[e], or None if every edge counts the same."""
    y: Array | None = None
    """[n] classes as in the source."""
    train: Ints | None = None
    """Nodes to train on."""
    validation: Ints | None = None
    """Nodes that choose the epoch."""
    test: Ints | None = None
    """Nodes that are held out."""

    def __len__(self) -> int:
        """Return the number of nodes."""
        return int(self.x.shape[0])

    @property
    def edges(self) -> Ints:
        """[e/2, 2] each edge once, the smaller node first."""
        source, target = self.edge_index
        found: Ints = np.stack([source, target], axis=1)[source < target]
        return found

    @classmethod
    def of(cls, source: Any) -> NodeGraph:
        """Return a graph from a NodeGraph, a ``.npz`` file or PyTorch Geometric ``Data``.

        Raises:
            DataError: it is malformed.
        """
        if isinstance(source, NodeGraph):
            return source
        if isinstance(source, str | Path):
            return cls.read(source)
        if hasattr(source, "edge_index") and hasattr(source, "x"):
            return cls.from_pyg(source)
        raise DataError(f"is a {type(source).__name__}; expected a NodeGraph, a .npz file or PyG's Data", "graph")

    @classmethod
    def from_arrays(
        cls,
        x: Any,
        edges: Any,
        y: Any = None,
        edge_weight: Any = None,
        *,
        train: Any = None,
        validation: Any = None,
        test: Any = None,
        place: str = "graph",
    ) -> NodeGraph:
        """Return a graph from arrays.

        Args:
            x: [n, c] node features, dense or a SciPy sparse matrix.
            edges: [m, 2] pairs of nodes in any order and direction; duplicates are merged.
            y: [n] classes.
            edge_weight: [m] weight of each edge; the largest of duplicates.
            train: indices or mask of the nodes to train on.
            validation: those that choose the epoch.
            test: those that are held out.
            place: name of the source in error messages.

        Raises:
            DataError: shapes, indices or values do not fit.
        """
        features = _features(x, place)
        n = features.shape[0]
        pairs = np.asarray(edges)
        if pairs.size == 0:
            pairs = np.zeros((0, 2), np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise DataError(f"edges are {pairs.dtype} {pairs.shape}; expected pairs of node numbers [m, 2]", place)
        pairs = pairs.astype(np.int64)
        if len(pairs) and (pairs.min() < 0 or pairs.max() >= n):
            raise DataError(f"edges name nodes from {pairs.min()} to {pairs.max()}; there are 0 to {n - 1}", place)
        edge_index, weight = _undirected(pairs, edge_weight, n, place)
        classes = None if y is None else np.asarray(y)
        if classes is not None and classes.shape != (n,):
            raise DataError(f"y is {classes.shape}; expected a class for each of {n} nodes", place)
        parts = {"train": train, "validation": validation, "test": test}
        split = {name: None if part is None else node_indices(part, n, name, place) for name, part in parts.items()}
        known = [part for part in split.values() if part is not None]
        if known and len(np.unique(np.concatenate(known))) < sum(map(len, known)):
            raise DataError("train, validation and test share nodes", place)
        return cls(features, edge_index, weight, classes, **split)

    @classmethod
    def read(cls, path: str | Path) -> NodeGraph:
        """Read a ``.npz`` file.

        It holds features ``x`` [n, c], or ``x_data``, ``x_indices``, ``x_indptr`` and ``x_shape`` of a sparse matrix;
        ``edges`` [m, 2]; optionally ``y`` [n], ``edge_weight`` [m], and indices or masks ``train``, ``val`` and
        ``test``.
        """
        arrays, place = read_npz(read_bytes(path, MAX_PARSED_BYTES), str(path)), str(path)
        if "edges" not in arrays or not ("x" in arrays or "x_indptr" in arrays):
            raise DataError(f"holds {', '.join(sorted(arrays)) or 'nothing'}; expected x or x_indptr, and edges", place)
        x = arrays["x"] if "x" in arrays else _sparse(arrays, place)
        split = {part: next((arrays[name] for name in names if name in arrays), None) for part, names in SPLITS.items()}
        return cls.from_arrays(x, arrays["edges"], arrays.get("y"), arrays.get("edge_weight"), **split, place=place)

    @classmethod
    def from_pyg(cls, data: Any) -> NodeGraph:
        """Return a graph from PyTorch Geometric ``Data``, with its masks."""
        if data.x is None or data.edge_index is None:
            raise DataError("has no x or no edge_index", "Data")
        x = data.x
        if isinstance(x, Tensor) and x.layout != torch.strided:
            coo = x.to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]
            x = sparse.coo_array((coo.values().numpy(), coo.indices().numpy()), shape=tuple(coo.shape))
        elif isinstance(x, Tensor):
            x = x.detach().cpu().numpy()
        masks = {
            part: next((_numpy(data[f"{n}_mask"]) for n in names if data.get(f"{n}_mask") is not None), None)
            for part, names in SPLITS.items()
        }
        y, weight = _numpy(data.get("y")), _numpy(data.get("edge_weight"))
        y = y[:, 0] if y is not None and y.ndim == 2 and y.shape[1] == 1 else y
        return cls.from_arrays(x, _numpy(data.edge_index).T, y, weight, **masks, place="Data")

    def fingerprint(self) -> str:
        """SHA-256 of features and edges."""
        x = self.x
        parts: list[Array] = [x] if isinstance(x, np.ndarray) else [x.indptr, x.indices, x.data]
        parts += [self.edge_index, *([] if self.edge_weight is None else [self.edge_weight])]
        digest = hashlib.sha256(str([int(size) for size in x.shape]).encode())
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def without(self, edges: Ints) -> NodeGraph:
        """Return the same nodes without some edges [m, 2], in either direction."""
        n, (source, target) = len(self), self.edge_index
        gone = edges.min(axis=1) * n + edges.max(axis=1)
        kept = ~np.isin(np.minimum(source, target) * n + np.maximum(source, target), gone)
        weight = None if self.edge_weight is None else self.edge_weight[kept]
        return replace(self, edge_index=self.edge_index[:, kept], edge_weight=weight)

    def features(self, *, normalize: bool = False) -> Tensor | SparseRows:
        """Return ``x`` as a tensor; with ``normalize`` each row is divided by the sum of its absolute values."""
        x = self.x
        scale = np.ones(len(self))
        if normalize:
            total = np.asarray(abs(x).sum(axis=1), np.float64).ravel()
            scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        if isinstance(x, np.ndarray):
            return torch.from_numpy((x * scale[:, None]).astype(np.float32))
        values = (x.data * np.repeat(scale, np.diff(x.indptr))).astype(np.float32)
        return SparseRows.from_csr(
            torch.from_numpy(x.indptr), torch.from_numpy(x.indices), torch.from_numpy(values), x.shape[1]
        )

    def edge_tensors(self) -> tuple[Tensor, Tensor | None]:
        """Return ``edge_index`` and ``edge_weight`` as tensors."""
        weight = None if self.edge_weight is None else torch.from_numpy(self.edge_weight.astype(np.float32))
        return torch.from_numpy(self.edge_index), weight


def node_indices(given: Any, n: int, name: str, place: str = "graph") -> Ints:
    """Return indices from indices or a mask of n nodes.

    Raises:
        DataError: they are neither, or are repeated.
    """
    found = np.asarray(given)
    if found.dtype.kind == "b":
        if found.shape != (n,):
            raise DataError(f"the mask {name} is {found.shape}; expected one entry for each of {n} nodes", place)
        return np.flatnonzero(found)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise DataError(f"{name} is {found.dtype} {found.shape}; expected node numbers or a mask", place)
    found = found.astype(np.int64)
    if len(found) and (found.min() < 0 or found.max() >= n):
        raise DataError(f"{name} names nodes from {found.min()} to {found.max()}; there are 0 to {n - 1}", place)
    if len(np.unique(found)) < len(found):
        raise DataError(f"{name} names nodes several times", place)
    return found


def _numpy(given: Any) -> Any:
    return given.detach().cpu().numpy() if isinstance(given, Tensor) else given


def _features(x: Any, place: str) -> sparse.csr_array | Floats:
    if sparse.issparse(x):
        found = sparse.csr_array(x, dtype=np.float32)
        found.sum_duplicates()
        found.indptr, found.indices = found.indptr.astype(np.int64), found.indices.astype(np.int64)
        values = found.data
    else:
        given = np.asarray(x)
        if given.ndim != 2 or given.dtype.kind not in "fiub":
            raise DataError(f"x is {given.dtype} {given.shape}; expected numbers [nodes, features]", place)
        found = values = given.astype(np.float32)
    if not np.isfinite(values).all():
        raise DataError("x holds NaN or infinity; replace it", place)
    if found.shape[0] < 1 or found.shape[1] < 1:
        raise DataError(f"x is {found.shape}; there should be a node and a feature at least", place)
    return found


def _sparse(arrays: dict[str, Array], place: str) -> sparse.csr_array:
    try:
        parts = arrays["x_data"], arrays["x_indices"].astype(np.int64), arrays["x_indptr"].astype(np.int64)
        shape = tuple(int(size) for size in arrays["x_shape"])
        found = sparse.csr_array(parts, shape=shape)
        found.check_format(full_check=True)
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"x_data, x_indices, x_indptr and x_shape are no sparse matrix ({error})", place) from error
    return found


def _undirected(pairs: Ints, weight: Any, n: int, place: str) -> tuple[Ints, Floats | None]:
    """Return both directions of each edge, once, sorted, and the largest weight of its rows."""
    pairs = pairs.astype(np.int64)
    kept = pairs[:, 0] != pairs[:, 1]
    low, high = pairs.min(axis=1)[kept], pairs.max(axis=1)[kept]
    codes, at = np.unique(low * n + high, return_inverse=True)
    low, high = codes // n, codes % n
    order = np.lexsort((np.concatenate([high, low]), np.concatenate([low, high])))
    edge_index = np.stack([np.concatenate([low, high]), np.concatenate([high, low])])[:, order]
    if weight is None:
        return edge_index, None
    given = np.asarray(weight, dtype=np.float64)
    if given.shape != kept.shape or not np.isfinite(given).all() or (given < 0).any():
        raise DataError(f"edge_weight should be {len(kept)} finite numbers of 0 or more", place)
    largest = np.zeros(len(codes))
    np.maximum.at(largest, at, given[kept])
    return edge_index, np.concatenate([largest, largest])[order]
