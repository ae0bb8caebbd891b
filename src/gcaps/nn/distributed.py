"""What the processes of one training have to agree on: sums and statistics over all their nodes and graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist

from gcaps.data.arrays import Array


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


def training_together() -> bool:
    """Whether several processes train one network."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def is_first_process() -> bool:
    """Whether this is the process that writes and speaks for all."""
    return not training_together() or dist.get_rank() == 0


def sum_over_processes(values: Array) -> Array:
    """The sum of every process's ``values``; in a training of one process, ``values`` as they are."""
    if training_together():
        values = values.copy()
        dist.all_reduce(torch.from_numpy(values))
    return values


def merged_statistics(statistics: Array, count: int) -> tuple[Array, Array, int]:
    """Mean, sum of squared deviations from it, and number, over the rows of all processes.

    Args:
        statistics: [2, w] float64, mean and sum of squared deviations of this process's rows.
        count: how many they are.

    With Chan's formula: Σ (x − μ)² = Σ_r [S_r + n_r (μ_r − μ)²].
    """
    if not training_together():
        return statistics[0], statistics[1], count
    width = statistics.shape[1]
    together = sum_over_processes(np.append(statistics[0] * count, count))
    total = int(together[width])
    mean = together[:width] / total
    squares = sum_over_processes(statistics[1] + count * (statistics[0] - mean) ** 2)
    return mean, squares, total
