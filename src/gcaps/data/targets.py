"""Targets: values as in the source, the task that they pose, and their encoding for training.

``GraphSet.y`` contains the source's values. Estimators train on class numbers 0..C−1 (classification), on zeros and
ones (multilabel) or on standardised numbers (regression); :class:`Target` converts between the two, so that
``predict`` returns the source's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from gcaps.data.arrays import LARGEST, Array, Floats, Ints
from gcaps.documents import Label, Number, Page, validated
from gcaps.errors import ConfigError, DataError, ModelError

Task = Literal["classification", "multilabel", "regression"]
"""Two or more classes; several binary targets; one or several real numbers."""
TASKS: tuple[Task, ...] = get_args(Task)
MANY_VALUES = 20
"""Integer targets with more distinct values than this, each rare, are taken for numbers and not for classes."""
RARE = 5
"""Graphs a value, on average, below which its values count as rare."""


def target_array(values: Sequence[Any]) -> Array | None:
    """[G] or [G, T] array of one or T values for each graph; None if no graph has any.

    Strings and booleans are kept; integers become int64, and numbers that are not all integers float64. A missing value
    (None, NaN, or the empty string) becomes NaN among numbers, and turns integers and booleans into float64; among
    strings it becomes the empty string.

    Raises:
        DataError: values mix strings, booleans and numbers, or graphs differ in their number of targets; the message
            names the graph ``graphs[i]``.
    """
    several = [isinstance(value, list | tuple | np.ndarray) and np.ndim(value) > 0 for value in values]
    single = [i for i, value in enumerate(values) if not several[i] and value is not None]
    if not any(several):
        return _array(values, 1)
    if single:
        raise DataError("has one target while others have several; give all of them", f"graphs[{single[0]}]")
    width = max(np.size(value) for value, is_row in zip(values, several, strict=True) if is_row)
    flat: list[Any] = []
    for i, value in enumerate(values):
        row = [None] * width if value is None else np.asarray(value, dtype=object).ravel().tolist()
        if len(row) != width:
            raise DataError(
                f"has {len(row)} targets, others have {width}; give None for those it lacks", f"graphs[{i}]"
            )
        flat += row
    found = _array(flat, width)
    return None if found is None else found.reshape(len(values), width)


def _array(values: Sequence[Any], width: int) -> Array | None:
    """[n] array of single values; value i belongs to graph i // width."""
    lacks = [_is_missing(value) for value in values]
    if all(lacks):
        return None
    dtypes = [
        None if lack else _dtype(value, i // width) for i, (value, lack) in enumerate(zip(values, lacks, strict=True))
    ]
    at, first = next((i, kind(dtype)) for i, dtype in enumerate(dtypes) if dtype is not None)
    for i, dtype in enumerate(dtypes):
        if dtype is not None and kind(dtype) != first:
            problem = f"has the label {values[i]!r} while graphs[{at // width}] has a {first}; convert one of them"
            raise DataError(problem, f"graphs[{i // width}]")
    if first == "string":
        return np.array(["" if lack else value for value, lack in zip(values, lacks, strict=True)], dtype=np.str_)
    if any(lacks):
        return np.array([np.nan if lack else value for value, lack in zip(values, lacks, strict=True)], np.float64)
    try:
        return np.array(values, dtype=np.result_type(*{dtype for dtype in dtypes if dtype is not None}))
    except OverflowError as error:
        raise DataError("labels are integers of at most 64 bits; give larger ones as strings") from error


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value))) or value == ""


def kind(dtype: np.dtype[Any]) -> str:
    """Return ``"string"``, ``"boolean"`` or ``"number"``."""
    return {"U": "string", "b": "boolean"}.get(dtype.kind, "number")


def _dtype(value: Any, i: int) -> np.dtype[Any]:
    for types, dtype in (
        (str, np.str_),
        (bool | np.bool_, np.bool_),
        (int | np.integer, np.int64),
        (float | np.floating, np.float64),
    ):
        if isinstance(value, types):
            return np.dtype(dtype)
    raise DataError(f"its label is {value!r}; a label is a number, a boolean or a string", f"graphs[{i}]")


