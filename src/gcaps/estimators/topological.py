"""A random forest on local topological profiles (LTP; Adamczyk and Czech, 2023)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from gcaps.config import ClassWeight, LTPConfig
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.estimators.base import GraphClassifier, State
from gcaps.estimators.tree_methods import TreeEstimator
from gcaps.estimators.trees import Trees
from gcaps.features.topological_profile import LocalTopologicalProfile


class LTPForest(TreeEstimator):
    """Base class of the random forests on local topological profiles.

    Attributes:
        profile_: the histograms, with ranges of the training graphs.
        forests_: the trees: one forest for classification, one for each target otherwise.
    """

    profile_: LocalTopologicalProfile

    def _fit_vectors(self, prepared: PreparedSet, train: Ints) -> Floats:
        self.profile_ = self._histograms()
        found: Floats = self.profile_.fit(prepared, indices=train).transform(prepared)[train]
        return found

    def _prepared_vectors(self, prepared: PreparedSet, indices: Ints) -> Floats:
        found: Floats = self.profile_.transform(prepared)[indices]
        return found

    def _vectors(self, graphs: GraphSet) -> Floats:
        return self.profile_.transform(graphs)

    def _fit_trees(self, x: Floats, y: Array, weight: Floats | None) -> Trees:
        count, seed = self.resolved_["n_estimators"], self._seed()
        if self.target_.task == "regression":
            return Trees.of_forest(RandomForestRegressor(count, random_state=seed).fit(x, y, sample_weight=weight))
        return Trees.of_forest(RandomForestClassifier(count, random_state=seed).fit(x, y, sample_weight=weight))

    def _histograms(self) -> LocalTopologicalProfile:
        config = LTPConfig.parse(self.resolved_)
        return LocalTopologicalProfile(config.bins, ranges=config.ranges, share=config.share)

    @property
    def _n_features_out(self) -> int:
        return self.profile_.num_features

    @property
    def describes(self) -> str:
        """Description of the model."""
        return f"{sum(map(len, self.forests_)):,} trees on local topological profiles"

    def state(self) -> State:
        """Return the trees and the histograms' ranges."""
        arrays, values = super().state()
        return arrays, {"low": self.profile_.low_.tolist(), "high": self.profile_.high_.tolist(), **values}

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Build the histograms and the trees again."""
        super().restore(arrays, values)
        self.profile_ = self._histograms()
        self.profile_.low_, self.profile_.high_ = (np.asarray(values[key], np.float64) for key in ("low", "high"))


class LTPForestClassifier(GraphClassifier, LTPForest):
    """Random forest on histograms of degrees, edge betweenness, Jaccard index and local degree score (LTP).

    Node labels, attributes and weights are not used.

    Args:
        bins: bins of each histogram.
        ranges: bins between the extremes of the training graphs, or of each graph as in the authors' code.
        share: divide each histogram by its sum.
        n_estimators: trees of the forest.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the forest.
    """

    method: ClassVar[str] = "ltp"

    def __init__(
        self,
        *,
        bins: int = 50,
        ranges: Literal["training", "graph"] = "training",
        share: bool = False,
        n_estimators: int = 500,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())
