"""The training loop: Adam with a decaying learning rate over shuffled batches, in one process or several."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from gcaps.batching import Batch, BatchSource, node_budget_batches, prefetch, shuffled
from gcaps.config import TrainingConfig
from gcaps.config.tasks import StepsConfig
from gcaps.data.arrays import Array, Ints
from gcaps.errors import ConfigError
from gcaps.models.losses import score_sum
from gcaps.models.network import Network
from gcaps.nn.distributed import Share, is_distributed, sharing, sum_over_processes
from gcaps.training.optimizer import FlatAdam

NODE_BUDGET = 20_000
"""Nodes of a batch in prediction."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """Outcome of one pass over the training graphs."""

    number: int
    """Counted from 1."""
    loss: float
    """Mean loss over the pass, in training mode."""
    score: float
    """Mean score over the pass, in training mode: accuracy, or what :func:`gcaps.models.losses.score_sum` says."""
    graphs_per_second: float


@contextmanager
def reproducible(seed: int, threads: int) -> Iterator[None]:
    """Seed torch and fix its number of threads inside the block; restore both afterwards.

    Sums split over another number of threads round differently, so the number is a setting and does not come from the
    environment: the same seed gives the same predictions under any OMP_NUM_THREADS.
    """
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        if torch.cuda.is_available() or torch.backends.mps.is_available():
            torch.manual_seed(seed)
        else:  # the above formats a stack for each accelerator that torch might find later, which takes a millisecond
            torch.default_generator.manual_seed(seed)
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


class TrainingRun:
    """Training of a network, epoch by epoch; it can be stopped between two epochs and resumed from a checkpoint.

    Args:
        network: trained in place.
        source: where batches come from.
        indices: the training graphs.
        config: batch size, learning rate and its schedule, regularisation; without any ``auto``.
        seed: decides the order of the graphs; dropout follows torch's generator (see :func:`reproducible`).
        device: where the batches are moved to; that of the network.

    With several processes each takes its share of every batch, and sums of gradients and statistics are those of the
    whole batch: what is computed does not depend on the number of processes, up to rounding.
    """

    def __init__(
        self,
        network: Network,
        source: BatchSource,
        indices: Array,
        config: TrainingConfig,
        seed: int,
        device: torch.device | None = None,
    ) -> None:
        assert config.epochs != "auto"
        self.network, self.source, self.indices, self.config = network, source, indices, config
        self.device = device or torch.device("cpu")
        assert config.weight_decay != "auto", "resolved by gcaps.estimators.auto"
        self.optimizer = FlatAdam(network, config.lr, config.weight_decay)
        self._set_gradients = network.train().training_step()
        self.rng = np.random.default_rng(seed)
        self.epochs = config.epochs
        """Epochs of the schedule."""
        self.number = 0
        """Epochs done so far."""
        if is_distributed() and len(indices) // -(-len(indices) // config.batch_size) < dist.get_world_size():
            raise ConfigError(f"batches of {config.batch_size} cannot be shared by {dist.get_world_size()} processes")

    def epoch(self) -> Epoch:
        """Run one pass over the training graphs."""
        began = time.perf_counter()
        self.number += 1
        self.optimizer.lr = learning_rate(self.config, self.number, self.epochs)
        self.network.train()
        sums = np.zeros(2)
        shares = map(_own_share, shuffled(self._drawn(), self.config.batch_size, self.rng))
        batches = prefetch(self._take, shares) if self.source.streams else map(self._take, shares)
        for batch, share in batches:
            with sharing(share):
                sums += self._step(batch, share.total)
        loss, score = sum_over_processes(torch.from_numpy(sums)) / len(self.indices)
        return Epoch(self.number, float(loss), float(score), len(self.indices) / (time.perf_counter() - began))

    def _drawn(self) -> Array:
        """Return the graphs of an epoch: every training graph once, or as many drawn so that classes are balanced."""
        if self.config.sampling == "shuffle":
            return self.indices
        assert self.source.y is not None
        return balanced_sample(self.indices, self.source.y[self.indices], self.rng)

    def _take(self, part: tuple[Ints, Share]) -> tuple[Batch, Share]:
        chosen, share = part
        return self.source.take(chosen).to(self.device), share

    def _step(self, batch: Batch, graphs: int) -> tuple[float, float]:
        """Do one optimiser step; return the sums of the losses and of the scores."""
        assert batch.y is not None
        loss, outputs = self._set_gradients(batch, graphs)
        self.optimizer.step()
        score = score_sum(self.network.task, outputs, batch.y)
        return loss.item() / self.network.ensemble_size, score.item()


def learning_rate(config: TrainingConfig | StepsConfig, number: int, epochs: int) -> float:
    """Return the learning rate of epoch ``number`` (from 1) of ``epochs``."""
    if config.schedule == "cosine":
        return config.lr * (1 + math.cos(math.pi * (number - 1) / epochs)) / 2
    return config.lr * config.decay ** ((number - 1) // config.decay_every)


def _own_share(chosen: Ints) -> tuple[Ints, Share]:
    """Return this process's part of a batch."""
    if not is_distributed():
        return chosen, Share(0, len(chosen), len(chosen))
    ends = np.linspace(0, len(chosen), dist.get_world_size() + 1).round().astype(int)
    first, last = ends[dist.get_rank()], ends[dist.get_rank() + 1]
    return chosen[first:last], Share(int(first), int(last), len(chosen))


