"""Diffusion-convolutional neural networks for graphs: Atwood and Towsley, "Diffusion-Convolutional Neural Networks"
(2016)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.config import DCNNConfig
from gcaps.models.network import Network
from gcaps.nn.filters import batch_filter
from gcaps.nn.readout import segment_sum
from gcaps.nn.regularization import Dropout
from gcaps.nn.sparse import CSR


class DCNN(Network):
    """Z_j = tanh(W_j ⊙ (1/N) 1ᵀ Pʲ X),  j = 0..H,   logits = FC(Z): Eq. 3 of the paper, for whole graphs.

    P = D⁻¹ A is the transition matrix; rows of isolated nodes are zero. The published code stores the powers P⁰..P^H as
    one dense tensor, which runs out of memory on REDDIT. Here 1ᵀ Pʲ, one number per node, is computed by H sparse
    products with a vector, and the diffused features are weighted sums of the rows of X, (H + 1) · d numbers per graph.

    Args:
        in_channels: columns d of the node features.
        num_classes: number of logits.
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
        """Reset W to values around one."""
        nn.init.normal_(self.W, 1.0, 0.1)

    @staticmethod
    def merges(config: DCNNConfig) -> bool:
        """Whether batches may have merged nodes."""
        return True

    def embed(self, batch: Batch) -> Tensor:
        """[B, (H + 1)·d] activations Z."""
        return torch.tanh(self.W * diffused(batch, self.hops)).flatten(1)


def diffused(batch: Batch, hops: int) -> Tensor:
    """[B, H + 1, d] means (1/N) 1ᵀ Pʲ X of each graph, j = 0..H."""
    # merged nodes are visited m times as often as each of them; the columns of visits are (Pᵀ)ʲ 1/N with Pᵀ = A D⁻¹
    walk = batch_filter("random_walk", batch)
    count = batch.dense.new_ones(batch.batch.size(0)) if batch.multiplicity is None else batch.multiplicity
    nodes = segment_sum(count.unsqueeze(1), batch.batch, batch.ptr, None)
    visits = [count.unsqueeze(1) / nodes[batch.batch]]
    for _ in range(hops):
        visits.append(-walk.off_t.matmul(visits[-1]))  # the filter is I − P
    weights = torch.cat(visits, dim=1)
    return torch.cat([_one_hot_sums(batch, weights), _dense_sums(batch, weights)], dim=2)


def _one_hot_sums(batch: Batch, weights: Tensor) -> Tensor:
    """[B, J, one_hot] sums of weights [n, J] over the nodes of each graph that have a one in each column."""
    if batch.one_hot_index is None:
        return weights.new_zeros(batch.ptr.size(0) - 1, weights.size(1), 0)
    columns = batch.one_hot + 1  # the last is for labels that were not seen in training
    sums = weights.new_zeros(batch.num_graphs * columns, weights.size(1))
    for column in torch.where(batch.one_hot_index < 0, batch.one_hot, batch.one_hot_index).T:
        sums.index_add_(0, batch.batch * columns + column, weights)
    return sums.view(batch.num_graphs, columns, weights.size(1))[:, :-1].transpose(1, 2)


def _dense_sums(batch: Batch, weights: Tensor) -> Tensor:
    """[B, J, d − one_hot] sums of the dense rows, weighted by weights [n, J]."""
    if torch.compiler.is_compiling():
        products = weights.unsqueeze(2) * batch.dense.unsqueeze(1)
        sums = products.new_zeros(batch.ptr.size(0) - 1, *products.shape[1:])
        return sums.index_add(0, batch.batch, products)
    nodes = torch.arange(len(weights), device=weights.device)
    return torch.stack([CSR(batch.ptr, nodes, w).matmul(batch.dense) for w in weights.T.contiguous()], dim=1)
