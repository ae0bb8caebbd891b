"""A trained classifier: fitted node features, the network and what its classes are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcaps.batching import Batch, BatchSource, node_budget_batches
from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.features import NodeFeatures
from gcaps.models.config import AnyConfig
from gcaps.models.network import Network
from gcaps.training.loop import NODE_BUDGET, reproducible


@dataclass(frozen=True)
class Fitted:
    """Everything that prediction needs."""

    config: AnyConfig
    features: NodeFeatures
    network: Network
    classes: Ints
    """[C] what each class is called."""
    seed: int
    data: dict[str, Any] = field(default_factory=dict)
    """Name, fingerprint and size of the training graphs."""

    @property
    def predictors(self) -> str:
        """What predicts together, in words."""
        count, machine = self.network.measured.get("networks", 1), "machine" in self.network.measured
        parts = [f"{count} networks" if count > 1 else "one network"] if self.config.trains else []
        return " and ".join([*parts, *(["a support vector machine"] if machine else [])])

    def predict_proba(self, graphs: GraphSet) -> Floats:
        """[G, C] class probabilities. Graphs stream through in batches, so memory does not grow with their number."""
        return self._stream(graphs, lambda batch: torch.softmax(self.network(batch), dim=1))

    def embed(self, graphs: GraphSet) -> Floats:
        """[G, ·] the graph vectors before the last layers, [μ, C] of GCAPS-CNN."""
        return self._stream(graphs, self.network.embed)

    @torch.no_grad()
    def _stream(self, graphs: GraphSet, compute: Callable[[Batch], Tensor]) -> Floats:
        self.network.eval()
        with reproducible(self.seed, self.config.threads):
            return np.concatenate([compute(batch).numpy() for batch in self._batches(graphs)])

    def _batches(self, graphs: GraphSet) -> Iterator[Batch]:
        for positions in node_budget_batches(graphs.sizes, NODE_BUDGET):
            some = graphs.subset(positions)
            extras = self.network.prepare(self.config, some)
            yield BatchSource(some, self.features.encode(some), extras=extras).take(np.arange(len(some)))
