"""Running statistics of several batch normalisations as one vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor, nn

from gcaps.nn.cpu.blocks import Array


class RunningStatistics:
    """Running means and variances of some normalisations, which compiled functions read and write as one vector.

    Args:
        norms: the normalisations.
    """

    def __init__(self, norms: Sequence[nn.BatchNorm1d]) -> None:
        self._arrays = [_array(buffer) for norm in norms for buffer in (norm.running_mean, norm.running_var)]
        self._ends = np.cumsum([len(array) for array in self._arrays]).tolist()
        tracked = [norm.num_batches_tracked for norm in norms]
        self._steps = [_array(number) for number in tracked if number is not None]

    def read(self) -> Array:
        """Return a copy: mean and variance of each normalisation, laid end to end."""
        return np.concatenate(self._arrays)

    def write(self, values: Array) -> None:
        """Write them back after a step of training."""
        first = 0
        for array, end in zip(self._arrays, self._ends, strict=True):
            array[:] = values[first:end]
            first = end
        for steps in self._steps:
            steps += 1


def _array(buffer: Tensor | None) -> Array:
    assert buffer is not None
    return buffer.numpy()
