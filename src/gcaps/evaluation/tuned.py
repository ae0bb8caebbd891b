"""Estimators whose fit searches the settings of a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gcaps.config.spaces import Pruning
from gcaps.data.arrays import Array, Floats
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.estimators.base import GraphEstimator
from gcaps.estimators.registry import estimator_class
from gcaps.evaluation.tuning_run import tune
from gcaps.evaluation.tuning_study import TuningStudy


def _transforms(estimator: _Tuned) -> bool:
    return hasattr(estimator_class(estimator.method), "transform")


class _Tuned(BaseEstimator):  # type: ignore[misc]
    """Base class of the estimators with a search.

    Attributes:
        study_: the search: its trials, the best and the default one.
        best_settings_: settings of the best trial that differ from the method's default.
        best_score_: mean of the metric over the inner folds in the best trial; optimistically biased.
        best_estimator_: estimator with the best settings, fitted on all graphs.
    """

    _task: ClassVar[str]
    method: str
    study_: TuningStudy
    best_settings_: dict[str, Any]
    best_score_: float
    best_estimator_: GraphEstimator

    def __init__(
        self,
        method: str = "gcaps",
        *,
        settings: Mapping[str, Any] | None = None,
        n_trials: int = 20,
        time_limit: str | float | None = None,
        space: str | Path | Mapping[str, Any] | None = None,
        metric: str | None = None,
        split: str | None = None,
        inner_folds: int = 5,
        pruner: Pruning = "median",
        n_jobs: int = 1,
        random_state: int | None = 0,
    ) -> None:
        self.method, self.settings, self.n_trials, self.time_limit = method, settings, n_trials, time_limit
        self.space, self.metric, self.split, self.inner_folds = space, metric, split, inner_folds
        self.pruner, self.n_jobs, self.random_state = pruner, n_jobs, random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Search settings on inner folds of the graphs, and fit the method with the best on all of them.

        Args:
            X: the training graphs.
            y: their targets, by default their own.
        """
        graphs = load(X, labelled=False)
        if y is not None:
            graphs = replace(graphs, y=np.asarray(y))
        seed = 0 if self.random_state is None else self.random_state
        self.study_ = tune(
            *(graphs, self.method),
            trials=self.n_trials,
            time_limit=self.time_limit,
            config=None if self.settings is None else dict(self.settings),
            space=self.space,
            metric=self.metric,
            split=self.split,
            folds=self.inner_folds,
            pruner=self.pruner,
            seed=seed,
            jobs=self.n_jobs,
            task=self._task_of(graphs),
        )
        self.best_settings_ = self.study_.best_settings
        self.best_score_ = float(self.study_.best.value or 0.0)
        self.best_estimator_ = self.study_.estimator(seed).fit_all(graphs)
        return self

    def _task_of(self, graphs: GraphSet) -> str:
        return self._task

    def predict(self, X: Any) -> Array:
        """Return the prediction for each graph, as in ``y``."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_transforms)  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Floats:
        """Return the vectors [G, ·] of graphs; only for methods with ``transform``."""
        check_is_fitted(self)
        found: Floats = self.best_estimator_.transform(X)
        return found

    def save(self, path: str | Path) -> None:
        """Write the best estimator to a folder; :func:`gcaps.load_model` reads it."""
        check_is_fitted(self)
        self.best_estimator_.save(path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


class TunedClassifier(ClassifierMixin, _Tuned):  # type: ignore[misc]
    """Classification with a method whose settings are searched on inner folds of the training graphs.

    Because the search is part of the fit, ``gcaps.evaluate(graphs, TunedClassifier("wl"))`` searches inside each fold.

    Args:
        method: name of the method.
        settings: initial settings; those that differ from their default are not searched.
        n_trials: number of trials, including the default settings.
        time_limit: ``"10m"`` or seconds, after which no trial begins; results then depend on the computer's speed.
        space: settings to search instead of the method's space.
        metric: by default accuracy.
        split: how inner folds are made: stratified, random, scaffold, group:COLUMN, ….
        inner_folds: number of inner folds.
        pruner: rule by which trials are pruned: median, hyperband or none.
        n_jobs: processes that compute inner folds; with several, trials depend on which are done first.
        random_state: seed of inner folds, trials and training.
    """

    _task = "classification"

    def _task_of(self, graphs: GraphSet) -> str:
        return "multilabel" if graphs.y is not None and graphs.y.ndim == 2 and graphs.y.shape[1] > 1 else self._task

    @property
    def classes_(self) -> Array:
        """[C] the classes, ascending."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("this TunedClassifier is not fitted and has no classes_")
        found: Array = self.best_estimator_.classes_
        return found

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities [G, C] in the order of ``classes_``."""
        check_is_fitted(self)
        return self.best_estimator_.scores(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on graphs ``X`` with targets ``y``, by default their own."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, sample_weight))


class TunedRegressor(RegressorMixin, _Tuned):  # type: ignore[misc]
    """Regression with a method whose settings are searched on inner folds; see :class:`TunedClassifier`."""

    _task = "regression"

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R² on graphs ``X`` with targets ``y``, by default their own."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, sample_weight))
