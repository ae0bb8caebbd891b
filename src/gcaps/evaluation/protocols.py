"""The four rules by which papers turn curves into a number, side by side (spec section 8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gcaps.config import TrainingConfig
from gcaps.evaluation.result import FoldResult, Summary


def rule_of(config: Any) -> str:
    """The rule of a configuration that :func:`summarise` is to name."""
    if isinstance(config, TrainingConfig) and not config.trains:
        return "inner"
    rule: str = config.selection
    return rule


def summarise(folds: list[FoldResult], selection: str) -> dict[str, Summary]:
    """``honest``, ``last``, ``gin`` and ``best`` of one run. Only ``honest`` may carry a claim.

    A support vector machine, on a kernel or on untrained capsules (selection ``inner``), and a forest (``fixed``) have
    no epochs and therefore only ``honest``.
    """
    if selection in ("inner", "fixed"):
        values = [fold.accuracy for fold in folds]
        rule = (
            "kernel and C chosen by cross-validation inside the training folds; the test fold decides nothing"
            if selection == "inner"
            else "fixed settings, fitted on all training folds; the test fold decides nothing"
        )
        return {"honest": Summary(float(np.mean(values)), float(np.std(values)), values, rule)}
    by_rule = {
        "honest": (
            [fold.accuracy for fold in folds],
            "fixed schedule on all training folds, last epoch; the test fold decides nothing"
            if selection == "last"
            else "epoch picked on an inner validation split of the training folds; the test fold decides nothing",
        ),
        "last": ([fold.test_accuracy[-1] for fold in folds], "last epoch of each fold"),
        "gin": (_one_epoch_for_all(folds), "one epoch for all folds, the best by mean TEST accuracy (optimistic)"),
        "best": ([max(fold.test_accuracy) for fold in folds], "each fold's best TEST epoch (very optimistic)"),
    }
    return {
        name: Summary(float(np.mean(values)), float(np.std(values)), [float(v) for v in values], rule)
        for name, (values, rule) in by_rule.items()
    }


def _one_epoch_for_all(folds: list[FoldResult]) -> list[float]:
    """Test accuracy of every fold at the epoch whose mean is best; only epochs that all folds reached count."""
    shortest = min(len(fold.test_accuracy) for fold in folds)
    curves = np.array([fold.test_accuracy[:shortest] for fold in folds])
    chosen: list[float] = curves[:, curves.mean(axis=0).argmax()].tolist()
    return chosen
