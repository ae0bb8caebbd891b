"""Which graphs make up a batch: shuffled for training, in order under a node budget for prediction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gcaps.data.arrays import Array, Ints


def shuffled(indices: Array, batch_size: int, rng: np.random.Generator) -> Iterator[Ints]:
    """One epoch: every index once, in random order, in batches of near-equal size ≤ ``batch_size``.

    Near-equal, because batch normalisation over a last batch of one graph would be noise.
    """
    order = rng.permutation(np.asarray(indices, dtype=np.int64))
    count = -(-len(order) // batch_size)
    yield from np.array_split(order, count)


def within_budget(sizes: Array, budget: int) -> Iterator[Ints]:
    """Consecutive positions whose sizes add up to at most ``budget``; a larger single one goes alone.

    Memory in prediction follows the nodes of a batch, not its graphs.
    """
    ends = np.cumsum(sizes)
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + budget, side="right")), start + 1)
        yield np.arange(start, stop)
        start = stop
