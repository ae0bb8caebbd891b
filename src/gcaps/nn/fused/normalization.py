"""Batch normalisation between two passes over the blocks: a few numbers for each column, compiled."""

from __future__ import annotations

import numpy as np

from gcaps.nn.fused.blocks import Array, compiled


@compiled
def merge(counts: Array, statistics: Array, merged: Array) -> None:
    """merged [2, w]: mean and Σ (x − mean)² over all blocks, from those of each [C, 2, w] and how many nodes it has.

    With Chan's formula.
    """
    merged[:] = 0
    mean, squares = merged[0], merged[1]
    for b in range(len(statistics)):
        for j in range(len(mean)):
            mean[j] += counts[b] * statistics[b, 0, j]
    total = max(counts.sum(), 1.0)
    for j in range(len(mean)):
        mean[j] /= total
    for b in range(len(statistics)):
        for j in range(len(mean)):
            d = statistics[b, 0, j] - mean[j]
            squares[j] += statistics[b, 1, j] + counts[b] * d * d


@compiled
def normalization(
    statistics: Array, count: int, momentum: float, epsilon: float, running: tuple[Array, Array], found: Array
) -> None:
    """found [2, w] = mean and 1/deviation of ``count`` rows; running mean and variance as torch keeps them."""
    mean, squares = statistics[0], statistics[1]
    for j in range(len(mean)):
        found[0, j] = mean[j]
        found[1, j] = 1 / np.sqrt(squares[j] / count + epsilon)
        running[0][j] += momentum * (mean[j] - running[0][j])
        running[1][j] += momentum * (squares[j] / max(count - 1, 1) - running[1][j])


@compiled
def normalization_gradient(sums: Array, count: float, gamma: Array, inverse: Array, coefficients: Array) -> None:
    """What :func:`~gcaps.nn.fused.rows.spread` takes, [3, w]: scale, constant and slope, from sums over all nodes."""
    for j in range(len(gamma)):
        scale = gamma[j] * inverse[j]
        coefficients[0, j] = scale
        coefficients[1, j] = scale * sums[0, j] / count
        coefficients[2, j] = scale * inverse[j] * inverse[j] * sums[1, j] / count
