"""Block-diagonal batches of graphs, cut out of a GraphSet by array indexing, and which graphs make up a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from gcaps.batching.cutting import cut_out
from gcaps.batching.merging import MergedNodes, merged_nodes
from gcaps.data.arrays import Array, Floats, Ints, strides
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.features.edges import EdgeMatrix
from gcaps.features.nodes import NodeFeatures
from gcaps.features.structural import NodeMatrix


class Extras(Protocol):
    """Tensors that a network needs besides node features and edges, computed once for a set."""

    def take(self, indices: Ints) -> dict[str, Tensor]:
        """Return the part that belongs to the graphs at ``indices``, in that order."""
        ...

    def merge(self, nodes: MergedNodes) -> Extras | None:
        """Return the same for merged nodes; None if the tensors are of single nodes or arcs."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """B graphs as one disconnected graph of n nodes and e arcs."""

    dense: Tensor
    """[n, d − one_hot] node features without the one-hot columns."""
    rowptr: Tensor
    """[n+1] node v owns the arcs rowptr[v] … rowptr[v+1]−1."""
    col: Tensor
    """[e] target of each arc, numbered within the batch."""
    weight: Tensor | None
    """[e] arc weights; None if all are 1."""
    ptr: Tensor
    """[B+1] graph g owns the nodes ptr[g] … ptr[g+1]−1."""
    batch: Tensor
    """[n] graph of each node."""
    y: Tensor | None
    """[B] class number of each graph, or [B, T] targets with NaN where a value is missing."""
    one_hot_index: Tensor | None = None
    """[n, c] int32 columns of x that are 1, −1 for none; None if x has no one-hot columns."""
    one_hot: int = 0
    """Number of one-hot columns of x; they come first."""
    extras: dict[str, Tensor] | None = None
    """:class:`Extras` of these graphs."""
    multiplicity: Tensor | None = None
    """[n] number of nodes that each row represents; None if every row is one node.

    With merged nodes (:mod:`gcaps.batching.merging`) n is the number of rows, and ``weight`` the number of arcs that
    each arc represents.
    """
    sample_weight: Tensor | None = None
    """[B] or [B, T] weight of each graph's loss; None if all are 1."""
    edge_type: Tensor | None = None
    """[e] relation of each arc, −1 for one that the training graphs lack; None if all are of one relation."""
    edge_attr: Tensor | None = None
    """[e, ·] attributes of each arc, or None."""
    graph_attr: Tensor | None = None
    """[B, ·] features of each graph (:class:`gcaps.features.GraphFeatures`), or None."""
    row: Tensor | None = None
    """[e] node that owns each arc, in an exported program (:mod:`gcaps.exporting`): arcs may then be in any order, and
    self-loops among them have weight zero. Otherwise None."""

    @property
    def x(self) -> Tensor:
        """[n, d] dense node features."""
        if self.one_hot_index is None:
            return self.dense
        # an index of −1 sets a column that is then cut off
        ones = self.dense.new_zeros(len(self.dense), self.one_hot + 1)
        at = torch.where(self.one_hot_index < 0, self.one_hot, self.one_hot_index).long()
        ones.scatter_(1, at, torch.ones_like(at, dtype=ones.dtype))
        return torch.cat([ones[:, :-1], self.dense], dim=1)

    @property
    def num_graphs(self) -> int:
        """B."""
        return len(self.ptr) - 1

    @property
    def requires_grad(self) -> bool:
        """Whether gradients of node features or arc weights are wanted."""
        return self.dense.requires_grad or (self.weight is not None and self.weight.requires_grad)

    def to(self, device: torch.device | str) -> Batch:
        """Return the same batch on another device."""
        if self.dense.device == torch.device(device):
            return self
        given: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.extras is not None:
            given["extras"] = {name: t.to(device) for name, t in self.extras.items()}
        moved: dict[str, Any] = {name: t.to(device) if isinstance(t, Tensor) else t for name, t in given.items()}
        return Batch(**moved)


