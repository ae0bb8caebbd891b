"""Linear autoregression of each node of a graph sequence: a baseline, and the base of forecasters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Ints
from gcaps.errors import DataError

RIDGE = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Penalties of coefficients, one of which is chosen on the validation steps."""
RIDGE_OF_SHARED = 1e-3
"""Penalty of the regression that all nodes share."""
LAGS = (1, 2, 3, 4, 6, 8, 12, 26, 52)
"""Numbers of past values, one of which is chosen on the validation steps."""


def lagged(values: Array, lags: int) -> Array:
    """[T, n, 1 + lags] a one and the values of steps t, t−1, …; NaN for the first lags − 1 steps."""
    T, n = values.shape
    out = np.full((T, n, 1 + lags), np.nan)
    out[lags - 1 :, :, 0] = 1.0
    for lag in range(lags):
        out[lags - 1 :, :, 1 + lag] = values[lags - 1 - lag : T - lag]
    return out


@dataclass(frozen=True)
class Autoregression:
    """Forecast of each node and horizon as a linear function of the last values of the node.

    Args:
        weight: [n, H, 1 + lags] intercepts and coefficients.
    """

    weight: Array

    @property
    def lags(self) -> int:
        """Number of past values."""
        return int(self.weight.shape[2]) - 1

    def predict(self, values: Array) -> Array:
        """[T, n, H] forecasts of steps t + 1, …, t + H from the values up to t; NaN for the first lags − 1 steps."""
        found: Array = np.einsum("tnl,nhl->tnh", lagged(values, self.lags), self.weight)
        return found


def fit_autoregression(
    values: Array, stop: int, horizons: int, lags: int, ridge: float, *, shared: float | None = None
) -> Autoregression:
    r"""Fit by regularised least squares on targets before step ``stop``, for each horizon h separately.

    .. math::
        \min_w \frac{1}{m} \sum_t (w^\top [1, y_t, y_{t-1}, \dots] - y_{t+h})^2 + \lambda \| w - \bar w \|^2

    Args:
        values: [T, n].
        stop: the first step that is not used.
        horizons: H.
        lags: number of past values.
        ridge: λ with w̄ = 0; the intercept is not penalised.
        shared: λ with w̄ the ridge regression of all nodes together (the intercept is penalised); with infinity, all
            nodes have w̄. By default nodes are fitted independently.
    """
    n = values.shape[1]
    weight = np.zeros((n, horizons, 1 + lags))
    penalty = np.eye(1 + lags)
    penalty[0, 0] = 0
    known = lagged(values, lags)
    for h in range(1, horizons + 1):
        X, y = known[lags - 1 : stop - h], values[lags - 1 + h : stop]
        if len(X) < 2:
            raise ValueError(f"{lags} lags and horizon {h} need more than {stop} steps")
        gram = np.einsum("tni,tnj->nij", X, X) / len(X)
        moment = np.einsum("tni,tn->ni", X, y) / len(X)
        tiny = 1e-9 * np.eye(1 + lags)
        if shared is None:
            weight[:, h - 1] = np.linalg.solve(gram + ridge * penalty + tiny, moment[..., None])[..., 0]
            continue
        common = np.linalg.solve(gram.mean(axis=0) + ridge * penalty + tiny, moment.mean(axis=0))
        weight[:, h - 1] = common
        if np.isfinite(shared):
            pull = shared * np.eye(1 + lags)
            weight[:, h - 1] = np.linalg.solve(gram + pull, (moment + shared * common)[..., None])[..., 0]
    return Autoregression(weight)


class Choice(NamedTuple):
    """Lags and penalties of an autoregression, chosen on the validation steps."""

    lags: int
    ridge: float
    shared: float | None
    error: float
    """Mean squared error on the validation targets."""

    def fit(self, values: Array, stop: int, horizons: int) -> Autoregression:
        """Fit with these lags and penalties on targets before ``stop``."""
        return fit_autoregression(values, stop, horizons, self.lags, self.ridge, shared=self.shared)


def choose_autoregression(
    values: Array, stop: int, validation: Ints, horizons: int, *, share: bool = True
) -> tuple[Autoregression, Choice]:
    """Fit with the number of lags and the penalty that have the least error on the validation targets.

    Args:
        values: [T, n].
        stop: the first step that is not used for fitting.
        validation: steps whose values are the targets of validation.
        horizons: H.
        share: shrink coefficients towards those of all nodes together (penalty chosen) instead of towards 0.
    """
    best: tuple[Autoregression, Choice] | None = None
    for lags in LAGS:
        if lags + horizons + 2 > stop:
            continue
        for penalty in (*RIDGE, np.inf) if share else RIDGE:
            choice = Choice(lags, RIDGE_OF_SHARED, penalty, 0.0) if share else Choice(lags, penalty, None, 0.0)
            model = choice.fit(values, stop, horizons)
            error = mean_squared_error(model.predict(values), values, validation)
            if best is None or error < best[1].error:
                best = model, choice._replace(error=error)
    if best is None:
        raise DataError(f"{stop} steps are too few to forecast {horizons}")
    return best


def squared_errors(forecasts: Array, values: Array, targets: Ints) -> Array:
    """[targets, n, H] squared errors at the target steps, of the forecasts made h steps before."""
    horizons = forecasts.shape[2]
    errors = [(forecasts[targets - h, :, h - 1] - values[targets]) ** 2 for h in range(1, horizons + 1)]
    return np.stack(errors, axis=2)


def mean_squared_error(forecasts: Array, values: Array, targets: Ints) -> float:
    """Mean of :func:`squared_errors`; infinity where a forecast is missing."""
    error = float(squared_errors(forecasts, values, targets).mean())
    return error if np.isfinite(error) else np.inf
