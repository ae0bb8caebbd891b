"""Support vector machines on Gram matrices for several binary targets and for regression.

One machine a target, fitted to the graphs whose target is known. Regression is ε-SVR: its dual over (α, α*) is the
problem of :func:`gcaps.kernels.svm.solve` with every graph twice, once for each side of the ε-tube.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.targets import Task
from gcaps.kernels.svm import MAX_STEPS, TOLERANCE, Fit, cut, grouped_splits, intercept, require_finite, solve

EPSILON = 0.1
"""Half the width of the tube without loss in regression, in standard deviations of the target."""


@dataclass(frozen=True)
class MultiOutputSVM:
    """Fitted machines, one for each of T targets: f_t(x) = Σ_j β_tj k(x, x_j) + b_t."""

    coefficients: Floats
    """[T, n] dual coefficients β, 0 for graphs whose target is missing."""
    intercepts: Floats
    """[T]"""

    @property
    def support(self) -> Ints:
        """[s] positions of the support vectors: training graphs with a nonzero coefficient for any target."""
        return np.flatnonzero((self.coefficients != 0).any(axis=0))

    def restrict(self, positions: Array) -> MultiOutputSVM:
        """Return the machines on the training graphs at ``positions`` alone, which must include ``support``."""
        own = np.ascontiguousarray(self.coefficients[:, positions])  # products round as those of a machine from disk
        return replace(self, coefficients=own)

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name."""
        return asdict(self)

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array]) -> MultiOutputSVM:
        """Restore what :meth:`arrays` returned; other names are ignored."""
        return MultiOutputSVM(**{field.name: arrays[field.name] for field in fields(MultiOutputSVM)})

    def decision_function(self, K: Floats) -> Floats:
        """Return f_t [m, T] for kernel values K [m, n] of graphs and training graphs."""
        value: Floats = K @ self.coefficients.T + self.intercepts
        return value

    def scores(self, K: Floats, task: Task) -> Floats:
        """Return probabilities of the second class (uncalibrated) or values, [m, T]."""
        value = self.decision_function(K)
        return expit(value) if task == "multilabel" else value


def fit_multi_output(K: Floats, y: Floats, C: float, task: Task, weight: Floats | None = None) -> MultiOutputSVM:
    """Fit to the Gram matrix K [n, n] and targets y [n, T]; see :func:`multi_output_path`."""
    return next(multi_output_path(K, y, [C], task, weight))


def multi_output_path(
    K: Floats, y: Floats, C: Sequence[float], task: Task, weight: Floats | None = None
) -> Iterator[MultiOutputSVM]:
    """Fit machines for each of several penalties in ascending order.

    Args:
        K: [n, n] Gram matrix.
        y: [n, T] 0 and 1 (multilabel) or standardised values (regression); NaN where a value is missing.
        C: penalties; each solution is the starting point for the next.
        task: multilabel or regression.
        weight: [n] or [n, T] factors of the penalty of each graph; None: 1.
    """
    require_finite(K)
    table = np.ones(y.shape) if weight is None else np.broadcast_to(weight.reshape(len(y), -1), y.shape)
    machines = [_Machine(K, y[:, t], table[:, t], task) for t in range(y.shape[1])]
    for penalty in C:
        coefficients, intercepts = np.zeros((len(machines), len(y))), np.zeros(len(machines))
        for t, machine in enumerate(machines):
            coefficients[t, machine.own], intercepts[t] = machine.solve(float(penalty))
        yield MultiOutputSVM(coefficients, intercepts)


class _Machine:
    """The problem of one target, with the solution for the last penalty as the next starting point."""

    def __init__(self, K: Floats, y: Floats, weight: Floats, task: Task) -> None:
        self.own = np.flatnonzero(~np.isnan(y))
        truth = y[self.own]
        self.regression = task == "regression"
        self.gram = np.asarray(K if len(self.own) == len(y) else cut(K, self.own, self.own), np.float32, order="C")
        self.sign = np.where(truth > 0.5, 1.0, -1.0)
        self.target, self.weight = self.sign, weight[self.own]
        self.constant: float | None = None
        if self.regression:
            self.gram = np.tile(self.gram, (2, 2))
            self.sign = np.repeat([1.0, -1.0], len(truth))
            self.target = np.tile(truth, 2) - EPSILON * self.sign
            self.weight = np.tile(self.weight, 2)
        elif not len(truth) or (self.sign == self.sign[0]).all():  # a single class has nothing to separate
            self.constant = float(self.sign[0]) if len(truth) else 0.0
        self.beta, self.g = np.zeros(len(self.sign)), -self.target.copy()

    def solve(self, C: float) -> tuple[Floats, float]:
        """Return dual coefficients of the known graphs and the intercept."""
        if self.constant is not None or not len(self.own):
            return np.zeros(len(self.own)), self.constant or 0.0
        limits = C * self.weight
        solve(self.gram, self.sign, self.target, limits, TOLERANCE, MAX_STEPS, self.beta, self.g)
        found = self.beta.reshape(2, -1).sum(axis=0) if self.regression else self.beta.copy()
        return found, intercept(self.sign, limits, self.beta, self.g)


def score_of(y: Floats, task: Task, weight: Floats | None = None) -> Fit:
    """Fit machines to ``y`` [n, T] and score them: mean ROC-AUC (multilabel), or 1 − mean squared error (regression).

    A target whose validation graphs are all of one class is left out of the mean.
    """

    def scores(K: Floats, across: Floats, train: Ints, validation: Ints, C: Sequence[float]) -> list[float]:
        own = None if weight is None else weight[train]
        path = multi_output_path(K, y[train], C, task, own)
        return [_score(machines.decision_function(across), y[validation], task) for machines in path]

    return scores


def _score(values: Floats, y: Floats, task: Task) -> float:
    known = ~np.isnan(y)
    if task == "regression":
        return 1.0 - float(np.mean((values[known] - y[known]) ** 2)) if known.any() else 0.0
    found = [
        roc_auc_score(y[k, t], values[k, t]) for t, k in enumerate(known.T) if k.any() and 0 < y[k, t].sum() < k.sum()
    ]
    return float(np.mean(found)) if found else 0.5


def random_splits(n: int, folds: int, random_state: int, groups: Array | None = None) -> list[tuple[Ints, Ints]]:
    """Return shuffled folds of n training graphs, as many as there are graphs for; empty for a single graph.

    Groups [n] are kept whole where there are several.
    """
    if n < 2:
        return []
    if groups is not None and (found := grouped_splits(np.zeros(n, np.int64), groups, min(folds, n), random_state)):
        return found
    return list(KFold(min(folds, n), shuffle=True, random_state=random_state).split(np.zeros(n)))
