"""GCAPS-CNN, the paper's network: a batch of graphs to class logits."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.config import DEEP, DROPOUT, SHALLOW, Config, NetworkConfig, are_few, differ_much
from gcaps.data.graphset import GraphSet
from gcaps.errors import MemoryLimitError
from gcaps.models.network import Network
from gcaps.nn.conv import GraphCapsuleConv, flatten_capsules
from gcaps.nn.regularization import Dropout
from gcaps.nn.filters import BASES, batch_filter
from gcaps.nn.cpu.head import Head
from gcaps.nn.cpu.stack import can_fuse, capsule_stack
from gcaps.nn.regularization import BatchNorm
from gcaps.nn.pooling import MeanPool, WithCount
from gcaps.nn.readout import MeanCovariance, repeat_rows
from gcaps.nn.pooling import MaxSortPool


class GCAPS(Network):
    """Input → GC(h, P) × ℓ → concatenate → [M, C(·)] → FC → FC → logits (section 6 of the paper).

    The outputs of all capsule layers are concatenated (the paper's idea from Weisfeiler–Lehman) before mean and
    covariance are taken. Batch normalisation stands in every capsule layer and before every fully connected one,
    dropout before the fully connected ones.

    Args:
        in_channels: columns of the node features.
        num_classes: how many logits.
        config: the network's shape.
        reduce: what ``auto`` in its place there stands for, ``"mean"`` or ``"sum"``.
        layers: what ``auto`` in its place there stands for.
        dropout: what ``auto`` in its place there stands for.

    Raises:
        MemoryLimitError: before anything is allocated, where the parameters and their gradients and moments would not
            fit in the machine's memory.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        config: NetworkConfig,
        *,
        reduce: str = "mean",
        layers: int = DEEP,
        dropout: float = DROPOUT,
    ) -> None:
        super().__init__(in_channels, reduce=reduce, layers=layers, dropout=dropout)
        self.config = config
        reduce = reduce if config.reduce == "auto" else config.reduce
        layers = layers if config.layers == "auto" else config.layers
        dropout = dropout if config.dropout == "auto" else config.dropout
        require_memory(config, layers)
        self.convs = nn.ModuleList()
        width = in_channels
        for _ in range(layers):
            conv = GraphCapsuleConv(
                width,
                config.hidden,
                config.capsule_size,
                config.degree,
                config.capsule,
                config.filter,
                bound=config.bound,
                normalize=True,
                bias=False,  # the normalisation that follows has one
            )
            self.convs.append(conv)
            width = conv.width
        self.readout, length = make_readout(layers * width, config, reduce)
        self.inputs: MeanPool | None = None
        if config.inputs:
            self.inputs = MeanPool(config.readout == "sum" or (config.readout == "covariance" and reduce == "sum"))
            length += in_channels
        self.length = length
        """Entries of the graph vector."""
        self.head: nn.Module = Head(
            BatchNorm(length),
            Dropout(dropout),
            nn.Linear(length, config.fc),
            BatchNorm(config.fc),
            nn.ReLU(),
            Dropout(dropout),
            nn.Linear(config.fc, config.fc),
            BatchNorm(config.fc),
            nn.ReLU(),
            nn.Linear(config.fc, num_classes),
        )

    @staticmethod
    def measure(config: NetworkConfig, graphs: GraphSet) -> dict[str, Any]:
        """Sums where nodes have labels: how many there are of a kind then says more than their share.

        One layer where sizes differ much besides: these counts then say nearly all. And no dropout on few graphs.
        """
        labels = graphs.node_labels is not None
        return {
            "reduce": "sum" if labels else "mean",
            "layers": SHALLOW if labels and differ_much(graphs.sizes) else DEEP,
            "dropout": 0.0 if are_few(graphs.sizes) else DROPOUT,
        }

    @staticmethod
    def merges(config: NetworkConfig) -> bool:
        """Whether the compiled layers, which count rows, compute this network."""
        return config.capsule == "moments" and config.filter not in BASES

    def embed(self, batch: Batch) -> Tensor:
        """[B, ·] the permutation-invariant graph vectors [μ, C] before the fully connected layers."""
        Z, given = self.node_capsules(batch), (batch.batch, batch.ptr)
        if isinstance(self.readout, MeanCovariance):
            embedding: Tensor = self.readout(Z, *given, multiplicity=batch.multiplicity)
        else:
            embedding = self.readout(*repeat_rows(Z, *given, batch.multiplicity))
        if self.inputs is None:
            return embedding
        return torch.cat([embedding, self.inputs(*repeat_rows(batch.x, *given, batch.multiplicity))], dim=1)

    def node_capsules(self, batch: Batch) -> Tensor:
        """Z [n, D]: the flattened outputs of all capsule layers side by side."""
        M = batch_filter(self.config.filter, batch)
        if can_fuse(list(self.convs), batch, M):
            return capsule_stack([conv for conv in self.convs if isinstance(conv, GraphCapsuleConv)], batch, M)
        if batch.multiplicity is not None:
            raise ValueError("these layers take batches of nodes; leave merge off where batches are taken")
        x, outputs = batch.x, []
        for conv in self.convs:
            x = flatten_capsules(conv(x, M))
            outputs.append(x)
        return torch.cat(outputs, dim=1)


SORTED_NODES = 16
"""Nodes that the max-sort readout keeps."""


def make_readout(width: int, config: NetworkConfig, reduce: str) -> tuple[nn.Module, int]:
    """The configured readout of Z [n, width], and the length of its vector."""
    if config.readout == "covariance":
        covariance = MeanCovariance(width, config.rank, reduce=reduce, root=config.root, count=config.count)
        return covariance, covariance.out_channels
    pool: nn.Module = MaxSortPool(SORTED_NODES) if config.readout == "max_sort" else MeanPool(config.readout == "sum")
    length = width * SORTED_NODES if config.readout == "max_sort" else width
    return (WithCount(pool), length + 1) if config.count else (pool, length)


def require_memory(config: NetworkConfig, layers: int) -> None:
    """Refuse networks whose training would not fit: parameters, gradients and Adam's two moments, in float32.

    The readout's vector and the fully connected layer on it are all that can grow beyond bounds. The members of an
    ensemble are trained side by side.
    """
    if config.readout != "covariance":
        return
    stacked = layers * config.hidden * (1 if config.capsule == "routing" else config.capsule_size)
    members = config.members if isinstance(config, Config) and config.members != "auto" else 1
    needed = 4 * 4 * MeanCovariance.length(stacked, config.rank, config.count) * (config.fc + 3) * members
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > 0.8 * installed:
        raise MemoryLimitError(
            f"training this network needs {needed / 2**30:.1f} GiB for its readout's weights alone, this machine has "
            f"{installed / 2**30:.1f}; the covariance of {stacked} columns is the reason: set rank (for example 64)"
        )
