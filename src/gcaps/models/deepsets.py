"""Deep sets on node features, a baseline that does not use edges: Errica, Podda, Bacciu and Micheli, "A Fair Comparison
of Graph Neural Networks for Graph Classification" (2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.config import DeepSetsConfig
from gcaps.models.network import InputLinear, Network
from gcaps.nn.pooling import MeanPool
from gcaps.nn.regularization import BatchNorm, Dropout


class DeepSets(Network):
    """z_G = Σ_{v ∈ G} ReLU(x_v W + b),   logits = FC(dropout(ReLU(BN(FC(BN(z_G))))))

    Batch normalisation is added to the published baseline, since sums over thousands of nodes are hard to train on
    without it. On sets without labels the node features are degrees, as in the paper.

    Args:
        in_channels: columns of the node features.
        num_classes: number of logits.
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

    @staticmethod
    def merges(config: DeepSetsConfig) -> bool:
        """Whether batches may have merged nodes."""
        return True

    def embed(self, batch: Batch) -> Tensor:
        """[B, h] sum over the nodes of each graph."""
        vectors: Tensor = self.pool(torch.relu(self.nodes(batch)), batch.batch, batch.ptr, batch.multiplicity)
        return vectors
