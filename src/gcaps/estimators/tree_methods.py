"""Trees on graph vectors: one forest or boosted model for classes, one for each of several targets."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Annotated, Any, Literal, Self, Unpack

import numpy as np
from pydantic import Field
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.documents import Page, validated
from gcaps.errors import ModelError
from gcaps.estimators.auto import resolve
from gcaps.estimators.base import FitOptions, GraphEstimator, State
from gcaps.estimators.problem import Problem
from gcaps.estimators.trees import Trees
from gcaps.training import Epoch


class TreesState(Page):
    """JSON values of a fitted :class:`TreeEstimator`."""

    forests: Annotated[int, Field(ge=1, le=1 << 20)]
    links: list[Literal["mean", "identity", "logistic", "softmax"]]
    """Transformation of the sum of the trees' values, for each forest."""


class TreeEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GraphEstimator):  # type: ignore[misc]
    """Base class of the estimators that fit trees to a vector of each graph.

    Attributes:
        forests_: the trees: one forest for classification, one for each target otherwise.
    """

    forests_: list[Trees]

    @abstractmethod
    def _fit_vectors(self, prepared: PreparedSet, train: Ints) -> Floats:
        """Fit what makes vectors to the training graphs; return theirs, [n, d]."""

    @abstractmethod
    def _prepared_vectors(self, prepared: PreparedSet, indices: Ints) -> Floats:
        """Return the vectors [n, d] of some graphs of a prepared set, computed once for the set."""

    @abstractmethod
    def _vectors(self, graphs: GraphSet) -> Floats:
        """Return the vectors [G, d] of graphs."""

    @abstractmethod
    def _fit_trees(self, x: Floats, y: Array, weight: Floats | None) -> Trees:
        """Fit trees to vectors x [n, d], known targets y [n] and weights [n]; there is at least one graph."""

    def fit_prepared(self, prepared: PreparedSet, train: Ints, **options: Unpack[FitOptions]) -> Self:
        """Fit vectors and trees on some graphs of a prepared set; there is nothing to choose."""
        began = time.perf_counter()
        config = self.config
        problem = self._start(prepared, train, options)
        resolved, self.resolution_ = resolve(config, prepared.graphs, problem.train, problem.target.task)
        self.resolved_ = resolved.to_dict()
        self.forests_ = self._fit_targets(self._fit_vectors(prepared, problem.train), problem)
        if (on_epoch := options.get("on_epoch")) is not None:
            on_epoch(Epoch(1, 0.0, 1.0, len(problem.train) / (time.perf_counter() - began)))
        return self

    def _fit_targets(self, x: Floats, problem: Problem) -> list[Trees]:
        """Fit each target to the training graphs that have it."""
        y, weight = problem.y[problem.train], problem.training_weight()
        found = []
        for t in range(1 if y.ndim == 1 else y.shape[1]):
            known = np.ones(len(y), dtype=bool) if y.ndim == 1 else ~np.isnan(y[:, t])
            if not known.any():
                found.append(Trees.constant([0.0] if problem.target.task == "regression" else [0.5, 0.5]))
                continue
            own = None if weight is None else (weight[known] if weight.ndim == 1 else weight[known, t])
            if own is not None and (own == own[0]).all():
                own = None  # equal weights change nothing but scikit-learn's random draws
            rows = x if known.all() else x[known]
            found.append(self._fit_trees(rows, (y if y.ndim == 1 else y[:, t])[known], own))
        return found

    def scores_prepared(self, prepared: PreparedSet, indices: Ints) -> Floats:
        """Return scores; what vectors are made from is computed once for the prepared set."""
        return self._scores_of(self._prepared_vectors(prepared, indices))

    def _scores(self, graphs: GraphSet) -> Floats:
        return self._scores_of(self._vectors(graphs))

    def _scores_of(self, x: Floats) -> Floats:
        if self.target_.task == "classification":
            return self.forests_[0].predict(x)
        return self._in_units(np.stack([forest.predict(x)[:, -1] for forest in self.forests_], axis=1))

    def _spread(self, graphs: GraphSet) -> Floats | None:
        if self.target_.scale is None:
            return None
        x = self._vectors(graphs)
        found = [spread for forest in self.forests_ if (spread := forest.spread(x)) is not None]
        return np.stack(found, axis=1) * self.target_.scale if len(found) == len(self.forests_) else None

    def transform(self, X: Any) -> Floats:
        """Return the vectors [G, d]."""
        check_is_fitted(self, "target_")
        graphs = self.loaded(X)
        return self._vectors(graphs)

    def state(self) -> State:
        """Return the trees."""
        arrays = {f"{t}.{name}": a for t, forest in enumerate(self.forests_) for name, a in forest.arrays().items()}
        return arrays, {"forests": len(self.forests_), "links": [forest.link for forest in self.forests_]}

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Build the trees again."""
        found = validated(TreesState, {name: values.get(name) for name in ("forests", "links")},
                          "the state of the trees is damaged", ModelError)  # fmt: skip
        outputs = self.target_.outputs if self.target_.task == "classification" else 2
        self.forests_ = []
        for t, link in enumerate(found.links):
            own = {name.removeprefix(f"{t}."): a for name, a in arrays.items() if name.startswith(f"{t}.")}
            self.forests_.append(Trees.restored(own, link, 1 if self.target_.task == "regression" else outputs))
        if len(self.forests_) != (1 if self.target_.task == "classification" else len(self.target_.names)):
            raise ModelError("the state of the trees is damaged (there should be a forest for each target)")
