"""The four rules by which papers turn learning curves into one accuracy (spec section 8)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcaps.evaluation.result import FoldResult, Summary

PROTOCOLS = ("honest", "last", "gin", "best")
HONEST = {
    "last": "fixed schedule on all training folds, last epoch; the test fold decides nothing",
    "validation": "epoch picked on an inner validation split of the training folds; the test fold decides nothing",
    "inner": "kernel and C chosen by cross-validation inside the training folds; the test fold decides nothing",
    "fixed": "fixed settings, fitted on all training folds; the test fold decides nothing",
}
"""The honest rule in words, by how a method selects its model."""


def selection_of(folds: Sequence[FoldResult]) -> str:
    """How the model of each fold was selected, a key of :data:`HONEST`, judged by what the folds recorded."""
    if all(fold.test_accuracy for fold in folds):
        return "validation" if any(fold.validation_accuracy for fold in folds) else "last"
    return "inner" if any("C" in fold.chosen for fold in folds) else "fixed"


def summarise(folds: Sequence[FoldResult], selection: str | None = None) -> dict[str, Summary]:
    """Accuracy under ``honest``, ``last``, ``gin`` and ``best``. Only ``honest`` may support a claim.

    Methods without epochs (kernels, forests, SVMs on random capsules) have only ``honest``.

    Args:
        folds: of one method, data set and seed.
        selection: a key of :data:`HONEST`; by default :func:`selection_of`.
    """
    selection = selection or selection_of(folds)
    values: dict[str, tuple[list[float], str]] = {"honest": ([fold.accuracy for fold in folds], HONEST[selection])}
    if all(fold.test_accuracy for fold in folds):
        values |= {
            "last": ([fold.test_accuracy[-1] for fold in folds], "last epoch of each fold"),
            "gin": (_one_epoch_for_all(folds), "one epoch for all folds, the best by mean TEST accuracy (optimistic)"),
            "best": ([max(fold.test_accuracy) for fold in folds], "each fold's best TEST epoch (very optimistic)"),
        }
    return {
        name: Summary(float(np.mean(found)), float(np.std(found)), [float(v) for v in found], rule)
        for name, (found, rule) in values.items()
    }


def _one_epoch_for_all(folds: Sequence[FoldResult]) -> list[float]:
    """Test accuracy of every fold at the epoch with the best mean, among the epochs that all folds reached."""
    shortest = min(len(fold.test_accuracy) for fold in folds)
    curves = np.array([fold.test_accuracy[:shortest] for fold in folds])
    chosen: list[float] = curves[:, curves.mean(axis=0).argmax()].tolist()
    return chosen
