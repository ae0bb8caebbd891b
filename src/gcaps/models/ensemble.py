"""Several networks whose predictions are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.models.losses import mean_outputs
from gcaps.models.network import Network, TrainingStep


class Ensemble(Network):
    """Mean of the networks' predictions: of probabilities as logits, log(1/m Σ softmax(ℓ_i)), or of real values.

    Networks of one shape are trained side by side: they see the same batches but start from different weights and draw
    different dropout masks. Each is trained on its own loss.

    Args:
        networks: networks of one shape, or a trained network and an SVM on random capsules.
    """

    def __init__(self, networks: Sequence[Network]) -> None:
        super().__init__(networks[0].in_channels, **networks[0].shape_args)
        self.networks = nn.ModuleList(networks)
        self.ensemble_size, self.task = len(networks), networks[0].task

    def embed(self, batch: Batch) -> Tensor:
        """[B, m ·] graph vectors of all trained networks, side by side."""
        return torch.cat([network.embed(batch) for network in self._each() if network.trained], dim=1)

    def forward(self, batch: Batch) -> Tensor:
        """[B, ·] outputs."""
        return mean_outputs(self.task, [network(batch) for network in self._each()])

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the sum of the networks' losses, and the outputs of the ensemble."""
        found = [network.loss(batch) for network in self._each()]
        return torch.stack([loss for loss, _ in found]).sum(), mean_outputs(self.task, [z for _, z in found])

    def training_step(self) -> TrainingStep:
        """Return a function that sets the gradients of each network to those of its own loss."""
        return partial(self._set_each, [network.training_step() for network in self._each()])

    def set_gradients(self, batch: Batch, graphs: int) -> tuple[Tensor, Tensor]:
        """Set the gradients of each network to those of its own loss."""
        return self._set_each([network.set_gradients for network in self._each()], batch, graphs)

    def _set_each(self, steps: Sequence[TrainingStep], batch: Batch, graphs: int) -> tuple[Tensor, Tensor]:
        found = [step(batch, graphs) for step in steps]
        return torch.stack([loss for loss, _ in found]).sum(), mean_outputs(self.task, [z for _, z in found])

    @property
    def members(self) -> list[Network]:
        """The networks whose mean this is; those of an ensemble within it each by itself."""
        return [m for one in self._each() for m in (one.members if isinstance(one, Ensemble) else [one])]

    def _each(self) -> list[Network]:
        return [network for network in self.networks if isinstance(network, Network)]
