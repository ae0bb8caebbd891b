"""Folds: the training, validation and test graphs of each repetition of an evaluation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Classes
from gcaps.errors import DataError


class Fold(NamedTuple):
    """One split of a set; graphs are counted from 0 in the set's order."""

    train: Ints
    """All graphs that are not tested; with a fixed schedule, all of them are trained on."""
    test: Ints
    validation: Ints | None = None
    """The graphs of ``train`` that a splits file sets aside for picking the epoch; None: the configuration decides."""


def stratified_folds(y: Array, folds: int, seed: int) -> list[Fold]:
    """``folds`` folds with the class proportions of ``y`` [G], shuffled by ``seed``."""
    from sklearn.model_selection import StratifiedKFold

    codes = Classes.of(y).encode(y)
    smallest = int(np.bincount(codes).min())
    if not 2 <= folds <= smallest:
        raise DataError(f"{folds} stratified folds need 2 or more folds and {folds} graphs a class; one has {smallest}")
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(codes)), codes)
    return [Fold(train.astype(np.int64), test.astype(np.int64)) for train, test in parts]


def read_splits(path: str | Path, num_graphs: int) -> list[Fold]:
    """Folds from a JSON file: a list of ``{"train": […], "validation": […], "test": […]}`` (validation may be missing).

    Raises:
        DataError: a graph does not exist, or is listed twice in one fold.
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
    numbers, counts = np.unique(np.concatenate(list(sides.values())), return_counts=True)
    if counts.max() > 1:
        raise DataError(f"graph {numbers[counts > 1][0]} is listed twice; sides must not overlap", place)
    held = sides["validation"]
    train = np.sort(np.concatenate([sides["train"], held]))
    return Fold(train, sides["test"], held if len(held) else None)


def write_splits(folds: Sequence[Fold]) -> list[dict[str, list[int]]]:
    """The JSON value that :func:`read_splits` reads back."""
    held = [np.zeros(0, dtype=np.int64) if fold.validation is None else fold.validation for fold in folds]
    return [
        {"train": np.setdiff1d(f.train, h).tolist(), "validation": h.tolist(), "test": f.test.tolist()}
        for f, h in zip(folds, held, strict=True)
    ]


def folds_of(graphs: GraphSet, folds: int, splits: str | Path | Sequence[Fold] | None, seed: int) -> list[Fold]:
    """The folds of a set: ``folds`` stratified ones drawn with ``seed``, or those of the file or list ``splits``."""
    if splits is None:
        assert graphs.y is not None
        return stratified_folds(graphs.y, folds, seed)
    return read_splits(splits, len(graphs)) if isinstance(splits, str | Path) else list(splits)
