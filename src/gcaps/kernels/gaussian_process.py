"""Exact Gaussian-process regression on a Gram matrix; noise and scale maximise the marginal likelihood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize_scalar

from gcaps.data.arrays import Array, Floats
from gcaps.kernels.multi_output import MultiOutputSVM

NOISES = 10.0 ** np.arange(-5, 3)
"""Ratios of noise to scale that are tried first, one for each decade; the best one is refined between its neighbors."""
TOLERANCE = 0.02
"""Precision of the logarithm of that ratio."""


class GaussianProcess(NamedTuple):
    """A Gaussian process for each of T targets: prior covariance scale · k(x, x′), noise of variance ``noise``."""

    mean: MultiOutputSVM
    """The predictive mean, Σ_j α_tj k(x, x_j): linear in the kernel values as an SVM is."""
    noise: Floats
    """[T] variance of the noise; with weights w, that of graph i is noise / w_i."""
    scale: Floats
    """[T]"""
    likelihood: float
    """Logarithm of the marginal likelihood, summed over targets."""


def fit_gaussian_process(K: Floats, y: Floats, weight: Floats | None = None) -> GaussianProcess:
    """Fit a Gaussian process of mean zero for each target.

    With the ratio r = noise / scale and A = K + r diag(1/w), the best scale is yᵀA⁻¹y / n, so that only r is searched:

        −2 log p(y) = n log(yᵀA⁻¹y / n) + log det A + n log 2π + n

    Each r takes one Cholesky factorisation, n³/3 operations.

    Args:
        K: [n, n] Gram matrix.
        y: [n, T] standardised values; NaN where a value is missing.
        weight: [n] weights of the graphs, positive; None: 1.
    """
    targets = y.shape[1]
    coefficients, noise, scale = np.zeros((targets, len(y))), np.ones(targets), np.ones(targets)
    likelihood = 0.0
    for t in range(targets):
        own = np.flatnonzero(~np.isnan(y[:, t]))
        if not len(own):
            continue
        gram = K if len(own) == len(y) else K[np.ix_(own, own)]
        found = _OneTarget(gram, y[own, t], None if weight is None else weight[own])
        ratio, value = found.best_ratio()
        coefficients[t, own], scale[t] = found.solved(ratio)
        noise[t] = ratio * scale[t]
        likelihood += value
    return GaussianProcess(MultiOutputSVM(coefficients, np.zeros(targets)), noise, scale, likelihood)


class _OneTarget:
    """The marginal likelihood of one target as a function of the ratio of noise to scale."""

    def __init__(self, K: Floats, y: Floats, weight: Floats | None) -> None:
        self.K, self.y = K, y
        self.variance = np.ones(len(y)) if weight is None else 1.0 / weight

    def _factor(self, ratio: float) -> Array:
        A = np.array(self.K, dtype=np.float64, order="F")
        A[np.diag_indices(len(A))] += ratio * self.variance
        factor: Array = cholesky(A, lower=True, overwrite_a=True, check_finite=False)
        return factor

    def solved(self, ratio: float) -> tuple[Floats, float]:
        """Return α = A⁻¹y and the best scale."""
        alpha: Floats = cho_solve((self._factor(ratio), True), self.y, check_finite=False)
        return alpha, self._scale(alpha)

    def _scale(self, alpha: Floats) -> float:
        return max(float(self.y @ alpha) / len(self.y), 1e-12)  # a constant target is all zeros

    def log_likelihood(self, ratio: float) -> float:
        """Return log p(y) at the best scale."""
        factor = self._factor(ratio)
        alpha = cho_solve((factor, True), self.y, check_finite=False)
        n, log_det = len(self.y), 2.0 * float(np.log(factor.diagonal()).sum())
        return -0.5 * float(n * np.log(self._scale(alpha)) + log_det + n * np.log(2 * np.pi) + n)

    def best_ratio(self) -> tuple[float, float]:
        """Return the best ratio and its log-likelihood."""
        values = [self.log_likelihood(float(ratio)) for ratio in NOISES]
        best = int(np.argmax(values))
        low, high = np.log(NOISES[[max(best - 1, 0), min(best + 1, len(NOISES) - 1)]])
        found = minimize_scalar(
            lambda logarithm: -self.log_likelihood(float(np.exp(logarithm))),
            bounds=(low, high),
            method="bounded",
            options={"xatol": TOLERANCE},
        )
        return float(np.exp(found.x)), -float(found.fun)
