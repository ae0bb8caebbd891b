"""What the processes of one training have to agree on: sums and statistics over all their nodes and graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist

from gcaps.data.arrays import Array
from gcaps.nn.channel import Channel


class Share(NamedTuple):
    """Which of a batch's graphs this process has: those from ``first`` to ``last`` − 1 of ``total``."""

    first: int
    last: int
    total: int


_share: Share | None = None


@contextmanager
def sharing(share: Share) -> Iterator[None]:
    """Let :func:`current_share` answer ``share`` inside."""
    global _share
    before, _share = _share, share
    try:
        yield
    finally:
        _share = before


def current_share() -> Share | None:
    """This process's share of the batch under way; None where it has all of it."""
    return _share


_by_itself = False


@contextmanager
def by_itself() -> Iterator[None]:
    """Inside, this process computes what the others compute too, without exchanging anything."""
    global _by_itself
    before, _by_itself = _by_itself, True
    try:
        yield
    finally:
        _by_itself = before


def training_together() -> bool:
    """Whether several processes train one network."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1 and not _by_itself


def is_first_process() -> bool:
    """Whether this is the process that writes and speaks for all."""
    return not training_together() or dist.get_rank() == 0


_channel: Channel | None = None


@contextmanager
def through(channel: Channel | None) -> Iterator[None]:
    """Exchange through ``channel`` inside, where there is one, in the place of torch.distributed."""
    global _channel
    _channel = channel
    try:
        yield
    finally:
        _channel = None


def sum_over_processes(values: Array) -> Array:
    """The sum of every process's ``values``; in a training of one process, ``values`` as they are."""
    if not training_together():
        return values
    if _channel is not None:
        total: Array = _channel.gather(values).sum(axis=0)
        return total
    values = values.copy()
    dist.all_reduce(torch.from_numpy(values))
    return values


def gather_from_processes(values: Array) -> Array:
    """[R, …] every process's ``values``, which are of one shape, in the order of the processes."""
    if _channel is not None:
        return _channel.gather(values)
    own = torch.from_numpy(np.ascontiguousarray(values))
    every = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(every, own)
    return torch.stack(every).numpy()


def merged_statistics(statistics: Array, count: int) -> tuple[Array, Array, int]:
    """Mean, sum of squared deviations from it, and number, over the rows of all processes, in one exchange.

    Args:
        statistics: [2, w] float64, mean and sum of squared deviations of this process's rows.
        count: how many they are.

    With Chan's formula: Σ (x − μ)² = Σ_r [S_r + n_r (μ_r − μ)²].
    """
    if not training_together():
        return statistics[0], statistics[1], count
    every = gather_from_processes(np.append(statistics.ravel(), count))
    means, squares = every[:, :-1].reshape(len(every), 2, -1).swapaxes(0, 1)
    counts = every[:, -1:]
    total = counts.sum()
    mean = (counts * means).sum(axis=0) / total
    return mean, (squares + counts * (means - mean) ** 2).sum(axis=0), int(total)
