"""GCAPS-CNN, the network of the paper."""

from __future__ import annotations

import os

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.config import CapsuleConfig, Config
from gcaps.errors import ConfigError, MemoryLimitError
from gcaps.models.network import Network, TrainingStep
from gcaps.models.step import FusedStep, has_fused_step
from gcaps.nn.conv import GraphCapsuleConv, flatten_capsules
from gcaps.nn.cpu.head import Head
from gcaps.nn.cpu.stack import can_fuse, capsule_stack
from gcaps.nn.filters import BASES, batch_filter, stack_relations
from gcaps.nn.pooling import MaxSortPool, MeanPool, WithCount
from gcaps.nn.readout import MeanCovariance, repeat_rows
from gcaps.nn.regularization import BatchNorm, Dropout

SORTED_NODES = 16
"""Nodes that the max-sort readout keeps."""
MAX_FREE_RELATIONS = 8
"""Up to so many relations each has weights of its own; more share so many bases."""


class GCAPS(Network):
    """Input → GC(h, P) × ℓ → concatenate → [M, C(·)] → FC → FC → logits (section 6 of the paper).

    Features of graphs (:attr:`gcaps.batching.Batch.graph_attr`) are appended to [M, C(·)].

    The outputs of all capsule layers are concatenated, as in the Weisfeiler–Lehman kernel, before mean and covariance
    are taken. Every capsule layer has batch normalisation, every fully connected layer is preceded by it, and the first
    two of these by dropout.

    Args:
        in_channels: columns of the node features.
        num_classes: number of logits.
        config: settings without ``auto`` in ``layers``, ``reduce`` and ``dropout``
            (see :func:`gcaps.estimators.auto.resolve`).
        num_relations: number of relations of the edges; above :data:`MAX_FREE_RELATIONS`, with so many bases.
        edge_dim: number of edge attributes, or None.
        graph_dim: number of features of graphs.

    Raises:
        MemoryLimitError: if the parameters with their gradients and Adam's moments would not fit in memory; raised
            before anything is allocated.
    """

    takes_edges = True

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        config: Config,
        *,
        num_relations: int = 1,
        edge_dim: int | None = None,
        graph_dim: int = 0,
    ) -> None:
        shape = {"num_relations": num_relations} if num_relations > 1 else {}
        shape |= {} if edge_dim is None else {"edge_dim": edge_dim}
        super().__init__(in_channels, **shape | ({"graph_dim": graph_dim} if graph_dim else {}))
        self.num_relations = num_relations
        if edge_dim is not None and config.filter in BASES:
            raise ConfigError(f"edge_features: filter = {config.filter} does not take edge attributes; leave them out")
        layers, dropout = config.layers, config.dropout
        if layers == "auto" or dropout == "auto" or config.reduce == "auto":
            raise ValueError("layers, reduce and dropout must not be auto; see gcaps.estimators.auto.resolve")
        self.config = config
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
                bias=False,  # the normalisation has one
                num_relations=num_relations,
                num_bases=MAX_FREE_RELATIONS if num_relations > MAX_FREE_RELATIONS else None,
                edge_dim=edge_dim,
            )
            self.convs.append(conv)
            width = conv.width
        self.readout, length = make_readout(layers * width, config)
        self.inputs: MeanPool | None = None
        if config.inputs:
            sums = config.reduce if config.readout == "covariance" else config.readout
            self.inputs = MeanPool(total=sums == "sum")
            length += in_channels
        self.length = length + graph_dim
        """Length of the graph vector."""
        self.head: nn.Module = Head(
            BatchNorm(length, beside=graph_dim),  # a batch says little of rare substructures
            Dropout(dropout),
            nn.Linear(self.length, config.fc),
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
        """Whether the layers are computed by :func:`gcaps.nn.cpu.stack.capsule_stack`, which takes merged nodes."""
        on_cpu = getattr(config, "device", "cpu") in ("auto", "cpu")
        return on_cpu and config.capsule == "moments" and config.filter not in BASES

    def embed(self, batch: Batch) -> Tensor:
        """[B, ·] permutation-invariant graph vectors [μ, C, features of graphs] before the fully connected layers."""
        Z, graphs = self.node_capsules(batch), (batch.batch, batch.ptr)
        if isinstance(self.readout, MeanCovariance):
            embedding: Tensor = self.readout(Z, *graphs, multiplicity=batch.multiplicity)
        else:
            embedding = self.readout(*repeat_rows(Z, *graphs, batch.multiplicity))
        parts = [embedding]
        if self.inputs is not None:
            parts.append(self.inputs(*repeat_rows(batch.x, *graphs, batch.multiplicity)))
        if batch.graph_attr is not None:
            parts.append(batch.graph_attr)
        return torch.cat(parts, dim=1) if len(parts) > 1 else embedding

    def training_step(self) -> TrainingStep:
        """Return a function that sets the gradients; without autograd where all parts are compiled operations."""
        return FusedStep(self) if has_fused_step(self) else self.set_gradients

    def node_capsules(self, batch: Batch) -> Tensor:
        """Z [n, D]: flattened outputs of all capsule layers, side by side."""
        M = batch_filter(self.config.filter, batch, self.num_relations)
        if can_fuse(list(self.convs), batch, M):
            return capsule_stack([conv for conv in self.convs if isinstance(conv, GraphCapsuleConv)], batch, M)
        if batch.multiplicity is not None:
            raise ValueError("these layers do not support merged nodes; create the BatchSource with merge=False")
        x, M, outputs = batch.x, stack_relations(M, batch.dense.dtype), []
        for conv in self.convs:
            x = flatten_capsules(conv(x, M))
            outputs.append(x)
        return torch.cat(outputs, dim=1)


def make_readout(width: int, config: Config) -> tuple[nn.Module, int]:
    """The configured readout of Z [n, width], and the length of its vector."""
    if config.readout == "covariance":
        covariance = MeanCovariance(width, config.rank, reduce=config.reduce, root=config.root, count=config.count)
        return covariance, covariance.out_channels
    pool: nn.Module = MaxSortPool(SORTED_NODES) if config.readout == "max_sort" else MeanPool(config.readout == "sum")
    length = width * SORTED_NODES if config.readout == "max_sort" else width
    return (WithCount(pool), length + 1) if config.count else (pool, length)


def require_memory(config: Config, layers: int) -> None:
    """Raise MemoryLimitError if parameters, gradients and Adam's two moments, in float32, would not fit in memory.

    Only the vector of the covariance readout and the fully connected layer on it can get that large. The networks of an
    ensemble are trained side by side.
    """
    if config.readout != "covariance":
        return
    stacked = layers * config.hidden * (1 if config.capsule == "routing" else config.capsule_size)
    networks = 1 if config.ensemble_size == "auto" else config.ensemble_size
    needed = 4 * 4 * MeanCovariance.length(stacked, config.rank, config.count) * (config.fc + 3) * networks
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > 0.8 * installed:
        raise MemoryLimitError(
            f"training this network needs {needed / 2**30:.1f} GiB for the weights on its readout, this machine has "
            f"{installed / 2**30:.1f}, because of the covariance of {stacked} columns; set rank (for example 64)"
        )
