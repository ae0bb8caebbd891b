"""A support vector machine on graph capsules that nobody trained."""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.models.gcaps import GCAPS
from gcaps.models.network import Network
from gcaps.nn.cpu.distances import city_block


class CapsuleMachine(Network):
    """Graph vectors [μ, C] of capsules with the weights they were drawn with, and a machine for each pair of classes.

    A network this wide, even untrained, sends different neighbourhoods to different capsules; the machine decides with
    the kernel exp(−γ ‖z_g − z_h‖₁) on the vectors z, each entry in units of its deviation over the training graphs.
    How it is fitted is :mod:`gcaps.training.machine`'s matter.

    Args:
        capsules: what graph vectors come from; its fully connected layers are dropped.
        num_classes: how many logits.
        vectors: training graphs that the machine remembers.
        classes: classes that have training graphs.
        C: the penalty that was chosen, to be told of.
        inner: accuracy in the cross-validation that chose it, to be told of.
    """

    trained = False
    mean: Tensor
    scale: Tensor
    support: Tensor
    coefficients: Tensor
    intercepts: Tensor
    present: Tensor
    gamma: Tensor
    temperature: Tensor

    def __init__(
        self, capsules: GCAPS, num_classes: int, *, vectors: int, classes: int, C: float, inner: float
    ) -> None:
        about = {"vectors": vectors, "classes": classes, "C": C, "inner": inner}
        super().__init__(capsules.in_channels, **capsules.measured, machine=about)
        capsules.head = nn.Identity()
        self.capsules, self.num_classes = capsules, num_classes
        self.pairs = list(combinations(range(classes), 2))
        length = capsules.length
        self.register_buffer("mean", torch.zeros(length))
        self.register_buffer("scale", torch.zeros(length))
        self.register_buffer("support", torch.zeros(vectors, length))
        self.register_buffer("coefficients", torch.zeros(len(self.pairs), vectors, dtype=torch.float64))
        self.register_buffer("intercepts", torch.zeros(len(self.pairs), dtype=torch.float64))
        self.register_buffer("present", torch.zeros(classes, dtype=torch.int64))
        self.register_buffer("gamma", torch.zeros((), dtype=torch.float64))
        self.register_buffer("temperature", torch.ones((), dtype=torch.float64))

    def embed(self, batch: Batch) -> Tensor:
        """[B, ·] the graph vectors."""
        return self.capsules.embed(batch)

    def forward(self, batch: Batch) -> Tensor:
        """[B, C] logits: the sums of a class's machines by the temperature; −∞ where no graph of it was trained on."""
        z = ((self.embed(batch).detach() - self.mean) * self.scale).cpu().numpy()
        distances = torch.from_numpy(city_block(z, self.support.cpu().numpy())).to(self.gamma)
        values = torch.exp(-self.gamma * distances) @ self.coefficients.T + self.intercepts
        logits = values.new_full((len(z), self.num_classes), -torch.inf)
        logits[:, self.present] = class_sums(values, self.pairs, len(self.present)) / self.temperature
        return logits.float()


def class_sums(values: Tensor, pairs: list[tuple[int, int]], classes: int) -> Tensor:
    """[m, c] for each class the sum of its machines' values [m, p], positive where they speak for it."""
    signs = values.new_zeros(len(pairs), classes)
    for p, (first, second) in enumerate(pairs):
        signs[p, first], signs[p, second] = -1, 1
    return values @ signs
