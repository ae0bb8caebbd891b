"""The running average of a network's weights, to predict with in the place of the weights of the last step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """w̄ ← β_t w̄ + (1 − β_t) w after step t = 1, 2, …,   β_t = min(β, (1 + t)/(10 + t))

    for the weights and, alike, the running statistics of batch normalisation. The first steps count less: an average
    that began with them would keep random weights for long.

    Args:
        network: its running statistics take part.
        weights: all of its parameters, as one vector.
        keep: β.
    """

    def __init__(self, network: nn.Module, weights: Tensor, keep: float) -> None:
        self.keep, self.steps = keep, 0
        self.current = [weights, *(buffer for buffer in network.buffers() if buffer.is_floating_point())]
        self.mean = [tensor.clone() for tensor in self.current]

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after another step."""
        self.steps += 1
        share = 1 - min(self.keep, (1 + self.steps) / (10 + self.steps))
        for mean, tensor in zip(self.mean, self.current, strict=True):
            mean.lerp_(tensor, share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The network has the average inside, its own weights again outside."""
        own = [tensor.clone() for tensor in self.current]
        self.settle()
        try:
            yield
        finally:
            self._put(own)

    def settle(self) -> None:
        """Give the network the average for good."""
        self._put(self.mean)

    @torch.no_grad()
    def _put(self, values: list[Tensor]) -> None:
        for tensor, value in zip(self.current, values, strict=True):
            tensor.copy_(value)

    def state(self) -> dict[str, Tensor]:
        """What :meth:`restore` needs."""
        return {"steps": torch.tensor(self.steps)} | {str(place): mean for place, mean in enumerate(self.mean)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from where :meth:`state` was taken."""
        self.steps = int(state["steps"])
        for place, mean in enumerate(self.mean):
            mean.copy_(state[str(place)])
