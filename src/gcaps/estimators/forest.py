"""A random forest on histograms of harmonic distances (FGSD; Verma and Zhang, 2017)."""

from __future__ import annotations

import time
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.validation import check_is_fitted

from gcaps.config import ForestConfig
from gcaps.data.arrays import Array, Floats, Ints, pointer
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.estimators.base import FitOptions, GraphClassifier, State
from gcaps.features import GraphFGSD
from gcaps.training import Epoch

LEAF = -1
"""Child of a leaf in scikit-learn's trees."""


class FGSDForestClassifier(TransformerMixin, GraphClassifier):  # type: ignore[misc]
    """Random forest on a histogram of the harmonic distances of each graph: no network, no kernel.

    Args:
        bins: bins of the histogram.
        spacing: spacing of the bins over the training graphs.
        n_estimators: trees of the forest.
        random_state: decides the forest.
    """

    method: ClassVar[str] = "fgsd"

    def __init__(
        self,
        *,
        bins: int = 200,
        spacing: Literal["uniform", "quantile"] = "uniform",
        n_estimators: int = 500,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())

    def fit_prepared(self, prepared: PreparedSet, train: Ints, **options: Unpack[FitOptions]) -> Self:
        """Fit bins and trees on some graphs of a prepared set; there is nothing to choose."""
        began = time.perf_counter()
        config = self.config
        assert isinstance(config, ForestConfig)
        _, codes = self._start(prepared, train)
        self.resolved_, self.resolution_ = config.to_dict(), []
        self.fgsd_ = GraphFGSD(config.bins, spacing=config.spacing)
        x = self.fgsd_.fit(prepared, indices=train).transform(prepared)[train]
        forest = RandomForestClassifier(config.n_estimators, random_state=self._seed())
        weight = options.get("sample_weight")
        forest.fit(x, codes[train], sample_weight=None if weight is None else weight[train])
        self.trees_ = Trees.of(forest)
        if (on_epoch := options.get("on_epoch")) is not None:
            on_epoch(Epoch(1, 0.0, 1.0, len(train) / (time.perf_counter() - began)))
        return self

    def predict_proba_prepared(self, prepared: PreparedSet, indices: Ints) -> Floats:
        """Return class probabilities [n, C]; distances of the prepared set are computed once."""
        return self.trees_.predict_proba(self.fgsd_.transform(prepared)[indices])

    def _predict_proba(self, graphs: GraphSet) -> Floats:
        return self.trees_.predict_proba(self.fgsd_.transform(graphs))

    def transform(self, X: Any) -> Floats:
        """Return the histograms [G, bins]."""
        check_is_fitted(self, "classes_")
        histograms: Floats = self.fgsd_.transform(load(X, labelled=False))
        return histograms

    @property
    def describes(self) -> str:
        """What predicts, in words."""
        return f"{len(self.trees_.ptr) - 1:,} trees on histograms of harmonic distances"

    def state(self) -> State:
        """Return the trees and the histogram's bins."""
        histogram = {"range": float(self.fgsd_.range_), "edges": np.asarray(self.fgsd_.edges_).tolist()}
        return self.trees_.arrays(), {"histogram": histogram}

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Build the histogram and the trees again."""
        config = ForestConfig.parse(self.resolved_)
        self.fgsd_ = GraphFGSD(config.bins, spacing=config.spacing)
        self.fgsd_.range_ = float(values["histogram"]["range"])
        self.fgsd_.edges_ = np.asarray(values["histogram"]["edges"], dtype=np.float64)
        self.trees_ = Trees(**arrays)


class Trees:
    """The trees of a random forest as flat arrays: a forest without pickle.

    Args:
        ptr: [T+1] tree t has the nodes ptr[t] … ptr[t+1]−1.
        children: [N, 2] left and right child, counted within the tree; −1 at a leaf.
        feature: [N] column that a node looks at.
        threshold: [N] values up to it go left.
        value: [N, C] class probabilities of a node.
    """

    def __init__(self, ptr: Array, children: Array, feature: Array, threshold: Array, value: Array) -> None:
        self.ptr, self.children, self.feature, self.threshold, self.value = ptr, children, feature, threshold, value

    @classmethod
    def of(cls, forest: RandomForestClassifier) -> Trees:
        """Take the trees of a fitted scikit-learn forest."""
        trees = [tree.tree_ for tree in forest.estimators_]
        values = [tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True) for tree in trees]
        return cls(
            pointer(np.array([tree.node_count for tree in trees])),
            np.concatenate([np.stack([tree.children_left, tree.children_right], axis=1) for tree in trees]),
            np.concatenate([tree.feature for tree in trees]),
            np.concatenate([tree.threshold for tree in trees]),
            np.concatenate(values),
        )

    def predict_proba(self, x: Floats) -> Floats:
        """Return the mean of the trees' class probabilities [n, C] for rows x [n, d], as scikit-learn does."""
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