class BatchSource:
    """Batches of one GraphSet with its node features.

    Args:
        graphs: the set; its arrays may be memory-mapped.
        x: [N, d] features of all nodes, as an array or a NodeMatrix, which may have features of edges and graphs; or
            fitted features, which are then computed for the graphs of each batch when it is taken, so that features of
            all nodes are never held at once.
        dtype: floating-point type of the batches.
        extras: tensors that batches carry besides features and edges.
        merge: represent all nodes of a graph that no network can distinguish by one row, where that pays; for networks
            that take :attr:`Batch.multiplicity` into account. Nodes of graphs with edge features, or with ``extras``
            of single nodes or arcs, are not merged.
        y: [G] class number of each graph, or [G, T] targets.
        sample_weight: [G] or [G, T] weight of each graph's loss.
        prepared: results shared by several sources of the same set, such as the colors that ``merge`` needs.
    """

    def __init__(
        self,
        graphs: GraphSet,
        x: Array | NodeMatrix | NodeFeatures,
        dtype: torch.dtype = torch.float32,
        extras: Extras | None = None,
        merge: bool = False,
        y: Array | None = None,
        sample_weight: Floats | None = None,
        prepared: PreparedSet | None = None,
    ) -> None:
        if not isinstance(x, NodeFeatures) and len(x) != graphs.num_nodes:
            raise ValueError(f"{len(x)} rows of features for {graphs.num_nodes} nodes")
        self.merged: MergedNodes | None = None
        self.edges = x.edges if isinstance(x, NodeMatrix) else None
        self.graph_attr = x.graphs if isinstance(x, NodeMatrix) else None
        if merge and isinstance(x, NodeMatrix) and self.edges is None:
            self.merged = merged_nodes(graphs, x, prepared)
            if self.merged is not None and extras is not None:
                joined = extras.merge(self.merged)
                self.merged, extras = (None, extras) if joined is None else (self.merged, joined)
            x = x if self.merged is None else x[self.merged.head]
        self.graphs, self.x, self.dtype, self.extras, self.y = graphs, x, dtype, extras, y
        self.sample_weight = sample_weight
        self._rows: GraphSet | MergedNodes = self.merged or graphs
        self.sizes: Ints = np.diff(self._rows.ptr)
        """[G] number of rows of each graph."""

    @property
    def streams(self) -> bool:
        """Whether taking a batch reads files or computes features, so that prefetching pays."""
        return isinstance(self.x, NodeFeatures)

    @property
    def num_features(self) -> int:
        """Number of node features d."""
        return self.x.num_features if isinstance(self.x, NodeFeatures) else self.x.shape[1]

    @property
    def shape(self) -> dict[str, int]:
        """Number of relations, edge attributes and graph features, see :attr:`gcaps.features.NodeFeatures.shape`."""
        if isinstance(self.x, NodeFeatures):
            return self.x.shape
        columns = 0 if self.graph_attr is None else self.graph_attr.shape[1]
        return ({} if self.edges is None else self.edges.shape) | ({"graph_dim": columns} if columns else {})

    def __len__(self) -> int:
        return len(self.graphs)

    def take(self, indices: Array) -> Batch:
        """Return the batch of the graphs at ``indices``, in that order."""
        graphs, rows = self.graphs, self._rows
        indices = np.asarray(indices, dtype=np.int64)
        nodes, at, ptr, rowptr, col, batch = cut_out(indices, rows.ptr, rows.rowptr, rows.col)
        weight = None if rows.edge_weight is None else rows.edge_weight[at]
        y = None if self.y is None else torch.from_numpy(self.y[indices])
        x = self.x.encode(graphs.subset(indices)) if isinstance(self.x, NodeFeatures) else self.x[nodes]
        dense, one_hot_index = (x.dense, x.one_hot_index) if isinstance(x, NodeMatrix) else (x, None)
        if self.edges is not None:
            edges: EdgeMatrix | None = self.edges.take(at)
        else:  # encoded for this batch, if at all
            edges = x.edges if isinstance(x, NodeMatrix) else None
        if self.graph_attr is not None:
            graph_attr: Floats | None = self.graph_attr[indices]
        else:
            graph_attr = x.graphs if isinstance(x, NodeMatrix) else None
        return Batch(
            torch.from_numpy(dense).to(self.dtype),
            torch.from_numpy(rowptr),
            torch.from_numpy(col),
            None if weight is None else torch.from_numpy(weight).to(self.dtype),
            torch.from_numpy(ptr),
            torch.from_numpy(batch),
            y,
            None if one_hot_index is None or not one_hot_index.shape[1] else torch.from_numpy(one_hot_index),
            x.one_hot if isinstance(x, NodeMatrix) else 0,
            None if self.extras is None else self.extras.take(indices),
            None if self.merged is None else torch.from_numpy(self.merged.multiplicity[nodes]).to(self.dtype),
            None if self.sample_weight is None else torch.from_numpy(self.sample_weight[indices]).to(self.dtype),
            None if edges is None or edges.relation is None else torch.from_numpy(edges.relation),
            None if edges is None or edges.attr is None else torch.from_numpy(edges.attr).to(self.dtype),
            None if graph_attr is None else torch.from_numpy(graph_attr).to(self.dtype),
        )


def shuffled(indices: Array, batch_size: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield one epoch of batches: every index once, in random order, in batches of near-equal size ≤ ``batch_size``.

    Near-equal sizes avoid a last batch of one graph, whose batch statistics would be noise.
    """
    order = rng.permutation(np.asarray(indices, dtype=np.int64))
    yield from np.array_split(order, -(-len(order) // batch_size))


def node_budget_batches(sizes: Array, budget: int) -> Iterator[Ints]:
    """Yield consecutive positions whose ``sizes`` add up to at most ``budget``; a larger single graph is alone.

    For prediction, where memory grows with the nodes of a batch and not with its graphs.
    """
    return (np.arange(first, last) for first, last in strides(sizes, budget))
