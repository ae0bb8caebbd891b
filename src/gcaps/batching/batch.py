"""A block-diagonal batch of graphs, cut out of a GraphSet by array indexing alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from gcaps.batching.merging import MergedNodes, merged_nodes
from gcaps.data.arrays import Array, Ints, pointer, ranges
from gcaps.data.graphset import GraphSet
from gcaps.features import NodeFeatures, NodeMatrix


class Extras(Protocol):
    """What a network wants of graphs beside features and edges, made once for a set."""

    def take(self, indices: Ints) -> dict[str, Tensor]:
        """The part that belongs to the graphs at ``indices``, in that order."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """B graphs as one disconnected graph of n nodes and e arcs."""

    dense: Tensor
    """[n, d − one_hot] node features that are not one-hot."""
    rowptr: Tensor
    """[n+1] node v owns the arcs rowptr[v] … rowptr[v+1]−1."""
    col: Tensor
    """[e] the other end of each arc, counted within the batch."""
    weight: Tensor | None
    """[e] arc weights, or None where all are one."""
    ptr: Tensor
    """[B+1] graph g owns the nodes ptr[g] … ptr[g+1]−1."""
    batch: Tensor
    """[n] the graph of each node."""
    y: Tensor | None
    """[B] class of each graph."""
    one_hot_index: Tensor | None = None
    """[n, c] int32: in which column of x each one stands, −1 for none; None where x has no one-hot columns."""
    one_hot: int = 0
    """How many one-hot columns x has; they come first."""
    extras: dict[str, Tensor] | None = None
    """What the source's :class:`Extras` say of these graphs."""
    multiplicity: Tensor | None = None
    """[n] how many nodes of its graph each row stands for; None where each is one node.

    See :mod:`gcaps.batching.merging`; n is then the number of rows, and ``weight`` how many arcs each arc stands for.
    """

    @property
    def x(self) -> Tensor:
        """[n, d] node features, written out."""
        if self.one_hot_index is None:
            return self.dense
        # a code of −1 goes into a column that is then cut off
        ones = self.dense.new_zeros(len(self.dense), self.one_hot + 1)
        at = torch.where(self.one_hot_index < 0, self.one_hot, self.one_hot_index).long()
        ones.scatter_(1, at, torch.ones_like(at, dtype=ones.dtype))
        return torch.cat([ones[:, :-1], self.dense], dim=1)

    @property
    def num_graphs(self) -> int:
        """B."""
        return len(self.ptr) - 1

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        given: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.extras is not None:
            given["extras"] = {name: t.to(device) for name, t in self.extras.items()}
        moved: dict[str, Any] = {name: t.to(device) if isinstance(t, Tensor) else t for name, t in given.items()}
        return Batch(**moved)


class BatchSource:
    """Batches of one GraphSet with its node features.

    Args:
        graphs: the set; its arrays may be memory-mapped.
        x: [N, d] features of all its nodes, in its order, as an array or a NodeMatrix; or fitted features, which then
            describe each batch's graphs when it is taken, so that nothing is ever held for all nodes.
        dtype: floating-point type of the batches.
        extras: what batches carry beside features and edges.
        merge: let a row stand for all nodes of a graph that no network can tell apart, where that pays; for networks
            that heed :attr:`Batch.multiplicity`.
        y: [G] class number of each graph.
    """

    def __init__(
        self,
        graphs: GraphSet,
        x: Array | NodeMatrix | NodeFeatures,
        dtype: torch.dtype = torch.float32,
        extras: Extras | None = None,
        merge: bool = False,
        y: Ints | None = None,
    ) -> None:
        if not isinstance(x, NodeFeatures) and len(x) != graphs.num_nodes:
            raise ValueError(f"{len(x)} rows of features for {graphs.num_nodes} nodes")
        self.merged: MergedNodes | None = None
        if merge and isinstance(x, NodeMatrix):
            self.merged = merged_nodes(graphs, x)
            x = x if self.merged is None else x[self.merged.head]
        self.graphs, self.x, self.dtype, self.extras, self.y = graphs, x, dtype, extras, y
        self._rows: GraphSet | MergedNodes = self.merged or graphs
        self._first_arc = self._rows.rowptr[self._rows.ptr]
        self._arc_counts = np.diff(self._first_arc)
        self.sizes: Ints = np.diff(self._rows.ptr)
        """[G] the rows of each graph."""

    @property
    def streams(self) -> bool:
        """Whether taking a batch costs enough (reading files, describing nodes) to be done ahead."""
        return isinstance(self.x, NodeFeatures)

    @property
    def num_features(self) -> int:
        """d"""
        return self.x.num_features if isinstance(self.x, NodeFeatures) else self.x.shape[1]

    def __len__(self) -> int:
        return len(self.graphs)

    def take(self, indices: Array) -> Batch:
        """The batch of the graphs at ``indices``, in that order; no loop over graphs, nodes or arcs."""
        graphs, rows = self.graphs, self._rows
        indices = np.asarray(indices, dtype=np.int64)
        sizes, arcs = self.sizes[indices], self._arc_counts[indices]
        ptr = pointer(sizes)
        nodes = ranges(rows.ptr[indices], sizes)
        at = ranges(self._first_arc[indices], arcs)
        col = rows.col[at] + np.repeat(ptr[:-1], arcs)
        weight = None if rows.edge_weight is None else rows.edge_weight[at]
        y = None if self.y is None else torch.from_numpy(self.y[indices])
        x = self.x.encode(graphs.subset(indices)) if isinstance(self.x, NodeFeatures) else self.x[nodes]
        dense, one_hot_index = (x.dense, x.one_hot_index) if isinstance(x, NodeMatrix) else (x, None)
        return Batch(
            torch.from_numpy(dense).to(self.dtype),
            torch.from_numpy(pointer(rows.rowptr[nodes + 1] - rows.rowptr[nodes])),
            torch.from_numpy(col),
            None if weight is None else torch.from_numpy(weight).to(self.dtype),
            torch.from_numpy(ptr),
            torch.from_numpy(np.repeat(np.arange(len(indices)), sizes)),
            y,
            None if one_hot_index is None or not one_hot_index.shape[1] else torch.from_numpy(one_hot_index),
            x.one_hot if isinstance(x, NodeMatrix) else 0,
            None if self.extras is None else self.extras.take(indices),
            None if self.merged is None else torch.from_numpy(self.merged.multiplicity[nodes]).to(self.dtype),
        )
