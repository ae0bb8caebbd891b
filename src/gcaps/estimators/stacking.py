"""Weights of the members of an ensemble, from their predictions of training graphs that they were not fitted on.

Every loss is a function of the weighted sum over members of the probability of the true class, or of the error. The
plain mean, greedy selection (Caruana et al., 2004) and the regularised stacker choose weights on the simplex, and are
compared by their loss on graphs that the weights were not fitted to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, logit, softmax

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.targets import Task

FLOOR = 1e-3
"""Share of the uniform distribution mixed into every probability, which bounds the log-loss."""
STEPS = 40
"""Number of steps of greedy selection."""
PSEUDO_GRAPHS = 10.0
"""Strength of the prior towards the plain mean: number of additional graphs that each member predicts best."""
WIDEST = 4.0
"""Largest absolute logarithm of a temperature."""


@dataclass(frozen=True)
class Truth:
    """True targets of the graphs that members have predicted."""

    task: Task
    y: Array
    """[n] class numbers, or [n, T] with NaN where a value is missing."""
    weight: Floats | None = None
    """[n] or [n, T]; None: equal weights."""

    @cached_property
    def _known(self) -> Array:
        return self.y[:, None] >= 0 if self.y.ndim == 1 else ~np.isnan(self.y)

    @cached_property
    def rows(self) -> Ints:
        """[N] the graph of each known value."""
        return np.nonzero(self._known)[0]

    @cached_property
    def columns(self) -> Ints:
        """[N] the target of each known value; 0 for classes."""
        return np.nonzero(self._known)[1]

    @cached_property
    def share(self) -> Floats:
        """[N] weight of each known value; they add up to one."""
        if self.weight is None:
            return np.full(len(self.rows), 1 / max(len(self.rows), 1))
        table = np.broadcast_to(self.weight.reshape(len(self.y), -1), self._known.shape)
        values = table[self._known].astype(np.float64)
        total = values.sum()
        return values / total if total > 0 else np.full(len(values), 1 / max(len(values), 1))

    def at(self, rows: Ints) -> Truth:
        """Return the true targets of some graphs."""
        return Truth(self.task, self.y[rows], None if self.weight is None else self.weight[rows])

    def evidence(self, predictions: Floats) -> Floats:
        """Return the numbers whose weighted sum over members determines the loss of a mixture.

        Args:
            predictions: [M, n, ·] of M members: probabilities, or standardised values.

        Returns:
            [M, N] probability of the true class, or error.
        """
        if self.task == "classification":
            found: Floats = predictions[:, self.rows, self.y[self.rows]]
            return found
        own, truth = predictions[:, self.rows, self.columns], self.y[self.rows, self.columns]
        if self.task == "multilabel":
            return np.where(truth > 0.5, own, 1 - own)
        error: Floats = own - truth
        return error

    def losses(self, mixture: Floats) -> Floats:
        """Return the loss of each known value [N]: log-loss, or squared error."""
        if self.task == "regression":
            return np.square(mixture)
        return -np.log(np.maximum(mixture, 1e-12))

    def mistakes(self, mixed: Floats) -> Floats:
        """Return for each known value [N] whether scores [n, ·] predict a wrong class; 0 for real values."""
        if self.task == "classification":
            return np.asarray(mixed.argmax(axis=1)[self.rows] != self.y[self.rows], dtype=np.float64)
        if self.task == "multilabel":
            found = mixed[self.rows, self.columns] > 0.5
            return np.asarray(found != (self.y[self.rows, self.columns] > 0.5), dtype=np.float64)
        return np.zeros(len(self.rows))

    def loss(self, predictions: Floats, weights: Floats) -> float:
        """Return the mean loss of a weighted mean of predictions [M, n, ·]."""
        return float(self.share @ self.losses(weights @ self.evidence(predictions)))


class Calibration(NamedTuple):
    """Monotone map of a member's probabilities: logits times ``slope`` plus ``offset``; the identity for values."""

    slope: Floats
    """[1], or [T] for several binary targets."""
    offset: Floats
    """[T] for several binary targets, else 0."""

    def apply(self, task: Task, scores: Floats) -> Floats:
        """Return calibrated scores [n, ·]."""
        if task == "regression":
            return np.asarray(scores, dtype=np.float64)
        if task == "multilabel":
            return np.asarray(expit(self.slope * logit(_floored(scores, 2)) + self.offset))
        return np.asarray(softmax(self.slope * np.log(_floored(scores, scores.shape[1])), axis=1))

    def to_dict(self) -> dict[str, list[float]]:
        """Return JSON values."""
        return {"slope": self.slope.tolist(), "offset": self.offset.tolist()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Calibration:
        """Restore what :meth:`to_dict` returned."""
        return cls(np.asarray(values["slope"], np.float64), np.asarray(values["offset"], np.float64))


IDENTITY = Calibration(np.ones(1), np.zeros(1))


def _floored(scores: Floats, classes: int) -> Floats:
    p = np.asarray(scores, dtype=np.float64)
    return (1 - FLOOR) * p + FLOOR / classes


def calibrate(truth: Truth, scores: Floats) -> Calibration:
    """Fit a member's calibration to its predictions of graphs that it was not fitted on.

    Classes have a temperature, which does not change the most probable class. Each of several binary targets has a
    slope and an offset (Platt, 1999), which do not change the order of graphs; a prior with the weight of one graph
    shrinks them towards the identity, which is kept for a target with a single known class.

    Args:
        truth: of the graphs.
        scores: [n, ·] the member's scores.
    """
    if truth.task == "regression" or not len(truth.rows):
        return IDENTITY
    if truth.task == "classification":
        logs, y = np.log(_floored(scores[truth.rows], scores.shape[1])), truth.y[truth.rows]

        def log_loss(heat: float) -> float:
            return -float(truth.share @ log_softmax(np.exp(-heat) * logs, axis=1)[np.arange(len(y)), y])

        found = minimize_scalar(log_loss, bounds=(-WIDEST, WIDEST), method="bounded")
        return Calibration(np.exp([-found.x]), np.zeros(1))
    slope, offset = np.ones(scores.shape[1]), np.zeros(scores.shape[1])
    for t in range(scores.shape[1]):
        own = truth.columns == t
        y, share = truth.y[truth.rows[own], t], truth.share[own]
        if len(np.unique(y)) == 2 and share.sum() > 0:
            x = logit(_floored(scores[truth.rows[own], t], 2))
            slope[t], offset[t] = _platt(x, y, share * len(y) / share.sum())
    return Calibration(slope, offset)


def _platt(x: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    """Minimise Σ weight · log-loss(y, σ(e^u x + b)) + (u² + b²) / 2."""

    def loss(parameters: Floats) -> tuple[float, Floats]:
        u, b = parameters
        z = np.exp(u) * x + b
        error = weight * (expit(z) - y)
        value = weight @ (np.logaddexp(0, z) - y * z) + (u * u + b * b) / 2
        return float(value), np.array([error @ (np.exp(u) * x) + u, error.sum() + b])

    u, b = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(-WIDEST, WIDEST), (-10, 10)]).x
    return float(np.exp(u)), float(b)


