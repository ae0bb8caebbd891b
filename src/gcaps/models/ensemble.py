"""Several networks of one shape, trained side by side, that predict together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.models.network import Network


class Ensemble(Network):
    """The mean of the members' class probabilities, as logits: log(1/m Σ softmax(ℓ_i)).

    Members see the same batches but begin with other weights and draw other dropout masks. Each is trained on its own
    loss, so that none learns to lean on the others.

    Args:
        members: networks of one shape, or one that has been trained and one that needs no training.
        measured: what else is to be known to build it again.
    """

    def __init__(self, members: Sequence[Network], **measured: Any) -> None:
        theirs = {name: value for member in members for name, value in member.measured.items()}
        super().__init__(members[0].in_channels, **theirs, **measured)
        self.networks = nn.ModuleList(members)
        self.members = len(members)

    def embed(self, batch: Batch) -> Tensor:
        """[B, m ·] the graph vectors of all members that were trained, side by side."""
        return torch.cat([member.embed(batch) for member in self._each() if member.trained], dim=1)

    def forward(self, batch: Batch) -> Tensor:
        """[B, C] logits."""
        return together([member(batch) for member in self._each()])

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The sum of the members' losses, and the logits of all together."""
        found = [member.loss(batch) for member in self._each()]
        return torch.stack([loss for loss, _ in found]).sum(), together([logits for _, logits in found])

    def _each(self) -> list[Network]:
        return [member for member in self.networks if isinstance(member, Network)]


def together(logits: Sequence[Tensor]) -> Tensor:
    """[B, C] the logarithm of the mean of the probabilities that the logits [B, C] stand for."""
    stacked = torch.stack([torch.log_softmax(one, dim=1) for one in logits])
    return torch.logsumexp(stacked, dim=0) - math.log(len(logits))
