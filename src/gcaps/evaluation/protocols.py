"""The four rules by which papers turn learning curves into one number (spec section 8), and summaries of metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcaps.evaluation.metrics import metrics_for
from gcaps.evaluation.result import FoldResult, Summary

PROTOCOLS = ("honest", "last", "gin", "best")
HONEST = {
    "last": "fixed schedule on all training folds, last epoch; the test fold decides nothing",
    "validation": "epoch picked on an inner validation split of the training folds; the test fold decides nothing",
    "inner": "kernel and C chosen by cross-validation inside the training folds; the test fold decides nothing",
    "weighted": "members weighed by cross-validation inside the training folds; the test fold decides nothing",
    "fixed": "fixed settings, fitted on all training folds; the test fold decides nothing",
}
"""The honest rule in words, by how a method selects its model."""


def selection_of(folds: Sequence[FoldResult]) -> str:
    """How the model of each fold was selected, a key of :data:`HONEST`, judged by what the folds recorded."""
    if all(fold.test_score for fold in folds):
        return "validation" if any(fold.validation_score for fold in folds) else "last"
    if any("inner_loss" in fold.chosen for fold in folds):
        return "weighted"
    return "inner" if any("C" in fold.chosen for fold in folds) else "fixed"


def summarise(
    repetitions: Sequence[Sequence[FoldResult]], metric: str = "accuracy", selection: str | None = None
) -> dict[str, Summary]:
    """Summarise a metric under ``honest``, ``last``, ``gin`` and ``best``. Only ``honest`` may support a claim.

    Methods without epochs (kernels, forests, SVMs on random capsules) have only ``honest``. So has every metric other
    than the accuracy of classes, which is the one that is recorded after each epoch.

    Args:
        repetitions: for each seed the folds of one method and data set.
        metric: a name in :data:`gcaps.evaluation.metrics.METRICS`.
        selection: a key of :data:`HONEST`; by default :func:`selection_of`.
    """
    folds = [fold for part in repetitions for fold in part]
    selection = selection or selection_of(folds)
    found = {"honest": Summary.of([[fold.value(metric) for fold in part] for part in repetitions], HONEST[selection])}
    if metric != "accuracy" or any(fold.task != "classification" or not fold.test_score for fold in folds):
        return found
    rules = {
        "last": ([[fold.test_score[-1] for fold in part] for part in repetitions], "last epoch of each fold"),
        "gin": (
            [_one_epoch_for_all(part) for part in repetitions],
            "one epoch for all folds, the best by mean TEST accuracy (optimistic)",
        ),
        "best": (
            [[max(fold.test_score) for fold in part] for part in repetitions],
            "each fold's best TEST epoch (very optimistic)",
        ),
    }
    return found | {name: Summary.of(values, rule) for name, (values, rule) in rules.items()}


def summarise_metrics(repetitions: Sequence[Sequence[FoldResult]]) -> dict[str, Summary]:
    """Summarise every metric of the task under the honest protocol; a metric that no fold defines is left out."""
    folds = [fold for part in repetitions for fold in part]
    rule = HONEST[selection_of(folds)]
    found = {
        metric.name: Summary.of([[fold.value(metric.name) for fold in part] for part in repetitions], rule)
        for metric in metrics_for(folds[0].task)
    }
    return {name: summary for name, summary in found.items() if summary.folds}


def _one_epoch_for_all(folds: Sequence[FoldResult]) -> list[float]:
    """Test accuracy of every fold at the epoch with the best mean, among the epochs that all folds reached."""
    shortest = min(len(fold.test_score) for fold in folds)
    curves = np.array([fold.test_score[:shortest] for fold in folds])
    chosen: list[float] = curves[:, curves.mean(axis=0).argmax()].tolist()
    return chosen
