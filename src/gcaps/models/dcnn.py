"""Diffusion-convolutional neural networks for graphs: Atwood and Towsley, "Diffusion-Convolutional Neural Networks"
(2016)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.config import DCNNConfig
from gcaps.models.network import Network
from gcaps.nn.filters import batch_filter
from gcaps.nn.regularization import Dropout
from gcaps.nn.sparse import CSR


class DCNN(Network):
    """Z_j = tanh(W_j ⊙ (1/N) 1ᵀ Pʲ X),  j = 0..H,   logits = FC(Z): Eq. 3 of the paper, the form for whole graphs.

    P = D⁻¹ A is the transition matrix (its row is zero where a node has no neighbor, so that walks end there). The
    published code holds the powers P⁰..P^H as one dense tensor, which is what runs out of memory on REDDIT. The mean
    over nodes commutes with it: 1ᵀ Pʲ is one number a node, H sparse products with a vector make all of them, and the
    diffused features are weighted sums of the rows of X, (H + 1) · d numbers a graph. A set of any size fits.

    Args:
        in_channels: columns d of the node features.
        num_classes: how many logits.
        config: hops H, dropout.

    Shapes:
        - **W:** [H + 1, d]
    """

    def __init__(self, in_channels: int, num_classes: int, config: DCNNConfig) -> None:
        super().__init__(in_channels)
        self.hops = config.hops
        self.W = nn.Parameter(torch.empty(config.hops + 1, in_channels))
        self.head = nn.Sequential(Dropout(config.dropout), nn.Linear((config.hops + 1) * in_channels, num_classes))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Around one, so that the mean features come through."""
        nn.init.normal_(self.W, 1.0, 0.1)

    def embed(self, batch: Batch) -> Tensor:
        """[B, (H + 1)·d] the activations Z."""
        return torch.tanh(self.W * diffused(batch, self.hops)).flatten(1)


def diffused(batch: Batch, hops: int) -> Tensor:
    """[B, H + 1, d] the means (1/N) 1ᵀ Pʲ X of each graph, j = 0..H."""
    # Pᵀ = A D⁻¹ carries the column vector (Pᵀ)ʲ 1/N along
    walk = batch_filter("random_walk", batch)
    visits = [(1 / batch.ptr.diff().to(batch.dense.dtype))[batch.batch].unsqueeze(1)]
    for _ in range(hops):
        visits.append(-walk.off_t.matmul(visits[-1]))  # the filter is I − P
    weights = torch.cat(visits, dim=1)
    return torch.cat([_one_hot_sums(batch, weights), _dense_sums(batch, weights)], dim=2)


def _one_hot_sums(batch: Batch, weights: Tensor) -> Tensor:
    """[B, J, one_hot] the sum of weights [n, J] over the nodes of each graph and column."""
    sums = weights.new_zeros(batch.num_graphs * batch.one_hot, weights.size(1))
    if batch.one_hot_index is not None:
        for column in batch.one_hot_index.T:
            known = column >= 0
            sums.index_add_(0, (batch.batch * batch.one_hot + column)[known], weights[known])
    return sums.view(batch.num_graphs, batch.one_hot, weights.size(1)).transpose(1, 2)


def _dense_sums(batch: Batch, weights: Tensor) -> Tensor:
    """[B, J, d − one_hot] the sums of the dense rows, weighted by weights [n, J]."""
    everyone = torch.arange(len(weights), device=weights.device)
    return torch.stack([CSR(batch.ptr, everyone, w).matmul(batch.dense) for w in weights.T.contiguous()], dim=1)
