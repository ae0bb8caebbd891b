"""Adam's update in one pass, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]


@njit(cache=True, nogil=True, error_model="numpy")
def step(
    weight: Array, gradient: Array, mean: Array, square: Array, weight_decay: float, rate: float, correction: float
) -> None:
    """m ← 0.9 m + 0.1 g, v ← 0.999 v + 0.001 g², w ← w − rate · m / (correction · √v + 1e-8), g with L2 added."""
    kind = weight.dtype.type
    decay, rate_, scale, epsilon = kind(weight_decay), kind(rate), kind(correction), kind(1e-8)
    first, second = kind(0.1), kind(0.001)
    for j in range(len(weight)):
        g = gradient[j] + decay * weight[j]
        m = mean[j] + first * (g - mean[j])
        v = square[j] + second * (g * g - square[j])
        mean[j] = m
        square[j] = v
        weight[j] -= rate_ * m / (scale * np.sqrt(v) + epsilon)
