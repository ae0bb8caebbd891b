"""GIN-0, the graph isomorphism network of Xu, Hu, Leskovec and Jegelka, "How Powerful are Graph Neural Networks?"
(2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.config import GINConfig
from gcaps.models.network import InputLinear, Network
from gcaps.nn.filters import batch_filter
from gcaps.nn.neighborhood import closed_sum
from gcaps.nn.pooling import MeanPool
from gcaps.nn.regularization import BatchNorm, Dropout, rectified


class GIN(Network):
    """h⁰ = X,   hᵗ⁺¹ = MLPᵗ(hᵗ + A hᵗ),   logits = Σ_t dropout(R(hᵗ) Vᵗ + cᵗ), R the sum over a graph's nodes, c⁰ = 0.

    Every MLP has two linear layers, each followed by batch normalisation and ReLU, as in the authors' code; the ε of
    the paper is 0. The first linear layer is applied before the sum over neighbors, (I + A)(h W) = ((I + A) h) W, so
    that one-hot columns are not summed. The sum is one sparse product with a fixed order of summation.

    Args:
        in_channels: columns of the node features.
        num_classes: number of logits.
        config: layers (the input counts as one), their width, dropout.
    """

    def __init__(self, in_channels: int, num_classes: int, config: GINConfig) -> None:
        super().__init__(in_channels)
        width = config.hidden
        self.first = InputLinear(in_channels, width, bias=False)
        self.inner = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(config.layers - 2))
        self.outer = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(config.layers - 1))
        self.inner_norms = nn.ModuleList(BatchNorm(width) for _ in range(config.layers - 1))
        self.outer_norms = nn.ModuleList(BatchNorm(width) for _ in range(config.layers - 1))
        self.pool = MeanPool(total=config.readout == "sum")
        self.input_score = InputLinear(in_channels, num_classes, bias=False)
        self.scores = nn.ModuleList(nn.Linear(width, num_classes) for _ in range(config.layers - 1))
        self.dropout = Dropout(config.dropout)

    @staticmethod
    def merges(config: GINConfig) -> bool:
        """Whether batches may have merged nodes."""
        return True

    def node_layers(self, batch: Batch) -> list[Tensor]:
        """Outputs [n, h] of the layers after the input."""
        M = batch_filter("adjacency", batch)
        h, outputs = self.first(batch), []
        for number, outer in enumerate(self.outer):
            h = h if number == 0 else self.inner[number - 1](h)
            h = rectified(self.inner_norms[number], closed_sum(h, M), batch.multiplicity)
            h = rectified(self.outer_norms[number], outer(h), batch.multiplicity)
            outputs.append(h)
        return outputs

    def embed(self, batch: Batch) -> Tensor:
        """[B, (layers − 1)·h] readouts of all layers after the input."""
        return torch.cat([self._pooled(h, batch) for h in self.node_layers(batch)], dim=1)

    def _pooled(self, h: Tensor, batch: Batch) -> Tensor:
        """[B, ·] readout of node values [n, ·]."""
        vectors: Tensor = self.pool(h, batch.batch, batch.ptr, batch.multiplicity)
        return vectors

    def forward(self, batch: Batch) -> Tensor:
        """[B, C] logits: the sum of a linear layer on the graph vector of each layer."""
        logits: Tensor = self.dropout(self._pooled(self.input_score(batch), batch))
        for score, vector in zip(self.scores, self.embed(batch).chunk(len(self.scores), dim=1), strict=True):
            logits = logits + self.dropout(score(vector))
        return logits
