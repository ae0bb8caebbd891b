"""Adam on all parameters at once: one flat vector of weights, one of gradients, one pass."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from gcaps.nn.distributed import sum_over_processes
from gcaps.training import adam_kernel


class FlatAdam:
    """Adam with L2 regularisation (torch's ``Adam(weight_decay=…)``), on parameters laid end to end.

    The network's parameters become views of one vector, so a step is one pass over memory whatever the number of
    parameters, several processes add up one vector of gradients, and a snapshot is three vectors and a number.

    Args:
        network: its parameters are moved into one vector, in place; they must share a type and a device.
        lr: learning rate.
        weight_decay: L2 regularisation.
    """

    def __init__(self, network: nn.Module, lr: float, weight_decay: float) -> None:
        self.params = list(network.parameters())
        self.lr, self.weight_decay, self.steps = lr, weight_decay, 0
        self.flat = torch.cat([p.detach().reshape(-1) for p in self.params])
        self.mean, self.square = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        first = 0
        for p in self.params:
            p.data = self.flat[first : first + p.numel()].view_as(p)
            first += p.numel()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step along the gradients, the sum of them over all processes."""
        gradient = sum_over_processes(torch.cat([_gradient(p) for p in self.params]))
        on_cpu = gradient.device.type == "cpu"
        self.steps += 1
        first, second = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        if on_cpu:
            weight, mean, square = self.flat.numpy(), self.mean.numpy(), self.square.numpy()
            rates = self.lr / first, float(1 / np.sqrt(second))
            adam_kernel.step(weight, gradient.numpy(), mean, square, self.weight_decay, *rates)
            return
        gradient.add_(self.flat, alpha=self.weight_decay)
        self.mean.lerp_(gradient, 0.1)
        self.square.lerp_(gradient.square(), 0.001)
        self.flat.addcdiv_(self.mean, (self.square / second).sqrt_().add_(1e-8), value=-self.lr / first)

    def state(self) -> dict[str, Tensor]:
        """What :meth:`restore` needs; the weights themselves are the network's."""
        return {"mean": self.mean, "square": self.square, "steps": torch.tensor(self.steps)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from where :meth:`state` was taken."""
        self.mean.copy_(state["mean"])
        self.square.copy_(state["square"])
        self.steps = int(state["steps"])


def _gradient(p: nn.Parameter) -> Tensor:
    return torch.zeros_like(p).view(-1) if p.grad is None else p.grad.reshape(-1)
