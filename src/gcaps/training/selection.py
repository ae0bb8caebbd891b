"""Choice of the epoch: curves of a training, and the weights of its best epoch on validation data."""

from __future__ import annotations

import copy
import math
from dataclasses import asdict, dataclass, field

from torch import Tensor, nn

from gcaps.training.checkpoint import CheckpointState


@dataclass
class Curves:
    """Loss and score (accuracy, or what :func:`gcaps.models.losses.score_sum` says), epoch by epoch."""

    loss: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    """Score on the inner validation split; empty with a fixed schedule."""
    watched: list[float] = field(default_factory=list)
    """Score on the watched graphs; recorded and used for nothing else."""


class BestEpoch:
    """The best epoch so far and the weights of the network after it.

    Args:
        network: the network in training.
    """

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.number = 0
        """Counted from 1; 0 before the first offer."""
        self.quality: tuple[float, float] = (-math.inf, 0.0)
        self.weights: dict[str, Tensor] | None = None

    def offer(self, number: int, quality: tuple[float, float]) -> None:
        """Keep the present weights if ``quality`` is the largest so far."""
        if quality > self.quality:
            self.quality, self.number = quality, number
            self.weights = copy.deepcopy(self.network.state_dict())

    def overdue(self, number: int, patience: int | None) -> bool:
        """Return whether the best of ``number`` epochs is at least ``patience`` epochs ago; never with None."""
        return patience is not None and number - self.number >= patience

    def load(self) -> None:
        """Load the kept weights into the network, where there are any."""
        if self.weights is not None:
            self.network.load_state_dict(self.weights)

    def state(self, curves: Curves, done: bool) -> CheckpointState:
        """Return the state for a checkpoint, with the curves and whether the training is over."""
        best = None if self.number == 0 else [self.number, *self.quality]
        return CheckpointState({"curves": asdict(curves), "best": best, "done": done}, self.weights or {})

    def resume(self, state: CheckpointState) -> tuple[Curves, bool]:
        """Take up a state that :meth:`state` returned; return its curves and whether the training is over."""
        if state.page["best"] is not None:
            self.number, *best = state.page["best"]
            self.quality = (best[0], best[1])
        self.weights = state.tensors or None
        return Curves(**state.page["curves"]), bool(state.page["done"])
