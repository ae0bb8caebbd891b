"""GCAPS-CNN, the paper's network: a batch of graphs to class logits."""

from __future__ import annotations

import os

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.config import CapsuleConfig, Config
from gcaps.errors import MemoryLimitError
from gcaps.models.network import Network
from gcaps.nn.conv import GraphCapsuleConv, flatten_capsules
from gcaps.nn.cpu.head import Head
from gcaps.nn.cpu.stack import can_fuse, capsule_stack
from gcaps.nn.filters import BASES, batch_filter
from gcaps.nn.pooling import MaxSortPool, MeanPool, WithCount
from gcaps.nn.readout import MeanCovariance, repeat_rows
from gcaps.nn.regularization import BatchNorm, Dropout


class GCAPS(Network):
    """Input → GC(h, P) × ℓ → concatenate → [M, C(·)] → FC → FC → logits (section 6 of the paper).

    The outputs of all capsule layers are concatenated (the paper's idea from Weisfeiler–Lehman) before mean and
    covariance are taken. Batch normalisation stands in every capsule layer and before every fully connected one,
    dropout before the fully connected ones.

    Args:
        in_channels: columns of the node features.
        num_classes: how many logits.
        config: the network's shape, without any ``auto``.

    Raises:
        MemoryLimitError: before anything is allocated, where the parameters and their gradients and moments would not
            fit in the machine's memory.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        config: Config,
    ) -> None:
        super().__init__(in_channels)
        assert config.layers != "auto"
        assert config.dropout != "auto"
        self.config = config
        reduce, layers, dropout = config.reduce, config.layers, config.dropout
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
    def merges(config: CapsuleConfig) -> bool:
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


def make_readout(width: int, config: Config, reduce: str) -> tuple[nn.Module, int]:
    """The configured readout of Z [n, width], and the length of its vector."""
    if config.readout == "covariance":
        covariance = MeanCovariance(width, config.rank, reduce=reduce, root=config.root, count=config.count)
        return covariance, covariance.out_channels
    pool: nn.Module = MaxSortPool(SORTED_NODES) if config.readout == "max_sort" else MeanPool(config.readout == "sum")
    length = width * SORTED_NODES if config.readout == "max_sort" else width
    return (WithCount(pool), length + 1) if config.count else (pool, length)


def require_memory(config: Config, layers: int) -> None:
    """Refuse networks whose training would not fit: parameters, gradients and Adam's two moments, in float32.

    The readout's vector and the fully connected layer on it are all that can grow beyond bounds. The members of an
    ensemble are trained side by side.
    """
    if config.readout != "covariance":
        return
    stacked = layers * config.hidden * (1 if config.capsule == "routing" else config.capsule_size)
    assert config.ensemble_size != "auto"
    needed = 4 * 4 * MeanCovariance.length(stacked, config.rank, config.count) * (config.fc + 3) * config.ensemble_size
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > 0.8 * installed:
        raise MemoryLimitError(
            f"training this network needs {needed / 2**30:.1f} GiB for its readout's weights alone, this machine has "
            f"{installed / 2**30:.1f}; the covariance of {stacked} columns is the reason: set rank (for example 64)"
        )
