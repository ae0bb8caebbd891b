"""A network that sees a graph as a set of nodes: what can be known without looking at a single edge."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.config import DeepSetsConfig
from gcaps.models.network import InputLinear, Network
from gcaps.nn.pooling import MeanPool
from gcaps.nn.regularization import BatchNorm, Dropout


class DeepSets(Network):
    """z_G = Σ_{v ∈ G} ReLU(x_v W + b),   logits = FC(dropout(ReLU(BN(FC(BN(z_G)))))): deep sets on node features.

    After the structure-blind baseline of Errica, Podda, Bacciu and Micheli, "A Fair Comparison of Graph Neural Networks
    for Graph Classification" (2020), which several published networks do not beat; batch normalisation is added, since
    sums over thousands of nodes train badly without. On sets without labels the features are degrees, which are all
    that it knows of edges (as there).

    Args:
        in_channels: columns of the node features.
        num_classes: how many logits.
        config: width, dropout.
    """

    def __init__(self, in_channels: int, num_classes: int, config: DeepSetsConfig) -> None:
        super().__init__(in_channels)
        self.nodes = InputLinear(in_channels, config.hidden)
        self.pool = MeanPool(total=True)
        self.head = nn.Sequential(
            BatchNorm(config.hidden),
            nn.Linear(config.hidden, config.hidden),
            BatchNorm(config.hidden),
            nn.ReLU(),
            Dropout(config.dropout),
            nn.Linear(config.hidden, num_classes),
        )

    def embed(self, batch: Batch) -> Tensor:
        """[B, h] the sum over each graph's nodes."""
        vectors: Tensor = self.pool(torch.relu(self.nodes(batch)), batch.batch, batch.ptr)
        return vectors