def missing(y: Array) -> Array:
    """Return which values of ``y`` are missing, in its shape: NaN among numbers, the empty string among strings."""
    found = np.zeros(y.shape, dtype=bool)
    if y.dtype.kind == "f":
        np.isnan(y, out=found)
    elif y.dtype.kind == "U":
        np.equal(y, "", out=found)
    return found


def has_target(y: Array) -> Array:
    """[G] whether a graph has any value that is not missing."""
    return np.asarray(np.logical_not(missing(y)).reshape(len(y), -1).any(axis=1))


class Inferred(NamedTuple):
    """The task that targets pose, and what tells it."""

    task: Task
    reason: str


def infer_task(y: Array, where: str = "y") -> Inferred:
    """Return the task that ``y`` [G] or [G, T] poses.

    Strings, booleans and few distinct integers are classes; other numbers are regression targets; several columns with
    two values between them are binary targets of one multilabel task.
    """
    values = y[~missing(y)]
    distinct = np.unique(values)
    if y.ndim == 2 and y.shape[1] > 1:
        if len(distinct) <= 2 and (distinct.dtype.kind != "f" or _are_whole(distinct)):
            return Inferred("multilabel", f"{y.shape[1]} targets with the values {_listed(distinct)}")
        if distinct.dtype.kind == "U":
            raise DataError(f"has {len(distinct)} different strings; several targets are binary, or numbers", where)
        return Inferred("regression", f"{y.shape[1]} targets of numbers")
    if distinct.dtype.kind == "U":
        return Inferred("classification", "its values are strings")
    if distinct.dtype.kind == "b":
        return Inferred("classification", "its values are booleans")
    if not _are_whole(distinct):
        return Inferred("regression", "its values are numbers that are not integers")
    if len(distinct) > MANY_VALUES and len(values) < RARE * len(distinct):
        return Inferred("regression", f"{len(distinct):,} different integers in {len(values):,} graphs")
    return Inferred("classification", f"{len(distinct)} different integers")


def resolve_task(y: Array, task: str = "auto", where: str = "y") -> Inferred:
    """Return the task asked for, or :func:`infer_task` for ``"auto"``.

    Raises:
        ConfigError: there is no such task.
    """
    if task == "auto":
        return infer_task(y, where)
    for known in TASKS:
        if task == known:
            return Inferred(known, "as asked for")
    raise ConfigError(f"there is no task {task!r}; there are auto, {', '.join(TASKS)}")


def _are_whole(values: Array) -> bool:
    return bool((np.isfinite(values) & (values == np.rint(values))).all())


def _listed(values: Array) -> str:
    return " and ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values.tolist())


@dataclass(frozen=True)
class Classes:
    """Classes of a training set."""

    names: Array
    """[C] values in the source, ascending."""

    @classmethod
    def of(cls, y: Array, where: str = "y") -> Self:
        """Find the classes of ``y``.

        Args:
            y: [G] one value for each graph; missing ones are no class.
            where: name of y in error messages.

        Raises:
            DataError: there are fewer than two classes, or ``y`` contains numbers that are not integers.
        """
        values = np.asarray(y)
        if values.ndim != 1:
            raise DataError(f"has shape {values.shape}; a classifier takes one label for each graph", where)
        values = values[~missing(values)]
        if values.dtype.kind == "f" and not _are_whole(values):
            raise DataError("contains real numbers, not classes; a regressor takes them (--task regression)", where)
        names = np.unique(values)
        if len(names) < 2:
            found = f"the label {names[0]}" if len(names) else "no label"
            raise DataError(f"all graphs have {found}; a classifier needs at least two classes", where)
        if names.dtype.kind == "f":  # integers of which some are missing
            names = names.astype(np.int64)
        return cls(names)

    def __len__(self) -> int:
        return len(self.names)

    def encode(self, y: Array) -> Ints:
        """[G] class numbers 0..C−1; −1 for values that are missing or not among the classes."""
        values = np.asarray(y)
        if (values.dtype.kind == "U") != (self.names.dtype.kind == "U"):
            return np.full(values.shape, -1, dtype=np.int64)
        at = np.searchsorted(self.names, values)
        found = self.names[np.minimum(at, len(self.names) - 1)] == values
        return np.where(found, at, -1).astype(np.int64)

    def decode(self, codes: Array) -> Array:
        """[G] values of class numbers in the source."""
        names: Array = self.names[codes]
        return names


