"""A block-diagonal batch of graphs, cut out of a GraphSet by array indexing alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcaps.data.arrays import Array, pointer, ranges
from gcaps.data.graphset import GraphSet


@dataclass(frozen=True, slots=True)
class Batch:
    """B graphs as one disconnected graph of n nodes and e arcs."""

    x: Tensor
    """[n, d] node features."""
    rowptr: Tensor
    """[n+1] node v owns the arcs rowptr[v] … rowptr[v+1]−1."""
    col: Tensor
    """[e] the other end of each arc, counted within the batch."""
    weight: Tensor | None
    """[e] arc weights, or None where all are one."""
    ptr: Tensor
    """[B+1] graph g owns the nodes ptr[g] … ptr[g+1]−1."""
    index: Tensor
    """[n] the graph of each node."""
    y: Tensor | None
    """[B] class of each graph."""

    @property
    def num_graphs(self) -> int:
        """B."""
        return len(self.ptr) - 1

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        given: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        moved: dict[str, Any] = {name: None if t is None else t.to(device) for name, t in given.items()}
        return Batch(**moved)


class BatchSource:
    """Batches of one GraphSet with one matrix of node features.

    Args:
        graphs: the set; its arrays may be memory-mapped.
        x: [N, d] features of all its nodes, in its order.
        dtype: floating-point type of the batches.
    """

    def __init__(self, graphs: GraphSet, x: Array, dtype: torch.dtype = torch.float32) -> None:
        if len(x) != graphs.num_nodes:
            raise ValueError(f"{len(x)} rows of features for {graphs.num_nodes} nodes")
        self.graphs, self.x, self.dtype = graphs, x, dtype
        self._first_arc = graphs.edge_ptr[graphs.node_ptr]

    def __len__(self) -> int:
        return len(self.graphs)

    def take(self, indices: Array) -> Batch:
        """The batch of the graphs at ``indices``, in that order; no loop over graphs, nodes or arcs."""
        graphs = self.graphs
        indices = np.asarray(indices, dtype=np.int64)
        sizes, arcs = graphs.sizes[indices], graphs.arc_counts[indices]
        ptr = pointer(sizes)
        nodes = ranges(graphs.node_ptr[indices], sizes)
        at = ranges(self._first_arc[indices], arcs)
        col = graphs.neighbors[at] + np.repeat(ptr[:-1], arcs)
        weight = None if graphs.edge_weight is None else graphs.edge_weight[at]
        y = None if graphs.labels is None else torch.from_numpy(graphs.labels[indices])
        return Batch(
            torch.from_numpy(self.x[nodes]).to(self.dtype),
            torch.from_numpy(pointer(graphs.degrees[nodes])),
            torch.from_numpy(col),
            None if weight is None else torch.from_numpy(weight).to(self.dtype),
            torch.from_numpy(ptr),
            torch.from_numpy(np.repeat(np.arange(len(indices)), sizes)),
            y,
        )
