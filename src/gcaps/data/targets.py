"""Targets: values as in the source, and their encoding as class numbers.

``GraphSet.y`` contains the source's values. Estimators train on class numbers 0..C−1; :class:`Classes` converts between
the two, so that ``predict`` returns the source's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gcaps.data.arrays import Array, Ints
from gcaps.errors import DataError


def target_array(values: Sequence[Any]) -> Array | None:
    """[G] array of one value for each graph; None if no graph has one.

    Strings and booleans are kept; integers become int64, and numbers that are not all integers float64.

    Raises:
        DataError: only some graphs have a value, or they mix strings, booleans and numbers; the message names the
            graph ``graphs[i]``.
    """
    missing = [i for i, value in enumerate(values) if value is None]
    if len(missing) == len(values):
        return None
    if missing:
        raise DataError("has no label while others have one; label all graphs or none", f"graphs[{missing[0]}]")
    dtypes = [_dtype(value, i) for i, value in enumerate(values)]
    first = kind(dtypes[0])
    for i, dtype in enumerate(dtypes):
        if kind(dtype) != first:
            raise DataError(
                f"has the label {values[i]!r} while graphs[0] has a {first}; convert one of them", f"graphs[{i}]"
            )
    try:
        return np.array(values, dtype=np.result_type(*set(dtypes)) if first != "string" else np.str_)
    except OverflowError as error:
        raise DataError("labels are integers of at most 64 bits; give larger ones as strings") from error


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


@dataclass(frozen=True)
class Classes:
    """Classes of a training set."""

    names: Array
    """[C] values in the source, ascending."""

    @classmethod
    def of(cls, y: Array, where: str = "y") -> Self:
        """Find the classes of ``y``.

        Args:
            y: [G] one value for each graph.
            where: name of y in error messages.

        Raises:
            DataError: there are fewer than two classes, or ``y`` contains numbers that are not integers.
        """
        values = np.asarray(y)
        if values.ndim != 1:
            raise DataError(f"has shape {values.shape}; a classifier takes one label for each graph", where)
        if values.dtype.kind == "f" and not (np.isfinite(values) & (values == np.rint(values))).all():
            raise DataError("contains real numbers, not classes; a classifier needs classes", where)
        names = np.unique(values)
        if len(names) < 2:
            found = f"the label {names[0]}" if len(names) else "no label"
            raise DataError(f"all graphs have {found}; a classifier needs at least two classes", where)
        return cls(names)

    def __len__(self) -> int:
        return len(self.names)

    def encode(self, y: Array) -> Ints:
        """[G] class numbers 0..C−1; −1 for values that are not among the classes."""
        values = np.asarray(y)
        if (values.dtype.kind == "U") != (self.names.dtype.kind == "U"):
            return np.full(len(values), -1, dtype=np.int64)
        at = np.searchsorted(self.names, values)
        found = self.names[np.minimum(at, len(self.names) - 1)] == values
        return np.where(found, at, -1).astype(np.int64)

    def decode(self, codes: Array) -> Array:
        """[G] values of class numbers in the source."""
        names: Array = self.names[codes]
        return names
