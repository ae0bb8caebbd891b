"""A random forest on histograms of harmonic distances (FGSD; Verma and Zhang, 2017)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from gcaps.config import ClassWeight, ForestConfig
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.documents import validated
from gcaps.errors import ModelError
from gcaps.estimators.base import GraphClassifier, State
from gcaps.estimators.tree_methods import TreeEstimator
from gcaps.estimators.trees import Trees
from gcaps.features import GraphFGSD
from gcaps.features.fgsd import BinState


class FGSDForest(TreeEstimator):
    """Base class of the random forests on histograms of harmonic distances.

    Attributes:
        fgsd_: the histograms, with bins fitted on the training graphs.
        forests_: the trees: one forest for classification, one for each target otherwise.
    """

    fgsd_: GraphFGSD

    def _fit_vectors(self, prepared: PreparedSet, train: Ints) -> Floats:
        self.fgsd_ = self._histograms()
        found: Floats = self.fgsd_.fit(prepared, indices=train).transform(prepared)[train]
        return found

    def _prepared_vectors(self, prepared: PreparedSet, indices: Ints) -> Floats:
        found: Floats = self.fgsd_.transform(prepared)[indices]
        return found

    def _vectors(self, graphs: GraphSet) -> Floats:
        found: Floats = self.fgsd_.transform(graphs)
        return found

    def _fit_trees(self, x: Floats, y: Array, weight: Floats | None) -> Trees:
        kind = RandomForestRegressor if self.target_.task == "regression" else RandomForestClassifier
        forest = kind(self.resolved_["n_estimators"], random_state=self._seed())
        return Trees.of_forest(forest.fit(x, y, sample_weight=weight))

    def _histograms(self) -> GraphFGSD:
        config = ForestConfig.parse(self.resolved_)
        return GraphFGSD(config.bins, spacing=config.spacing)

    @property
    def _n_features_out(self) -> int:
        return self.fgsd_.num_features

    @property
    def describes(self) -> str:
        """Description of the model."""
        return f"{sum(map(len, self.forests_)):,} trees on histograms of harmonic distances"

    def state(self) -> State:
        """Return the trees and the histogram's bins."""
        arrays, values = super().state()
        histogram = {"range": float(self.fgsd_.range_), "edges": np.asarray(self.fgsd_.edges_).tolist()}
        return arrays, {"histogram": histogram, **values}

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Build the histogram and the trees again."""
        super().restore(arrays, values)
        self.fgsd_ = self._histograms()
        found = validated(BinState, values.get("histogram"), "the bins of the histogram are damaged", ModelError)
        self.fgsd_.range_, self.fgsd_.edges_ = found.range, found.edges_of(self.fgsd_.bins)


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