def equal_weights(truth: Truth, predictions: Floats) -> Floats:
    """Return equal weights [M]."""
    return np.full(len(predictions), 1 / len(predictions))


def greedy_weights(truth: Truth, predictions: Floats) -> Floats:
    """Return the weights [M] of greedy selection with replacement (Caruana et al., 2004).

    Each step adds the member with which the mean of all that were added has the smallest loss; ties go to the first.
    Weights are shares of the selection up to its best step.
    """
    numbers = truth.evidence(predictions)
    total, counts = np.zeros(numbers.shape[1]), np.zeros(len(numbers))
    best, kept = np.inf, counts
    for step in range(1, STEPS + 1):
        losses = truth.losses((total + numbers) / step) @ truth.share
        chosen = int(losses.argmin())
        total, counts = total + numbers[chosen], counts + np.eye(len(counts))[chosen]
        if losses[chosen] < best - 1e-12:
            best, kept = float(losses[chosen]), counts / step
    return kept


def stacked_weights(truth: Truth, predictions: Floats) -> Floats:
    """Return the weights [M] that minimise the loss on the simplex, shrunk towards the plain mean.

    They are the most probable weights of a mixture with a Dirichlet prior: the mean loss (for values in units of twice
    the squared error of the plain mean, as under a normal distribution) minus p/n Σ_m log w_m with
    p = :data:`PSEUDO_GRAPHS` and n graphs. The problem is convex.
    """
    objective = stacked_objective(truth, predictions)

    def by_logits(theta: Floats) -> tuple[float, Floats]:
        w = softmax(theta)
        value, gradient = objective(w)
        return value, w * (gradient - w @ gradient)

    options = {"maxiter": 1000, "ftol": 1e-12, "gtol": 1e-9}
    found = minimize(by_logits, np.zeros(len(predictions)), jac=True, method="L-BFGS-B", options=options)
    weights: Floats = softmax(found.x)
    return weights


def stacked_objective(truth: Truth, predictions: Floats) -> Callable[[Floats], tuple[float, Floats]]:
    """Return the function that :func:`stacked_weights` minimises: weights → value and gradient."""
    numbers, share = truth.evidence(predictions), truth.share
    pull = PSEUDO_GRAPHS / max(len(np.unique(truth.rows)), 1)
    scale = 2 * max(float(share @ np.square(numbers.mean(axis=0))), 1e-12)

    def objective(w: Floats) -> tuple[float, Floats]:
        mixture, safe = w @ numbers, np.maximum(w, 1e-300)
        prior, by_prior = -pull * np.log(safe).sum(), -pull / safe
        if truth.task == "regression":
            return float(share @ np.square(mixture) / scale + prior), 2 * numbers @ (share * mixture) / scale + by_prior
        inside = np.maximum(mixture, 1e-12)
        return float(-share @ np.log(inside) + prior), -numbers @ (share / inside) + by_prior

    return objective


RULES: dict[str, Callable[[Truth, Floats], Floats]] = {
    "equal": equal_weights,
    "stacked": stacked_weights,
    "greedy": greedy_weights,
}
"""Rules that find weights, the simplest first."""