class ClassState(Page):
    """Classes as JSON: a type of NumPy, and values in ascending order."""

    dtype: Annotated[str, Field(pattern=r"^(<U[0-9]{1,6}|[<|][bi][1-8])$")]
    names: Annotated[list[str] | list[bool] | list[Label], Field(min_length=2, max_length=1 << 20)]

    @model_validator(mode="after")
    def _ascend_in_their_type(self) -> Self:
        kind_of_name = {"U": str, "b": bool, "i": int}[self.dtype[1]]
        if any(type(name) is not kind_of_name for name in self.names):
            raise ValueError(f"classes should be of type {self.dtype}")
        names: list[Any] = list(self.names)
        if np.array(names, dtype=self.dtype).tolist() != names or any(a >= b for a, b in pairwise(names)):
            raise ValueError("classes should ascend, each once")
        return self


class TargetState(Page):
    """A :class:`Target` as JSON."""

    task: Task
    names: Annotated[tuple[str, ...], Field(min_length=1, max_length=1 << 20)]
    classes: ClassState | None
    mean: list[Number] | None
    scale: list[Annotated[Number, Field(gt=0)]] | None
    columns: bool

    @model_validator(mode="after")
    def _agrees_with_the_task(self) -> Self:
        if (self.classes is None) != (self.task == "regression"):
            raise ValueError("classes belong to classification and multilabel")
        if self.task == "classification" and len(self.names) != 1:
            raise ValueError("classification has one target")
        if self.task == "multilabel" and (self.classes is None or len(self.classes.names) != 2):
            raise ValueError("a multilabel task has two classes")
        for part in (self.mean, self.scale):
            if (part is None) != (self.task != "regression") or (part is not None and len(part) != len(self.names)):
                raise ValueError("mean and scale of each target belong to regression")
        return self


