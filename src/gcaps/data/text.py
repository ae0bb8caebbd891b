"""Tables of numbers in text files, parsed in large strides and still strict to the line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import IO

import numpy as np

from gcaps.data.arrays import Array
from gcaps.errors import DataError

_STRIDE = 1 << 24
_COMMA_TO_SPACE = bytes.maketrans(b",", b" ")
_DTYPE = {"integer": np.int64, "number": np.float64}
_LEGAL = {"integer": b"0123456789-+ \t\r,\n", "number": b"0123456789-+.eE \t\r,\n"}
_FIELD = {
    "integer": re.compile(rb"[ \t]*[-+]?\d{1,18}[ \t]*"),
    "number": re.compile(rb"[ \t]*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[ \t]*"),
}


def read_table(stream: IO[bytes], file: str, kind: str, columns: int | None = None) -> Array:
    """All rows of a comma-separated table as an array [rows, columns].

    Args:
        stream: the text; it is read once, 16 MiB at a time, so memory is that of the numbers.
        file: how errors call it.
        kind: ``"integer"`` (int64, or int32 where all values fit) or ``"number"`` (float64).
        columns: how many a row must have; by default as many as the first row.

    Raises:
        DataError: at the first line that is not ``columns`` numbers of that kind, all finite.
    """
    return np.concatenate(list(table_strides(stream, file, kind, columns)))


def table_strides(stream: IO[bytes], file: str, kind: str, columns: int | None = None) -> Iterator[Array]:
    """The rows of :func:`read_table` in arrays of some hundred thousand, one after the other; always at least one."""
    rows = 0
    while chunk := stream.read(_STRIDE):
        chunk += stream.readline()
        if not chunk.endswith(b"\n"):
            chunk += b"\n"
        if not chunk.strip():
            continue
        if columns is None:
            columns = chunk[: chunk.index(b"\n")].count(b",") + 1
        table = _parse(chunk.rstrip() + b"\n", kind, columns)
        if table is None:
            raise _first_error(chunk, file, rows, kind, columns)
        rows += len(table)
        yield table
    if not rows:
        raise DataError("is empty", file)


def _parse(chunk: bytes, kind: str, columns: int) -> Array | None:
    """The chunk's numbers, or None where any of its lines is not as it should be.

    Every line has columns−1 commas and no empty field, so there are at least as many numbers as fields; where there
    are exactly as many, each field is one number.
    """
    if chunk.translate(None, _LEGAL[kind]):
        return None
    bare = chunk.translate(None, b" \t\r")
    if bare.startswith((b",", b"\n")) or any(pair in bare for pair in (b",,", b",\n", b"\n,", b"\n\n")):
        return None
    separators = bare.translate(None, b"0123456789-+.eE")
    line = b"," * (columns - 1) + b"\n"
    if separators != line * (len(separators) // columns):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy's word for "stopped before the end"
        try:
            numbers = np.fromstring(chunk.translate(_COMMA_TO_SPACE), dtype=_DTYPE[kind], sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    if len(numbers) != len(separators) or not np.isfinite(numbers).all():
        return None
    if kind == "integer":
        low, high = numbers.min(), numbers.max()  # not np.abs: that of the smallest int64 is negative
        if low <= -(10**18) or high >= 10**18:
            return None
        if low >= -(2**31) and high < 2**31:
            numbers = numbers.astype(np.int32)
    return numbers.reshape(-1, columns)


def _first_error(chunk: bytes, file: str, rows: int, kind: str, columns: int) -> DataError:
    """The error that says which line of the chunk is at fault; ``rows`` lines came before it."""
    for number, line in enumerate(chunk.rstrip().split(b"\n"), start=rows + 1):
        entries = line.rstrip(b"\r").split(b",")
        if not line.strip():
            return DataError("is a blank line between rows; delete it", file, number)
        for entry in entries:
            if not _FIELD[kind].fullmatch(entry) or not np.isfinite(float(entry)):
                shown = entry.decode("utf-8", "replace").strip()[:40]
                wanted = "an integer" if kind == "integer" else "a finite number"
                return DataError(f"{shown!r} is not {wanted}", file, number)
        if len(entries) != columns:
            return DataError(f"has {len(entries)} columns where {columns} are due", file, number)
    return DataError("is not a table of numbers", file, rows + 1)
