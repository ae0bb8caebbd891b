"""The training loop: Adam, step decay, a fixed number of epochs or early stopping on an inner validation split."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from gcaps.batching import Batch, BatchSource, shuffled, within_budget
from gcaps.config import TrainingConfig
from gcaps.data.arrays import Array, Ints

NODE_BUDGET = 20_000
"""Nodes a batch may have in prediction."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one pass over the training graphs gave."""

    number: int
    """Counted from 1."""
    loss: float
    """Mean cross-entropy over the pass, in training mode."""
    accuracy: float
    """Share of training graphs classified rightly during the pass, in training mode."""
    graphs_per_second: float


@contextmanager
def reproducible(seed: int, threads: int) -> Iterator[None]:
    """Seed torch and fix its threads inside; give the caller's generator and threads back outside.

    Sums split over another number of threads round differently, so the number belongs to the configuration and not to
    the environment: the same seed gives the same predictions under any OMP_NUM_THREADS.
    """
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def train(
    network: nn.Module,
    source: BatchSource,
    indices: Array,
    config: TrainingConfig,
    seed: int,
    on_epoch: Callable[[Epoch], bool | None] | None = None,
) -> None:
    """Train ``network`` in place on the graphs at ``indices``; ``on_epoch`` may return True to stop early.

    The order of the graphs follows from ``seed`` alone; dropout follows torch's generator, so call this inside
    :func:`reproducible`.
    """
    optimizer = torch.optim.Adam(network.parameters(), lr=config.lr, weight_decay=config.weight_decay, fused=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, config.decay_every, config.decay)
    loss_of = nn.CrossEntropyLoss()
    rng = np.random.default_rng(seed)
    for number in range(1, config.epochs + 1):
        began = time.perf_counter()
        network.train()
        total, right = 0.0, 0
        for chosen in shuffled(indices, config.batch_size, rng):
            batch = source.take(chosen)
            assert batch.y is not None
            logits = network(batch)
            loss = loss_of(logits, batch.y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(chosen)
            right += int((logits.detach().argmax(1) == batch.y).sum())
        schedule.step()
        count = len(indices)
        epoch = Epoch(number, total / count, right / count, count / (time.perf_counter() - began))
        if on_epoch is not None and on_epoch(epoch):
            return


def batches_of(source: BatchSource, indices: Array) -> Iterator[Batch]:
    """The graphs at ``indices`` in order, in batches of at most :data:`NODE_BUDGET` nodes."""
    chosen = np.asarray(indices, dtype=np.int64)
    for positions in within_budget(source.graphs.sizes[chosen], NODE_BUDGET):
        yield source.take(chosen[positions])


@torch.no_grad()
def predict_logits(network: nn.Module, batches: Iterator[Batch] | list[Batch]) -> Tensor:
    """[B, C] logits in evaluation mode; the network's mode is left as it was."""
    was_training = network.training
    network.eval()
    logits = torch.cat([network(batch) for batch in batches])
    network.train(was_training)
    return logits


def inner_split(labels: Array, share: float, seed: int) -> tuple[Ints, Ints]:
    """Positions (training, validation) of a stratified split; every class keeps at least one in training."""
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(len(labels))
    held: list[Array] = []
    for value in np.unique(labels):
        members = order[labels[order] == value]
        held.append(members[: min(round(share * len(members)), len(members) - 1)])
    validation = np.sort(np.concatenate(held))
    if not len(validation):
        validation = np.sort(order[:1])
    return np.setdiff1d(np.arange(len(labels)), validation), validation
