"""Statistics of a batch normalisation from those of the blocks of a batch."""

from __future__ import annotations

import numpy as np

from gcaps.nn.cpu.blocks import Array, compiled_part
from gcaps.nn.cpu.state import Nodes


@compiled_part
def block_counts(nodes: Nodes) -> Array:
    """[C] float64 number of nodes of each block."""
    counts, multiplicity = np.zeros(len(nodes.cuts) - 1), nodes.multiplicity
    for b in range(len(counts)):
        if len(multiplicity):
            for i in range(nodes.cuts[b], nodes.cuts[b + 1]):
                counts[b] += multiplicity[i]
        else:
            counts[b] = nodes.cuts[b + 1] - nodes.cuts[b]
    return counts


@compiled_part
def merge_statistics(counts: Array, statistics: Array, merged: Array) -> float:
    """merged [2, w]: mean and Σ (x − mean)² over all blocks from those of each block [C, 2, w] and its number of nodes.

    Uses Chan's formula; returns the number of all nodes.
    """
    merged[:] = 0
    mean, squares = merged[0], merged[1]
    for b in range(len(statistics)):
        for j in range(len(mean)):
            mean[j] += counts[b] * statistics[b, 0, j]
    total = 0.0
    for b in range(len(statistics)):
        total += counts[b]
    for j in range(len(mean)):
        mean[j] /= max(total, 1.0)
    for b in range(len(statistics)):
        for j in range(len(mean)):
            d = statistics[b, 0, j] - mean[j]
            squares[j] += statistics[b, 1, j] + counts[b] * d * d
    return total


@compiled_part
def normalization(statistics: Array, count: float, options: Array, running: Array, moments: Array) -> None:
    """Write moments [2, w]: mean and 1/√(variance + ε).

    In training they are those of ``count`` rows, and the running mean and variance are updated as torch does; else
    they are the running ones. For ``options`` see :class:`gcaps.nn.cpu.state.Stack`.
    """
    momentum, epsilon = options[1], options[2]
    mean, inverse, one = moments[0], moments[1], moments.dtype.type(1)
    if options[3] == 0:
        for j in range(len(mean)):
            mean[j] = running[0, j]
            inverse[j] = one / np.sqrt(running[1, j] + moments.dtype.type(epsilon))
        return
    for j in range(len(mean)):
        mean[j] = statistics[0, j]
        inverse[j] = 1 / np.sqrt(statistics[1, j] / count + epsilon)
        running[0, j] += momentum * (statistics[0, j] - running[0, j])
        running[1, j] += momentum * (statistics[1, j] / max(count - 1, 1) - running[1, j])


@compiled_part
def add_blocks(sums: Array, total: Array) -> None:
    """total [2, w] = sums [C, 2, w] over the blocks."""
    for j in range(total.shape[1]):
        total[0, j], total[1, j] = sums[0, 0, j], sums[0, 1, j]
    for b in range(1, len(sums)):
        for j in range(total.shape[1]):
            total[0, j] += sums[b, 0, j]
            total[1, j] += sums[b, 1, j]
