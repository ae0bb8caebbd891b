"""Fields collected graph by graph from objects, joined and checked as one array. Errors call a graph ``graphs[i]``."""

from __future__ import annotations

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.errors import DataError


def place(graph: int | np.integer) -> str:
    """How errors call a graph of a list."""
    return f"graphs[{int(graph)}]"


class Column:
    """One field of all graphs: each brings a matrix with a row for each node or edge, or all bring none.

    A graph without rows (no edges, say) has nothing to bring and may do either.

    Args:
        what: how errors call the field.
        kind: ``int`` for labels, ``float`` for attributes and weights.
    """

    def __init__(self, what: str, kind: type[int] | type[float]) -> None:
        self.what, self.kind = what, kind
        self._tables: list[Array | None] = []
        self._rows: list[int] = []

    def add(self, table: Array | None, rows: int) -> None:
        """The next graph's field, which should have ``rows`` rows."""
        if table is not None and len(table) != rows:
            raise DataError(f"{self.what}: {len(table)} rows where {rows} are due", place(len(self._rows)))
        if table is not None and table.shape[1] == 0:
            table = None
        self._tables.append(table)
        self._rows.append(rows)

    def joined(self) -> Array | None:
        """[rows of all graphs, columns], or None where no graph has the field."""
        width: int | None = None
        parts: list[Array] = []
        first = 0
        for i, table in enumerate(self._tables):
            if table is None:
                continue
            if width is None:
                width, first = table.shape[1], i
            elif table.shape[1] != width:
                problem = f"{self.what}: {table.shape[1]} columns; {place(first)} has {width}"
                raise DataError(problem, place(i))
            parts.append(table)
        if width is None:
            return None
        missing = [
            i for i, (table, rows) in enumerate(zip(self._tables, self._rows, strict=True)) if table is None and rows
        ]
        if missing:
            problem = f"has no {self.what} while {place(first)} has; give it to all graphs or to none"
            raise DataError(problem, place(missing[0]))
        joined = np.concatenate(parts)
        return joined.astype(np.int64, copy=False) if self.kind is int else joined


def require_finite(values: Array | None, graph_of: Ints, what: str) -> None:
    """DataError at the first graph whose ``values`` [rows, columns] hold NaN or infinity."""
    if values is None or np.isfinite(values).all():
        return
    row, column = np.argwhere(~np.isfinite(values))[0]
    raise DataError(f"{what} holds {values[row, column]} in column {column}; replace it", place(graph_of[row]))


def require_positive(weight: Floats, graph_of: Ints) -> None:
    """DataError at the first graph with a weight [rows] that is not a positive number."""
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight > 0)))
    if len(wrong):
        problem = f"has an edge of weight {weight[wrong[0]]}; weights are positive, an edge of weight 0 is no edge"
        raise DataError(problem, place(graph_of[wrong[0]]))
