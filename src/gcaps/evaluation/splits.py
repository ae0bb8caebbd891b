"""Folds: the training, validation and test graphs of each repetition of an evaluation."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field

from gcaps.data.arrays import Array, Ints
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.scaffolds import scaffolds_of
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Classes, Task, has_target, missing, resolve_task
from gcaps.documents import Label, Page, read_json, validated
from gcaps.errors import ConfigError, DataError
from gcaps.evaluation.group_splits import (
    TEST,
    TRAIN,
    VALIDATION,
    balanced_parts,
    group_folds,
    largest_first_parts,
)


class Fold(NamedTuple):
    """One split of a set; graphs are counted from 0 in the set's order."""

    train: Ints
    """All graphs that are not tested; with a fixed schedule, all of them are trained on."""
    test: Ints
    validation: Ints | None = None
    """The graphs of ``train`` that a splits file sets aside for picking the epoch; None: the configuration decides."""


@dataclass(frozen=True)
class Split:
    """How a set is divided into folds: a key of :data:`SPLITS` and, where it takes one, a column; or a file."""

    kind: str
    column: str = ""
    file: str = ""

    @classmethod
    def parse(cls, text: str | Path) -> Split:
        """Read a split as it is given on the command line: a key of :data:`SPLITS`, ``KEY:COLUMN`` or a file's path.

        Raises:
            ConfigError: a column is missing, or there is no such way to split.
        """
        given = str(text).strip()
        kind, colon, column = given.partition(":")
        if kind in SPLITS and bool(colon) == (kind in WITH_COLUMN) and bool(column) == bool(colon):
            return cls(kind, column)
        if kind in SPLITS:
            raise ConfigError(f"the split {given!r} is written {_SPELLING[kind]}")
        if not isinstance(text, Path) and Path(given).name == given and not Path(given).suffix:
            near = difflib.get_close_matches(given, SPLITS, 1)
            if near:
                raise ConfigError(f"there is no split {given!r}; did you mean {_SPELLING[near[0]]}?")
        return cls("file", file=given)

    def __str__(self) -> str:
        return self.file or (f"{self.kind}:{self.column}" if self.column else self.kind)

    @property
    def is_file(self) -> bool:
        """Whether the folds are in a file."""
        return self.kind == "file"

    @property
    def single(self) -> bool:
        """Whether it gives one fold, however many are asked for."""
        return self.kind == "column"

    @property
    def grouped(self) -> bool:
        """Whether graphs of one group, such as a scaffold, are never on both sides of a fold."""
        return self.kind in ("scaffold", "scaffold-balanced", "group")