class Run(Protocol):
    """A training that proceeds in epochs."""

    number: int
    """Epochs done so far."""
    epochs: int
    """Epochs of the schedule."""

    def epoch(self) -> Epoch:
        """Run one pass over the training data."""
        ...


def train(run: Run, on_epoch: Callable[[Epoch], bool | None] | None = None) -> None:
    """Train to the end of the schedule, or until ``on_epoch`` returns True."""
    while run.number < run.epochs:
        epoch = run.epoch()
        if on_epoch is not None and on_epoch(epoch):
            return


def batches_of(source: BatchSource, indices: Array) -> Iterator[Batch]:
    """Yield the graphs at ``indices`` in order, in batches of at most :data:`NODE_BUDGET` nodes."""
    chosen = np.asarray(indices, dtype=np.int64)
    for positions in node_budget_batches(source.sizes[chosen], NODE_BUDGET):
        yield source.take(chosen[positions])


@torch.no_grad()
def predict_outputs(network: nn.Module, batches: Iterator[Batch] | list[Batch]) -> Tensor:
    """Return outputs [B, ·] in evaluation mode; the network's mode is restored."""
    was_training = network.training
    network.eval()
    outputs = torch.cat([network(batch) for batch in batches])
    network.train(was_training)
    return outputs


def balanced_sample(indices: Array, y: Array, rng: np.random.Generator) -> Ints:
    """Draw as many graphs as there are, with replacement, so that every class is equally likely."""
    _, at, counts = np.unique(y, return_inverse=True, return_counts=True)
    weight = 1 / counts[at]
    drawn: Ints = rng.choice(np.asarray(indices, np.int64), len(indices), p=weight / weight.sum())
    return drawn


def inner_split(y: Array, share: float, seed: int, groups: Array | None = None) -> tuple[Ints, Ints]:
    """Return positions (training, validation) of a split.

    Classes ``y`` [n] are stratified, and every class keeps at least one graph in training; targets [n, T] are not.

    Args:
        y: [n] class numbers, or [n, T] targets.
        share: of the graphs that are held back.
        seed: decides which.
        groups: [n] numbers of groups that are kept whole, such as scaffolds; classes are not stratified then. Where
            no group can be held back, for example because there is only one, graphs are held back one by one.
    """
    rng = np.random.default_rng([seed, 1])
    held = None if groups is None else _held_groups(y, share, groups, rng)
    if held is not None:
        return np.flatnonzero(~held), np.flatnonzero(held)
    order = rng.permutation(len(y))
    if y.ndim == 2 or y.dtype.kind == "f":
        validation = np.sort(order[: max(1, min(round(share * len(y)), len(y) - 1))])
        return np.setdiff1d(np.arange(len(y)), validation), validation
    parts: list[Array] = []
    for value in np.unique(y):
        members = order[y[order] == value]
        parts.append(members[: min(round(share * len(members)), len(members) - 1)])
    validation = np.sort(np.concatenate(parts))
    if not len(validation):
        validation = np.sort(order[:1])
    return np.setdiff1d(np.arange(len(y)), validation), validation


def _held_groups(y: Array, share: float, groups: Array, rng: np.random.Generator) -> Array | None:
    """[n] whether each graph is held back with its group: groups in random order, as many as fit into the share.

    Where none fits, the smallest one is held back. Every class keeps at least one graph; None where that is impossible.
    """
    codes = np.unique(groups, return_inverse=True)[1]
    sizes, room = np.bincount(codes), max(1, round(share * len(y)))
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])
    several = y.ndim == 2 or y.dtype.kind == "f"
    classes = np.zeros(len(y), dtype=np.int64) if several else np.unique(y, return_inverse=True)[1]
    left = np.bincount(classes)
    order = rng.permutation(len(sizes))
    held = np.zeros(len(y), dtype=bool)
    for group in (*order[sizes[order] <= room], *order[np.argsort(sizes[order], kind="stable")]):
        taken = np.bincount(classes[members[group]], minlength=len(left))
        fits = sizes[group] <= room or not held.any()
        if fits and not held[members[group][0]] and (left > taken).all():
            held[members[group]] = True
            left, room = left - taken, room - int(sizes[group])
        if room <= 0:
            break
    return held if held.any() else None
