"""A trained network with everything that prediction needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcaps.batching import Batch, BatchSource, node_budget_batches
from gcaps.config import Section
from gcaps.data.arrays import Floats
from gcaps.data.graphset import GraphSet
from gcaps.features.nodes import NodeFeatures
from gcaps.models.ensemble import Ensemble
from gcaps.models.losses import scores_of
from gcaps.models.network import Network
from gcaps.models.registry import network_class
from gcaps.training.loop import NODE_BUDGET, reproducible


@dataclass(frozen=True)
class FittedNetwork:
    """Fitted node features and the trained network on them."""

    config: Section
    """The settings, without any ``auto``."""
    features: NodeFeatures
    network: Network
    seed: int

    def __getstate__(self) -> dict[str, Any]:
        """Pickle a copy of the network: its parameters are views of the optimizer's vector, which is left out."""
        return {**vars(self), "network": deepcopy(self.network)}

    def scores(self, graphs: GraphSet) -> Floats:
        """Return probabilities [G, C] or [G, T], or standardised values [G, T].

        Graphs are streamed in batches, so memory does not grow with G.
        """
        return self._stream(graphs, lambda batch: scores_of(self.network.task, self.network(batch)))

    def spread(self, graphs: GraphSet) -> Floats | None:
        """Return the standard deviation of several networks' outputs [G, ·]; None for a single network."""
        network = self.network
        if not isinstance(network, Ensemble) or len(network.members) < 2:
            return None
        return self._stream(
            graphs, lambda batch: torch.stack([m(batch) for m in network.members]).std(dim=0, unbiased=False)
        )

    def embed(self, graphs: GraphSet) -> Floats:
        """Return the graph vectors [G, ·] before the fully connected layers; of GCAPS-CNN [μ, C, extra features]."""
        return self._stream(graphs, self.network.embed)

    @torch.no_grad()
    def _stream(self, graphs: GraphSet, compute: Callable[[Batch], Tensor]) -> Floats:
        if self.network.training:
            self.network.eval()
        device = device_of(self.network)
        with reproducible(self.seed, int(getattr(self.config, "threads", 1))):
            return np.concatenate([compute(batch.to(device)).cpu().numpy() for batch in self._batches(graphs)])

    def _batches(self, graphs: GraphSet) -> Iterator[Batch]:
        for positions in node_budget_batches(graphs.sizes, NODE_BUDGET):
            some = graphs.subset(positions)
            extras = network_class(self.config).prepare(self.config, some)
            yield BatchSource(some, self.features.encode(some), extras=extras).take(np.arange(len(some)))


def device_of(network: torch.nn.Module) -> torch.device:
    """Return the device of the network's parameters or buffers; the CPU where it has none."""
    for tensors in (network.parameters(), network.buffers()):
        for tensor in tensors:
            return tensor.device
    return torch.device("cpu")
