"""Join sets whose graphs have the same fields, so that they can be predicted together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gcaps.data.graphset import OWNERS, GraphSet

_POINTERS = ("ptr", "rowptr")
_LEFT_OUT = ("y", "given_ids")


def fields_of(graphs: GraphSet) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """Return the names, kinds of numbers and widths of fields, which sets to be joined must share."""
    found = {name: array for name, array in graphs.arrays().items() if name in OWNERS and name not in _LEFT_OUT}
    columns = tuple(("columns", name, ()) for name in sorted(graphs.columns))
    return (
        *((name, array.dtype.kind, tuple(array.shape[1:])) for name, array in sorted(found.items())),
        *columns,
        ("preparation", str(graphs.preparation), ()),
    )


def join_sets(sets: Sequence[GraphSet]) -> GraphSet:
    """Return the graphs of several sets of the same fields (:func:`fields_of`), one set after the other.

    Targets, ids, self-loops and what was skipped are left out.
    """
    first = sets[0]
    names = [n for n in first.arrays() if n in OWNERS and n not in (*_LEFT_OUT, *_POINTERS)]
    arrays: dict[str, Any] = {n: np.concatenate([getattr(one, n) for one in sets]) for n in names}
    pointers = {n: _joined_pointers([getattr(one, n) for one in sets]) for n in _POINTERS}
    columns = {n: np.concatenate([one.columns[n] for one in sets]) for n in first.columns}
    labels = {code: text for one in sets for code, text in one.label_names.items()}
    return GraphSet(
        name=first.name, columns=columns, label_names=labels, preparation=first.preparation, **pointers, **arrays
    )


def _joined_pointers(parts: Sequence[Any]) -> Any:
    lasts = np.cumsum([0, *(int(part[-1]) for part in parts)])
    moved = [part[1:] + last for part, last in zip(parts, lasts[:-1], strict=True)]
    return np.concatenate([np.zeros(1, dtype=np.int64), *moved])
