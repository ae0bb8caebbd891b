"""A random forest on histograms of harmonic distances (FGSD; Verma and Zhang, 2017)."""

from __future__ import annotations

import time
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.utils.validation import check_is_fitted

from gcaps.config import ClassWeight, ForestConfig
from gcaps.data.arrays import Array, Floats, Ints, pointer
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.estimators.base import FitOptions, GraphClassifier, GraphEstimator, State
from gcaps.features import GraphFGSD
from gcaps.training import Epoch

LEAF = -1
"""Child of a leaf in scikit-learn's trees."""


class FGSDForest(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GraphEstimator):  # type: ignore[misc]
    """Base class of the random forests on histograms of harmonic distances.

    Attributes:
        fgsd_: the histograms, with bins fitted on the training graphs.
        forests_: the trees: one forest for classification, one for each target otherwise.
    """

    fgsd_: GraphFGSD
    forests_: list[Trees]

    def fit_prepared(self, prepared: PreparedSet, train: Ints, **options: Unpack[FitOptions]) -> Self:
        """Fit bins and trees on some graphs of a prepared set; there is nothing to choose."""
        began = time.perf_counter()
        config = self.config
        assert isinstance(config, ForestConfig)
        problem = self._start(prepared, train, options)
        train = problem.train
        self.resolved_, self.resolution_ = config.to_dict(), []
        self.fgsd_ = GraphFGSD(config.bins, spacing=config.spacing)
        x = self.fgsd_.fit(prepared, indices=train).transform(prepared)[train]
        y, weight = problem.y[train], problem.training_weight()
        kind = RandomForestRegressor if problem.target.task == "regression" else RandomForestClassifier
        self.forests_ = []
        for t in range(1 if y.ndim == 1 else y.shape[1]):
            known = np.ones(len(y), dtype=bool) if y.ndim == 1 else ~np.isnan(y[:, t])
            if not known.any():
                self.forests_.append(Trees.constant([0.0] if kind is RandomForestRegressor else [0.5, 0.5]))
                continue
            own = None if weight is None else (weight[known] if weight.ndim == 1 else weight[known, t])
            if own is not None and (own == own[0]).all():
                own = None  # equal weights change nothing but scikit-learn's random draws
            forest = kind(config.n_estimators, random_state=self._seed())
            forest.fit(x[known], (y if y.ndim == 1 else y[:, t])[known], sample_weight=own)
            self.forests_.append(Trees.of(forest))
        if (on_epoch := options.get("on_epoch")) is not None:
            on_epoch(Epoch(1, 0.0, 1.0, len(train) / (time.perf_counter() - began)))
        return self

    def scores_prepared(self, prepared: PreparedSet, indices: Ints) -> Floats:
        """Return scores; distances of the prepared set are computed once."""
        return self._scores_of(self.fgsd_.transform(prepared)[indices])

    def _scores(self, graphs: GraphSet) -> Floats:
        return self._scores_of(self.fgsd_.transform(graphs))

    def _scores_of(self, x: Floats) -> Floats:
        if self.target_.task == "classification":
            return self.forests_[0].predict(x)
        return self._in_units(np.stack([forest.predict(x)[:, -1] for forest in self.forests_], axis=1))

    def transform(self, X: Any) -> Floats:
        """Return the histograms [G, bins]."""
        check_is_fitted(self, "target_")
        histograms: Floats = self.fgsd_.transform(load(X, labelled=False))
        return histograms

    @property
    def _n_features_out(self) -> int:
        return self.fgsd_.num_features

    @property
    def describes(self) -> str:
        """What predicts, in words."""
        trees = sum(len(forest.ptr) - 1 for forest in self.forests_)
        return f"{trees:,} trees on histograms of harmonic distances"

    def state(self) -> State:
        """Return the trees and the histogram's bins."""
        histogram = {"range": float(self.fgsd_.range_), "edges": np.asarray(self.fgsd_.edges_).tolist()}
        arrays = {f"{t}.{name}": a for t, forest in enumerate(self.forests_) for name, a in forest.arrays().items()}
        return arrays, {"histogram": histogram, "forests": len(self.forests_)}

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Build the histogram and the trees again."""
        config = ForestConfig.parse(self.resolved_)
        self.fgsd_ = GraphFGSD(config.bins, spacing=config.spacing)
        self.fgsd_.range_ = float(values["histogram"]["range"])
        self.fgsd_.edges_ = np.asarray(values["histogram"]["edges"], dtype=np.float64)
        self.forests_ = [
            Trees(**{name.removeprefix(f"{t}."): a for name, a in arrays.items() if name.startswith(f"{t}.")})
            for t in range(int(values["forests"]))
        ]


class FGSDForestClassifier(GraphClassifier, FGSDForest):
    """Random forest on a histogram of the harmonic distances of each graph: no network, no kernel.

    Args:
        bins: bins of the histogram.
        spacing: spacing of the bins over the training graphs.
        n_estimators: trees of the forest.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the forest.
    """

    method: ClassVar[str] = "fgsd"

    def __init__(
        self,
        *,
        bins: int = 200,
        spacing: Literal["uniform", "quantile"] = "uniform",
        n_estimators: int = 500,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())


class Trees:
    """The trees of a random forest as flat arrays: a forest without pickle.

    Args:
        ptr: [T+1] tree t has the nodes ptr[t] … ptr[t+1]−1.
        children: [N, 2] left and right child, counted within the tree; −1 at a leaf.
        feature: [N] column that a node looks at.
        threshold: [N] values up to it go left.
        value: [N, C] class probabilities of a node, or [N, 1] its value in regression.
    """

    def __init__(self, ptr: Array, children: Array, feature: Array, threshold: Array, value: Array) -> None:
        self.ptr, self.children, self.feature, self.threshold, self.value = ptr, children, feature, threshold, value

    @classmethod
    def of(cls, forest: RandomForestClassifier | RandomForestRegressor) -> Trees:
        """Take the trees of a fitted scikit-learn forest."""
        trees = [tree.tree_ for tree in forest.estimators_]
        values = [tree.value[:, 0, :] for tree in trees]
        if isinstance(forest, RandomForestClassifier):
            values = [_probabilities(value, forest.classes_) for value in values]
        return cls(
            pointer(np.array([tree.node_count for tree in trees])),
            np.concatenate([np.stack([tree.children_left, tree.children_right], axis=1) for tree in trees]),
            np.concatenate([tree.feature for tree in trees]),
            np.concatenate([tree.threshold for tree in trees]),
            np.concatenate(values),
        )

    @classmethod
    def constant(cls, value: list[float]) -> Trees:
        """Return a single leaf of that value, for a target that no training graph has."""
        none = np.zeros(1)
        return cls(np.array([0, 1]), np.full((1, 2), LEAF), none.astype(np.int64), none, np.array([value]))

    def predict(self, x: Floats) -> Floats:
        """Return the mean of the trees' values [n, C] or [n, 1] for rows x [n, d], as scikit-learn does."""
        rows = np.asarray(x, dtype=np.float32)
        total = np.zeros((len(rows), self.value.shape[1]))
        for first in self.ptr[:-1]:
            total += self.value[self._leaves(rows, int(first))]
        mean: Floats = total / (len(self.ptr) - 1)
        return mean

    def _leaves(self, x: Floats, first: int) -> Ints:
        """Return the leaf [n] that each row reaches in the tree whose nodes begin at ``first``."""
        at = np.full(len(x), first)
        inner = np.flatnonzero(self.children[at, 0] != LEAF)
        while len(inner):
            nodes = at[inner]
            right = x[inner, self.feature[nodes]] > self.threshold[nodes]
            at[inner] = first + self.children[nodes, right.astype(np.int64)]
            inner = inner[self.children[at[inner], 0] != LEAF]
        return at

    def arrays(self) -> dict[str, Array]:
        """Return the constructor's arguments."""
        return dict(vars(self))


def _probabilities(value: Floats, classes: Array) -> Floats:
    """[N, C] class probabilities from class counts; a column for each of the classes 0 and 1 where one is missing."""
    share: Floats = value / value.sum(axis=1, keepdims=True)
    if len(classes) > 1:
        return share
    return np.where(np.arange(2) == int(classes[0]), share, 0.0)
