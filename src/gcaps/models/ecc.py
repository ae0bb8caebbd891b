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
from gcaps.config import ECCConfig
from gcaps.data.arrays import Floats, Ints, pointer, ranges
from gcaps.data.graphset import GraphSet
from gcaps.models.coarsening import Level, pyramid
from gcaps.models.edge_filters import EdgeConditionedConv, EdgeFeatures
from gcaps.models.network import Network
from gcaps.nn.pooling import MeanPool
from gcaps.nn.regularization import BatchNorm, Dropout
from gcaps.nn.sparse import CSR

LEVELS = (0, 0, 0, 1, 1, 2)
"""On which graph, from the given one to the coarsest, each convolution works; in between is max pooling."""


class ECC(Network):
    """C C C → MP → C C → MP → C → mean over the nodes → FC → dropout → FC, C an edge-conditioned convolution:

        xᵗ⁺¹_i = ReLU(BN(1/|N(i)| Σ_{j ∈ N(i)} Θ(e_ji) xᵗ_j + b)),   Θ(e) = V ReLU(U e + u) + v,   i ∈ N(i)

    (Eq. 1 and 2 of the paper). e_ji are the labels and attributes of edges, one-hot and standardised on the training
    graphs, and the logarithm of their weights; where they have nothing of it, as in all sets of the paper's tables, all
    edges have the same filter. A node's edge to itself has a filter of its own. On coarser graphs e_ji is the
    logarithm of the weight that reduction gives the edge.

    Max pooling: a node that stays takes the largest values of itself and its neighbors in the finer graph. The graphs
    come from :func:`gcaps.models.coarsening.pyramid`, which says how it differs from the authors'; it is computed once
    for a set.

    Args:
        in_channels: columns of the node features.
        num_classes: how many logits.
        config: widths, dropout.
        edges: how edges are described, see :meth:`EdgeFeatures.shape_from`.
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
        """How edges are described."""
        return {"edges": EdgeFeatures.shape_from(graphs)}

    @staticmethod
    def prepare(config: ECCConfig, graphs: GraphSet) -> Pyramid:
        """Coarser graphs, and what is known of edges."""
        return Pyramid(graphs.ptr, graphs.rowptr, graphs.edge_labels, graphs.edge_attr, pyramid(graphs, LEVELS[-1]))

    def embed(self, batch: Batch) -> Tensor:
        """[B, top] the mean over the nodes of the coarsest graphs."""
        assert batch.extras is not None
        A, ptr = CSR(batch.rowptr, batch.col, None), batch.ptr
        edges = self.edges(batch)
        x: Tensor = self.norms[0](self.convs[0](batch, A, edges)).relu()
        for number in range(1, len(LEVELS)):
            level = LEVELS[number]
            if level > LEVELS[number - 1]:
                x = max_pool(x, A, batch.extras[f"kept{level}"])
                A = CSR(batch.extras[f"rowptr{level}"], batch.extras[f"col{level}"], None)
                edges, ptr = torch.log(batch.extras[f"weight{level}"].to(x)).unsqueeze(1), batch.extras[f"ptr{level}"]
            x = self.norms[number](self.convs[number](x, A, edges)).relu()
        vectors: Tensor = self.pool(x, ptr=ptr)
        return vectors


def max_pool(x: Tensor, A: CSR, kept: Tensor) -> Tensor:
    """[n', c] for each node that is kept the largest values of itself and its neighbors."""
    arcs = A.rowptr.diff()
    staying = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    staying[kept] = True
    chosen = torch.repeat_interleave(staying, arcs, output_size=len(A.col))
    place = torch.cumsum(staying, 0) - 1
    index = place[A.rows()[chosen]].unsqueeze(1).expand(-1, x.size(1))
    return x[kept].scatter_reduce(0, index, x[A.col[chosen]], "amax")


@dataclass(frozen=True)
class Pyramid:
    """The coarser graphs of a set, with what is known of its edges, batch by batch."""

    ptr: Ints
    rowptr: Ints
    edge_labels: Ints | None
    edge_attr: Floats | None
    levels: list[Level]

    def take(self, indices: Ints) -> dict[str, Tensor]:
        """``edge_labels``, ``edge_attr`` [e, ·], and for each level its CSR, its ``ptr`` and who was ``kept``."""
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
            found[f"kept{number}"] = level.kept[nodes] + np.repeat(finer[:-1], sizes)
            finer = ptr
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in found.items()}
