"""An array that grows on disk: a plain .npy file to which rows are appended, and whose header is completed last."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike

from gcaps.data.arrays import Array

STRIDE = 1 << 20
"""Rows that are filled in or converted together."""


class GrowingArray:
    """Rows of one type and width, appended to ``file``; :meth:`close` makes it what ``np.save`` would have written.

    NumPy pads the header of an .npy file so that the number of rows can be changed in place.

    Args:
        file: the .npy file, which must not exist.
        dtype: type of the entries.
        width: shape of a row, () for a single number.
    """

    def __init__(self, file: Path, dtype: DTypeLike, width: tuple[int, ...] = ()) -> None:
        self.file, self.dtype, self.width, self.rows = file, np.dtype(dtype), tuple(width), 0
        self._stream: IO[bytes] = file.open("xb+")
        self._write_header()
        self._header = self._stream.tell()

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, columns)."""
        return (self.rows, *self.width)

    def append(self, rows: Array) -> None:
        """Rows of this width; where their type is wider, all that stand there become of the wider type."""
        wider = np.promote_types(self.dtype, rows.dtype)
        if wider != self.dtype:
            self._widen(wider)
        self._stream.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self.rows += len(rows)

    def fill(self, count: int, value: float) -> None:
        """``count`` rows of the same value."""
        for first in range(0, count, STRIDE):
            self.append(np.full((min(STRIDE, count - first), *self.width), value, dtype=self.dtype))

    def mapped(self) -> Array:
        """The rows so far, to be read or changed in place; one must not append while they are in use."""
        self._stream.flush()
        if not self.rows:
            return np.zeros(self.shape, dtype=self.dtype)
        return np.memmap(self.file, dtype=self.dtype, mode="r+", offset=self._header, shape=self.shape)

    def close(self) -> None:
        """Complete the header."""
        self._stream.seek(0)
        self._write_header()
        self._stream.close()

    def discard(self) -> None:
        """Let go of the file, which stays incomplete."""
        with suppress(OSError):  # what is still to be written does not matter
            self._stream.close()

    def _write_header(self) -> None:
        facts = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": self.shape}
        npy.write_array_header_1_0(self._stream, facts)

    def _widen(self, dtype: np.dtype[np.generic]) -> None:
        narrow, rows = self.mapped(), self.rows
        self._stream.close()
        spare = self.file.with_suffix(".narrow")
        self.file.rename(spare)
        self.__init__(self.file, dtype, self.width)  # type: ignore[misc]
        for first in range(0, rows, STRIDE):
            self.append(narrow[first : first + STRIDE].astype(dtype))
        del narrow
        spare.unlink()
