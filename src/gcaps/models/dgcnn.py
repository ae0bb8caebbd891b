"""DGCNN: Zhang, Cui, Neumann and Chen, "An End-to-End Deep Learning Architecture for Graph Classification" (2018)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.config import DGCNNConfig
from gcaps.data.graphset import GraphSet
from gcaps.models.network import InputLinear, Network
from gcaps.nn.cpu.blocks import is_supported
from gcaps.nn.cpu.rows import chosen_rows
from gcaps.nn.filters import batch_filter
from gcaps.nn.neighborhood import filter_product
from gcaps.nn.pooling import first_rows
from gcaps.nn.regularization import Dropout

KERNEL = 5
"""Length of the second 1-D convolution."""
SMALLEST = 2 * KERNEL
"""Smallest number of nodes that are kept; max pooling halves it before the second convolution."""


class DGCNN(Network):
    """Zᵗ⁺¹ = tanh(D̃⁻¹ Ã Zᵗ Wᵗ), Ã = A + I;  Z = [Z¹ … Zᴸ];  sort pooling;  two 1-D convolutions;  dense layers.

    The last graph convolution has one channel, by which sort pooling orders the nodes of a graph. The first k nodes are
    kept, where k is chosen such that 60 % of the training graphs have more nodes, and at least 10. The first 1-D
    convolution covers one node per step. It is followed by max pooling of size and step 2, the second convolution of
    length 5, a dense layer and dropout.

    Nodes that tie in the last channel are ordered by the channel before it and so on
    (:func:`gcaps.nn.pooling.content_order`), as in the paper, so that logits do not depend on the order of the nodes.
    PyTorch Geometric's SortAggregation and the authors' code break ties by node order.

    Args:
        in_channels: columns of the node features.
        num_classes: number of logits.
        config: widths, dropout.
        k: number of nodes that are kept.
    """

    def __init__(self, in_channels: int, num_classes: int, config: DGCNNConfig, *, k: int) -> None:
        super().__init__(in_channels, k=k)
        width = config.hidden
        self.first = InputLinear(in_channels, width, bias=False)
        self.linears = nn.ModuleList(
            nn.Linear(width, width if layer < config.layers else 1, bias=False) for layer in range(1, config.layers + 1)
        )
        total = config.layers * width + 1
        self.k = k
        self.by_node = nn.Linear(total, config.channels)  # a 1-D convolution over one row per step
        self.convolutions = nn.Sequential(
            nn.ReLU(),
            nn.MaxPool1d(2, 2),
            nn.Conv1d(config.channels, 2 * config.channels, KERNEL),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Sequential(
            nn.Linear((k // 2 - KERNEL + 1) * 2 * config.channels, config.dense),
            nn.ReLU(),
            Dropout(config.dropout),
            nn.Linear(config.dense, num_classes),
        )

    @staticmethod
    def shape_from(config: DGCNNConfig, graphs: GraphSet) -> dict[str, Any]:
        """k, such that the share ``config.share`` of the training graphs has more nodes."""
        return {"k": max(int(np.quantile(graphs.sizes, 1 - config.share, method="lower")), SMALLEST)}

    @staticmethod
    def merges(config: DGCNNConfig) -> bool:
        """Whether batches may have merged nodes."""
        return True

    def node_layers(self, batch: Batch) -> list[Tensor]:
        """Outputs [n, ·] of all graph convolutions, which Z [n, L·h + 1] has side by side."""
        M = batch_filter("mean", batch)
        outputs = [torch.tanh(filter_product(self.first(batch), M))]
        for linear in self.linears:
            outputs.append(torch.tanh(filter_product(linear(outputs[-1]), M)))
        return outputs

    def embed(self, batch: Batch) -> Tensor:
        """[B, ·] output of the 1-D convolutions."""
        outputs = self.node_layers(batch)
        rows = first_rows([part.detach() for part in outputs], self.k, batch.batch, batch.ptr, batch.multiplicity)
        # the first convolution covers one node, so it is applied to all nodes before they are sorted
        weights = torch.split(self.by_node.weight, [part.size(1) for part in outputs], dim=1)
        products = [part @ weight.T for part, weight in zip(outputs, weights, strict=True)]
        sequence = rows_or_zero(torch.stack(products).sum(0), rows) + self.by_node.bias
        vectors: Tensor = self.convolutions(sequence.transpose(1, 2))
        return vectors


def rows_or_zero(x: Tensor, rows: Tensor) -> Tensor:
    """[B, k, c] rows of x [n, c], zeros where the number is −1."""
    if is_supported(x):
        return chosen_rows(x, rows.view(-1, 1)).view(*rows.shape, -1)
    return torch.cat([x, x.new_zeros(1, x.size(1))])[rows]