class Weighing(NamedTuple):
    """Calibrated members with weights."""

    rule: str
    weights: Floats
    """[M]"""
    calibrations: list[Calibration]
    losses: dict[str, float]
    """Loss of each rule, on graphs that its weights were not fitted to."""
    without: Floats
    """[M] increase of this loss of the chosen rule when a member is left out."""

    def mix(self, task: Task, scores: Sequence[Floats]) -> Floats:
        """Return the weighted mean of the members' calibrated scores [n, ·]."""
        calibrated = [c.apply(task, s) for c, s in zip(self.calibrations, scores, strict=True)]
        mixed: Floats = np.einsum("m,mnk->nk", self.weights, np.stack(calibrated))
        return mixed


class Block(NamedTuple):
    """Held-out graphs, and the graphs that rules are fitted to, with predictions calibrated on the latter."""

    others: Truth
    fitting: Floats
    """[M, ·, ·] calibrated predictions of the others."""
    held: Truth
    judging: Floats
    """[M, ·, ·] calibrated predictions of the held-out graphs."""
    at: Ints
    """Positions of the held-out graphs."""
    share: Floats
    """Weight of each of their known values; over all blocks the weights add up to one."""


def blocks_of(truth: Truth, scores: Floats, blocks: Ints) -> list[Block]:
    """Hold out each block in turn, and calibrate members on the others.

    Args:
        truth: of the graphs.
        scores: [M, n, ·] their scores by members that were not fitted on them.
        blocks: [n] number of the block of each graph.
    """
    found = []
    for block in np.unique(blocks):
        rest, at = np.flatnonzero(blocks != block), np.flatnonzero(blocks == block)
        others = truth.at(rest)
        calibrations = [calibrate(others, own[rest]) for own in scores]
        fitting, judging = (_calibrated(truth.task, calibrations, scores[:, rows]) for rows in (rest, at))
        found.append(Block(others, fitting, truth.at(at), judging, at, truth.share[blocks[truth.rows] == block]))
    return found


def _calibrated(task: Task, calibrations: Sequence[Calibration], scores: Floats) -> Floats:
    return np.stack([c.apply(task, own) for c, own in zip(calibrations, scores, strict=True)])


def judged(rule: str, blocks: Sequence[Block], members: Ints | None = None) -> tuple[Floats, Floats]:
    """Return loss and mistakes of each graph by weights that a rule fitted to the other blocks.

    Both are scaled so that their means over graphs are the loss and the share of mistakes.

    Args:
        rule: of :data:`RULES`.
        blocks: of :func:`blocks_of`.
        members: positions of the members to use; by default all.
    """
    n = sum(len(block.at) for block in blocks)
    losses, mistakes = np.zeros(n), np.zeros(n)
    for others, fitting, held, judging, at, share in blocks:
        chosen = np.arange(len(fitting)) if members is None else members
        weights = RULES[rule](others, fitting[chosen])
        mixed = np.einsum("m,mnk->nk", weights, judging[chosen])
        np.add.at(losses, at[held.rows], n * share * held.losses(held.evidence(mixed[None])[0]))
        np.add.at(mistakes, at[held.rows], n * share * held.mistakes(mixed))
    return losses, mistakes


def weigh(truth: Truth, scores: Floats, blocks: Ints, rule: str = "best", *, leave_out: bool = True) -> Weighing:
    """Calibrate and weigh members.

    With ``"best"``, rules are compared on graphs that their weights were not fitted to. A rule is preferred to a
    simpler one if its loss is smaller by more than one standard error of the difference, and it makes no more mistakes.

    Args:
        truth: of the graphs.
        scores: [M, n, ·] their scores by members that were not fitted on them.
        blocks: [n] number of the block of each graph; blocks are held out as a whole.
        rule: of :data:`RULES`, or ``"best"``.
        leave_out: compute :attr:`Weighing.without`.
    """
    rules = tuple(RULES) if rule == "best" else (rule,)
    best, means, without = rules[0], {}, np.zeros(len(scores))
    if len(np.unique(blocks)) > 1:
        parts = blocks_of(truth, scores, blocks)
        found = {name: judged(name, parts) for name in rules}
        for name in rules[1:]:
            mean, error = mean_and_error(found[best][0] - found[name][0])
            if mean > error + 1e-9 and found[name][1].sum() <= found[best][1].sum() + 1e-9:
                best = name
        means = {name: float(losses.mean()) for name, (losses, _) in found.items()}
        everyone = np.arange(len(scores))
        if leave_out and len(everyone) > 1:
            others = [judged(best, parts, np.delete(everyone, m))[0].mean() for m in everyone]
            without = np.array(others) - means[best]
    calibrations = [calibrate(truth, own) for own in scores]
    weights = RULES[best](truth, _calibrated(truth.task, calibrations, scores))
    return Weighing(best, weights, calibrations, means, without)


def mean_and_error(values: Floats) -> tuple[float, float]:
    """Return the mean of values [n] and its standard error."""
    return float(values.mean()), float(values.std() / np.sqrt(len(values)))
