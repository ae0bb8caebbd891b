"""Fitting of the members of an ensemble on inner folds, within limits of time and memory."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from gcaps.data.arrays import Floats, Ints
from gcaps.errors import GcapsError, MemoryLimitError
from gcaps.estimators.base import GraphEstimator
from gcaps.estimators.members import Member, Memory
from gcaps.estimators.out_of_fold import FoldFit, Folds
from gcaps.estimators.stacking import Truth, weigh

PATIENCE = 3
"""Number of successive members without improvement after which a search with a time limit ends."""


@dataclass
class Standing:
    """Outcome of a member."""

    member: Member
    scores: Floats | None = None
    """[R, ·] predictions of the held-out graphs."""
    models: list[GraphEstimator] = field(default_factory=list)
    """Models of the inner folds, if they are kept."""
    model: GraphEstimator | None = None
    """The final model; None if the member is left out."""
    score: float | None = None
    """Accuracy, mean ROC AUC or R² of the held-out graphs."""
    error: float | None = None
    """Standard error of the mean over the inner folds."""
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    """For the held-out graphs."""
    refit: float = 0.0
    """Estimated seconds of the fit on all training graphs."""
    without: float | None = None
    """Increase of the loss on held-out graphs when it is left out."""
    reason: str = ""
    """Reason for leaving it out."""

    def row(self, weight: float) -> dict[str, Any]:
        """Return its row of the leaderboard."""
        return {
            "member": self.member.name,
            "score": self.score,
            "error": self.error,
            "weight": weight,
            "without": self.without,
            "fit_seconds": round(self.fit_seconds, 3),
            "predict_seconds": round(self.predict_seconds, 3),
            "kept": self.model is not None,
            "reason": self.reason,
        }


@dataclass
class Search:
    """Predicts training graphs by one member after the other within a time limit."""

    folds: Folds
    truth: Truth
    rule: str
    memory: Memory
    ends: float | None
    """Time of the clock at which the limit is reached."""
    now: Callable[[], float]
    say: Callable[[str], None]
    paces: list[float] = field(default_factory=list)
    """Seconds of the first fold per unit of effort, for each timed member."""

    def run(self, members: list[Member]) -> list[Standing]:
        """Return the outcome of each member; at least one has predictions.

        Raises:
            GcapsError: a member chosen by the caller failed, or all failed.
        """
        standings = [Standing(member) for member in members]
        best, since = np.inf, 0
        failures: list[GcapsError] = []
        for standing in standings:
            first = not any(s.scores is not None for s in standings)
            if since >= PATIENCE:
                standing.reason = f"the last {PATIENCE} members did not help"
                continue
            standing.reason = self.memory.admits(standing.member, len(self.folds.problem.train)) or ""
            if not standing.reason and not first:
                standing.reason = self._late(self._expected(standing.member), standings)
            if not standing.reason:
                try:
                    self._fit(standing, standings, first=first)
                except GcapsError as error:
                    if standing.member.chosen and not isinstance(error, MemoryLimitError):
                        raise
                    failures.append(error)
                    standing.reason = " ".join(str(error).split())
            self.say(f"{standing.member.name}: {standing.reason or self._result(standing)}")
            if self.ends is not None and standing.scores is not None:
                loss = self._loss(standings)
                best, since = (loss, 0) if loss < best else (best, since + 1)
        if not any(s.scores is not None for s in standings):
            if failures:
                raise failures[0]
            listed = "; ".join(f"{s.member.name}: {s.reason}" for s in standings)
            raise MemoryLimitError(f"no member of the ensemble can be fitted ({listed})")
        return standings

    def _fit(self, standing: Standing, standings: list[Standing], *, first: bool) -> None:
        """Fit a member on the inner folds, or set the reason for leaving it out."""
        member, count = standing.member, len(self.folds.inner.splits)
        began = self.now()
        alone = 0 if self.ends is None else 1
        fits = self.folds.fit(member, list(range(alone)))
        if alone:
            spent = self.now() - began
            self.paces.append(spent / member.effort)
            standing.refit = self._refit(member, spent)
            standing.reason = "" if first else self._late(self._rest(spent) + standing.refit, standings)
        if not standing.reason:
            fits += self.folds.fit(member, list(range(alone, count)))
        self._note(standing, fits)
        if standing.reason:
            return
        scores = self.folds.out_of_fold(fits)
        if not np.isfinite(scores).all():
            standing.reason = "its predictions are not finite; a smaller lr may help"
            return
        standing.scores = scores
        standing.models = [fit.model for fit in fits if fit.model is not None]
        standing.score, standing.error = score_and_error(self.truth, scores, self.folds.inner.blocks)

    def _note(self, standing: Standing, fits: list[FoldFit]) -> None:
        """Record the time of the fits."""
        standing.fit_seconds = sum(fit.fit_seconds for fit in fits)
        standing.predict_seconds = sum(fit.predict_seconds for fit in fits)

    def _expected(self, member: Member) -> float:
        """Estimate the seconds of a member from those before it."""
        first = statistics.median(self.paces) * member.effort if self.paces else 0.0
        return first + self._rest(first) + self._refit(member, first)

    def _rest(self, fold: float) -> float:
        """Estimate the seconds of the other folds from those of the first."""
        return fold * -(-(len(self.folds.inner.splits) - 1) // self.folds.n_jobs)

    def _refit(self, member: Member, fold: float) -> float:
        """Estimate the seconds of a fit on all training graphs from those of the first fold."""
        count = len(self.folds.inner.splits)
        return 0.0 if self.folds.kept(member) else fold * count / max(count - 1, 1)

    def _late(self, seconds: float, standings: list[Standing]) -> str:
        """Return the reason if fewer than ``seconds`` are left, not counting the final fits of the other members."""
        if self.ends is None:
            return ""
        left = self.ends - self.now() - sum(s.refit for s in standings if s.scores is not None)
        return "" if seconds <= left else f"it needs about {seconds:.0f} s more, {max(left, 0):.0f} s are left"

    def _loss(self, standings: list[Standing]) -> float:
        scores = np.stack([s.scores for s in standings if s.scores is not None])
        found = weigh(self.truth, scores, self.folds.inner.blocks, self.rule, leave_out=False)
        return found.losses.get(found.rule, np.inf)

    def _result(self, standing: Standing) -> str:
        name = {"classification": "accuracy", "multilabel": "ROC AUC", "regression": "R²"}[self.truth.task]
        return f"inner {name} {standing.score:.3f} ± {standing.error:.3f}, {standing.fit_seconds:.1f} s"


def score_and_error(truth: Truth, scores: Floats, blocks: Ints) -> tuple[float, float]:
    """Return accuracy, mean ROC AUC or R² of scores [R, ·], and the standard error of its mean over blocks."""
    each = [
        value_of(truth.at(rows), scores[rows]) for b in np.unique(blocks) if len(rows := np.flatnonzero(blocks == b))
    ]
    spread = float(np.std(each, ddof=1) / np.sqrt(len(each))) if len(each) > 1 else 0.0
    return value_of(truth, scores), spread


def value_of(truth: Truth, scores: Floats) -> float:
    """Return accuracy, mean ROC AUC or R² (of standardised values) of scores [n, ·]."""
    if truth.task == "classification":
        return 1.0 - float(truth.share @ truth.mistakes(scores))
    if truth.task == "regression":
        return 1.0 - float(truth.share @ np.square(truth.evidence(scores[None])[0]))
    found = []
    for t in range(scores.shape[1]):
        own = truth.columns == t
        y = truth.y[truth.rows[own], t]
        if 0 < y.sum() < len(y):
            found.append(roc_auc_score(y, scores[truth.rows[own], t], sample_weight=truth.share[own]))
    return float(np.mean(found)) if found else 0.5
