"""FGSD and a random forest as a method: no network, no kernel, often hard to beat (Verma and Zhang, 2017)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from gcaps.config import Section
from gcaps.data.graphset import GraphSet
from gcaps.evaluation.folds import Fold
from gcaps.evaluation.result import FoldResult
from gcaps.training import Epoch


class ForestConfig(Section):
    """A histogram of harmonic distances for each graph, and a random forest on it; nothing is chosen."""

    method: ClassVar[str] = "fgsd"
    selection: ClassVar[str] = "fixed"

    bins: int = Field(200, ge=1, le=65536, description="bins of the histogram of harmonic distances")
    spacing: Literal["uniform", "quantile"] = Field("uniform", description="how bins are spaced over training graphs")
    trees: int = Field(500, ge=1, description="trees of the forest")


@dataclass(frozen=True)
class ForestMethod:
    """Bins and trees are fitted on a fold's training graphs; there is nothing to choose."""

    shares: ClassVar[bool] = False

    name: str = "fgsd"

    @property
    def config(self) -> type[ForestConfig]:
        """The method's own configuration."""
        return ForestConfig

    def prepared(self, graphs: GraphSet, config: ForestConfig) -> ForestMethod:
        """Nothing is shared by the folds."""
        return self

    def __call__(
        self,
        graphs: GraphSet,
        fold: Fold,
        number: int,
        config: ForestConfig,
        seed: int,
        on_epoch: Callable[[Epoch], None],
    ) -> FoldResult:
        """The fold's predictions."""
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.pipeline import make_pipeline

        from gcaps.features import GraphFGSD

        began = time.perf_counter()
        forest = RandomForestClassifier(config.trees, random_state=seed + number)
        model = make_pipeline(GraphFGSD(config.bins, spacing=config.spacing), forest)
        training, test = graphs.subset(fold.train), graphs.subset(fold.test)
        model.fit(training, training.targets)
        scores = np.zeros((len(test), graphs.num_classes))
        scores[:, forest.classes_] = model.predict_proba(test)
        seconds = time.perf_counter() - began
        on_epoch(Epoch(1, 0.0, 1.0, len(graphs) / seconds))
        return FoldResult(
            fold=number,
            test=fold.test.tolist(),
            labels=test.targets.tolist(),
            predictions=scores.argmax(axis=1).tolist(),
            scores=np.round(scores, 6).tolist(),
            epoch=1,
            train_loss=[],
            train_accuracy=[],
            test_accuracy=[],
            validation_accuracy=[],
            seconds=seconds,
        )
