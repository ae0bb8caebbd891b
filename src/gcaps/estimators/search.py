"""One member of an ensemble after the other on inner folds, within limits of time and memory."""

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
"""Members one after the other without a better ensemble, after which a search with a time limit ends."""


@dataclass
class Standing:
    """What became of a member."""

    member: Member
    scores: Floats | None = None
    """[R, ·] of the held-out graphs."""
    models: list[GraphEstimator] = field(default_factory=list)
    """Of the inner folds, where they are kept."""
    model: GraphEstimator | None = None
    """What predicts."""
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
    """By how much the loss on held-out graphs grows when it is left out."""
    reason: str = ""
    """Why it is left out."""

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
    """Predicts training graphs by one member after the other, as long as there is time."""

    folds: Folds
    truth: Truth
    rule: str
    memory: Memory
    ends: float | None
    """When time is up."""
    now: Callable[[], float]
    say: Callable[[str], None]
    paces: list[float] = field(default_factory=list)
    """Seconds of the first fold for a unit of effort, of each member that was timed."""

    def run(self, members: list[Member]) -> list[Standing]:
        """Return what became of each member; at least one has predictions.

        Raises:
            GcapsError: a member that the caller chose failed, or all did.
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
        """Fit a member on the inner folds, or set the reason why not."""
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
        """Note what it cost."""
        standing.fit_seconds = sum(fit.fit_seconds for fit in fits)
        standing.predict_seconds = sum(fit.predict_seconds for fit in fits)

    def _expected(self, member: Member) -> float:
        """Seconds of a member, as far as those before it tell."""
        first = statistics.median(self.paces) * member.effort if self.paces else 0.0
        return first + self._rest(first) + self._refit(member, first)

    def _rest(self, fold: float) -> float:
        """Seconds of the other folds, by those of the first."""
        return fold * -(-(len(self.folds.inner.splits) - 1) // self.folds.n_jobs)

    def _refit(self, member: Member, fold: float) -> float:
        """Seconds of a fit on all training graphs, by those of the first fold."""
        count = len(self.folds.inner.splits)
        return 0.0 if self.folds.kept(member) else fold * count / max(count - 1, 1)

    def _late(self, seconds: float, standings: list[Standing]) -> str:
        """Say that so many seconds are not left; time to fit the other members on all graphs is set aside."""
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
