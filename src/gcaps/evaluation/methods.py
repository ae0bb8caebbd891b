"""Methods by name: what evaluation runs on a fold, whatever is behind it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from gcaps.config import Config
from gcaps.data.graphset import GraphSet
from gcaps.evaluation.folds import Fold
from gcaps.evaluation.result import FoldResult
from gcaps.training import Epoch, fit


class Method(Protocol):
    """Train on a fold's training graphs, predict its test graphs."""

    def __call__(
        self, graphs: GraphSet, fold: Fold, number: int, config: Config, seed: int, on_epoch: Callable[[Epoch], None]
    ) -> FoldResult:
        """The fold's predictions and curves."""
        ...


def run_gcaps(
    graphs: GraphSet, fold: Fold, number: int, config: Config, seed: int, on_epoch: Callable[[Epoch], None]
) -> FoldResult:
    """GCAPS-CNN on one fold. Test graphs are predicted once, by the model that the configured rule chose."""
    began = time.perf_counter()
    model, curves, epoch = fit(
        graphs,
        fold.train,
        config,
        fold_seed(seed, number),
        validation=fold.validation,
        watch=fold.test,
        on_epoch=on_epoch,
    )
    scores = model.predict_proba(graphs.subset(fold.test))
    return FoldResult(
        fold=number,
        test=fold.test.tolist(),
        labels=graphs.targets[fold.test].tolist(),
        predictions=scores.argmax(axis=1).tolist(),
        scores=np.round(scores.astype(np.float64), 6).tolist(),
        epoch=epoch,
        train_loss=curves.loss,
        train_accuracy=curves.accuracy,
        test_accuracy=curves.watched,
        validation_accuracy=curves.validation,
        seconds=time.perf_counter() - began,
    )


def fold_seed(seed: int, number: int) -> int:
    """A seed of its own for each fold, the same whichever process runs it."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


METHODS: dict[str, Method] = {"gcaps": run_gcaps}
"""Every method that ``gcaps evaluate --method`` takes."""
