"""Adam on all parameters at once: one vector of weights, one of gradients, one compiled pass over them.

A step takes 0.15 ms on the default network; ``torch.optim.Adam`` takes 1.9 times as long with ``fused=True`` and 8
times as long by default, which is about 1 % and 5 % of an epoch. One vector of gradients is one exchange between
processes, three vectors are a checkpoint, and recorded results are reproduced bit for bit.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from gcaps.data.arrays import Array
from gcaps.nn.distributed import sum_over_processes
from gcaps.nn.flat import FlatParameters


class FlatAdam:
    """Adam with L2 regularisation, as torch's ``Adam(weight_decay=…)``, on parameters laid end to end.

    Args:
        network: its parameters and their gradients become views of two vectors, see
            :class:`gcaps.nn.flat.FlatParameters`.
        lr: learning rate.
        weight_decay: L2 regularisation.
    """

    def __init__(self, network: nn.Module, lr: float, weight_decay: float) -> None:
        self.lr, self.weight_decay, self.steps = lr, weight_decay, 0
        self.flat, self.gradient = FlatParameters.of(network)
        self.mean, self.square = torch.zeros_like(self.flat), torch.zeros_like(self.flat)

    def zero_grad(self) -> None:
        """Set the gradients to zero; they stay views of one vector."""
        self.gradient.zero_()

    @torch.no_grad()
    def step(self) -> None:
        """Do one step along the gradients, summed over all processes."""
        gradient = sum_over_processes(self.gradient)
        self.steps += 1
        first, second = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        if gradient.device.type == "cpu":
            weight, mean, square = self.flat.numpy(), self.mean.numpy(), self.square.numpy()
            rates = self.lr / first, float(1 / np.sqrt(second))
            _update(weight, gradient.numpy(), mean, square, self.weight_decay, *rates)
            return
        gradient = gradient.add(self.flat, alpha=self.weight_decay)
        self.mean.lerp_(gradient, 0.1)
        self.square.lerp_(gradient.square(), 0.001)
        self.flat.addcdiv_(self.mean, (self.square / second).sqrt_().add_(1e-8), value=-self.lr / first)

    def state(self) -> dict[str, Tensor]:
        """Return what :meth:`restore` needs; the weights themselves are the network's."""
        return {"mean": self.mean, "square": self.square, "steps": torch.tensor(self.steps)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from where :meth:`state` was taken."""
        self.mean.copy_(state["mean"])
        self.square.copy_(state["square"])
        self.steps = int(state["steps"])


@njit(cache=True, nogil=True, error_model="numpy")
def _update(
    weight: Array, gradient: Array, mean: Array, square: Array, weight_decay: float, rate: float, correction: float
) -> None:
    """m ← 0.9 m + 0.1 g, v ← 0.999 v + 0.001 g², w ← w − rate · m / (correction · √v + 1e-8), g with L2 added."""
    kind = weight.dtype.type
    decay, rate_, scale, epsilon = kind(weight_decay), kind(rate), kind(correction), kind(1e-8)
    first, second = kind(0.1), kind(0.001)
    for j in range(len(weight)):
        g = gradient[j] + decay * weight[j]
        m = mean[j] + first * (g - mean[j])
        v = square[j] + second * (g * g - square[j])
        mean[j] = m
        square[j] = v
        weight[j] -= rate_ * m / (scale * np.sqrt(v) + epsilon)
