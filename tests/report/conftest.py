"""An artificial evaluation whose parts agree with each other, in any number of folds, classes and epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gcaps.config import Config
from gcaps.evaluation.result import FoldResult, Result, Summary

MakeResult = Callable[..., Result]


def _summary(values: list[float], rule: str) -> Summary:
    return Summary(float(np.mean(values)), float(np.std(values)), values, rule)


def build(
    name: str = "PROTEINS",
    folds: int = 10,
    classes: int = 2,
    epochs: int = 60,
    graphs: int = 400,
    method: str = "gcaps",
    stop_early: bool = False,
    **changes: Any,
) -> Result:
    rng = np.random.default_rng(7)
    weights = np.linspace(2, 1, classes)
    labels = rng.choice(classes, size=graphs, p=weights / weights.sum())
    logits = rng.normal(size=(graphs, classes)) + 1.6 * np.eye(classes)[labels]
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    predictions = scores.argmax(axis=1)
    parts = []
    for fold in range(folds):
        test = np.arange(fold, graphs, folds)
        length = epochs - int(rng.integers(0, epochs // 3 + 1)) if stop_early else epochs
        time = np.linspace(0, 1, length)
        final = float((labels[test] == predictions[test]).mean())
        noise = rng.normal(scale=0.02, size=length) * (length > 1)
        curve = np.clip(final - 0.25 * np.exp(-6 * time) + noise, 0, 1)
        curve[-1] = final
        rising = np.clip(0.95 - 0.35 * np.exp(-4 * time) + noise / 3, 0, 1)
        parts.append(
            FoldResult(
                fold=fold,
                test=test.tolist(),
                labels=labels[test].tolist(),
                predictions=predictions[test].tolist(),
                scores=np.round(scores[test], 6).tolist(),
                epoch=length,
                train_loss=(0.15 + 0.55 * np.exp(-3 * time) + np.abs(noise) / 2).tolist(),
                train_accuracy=rising.tolist(),
                test_accuracy=curve.tolist(),
                validation_accuracy=np.clip(curve + noise, 0, 1).tolist() if stop_early else [],
                seconds=12.5 + fold,
            )
        )
    ends = [part.accuracy for part in parts]
    shortest = min(len(part.test_accuracy) for part in parts)
    table = np.array([part.test_accuracy[:shortest] for part in parts])
    common = table[:, table.mean(axis=0).argmax()].tolist()
    protocols = {
        "honest": _summary(ends, "a fixed schedule run to its end on all training folds; the test fold is read once"),
        "last": _summary(ends, "the last epoch of a fixed number of epochs"),
        "gin": _summary(common, "one epoch for all folds, the best by mean test accuracy: optimistic"),
        "best": _summary([max(p.test_accuracy) for p in parts], "each fold's best test epoch: very optimistic"),
    }
    values: dict[str, Any] = {
        "method": method,
        "data": {
            "name": name,
            "fingerprint": "0f" * 32,
            "graphs": graphs,
            "classes": list(range(1, classes + 1)),
        },
        "folds": parts,
        "protocols": protocols,
        "config": {**Config().to_dict(), "epochs": epochs, "hidden": Config().hidden + 1},
        "seed": 3,
        "splits": f"{folds} stratified folds, seed 3",
        "command": f"gcaps evaluate {name} --method {method} --folds {folds} --seed 3 --epochs {epochs}",
        "versions": {"gcaps": "0.1.0", "python": "3.11.9", "torch": "2.13.0", "numpy": "2.3.1"},
        "created": "2025-01-31T12:34:56Z",
    }
    return Result(**{**values, **changes})


@pytest.fixture(scope="session")
def make_result() -> MakeResult:
    return build
