"""Node and edge data given one by one in dictionaries, as tables of labels, attributes and weights.

Which key is what is decided over the whole set: by its name where that is usual, else by its values.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.assemble import Column, place
from gcaps.data.labels import LabelNames
from gcaps.errors import DataError, DataWarning

LABEL_KEYS = (
    "label", "labels", "type", "types", "node_label", "edge_label", "node_type", "edge_type", "kind", "element",
    "symbol", "atom", "category", "bond", "bond_type",
)  # fmt: skip
"""Node and edge data whose integers are labels; other integers are attributes."""
ATTRIBUTE_KEYS = ("attributes", "attribute", "attr", "x", "features", "feature", "feat")
MOST_NAMES = 50
"""A string field with more values than this, and half as many as there are nodes, holds names and not labels."""
Row: TypeAlias = dict[str, Any]
Owner: TypeAlias = Literal["node", "edge"]


class Fields(NamedTuple):
    """Data of all nodes, or of all edges, of a set."""

    labels: Ints | None
    attributes: Floats | None
    weight: Floats | None


def fields_of(rows: Sequence[Sequence[Row]], owner: Owner, names: LabelNames) -> Fields:
    """Return the fields of the nodes (or edges) of each graph; codes of string labels are added to ``names``.

    Raises:
        DataError: a field of a usual name is malformed or missing for some; the message names the graph ``graphs[i]``.
    """
    found: dict[str, list[Array]] = {"label": [], "attribute": [], "weight": []}
    ignored: dict[str, str] = {}
    for key in _ordered(dict.fromkeys(key for graph in rows for row in graph for key in row)):
        kind, why = _kind(key, owner, rows)
        if kind == "ignored":
            ignored[key] = why
            continue
        column = Column(f"{owner} {key!r}", int if kind == "label" else float)
        for i, graph in enumerate(rows):
            column.add(_gathered(graph, owner, key, kind, i, names), len(graph))
        table = column.joined()
        if table is not None:
            found[kind].append(table)
    if ignored:
        told = ", ".join(f"{key!r} ({why})" for key, why in ignored.items())
        warnings.warn(f"data of {owner}s that are not used: {told}", DataWarning, stacklevel=3)
    joined = {kind: np.concatenate(tables, axis=1) if tables else None for kind, tables in found.items()}
    weight = joined["weight"]
    return Fields(joined["label"], joined["attribute"], None if weight is None else weight[:, 0])


def _ordered(keys: dict[str, None]) -> list[str]:
    """Usual names first, in their order; then the others as they come."""
    usual = [key for key in (*LABEL_KEYS, *ATTRIBUTE_KEYS) if key in keys]
    return usual + [key for key in keys if key not in usual]


def _kind(key: str, owner: Owner, rows: Sequence[Sequence[Row]]) -> tuple[str, str]:
    """Return ``"label"``, ``"attribute"``, ``"weight"`` or ``"ignored"``, and in the last case why."""
    if owner == "edge" and key == "weight":
        return "weight", ""
    if key in ATTRIBUTE_KEYS:
        first = next(_values(key, rows), None)
        return ("label" if isinstance(first, str) else "attribute"), ""
    if key in LABEL_KEYS:
        values = list(_values(key, rows))
        real = key not in ("label", "labels") and any(isinstance(v, float | np.floating) for v in values)
        return ("attribute" if real else "label"), ""
    total, values = sum(map(len, rows)), list(_values(key, rows))
    if len(values) < total:
        return "ignored", f"{total - len(values):,} of {total:,} lack it"
    if all(isinstance(value, str) for value in values):
        distinct = len(set(values))
        if distinct > MOST_NAMES and 2 * distinct > total:
            return "ignored", "nearly every one has a string of its own"
        return "label", ""
    try:
        table = np.array(values)
    except (ValueError, TypeError):
        return "ignored", "values differ in length"
    if table.dtype.kind not in "fiub" or table.ndim > 2:
        return "ignored", f"values such as {str(values[0])[:40]!r} are neither numbers nor strings"
    return "attribute", ""


def _values(key: str, rows: Sequence[Sequence[Row]]) -> Iterator[Any]:
    return (row[key] for row in chain.from_iterable(rows) if row.get(key) is not None)


def _gathered(rows: Sequence[Row], owner: Owner, key: str, kind: str, i: int, names: LabelNames) -> Array | None:
    """[rows, columns] values under ``key``; None if no row has it."""
    values = [row[key] for row in rows if row.get(key) is not None]
    if not values:
        return None
    if len(values) != len(rows):
        missing = len(rows) - len(values)
        raise DataError(f"{missing} of {len(rows)} {owner}s have no {key!r}; give it to all or to none", place(i))
    try:
        table = np.array(values)
    except (ValueError, TypeError) as error:
        raise DataError(f"the {key!r} of its {owner}s differ in length", place(i)) from error
    table = table[:, None] if table.ndim == 1 else table
    if kind == "label" and table.dtype.kind == "U" and table.ndim == 2:
        return _coded(values, table, owner, key, i, names)
    kinds = "iub" if kind == "label" else "fiub"
    if table.ndim != 2 or (table.dtype.kind not in kinds and table.size) or (kind == "weight" and table.shape[1] != 1):
        wanted = {"label": "an integer or a string", "weight": "a number"}.get(kind, "a number or several")
        raise DataError(f"the {key!r} of a {owner} is {wanted}, not {values[0]!r}; convert it first", place(i))
    if kind == "label":
        return table.astype(np.int64)
    return table if table.dtype.kind == "f" else table.astype(np.float64)


def _coded(values: list[Any], table: Array, owner: Owner, key: str, i: int, names: LabelNames) -> Ints:
    """[rows, columns] codes of string labels."""
    entries = values if np.ndim(values[0]) == 0 else [entry for row in values for entry in row]
    other = next((entry for entry in entries if not isinstance(entry, str)), None)
    if other is not None:
        problem = f"the {key!r} of its {owner}s mixes strings and {other!r}; make all of them strings or integers"
        raise DataError(problem, place(i))
    distinct, inverse = np.unique(table, return_inverse=True)
    codes = np.array([names.code(str(text)) for text in distinct], dtype=np.int64)
    return codes[inverse.reshape(table.shape)]