@dataclass(frozen=True)
class Target:
    """The target of a model, determined by its training graphs."""

    task: Task
    names: tuple[str, ...]
    """[T] names of the targets; one for classification."""
    classes: Array | None = None
    """[C] for classification, [2] for multilabel, ascending; None for regression."""
    mean: Floats | None = None
    """[T] of each regression target over the training graphs, in the user's units."""
    scale: Floats | None = None
    """[T] standard deviation likewise; 1 for a target that is constant."""
    columns: bool = False
    """Whether ``y`` has a column for each target; predictions have the same shape."""

    @classmethod
    def of(cls, y: Array, task: Task, names: Sequence[str] = (), where: str = "y") -> Self:
        """Find classes, or mean and scale, of the training targets ``y`` [G] or [G, T].

        Raises:
            DataError: ``y`` does not pose this task.
        """
        y = np.asarray(y)
        if y.dtype.kind not in "Ubiuf":
            raise DataError(f"is of type {y.dtype}; targets are numbers, booleans or strings", where)
        table = y[:, None] if y.ndim == 1 else y
        titles = tuple(names) if len(names) == table.shape[1] else _default_names(table.shape[1])
        if not (~missing(table)).any():
            raise DataError("contains no value: all targets are missing", where)
        if task == "classification":
            if table.shape[1] != 1:
                raise DataError(f"has {table.shape[1]} columns; classification takes one (--task multilabel)", where)
            return cls(task, titles, Classes.of(table[:, 0], where).names)
        if task == "multilabel":
            return cls(task, titles, _binary_classes(table, where), columns=True)
        if table.dtype.kind == "U":
            raise DataError("contains strings; regression takes numbers", where)
        numbers = table.astype(np.float64)
        if np.isinf(numbers).any():
            raise DataError("contains infinity; regression takes finite numbers", where)
        if (np.abs(numbers) > LARGEST).any():
            raise DataError(
                f"contains {np.nanmax(np.abs(numbers)):.3g}, more than a float32 holds; use larger units", where
            )
        mean, scale = _moments(numbers)
        return cls(task, titles, None, mean, scale, columns=y.ndim == 2)

    @property
    def outputs(self) -> int:
        """Outputs of a network: C for classification, T otherwise."""
        return len(self.classes) if self.task == "classification" and self.classes is not None else len(self.names)

    def encode(self, y: Array) -> Array:
        """Encode targets for training.

        Returns:
            [G] class numbers, −1 for a missing or unknown class; or float64 [G, T], 0 and 1 (multilabel) or
            standardised values (regression), NaN where a value is missing.
        """
        y = np.asarray(y)
        if self.task == "classification":
            assert self.classes is not None
            return Classes(self.classes).encode(y.reshape(len(y)))
        table = y[:, None] if y.ndim == 1 else y
        if self.classes is not None:
            codes = Classes(self.classes).encode(table).astype(np.float64)
            return np.where(codes < 0, np.nan, codes)
        assert self.mean is not None
        assert self.scale is not None
        standardised: Floats = (table.astype(np.float64) - self.mean) / self.scale
        return standardised

    def decode(self, scores: Floats) -> Array:
        """Return the source's values for ``scores`` [n, ·]: probabilities, or values in the user's units.

        The most probable class; the second class where its probability exceeds one half; or the values themselves.
        """
        if self.classes is None:
            return scores if self.columns else scores[:, 0]
        chosen = scores.argmax(axis=1) if self.task == "classification" else (scores > 0.5).astype(np.int64)
        return Classes(self.classes).decode(chosen)

    def in_units(self, outputs: Floats) -> Floats:
        """[n, T] values in the user's units from a regression network's standardised outputs."""
        assert self.mean is not None
        assert self.scale is not None
        values: Floats = outputs.astype(np.float64) * self.scale + self.mean
        return values

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, from which :meth:`from_dict` makes the same target."""
        classes = None if self.classes is None else {"dtype": self.classes.dtype.str, "names": self.classes.tolist()}
        return {
            "task": self.task,
            "names": list(self.names),
            "classes": classes,
            "mean": None if self.mean is None else self.mean.tolist(),
            "scale": None if self.scale is None else self.scale.tolist(),
            "columns": self.columns,
        }

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Restore what :meth:`to_dict` returned.

        Raises:
            ModelError: it is not that.
        """
        found = validated(TargetState, values, "the target is damaged", ModelError)
        classes = None if found.classes is None else np.array(found.classes.names, dtype=found.classes.dtype)
        mean, scale = (None if part is None else np.array(part) for part in (found.mean, found.scale))
        return cls(found.task, found.names, classes, mean, scale, found.columns)


def _default_names(count: int) -> tuple[str, ...]:
    return ("y",) if count == 1 else tuple(f"y{i}" for i in range(count))


def _binary_classes(table: Array, where: str) -> Array:
    """[2] the two values that occur in all columns together."""
    found = np.unique(table[~missing(table)])
    if len(found) > 2:
        raise DataError(f"has {len(found)} different values; targets of a multilabel task are binary", where)
    if len(found) < 2:
        raise DataError(f"all known values are {found[0]}; a multilabel task has two", where)
    return found.astype(np.int64) if found.dtype.kind == "f" and _are_whole(found) else found


def _moments(numbers: Floats) -> tuple[Floats, Floats]:
    """[T] mean and standard deviation of each column over its known values; 0 and 1 for a column without any."""
    known = ~np.isnan(numbers)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, numbers, 0.0).sum(axis=0) / count
    variance = (np.where(known, numbers - mean, 0.0) ** 2).sum(axis=0) / count
    scale = np.sqrt(variance)
    return mean, np.where(scale > 1e-12 * np.maximum(np.abs(mean), 1e-300), scale, 1.0)
