"""ECC: Simonovsky and Komodakis, "Dynamic Edge-Conditioned Filters in Convolutional Neural Networks on Graphs"
(2017)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.batching.merging import MergedNodes
from gcaps.config import ECCConfig
from gcaps.data.arrays import Floats, Ints, pointer, ranges
from gcaps.data.graphset import GraphSet
from gcaps.models.coarsening import Level, merged_level, pyramid
from gcaps.models.edge_filters import EdgeConditionedConv, EdgeFeatures
from gcaps.models.network import Network
from gcaps.nn.cpu.blocks import is_supported
from gcaps.nn.cpu.neighborhood_max import closed_max
from gcaps.nn.filters import batch_filter
from gcaps.nn.pooling import MeanPool
from gcaps.nn.regularization import BatchNorm, Dropout, rectified
from gcaps.nn.sparse import CSR

LEVELS = (0, 0, 0, 1, 1, 2)
"""Graph that each convolution works on, from the given one, 0, to the coarsest; max pooling lies between levels."""


class ECC(Network):
    """C C C → MP → C C → MP → C → mean over the nodes → FC → dropout → FC, C an edge-conditioned convolution:

        xᵗ⁺¹_i = ReLU(BN(1/|N(i)| Σ_{j ∈ N(i)} Θ(e_ji) xᵗ_j + b)),   Θ(e) = V ReLU(U e + u) + v,   i ∈ N(i)

    (Eq. 1 and 2 of the paper). e_ji are the labels of an edge (one-hot), its attributes (standardised on the training
    graphs) and the logarithm of its weight. Without any of these, as in all sets of the paper's tables, all edges have
    the same filter. Self-loops have a separate filter. On coarser graphs e_ji is the logarithm of the edge's weight in
    the reduced graph.

    In max pooling, a node that is kept takes the largest values of itself and its neighbors in the finer graph. The
    coarser graphs come from :func:`gcaps.models.coarsening.pyramid`, which documents the differences from the authors';
    they are computed once for a set. Where edges have no features, nodes that no network can distinguish are merged in
    all of them (:mod:`gcaps.batching.merging`).

    Args:
        in_channels: columns of the node features.
        num_classes: number of logits.
        config: widths, dropout.
        edges: arguments of :class:`gcaps.models.edge_filters.EdgeFeatures`.
    """

    def __init__(self, in_channels: int, num_classes: int, config: ECCConfig, *, edges: dict[str, Any]) -> None:
        super().__init__(in_channels, edges=edges)
        self.edges = EdgeFeatures(**edges)
        width, top, inner = config.hidden, config.top, config.filter_hidden
        widths = [in_channels, width, width, width, width, top, top]
        self.convs = nn.ModuleList(
            EdgeConditionedConv(before, after, 1 if level else self.edges.num_features, inner, first=number == 0)
            for number, (level, (before, after)) in enumerate(zip(LEVELS, pairwise(widths), strict=True))
        )
        self.norms = nn.ModuleList(BatchNorm(after) for after in widths[1:])
        self.pool = MeanPool()
        self.head = nn.Sequential(
            nn.Linear(top, top), BatchNorm(top), nn.ReLU(), Dropout(config.dropout), nn.Linear(top, num_classes)
        )

    @staticmethod
    def shape_from(config: ECCConfig, graphs: GraphSet) -> dict[str, Any]:
        """Arguments of the edge features."""
        names = ("labels", "attributes") if config.edge_features == "auto" else config.edge_features
        return {"edges": EdgeFeatures.shape_from(graphs, names)}

    @staticmethod
    def prepare(config: ECCConfig, graphs: GraphSet) -> Pyramid:
        """Coarser graphs, edge labels and edge attributes."""
        return Pyramid(graphs.ptr, graphs.rowptr, graphs.edge_labels, graphs.edge_attr, pyramid(graphs, LEVELS[-1]))

    @staticmethod
    def merges(config: ECCConfig) -> bool:
        """Whether batches may have merged nodes, where edges have no features."""
        return True

    def embed(self, batch: Batch) -> Tensor:
        """[B, top] mean over the nodes of the coarsest graphs."""
        assert batch.extras is not None
        M = batch_filter("adjacency", batch)
        A, A_t, ptr, multiplicity = M.A, M.A_t, batch.ptr, batch.multiplicity
        edges = self.edges(batch)
        if multiplicity is None:  # weights are features of the edges
            A = A_t = CSR(batch.rowptr, batch.col, None)
        x: Tensor = rectified(self.norms[0], self.convs[0](batch, A, edges, A_t), multiplicity)
        for number in range(1, len(LEVELS)):
            level = LEVELS[number]
            if level > LEVELS[number - 1]:
                x = max_pool(x, A, batch.extras[f"kept{level}"])
                count = batch.extras.get(f"edge_count{level}")
                A = A_t = CSR(batch.extras[f"rowptr{level}"], batch.extras[f"col{level}"], count)
                edges, ptr = torch.log(batch.extras[f"weight{level}"].to(x)).unsqueeze(1), batch.extras[f"ptr{level}"]
                multiplicity = batch.extras.get(f"multiplicity{level}")
            x = rectified(self.norms[number], self.convs[number](x, A, edges, A_t), multiplicity)
        vectors: Tensor = self.pool(x, ptr=ptr, multiplicity=multiplicity)
        return vectors


def max_pool(x: Tensor, A: CSR, kept: Tensor) -> Tensor:
    """[n', c] largest values of each kept node and its neighbors."""
    if is_supported(x):
        return closed_max(x, A.rowptr, A.col, kept)
    arcs = A.rowptr.diff()
    count = arcs[kept]
    at = torch.repeat_interleave(torch.arange(len(kept), device=x.device), count)
    within = torch.arange(len(at), device=x.device) - (count.cumsum(0) - count)[at]
    others = A.col[A.rowptr[kept][at] + within]
    return x[kept].scatter_reduce(0, at.unsqueeze(1).expand(-1, x.size(1)), x[others], "amax")


@dataclass(frozen=True)
class Pyramid:
    """Coarser graphs of a set with its edge labels and attributes, for batches."""

    ptr: Ints
    rowptr: Ints
    edge_labels: Ints | None
    edge_attr: Floats | None
    levels: list[Level]

    def take(self, indices: Ints) -> dict[str, Tensor]:
        """``edge_labels``, ``edge_attr`` [e, ·], and for each level its CSR, its ``ptr`` and the ``kept`` nodes.

        Levels of merged nodes have ``multiplicity`` and ``edge_count``, too.
        """
        found: dict[str, Any] = {}
        if self.edge_labels is not None or self.edge_attr is not None:
            first = self.rowptr[self.ptr[indices]]
            at = ranges(first, self.rowptr[self.ptr[indices + 1]] - first)
            known = {"edge_labels": self.edge_labels, "edge_attr": self.edge_attr}
            found |= {name: array[at] for name, array in known.items() if array is not None}
        finer = pointer(self.ptr[indices + 1] - self.ptr[indices])
        for number, level in enumerate(self.levels, 1):
            sizes = np.diff(level.ptr)[indices]
            nodes = ranges(level.ptr[indices], sizes)
            first = level.rowptr[level.ptr[indices]]
            arcs = level.rowptr[level.ptr[indices + 1]] - first
            at, ptr = ranges(first, arcs), pointer(sizes)
            found[f"ptr{number}"] = ptr
            found[f"rowptr{number}"] = pointer(level.rowptr[nodes + 1] - level.rowptr[nodes])
            found[f"col{number}"] = level.col[at] + np.repeat(ptr[:-1], arcs)
            found[f"weight{number}"] = level.weight[at]
            for name, array, chosen in (
                ("multiplicity", level.multiplicity, nodes),
                ("edge_count", level.edge_count, at),
            ):
                if array is not None:
                    found[f"{name}{number}"] = array[chosen]
            found[f"kept{number}"] = level.kept[nodes] + np.repeat(finer[:-1], sizes)
            finer = ptr
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in found.items()}

    def merge(self, nodes: MergedNodes) -> Pyramid | None:
        """The pyramid of merged nodes, merged as well; None if edges have features."""
        if self.edge_labels is not None or self.edge_attr is not None:
            return None
        ptr, row, row_ptr, levels = self.ptr, nodes.row, nodes.ptr, []
        for level in self.levels:
            merged, row = merged_level(level, ptr, row, row_ptr)
            ptr, row_ptr = level.ptr, merged.ptr
            levels.append(merged)
        return Pyramid(nodes.ptr, nodes.rowptr, None, None, levels)