SPLITS = ("stratified", "random", "scaffold", "scaffold-balanced", "group", "time", "column")
"""Ways to split a set."""
WITH_COLUMN = ("group", "time", "column")
"""Those that take the name of a column."""
_SPELLING = {kind: f"{kind}:COLUMN" if kind in WITH_COLUMN else kind for kind in SPLITS}
DEFAULT_SPLIT: dict[Task, str] = {"classification": "stratified", "multilabel": "random", "regression": "random"}
HOLDOUT = 10
"""A single fold (``folds=1``) tests one part of so many, and sets another aside for validation: 80/10/10."""
_SIDES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""Values of a column that says train, validation or test, in lower case."""


def folds_of(
    graphs: GraphSet | PreparedSet,
    folds: int = 10,
    split: str | Path | Sequence[Fold] | None = None,
    seed: int = 0,
    task: Task = "classification",
) -> list[Fold]:
    """Divide a set into folds; graphs without a target are in none of them.

    Args:
        graphs: with targets, and with the columns that the split needs; a PreparedSet finds scaffolds once.
        folds: number of folds. 1 is a single division into 80 % training, 10 % validation and 10 % test graphs.
        split: see :meth:`Split.parse`; the folds themselves; by default stratified for classification, else random.
        seed: decides stratified, random, balanced scaffold, and several scaffold or group folds.
        task: the task that ``y`` poses.

    Raises:
        DataError: the set cannot be divided in this way; the message says why.
    """
    prepared = PreparedSet.of(graphs)
    graphs = prepared.graphs
    assert graphs.y is not None, "an evaluation needs targets"
    known = np.flatnonzero(has_target(graphs.y))
    if split is not None and not isinstance(split, str | Path):
        return _with_target(list(split), known, "the folds given")
    how = Split.parse(DEFAULT_SPLIT[task] if split is None else split)
    if how.is_file:
        return _with_target(read_splits(how.file, len(graphs)), known, how.file)
    if how.kind == "column":
        return [_by_column(graphs, how.column, known)]
    if not 1 <= folds <= len(known):
        raise DataError(f"{len(known)} graphs cannot be divided into {folds} folds", graphs.name)
    if how.kind == "time":
        return _by_time(_column(graphs, how.column, known, "time"), known, folds, f"time:{how.column}")
    if how.kind in ("stratified", "random"):
        count = min(HOLDOUT, len(known)) if folds == 1 else folds
        if how.kind == "random":
            parts = random_folds(len(known), count, seed)
        elif task == "classification":
            parts = stratified_folds(graphs.y[known], count, seed)
        else:
            raise DataError(f"stratified folds need classes; random ones suit {task}", graphs.name)
        if folds == 1:  # the first part is tested, the second is for validation
            parts = [Fold(parts[0].train, parts[0].test, parts[1].test if len(parts) > 2 else None)]
    else:
        groups = _groups(prepared, how)[known]
        if folds > 1:
            place = group_folds(groups, folds, seed, str(how))
            parts = [Fold(np.flatnonzero(place != k), np.flatnonzero(place == k)) for k in range(folds)]
        else:
            balanced = how.kind == "scaffold-balanced"
            sides = balanced_parts(groups, seed) if balanced else largest_first_parts(groups)
            parts = [_fold_of_parts(sides, groups, str(how))]
    return [Fold(known[p.train], known[p.test], None if p.validation is None else known[p.validation]) for p in parts]


def groups_of(graphs: GraphSet | PreparedSet, split: str) -> Ints | None:
    """[G] the number of the group that folds keep whole, of every graph; None where a split has no groups."""
    how = Split.parse(split)
    return np.unique(_groups(PreparedSet.of(graphs), how), return_inverse=True)[1] if how.grouped else None


def _groups(prepared: PreparedSet, how: Split) -> Array:
    """[G] the scaffold of each molecule, or the values of a column, which no graph with a target may lack."""
    if how.kind != "group":
        return scaffolds_of(prepared)
    graphs = prepared.graphs
    assert graphs.y is not None
    _column(graphs, how.column, np.flatnonzero(has_target(graphs.y)), "group")
    return np.asarray(graphs.columns[how.column])


class GraphKFold:
    """Folds for scikit-learn's ``cv=``, made like those of :func:`gcaps.evaluate`.

    Unlike ``cv=5`` it does not need ``y``: ``cross_val_score(model, graphs, cv=GraphKFold(5))`` stratifies by the
    graphs' own targets and shuffles, where scikit-learn without ``y`` cuts the set into unshuffled pieces.

    Args:
        n_splits: number of folds.
        split: see :func:`folds_of`.
        random_state: decides the folds.
        task: ``"auto"``, ``"classification"``, ``"multilabel"`` or ``"regression"``.
    """

    def __init__(self, n_splits: int = 5, split: str | None = None, random_state: int = 0, task: str = "auto") -> None:
        self.n_splits, self.split_by, self.random_state, self.task = n_splits, split, random_state, task

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Ints, Ints]]:
        """Yield training and test positions of each fold.

        Args:
            X: graphs, or anything :func:`gcaps.load` takes.
            y: their targets; by default their own.
            groups: of the graphs, kept whole in place of ``split``.
        """
        graphs = load(X, labelled=False)
        if y is not None:
            graphs = replace(graphs, y=np.asarray(y))
        if graphs.y is None:
            raise DataError("has no targets; give y", graphs.name)
        split = self.split_by
        if groups is not None:
            graphs, split = replace(graphs, columns={"groups": np.asarray(groups)}), "group:groups"
        assert graphs.y is not None
        task = resolve_task(graphs.y, self.task, graphs.name).task
        for fold in folds_of(graphs, self.n_splits, split, self.random_state, task):
            yield fold.train, fold.test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return 1 if self.split_by is not None and Split.parse(self.split_by).single else self.n_splits


def stratified_folds(y: Array, folds: int, seed: int) -> list[Fold]:
    """``folds`` folds with the class proportions of ``y`` [G], shuffled by ``seed``.

    A class with fewer graphs than folds is spread over some of them.
    """
    from sklearn.model_selection import StratifiedKFold

    codes = Classes.of(y).encode(y)
    if folds > np.bincount(codes).max():  # more folds than any class has graphs
        return random_folds(len(codes), folds, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about classes with fewer graphs than folds
        parts = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(codes)), codes))
    return [Fold(train.astype(np.int64), test.astype(np.int64)) for train, test in parts]


def random_folds(graphs: int, folds: int, seed: int) -> list[Fold]:
    """``folds`` folds of equal size, shuffled by ``seed``."""
    from sklearn.model_selection import KFold

    parts = KFold(folds, shuffle=True, random_state=seed).split(np.zeros(graphs))
    return [Fold(train.astype(np.int64), test.astype(np.int64)) for train, test in parts]


def _fold_of_parts(parts: Ints, groups: Array, what: str) -> Fold:
    """The fold of a single division of groups into training, validation and test graphs."""
    train, validation, test = (np.flatnonzero(parts == part) for part in (TRAIN, VALIDATION, TEST))
    if not len(test):  # a few large groups
        validation, test = test, validation
    if not len(train) or not len(test):
        count = len(np.unique(groups))
        raise DataError(f"there are {count} groups, too few or too unequal for training and test graphs", what)
    return Fold(np.sort(np.concatenate([train, validation])), test, validation if len(validation) else None)


def _by_time(values: Array, known: Ints, folds: int, what: str) -> list[Fold]:
    """Train on earlier graphs, test on later ones; graphs of the same time are never on both sides.

    Several folds have growing training sets, as ``sklearn.model_selection.TimeSeriesSplit`` has.
    """
    times = _as_times(values, what)
    order = np.argsort(times, kind="stable")
    ordered, n = times[order], len(times)
    changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    if len(changes) < folds:
        raise DataError(f"{len(changes) + 1} different times are too few for {folds} folds", what)
    size = n / HOLDOUT if folds == 1 else n // (folds + 1)
    starts: list[int] = []
    for k in range(folds):  # the change of time nearest to where parts of equal size would begin
        left = changes[changes > (starts[-1] if starts else 0)]
        left = left[: len(left) - (folds - 1 - k)]
        starts.append(int(left[np.abs(left - (n - (folds - k) * size)).argmin()]))
    found = [
        Fold(np.sort(known[order[:start]]), np.sort(known[order[start:end]])) for start, end in pairwise([*starts, n])
    ]
    before = changes[changes < starts[0]]
    if folds == 1 and len(before):
        begin = int(before[np.abs(before - (n - 2 * size)).argmin()])
        found = [found[0]._replace(validation=np.sort(known[order[begin : starts[0]]]))]
    return found


def _as_times(values: Array, what: str) -> Array:
    """Numbers as they are; strings as numbers or ISO 8601 dates."""
    if values.dtype.kind in "iufM":
        return values
    texts = [str(value).strip() for value in values.tolist()]
    try:
        return np.array([float(text) for text in texts], dtype=np.float64)
    except ValueError:
        pass
    found = []
    for text in texts:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise DataError(f"{text!r} is neither a number nor an ISO 8601 date such as 2024-05-31", what) from None
        found.append((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    return np.array(found, dtype=np.float64)


def _by_column(graphs: GraphSet, name: str, known: Ints) -> Fold:
    """The fold of a column that says train, validation or test."""
    values = [str(value).strip().lower() for value in _column(graphs, name, known, "column").tolist()]
    unknown = sorted({value for value in values if value not in _SIDES})
    if unknown:
        listed = ", ".join(map(repr, unknown[:5]))
        raise DataError(
            f"holds {listed}; its values are train, validation (valid, val, dev) and test", f"column:{name}"
        )
    sides = np.array([_SIDES[value] for value in values])
    train, validation, test = (known[sides == side] for side in ("train", "validation", "test"))
    if not len(train) or not len(test):
        raise DataError(f"names no {'training' if not len(train) else 'test'} graphs", f"column:{name}")
    return Fold(np.sort(np.concatenate([train, validation])), test, validation if len(validation) else None)


def _column(graphs: GraphSet, name: str, known: Ints, kind: str) -> Array:
    """The values of a column for the graphs with a target; none may be missing."""
    if name not in graphs.columns:
        there = f"it has {', '.join(graphs.columns)}" if graphs.columns else "it has no further columns"
        raise DataError(f"the split {kind}:{name} needs a column {name!r} of the table; {there}", graphs.name)
    values = np.asarray(graphs.columns[name])[known]
    lacking = missing(values)
    if lacking.any():
        rows = ", ".join(map(str, known[lacking][:5]))
        raise DataError(f"{int(lacking.sum())} graphs have no value (graph {rows})", f"{kind}:{name}")
    return values


def _with_target(folds: list[Fold], known: Ints, what: str) -> list[Fold]:
    """The folds without graphs that have no target."""
    found = []
    for number, fold in enumerate(folds):
        sides = [None if side is None else side[np.isin(side, known)] for side in fold]
        train, test, validation = sides
        assert train is not None
        assert test is not None
        if not len(train) or not len(test):
            raise DataError(f"fold {number} has no training or no test graphs with a target", what)
        found.append(Fold(train, test, validation if validation is None or len(validation) else None))
    return found


def split_notes(graphs: GraphSet, folds: int, split: str | None, task: Task) -> list[str]:
    """Return notes on the folds: graphs without a target, and classes with fewer graphs than folds."""
    assert graphs.y is not None
    notes = []
    lacking = np.flatnonzero(~has_target(graphs.y))
    if len(lacking):
        listed = ", ".join(str(graphs.ids[i]) if graphs.ids is not None else str(i) for i in lacking[:5])
        more = ", …" if len(lacking) > 5 else ""
        verb = "graph has" if len(lacking) == 1 else "graphs have"
        notes.append(
            f"{len(lacking):,} {verb} no target and {'is' if len(lacking) == 1 else 'are'} left out ({listed}{more})"
        )
    if task == "classification" and split in (None, "stratified") and folds > 1:
        classes = Classes.of(graphs.y)
        codes = classes.encode(graphs.y)
        counts = np.bincount(codes[codes >= 0], minlength=len(classes))
        rare = [
            f"{name} ({count})" for name, count in zip(classes.names.tolist(), counts, strict=True) if count < folds
        ]
        if rare:
            listed = ", ".join(rare[:5]) + (", …" if len(rare) > 5 else "")
            notes.append(f"classes with fewer graphs than the {folds} folds are missing from some of them: {listed}")
    return notes


def repetition_note(split: str, folds: int) -> str:
    """Return a note on repetitions that all have the same folds, with the remedy if there is one."""
    how = Split.parse(split)
    reason = f"{how} does not depend on the seed"
    if how.kind in ("scaffold", "group") and folds == 1:
        remedy = "scaffold-balanced draws another division for each" if how.kind == "scaffold" else "several folds do"
        reason = f"with one fold, {reason}; {remedy}"
    elif how.grouped or how.kind in ("stratified", "random"):
        reason = f"{how} draws the same ones with these seeds"
    return f"every repetition has the same folds: {reason}"


def read_splits(path: str | Path, num_graphs: int) -> list[Fold]:
    """Folds from a JSON file: a list of ``{"train": […], "validation": […], "test": […]}`` (validation may be missing).

    Raises:
        DataError: a graph does not exist, or is listed twice in one fold.
    """
    raw = read_json(path)
    if not isinstance(raw, list) or not raw or not all(isinstance(fold, dict) for fold in raw):
        raise DataError('must be a list of folds {"train": […], "validation": […], "test": […]}', str(path))
    return [_fold(entry, f"{path}, fold {number}", num_graphs) for number, entry in enumerate(raw)]


class FoldSides(Page):
    """A fold in a splits file; graphs are counted from 0. Other fields are not used."""

    model_config = ConfigDict(extra="ignore", strict=True)

    train: list[Label] = Field([])
    validation: list[Label] = Field([])
    test: list[Label] = Field([])


def _fold(entry: dict[str, object], place: str, num_graphs: int) -> Fold:
    sides: dict[str, Ints] = {}
    problem = "train, validation and test must each be a list of graph numbers"
    found = validated(FoldSides, entry, problem, lambda text: DataError(text, place))
    for side, values in found:
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
