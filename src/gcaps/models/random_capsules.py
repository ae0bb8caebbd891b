"""Support vector machines on graph vectors of random (untrained) capsules, as a network for prediction."""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.data.targets import Task
from gcaps.models.gcaps import GCAPS
from gcaps.models.network import Network
from gcaps.nn.cpu.distances import city_block, differentiable_city_block


class RandomCapsuleSVM(Network):
    """Support vector machines on the graph vectors [μ, C] of capsules with random weights.

    One-vs-one classifiers for classification; otherwise one classifier or regressor for each target.

    A network this wide, even untrained, maps different neighbourhoods to different capsules. The kernel is
    exp(−γ ‖z_g − z_h‖₁) on the vectors z, standardised over the training graphs. It is fitted by
    :func:`gcaps.training.random_capsules.fit_random_capsule_svm`.

    Args:
        capsules: network that computes the graph vectors; its fully connected layers are dropped.
        outputs: number of classes, or of targets.
        vectors: number of support graphs.
        classes: number of classes among the training graphs; 0 where the task is not classification.
        C: penalty that was chosen.
        inner: score in the cross-validation that chose it.
        task: what the outputs mean.
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
        self,
        capsules: GCAPS,
        outputs: int,
        *,
        vectors: int,
        classes: int,
        C: float,
        inner: float,
        task: Task = "classification",
    ) -> None:
        super().__init__(capsules.in_channels, vectors=vectors, classes=classes, C=C, inner=inner)
        capsules.head = nn.Identity()
        self.capsules, self.outputs, self.task = capsules, outputs, task
        self.pairs = list(combinations(range(classes), 2))
        machines = len(self.pairs) if task == "classification" else outputs
        length = capsules.length
        self.register_buffer("mean", torch.zeros(length))
        self.register_buffer("scale", torch.zeros(length))
        self.register_buffer("support", torch.zeros(vectors, length))
        self.register_buffer("coefficients", torch.zeros(machines, vectors, dtype=torch.float64))
        self.register_buffer("intercepts", torch.zeros(machines, dtype=torch.float64))
        self.register_buffer("present", torch.zeros(classes, dtype=torch.int64))
        self.register_buffer("gamma", torch.zeros((), dtype=torch.float64))
        self.register_buffer("temperature", torch.ones((), dtype=torch.float64))

    def embed(self, batch: Batch) -> Tensor:
        """[B, ·] graph vectors."""
        return self.capsules.embed(batch)

    def forward(self, batch: Batch) -> Tensor:
        """[B, ·] outputs.

        Logits of classes are sums of decision values over the temperature, −∞ for a class without training graphs.
        """
        vectors = self.embed(batch)
        z = ((vectors if batch.requires_grad else vectors.detach()) - self.mean) * self.scale
        if torch.compiler.is_compiling():
            distances = plain_city_block(z, self.support).to(self.gamma)
        elif batch.requires_grad:
            distances = differentiable_city_block(z, self.support).to(self.gamma)
        else:
            distances = torch.from_numpy(city_block(z.cpu().numpy(), self.support.cpu().numpy())).to(self.gamma)
        values = torch.exp(-self.gamma * distances) @ self.coefficients.T + self.intercepts
        if self.task != "classification":
            return (values / self.temperature).to(self.mean.dtype)
        sums = class_sums(values, self.pairs, len(self.present)) / self.temperature
        absent = sums.new_full((z.size(0), 1), -torch.inf)
        place = torch.full((self.outputs,), len(self.present), device=z.device)
        place = place.index_copy(0, self.present, torch.arange(len(self.present), device=z.device))
        return torch.cat([sums, absent], dim=1).index_select(1, place).to(self.mean.dtype)


ENTRIES = 1 << 16
"""Entries of one graph that :func:`plain_city_block` compares at a time."""


def plain_city_block(a: Tensor, b: Tensor) -> Tensor:
    """[m, n] distances Σ_k |a_ik − b_jk|, for programs that are recorded: some rows of b [n, d] at a time."""
    rows = max(ENTRIES // max(b.size(1), 1), 1)
    pieces = [b[first : first + rows] for first in range(0, b.size(0), rows)]
    return torch.cat([(a.unsqueeze(1) - piece).abs().sum(2) for piece in pieces], dim=1)


def class_sums(values: Tensor, pairs: list[tuple[int, int]], classes: int) -> Tensor:
    """[m, c] for each class the sum of the decision values [m, p] of its pairs; positive values favour the class."""
    signs = values.new_zeros(len(pairs), classes)
    for p, (first, second) in enumerate(pairs):
        signs[p, first], signs[p, second] = -1, 1
    return values @ signs
