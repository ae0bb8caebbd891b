"""Folds: who is trained on, who may pick an epoch, who is tested."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Ints
from gcaps.data.graphset import GraphSet
from gcaps.errors import DataError


class Fold(NamedTuple):
    """One division of a set; graphs counted from 0 in the set's order."""

    train: Ints
    """All graphs that are not tested: with a fixed schedule, every one of them is trained on."""
    test: Ints
    validation: Ints | None = None
    """Those of ``train`` that a file sets aside for picking the epoch; None leaves it to the configuration."""


def stratified_folds(labels: Array, folds: int, seed: int) -> list[Fold]:
    """``folds`` stratified folds, shuffled by ``seed``."""
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(labels)
    smallest = int(counts[counts > 0].min())
    if not 2 <= folds <= smallest:
        raise DataError(f"{folds} stratified folds need 2 or more folds and {folds} graphs a class; one has {smallest}")
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(labels)), labels)
    return [Fold(train.astype(np.int64), test.astype(np.int64)) for train, test in parts]


def read_splits(path: str | Path, num_graphs: int) -> list[Fold]:
    """Folds from a JSON file: a list of ``{"train": […], "validation": […], "test": […]}`` (validation may be missing).

    Raises:
        DataError: where a graph does not exist, or stands on two sides of one fold.
    """
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be read as JSON ({error})", str(path)) from error
    if not isinstance(raw, list) or not raw or not all(isinstance(fold, dict) for fold in raw):
        raise DataError('must be a list of folds {"train": […], "validation": […], "test": […]}', str(path))
    return [_fold(entry, f"{path}, fold {number}", num_graphs) for number, entry in enumerate(raw)]


def _fold(entry: dict[str, object], place: str, num_graphs: int) -> Fold:
    sides: dict[str, Ints] = {}
    for side in ("train", "validation", "test"):
        values = entry.get(side, [])
        if not isinstance(values, list) or not all(type(v) is int for v in values):
            raise DataError(f"{side} must be a list of graph numbers", place)
        sides[side] = np.asarray(values, dtype=np.int64)
        if len(values) and (min(values) < 0 or max(values) >= num_graphs):
            raise DataError(f"{side} names a graph outside 0..{num_graphs - 1}; are the folds of another set?", place)
    if not len(sides["train"]) or not len(sides["test"]):
        raise DataError("train and test must not be empty", place)
    everyone = np.concatenate(list(sides.values()))
    numbers, times = np.unique(everyone, return_counts=True)
    if times.max() > 1:
        raise DataError(f"graph {numbers[times > 1][0]} stands in it twice; sides must not overlap", place)
    held = sides["validation"]
    train = np.sort(np.concatenate([sides["train"], held]))
    return Fold(train, sides["test"], held if len(held) else None)


def folds_of(
    data: GraphSet, folds: int, splits: str | Path | Sequence[Fold] | None, seed: int
) -> tuple[list[Fold], str]:
    """The folds of a set, drawn with ``seed`` or as ``splits`` says, and where they come from in words."""
    if splits is None:
        return stratified_folds(data.targets, folds, seed), f"{folds} stratified folds, seed {seed}"
    if isinstance(splits, str | Path):
        return read_splits(splits, len(data)), str(splits)
    return list(splits), f"{len(splits)} folds given by the caller"
