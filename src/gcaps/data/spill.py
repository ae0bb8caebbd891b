"""Rows that do not fit in memory: read so many at a time, or sorted into files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gcaps.data.arrays import Array, Ints
from gcaps.data.assemble import EdgeRows


class RowReader:
    """Rows that come in strides of any length, taken in numbers of one's own choice.

    Args:
        name: what the table is called.
        strides: arrays [·, columns], at least one.
    """

    def __init__(self, name: str, strides: Iterator[Array]) -> None:
        self.name = name
        self._strides = strides
        self._rest: Array | None = None
        self._taken = 0

    def take(self, count: int) -> Array:
        """The next ``count`` rows; fewer where there are no more."""
        rest = next(self._strides) if self._rest is None else self._rest
        parts, missing = [rest[:count]], count - len(rest)
        while missing > 0 and (following := next(self._strides, None)) is not None:
            rest = following
            parts.append(rest[:missing])
            count, missing = missing, missing - len(rest)
        self._rest = rest[count:]
        taken = parts[0] if len(parts) == 1 else np.concatenate(parts)
        self._taken += len(taken)
        return taken

    def count_all(self) -> int:
        """How many rows there are in all; afterwards none are left."""
        left = sum(map(len, self._strides)) + (0 if self._rest is None else len(self._rest))
        self._rest = np.zeros(0)
        return self._taken + left


class Spill:
    """Edges sorted into one file a block, or a few, each in the order in which they came.

    Args:
        folder: where the files go.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._like: dict[str, Array] = {}

    def add(self, block_of: Ints, rows: EdgeRows) -> None:
        """Each row to its block's files. A file is opened for as long as it takes: there may be thousands."""
        order = np.argsort(block_of, kind="stable")
        blocks, starts = np.unique(block_of[order], return_index=True)
        for block, which in zip(blocks, np.split(order, starts[1:]), strict=True):
            for key, values in vars(rows.take(which)).items():
                if values is not None:
                    self._like.setdefault(key, _wide(values[:0]))
                    with self._file(int(block), key).open("ab") as file:
                        file.write(np.ascontiguousarray(values, dtype=self._like[key].dtype).data)

    def pop(self, block: int) -> EdgeRows:
        """All rows of a block, whose files are removed."""
        parts: dict[str, Array] = {"source": np.zeros(0, dtype=np.int64), "target": np.zeros(0, dtype=np.int64)}
        for key, like in self._like.items():
            file = self._file(block, key)
            parts[key] = like
            if file.exists():
                parts[key] = np.fromfile(file, dtype=like.dtype).reshape(-1, *like.shape[1:])
                file.unlink()
        return EdgeRows(**parts)

    def _file(self, block: int, key: str) -> Path:
        return self.folder / f"{block}.{key}"


def _wide(values: Array) -> Array:
    """Integers as int64: a stride with small ones may come as int32."""
    return values.astype(np.int64) if values.dtype.kind == "i" else values
