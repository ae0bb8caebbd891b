"""Files of vectors: NPZ, CSV and parquet, each written piece by piece and moved into place when it is complete."""

from __future__ import annotations

import csv
import io
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np

from gcaps.data.arrays import Array, Floats
from gcaps.errors import ConfigError
from gcaps.escaping import csv_cell
from gcaps.files import output_text, replacing

ENDINGS = (".npz", ".csv", ".parquet")


class Rows(NamedTuple):
    """Graphs with their predictions and vectors."""

    ids: list[str]
    header: list[str]
    """Names of the columns of predictions."""
    cells: list[list[Any]]
    """[n] the predictions of each graph."""
    predictions: Array
    """[n] or [n, T] as the estimator predicts them."""
    scores: Floats
    """[n, ·] probabilities, or values."""
    vectors: Floats
    """[n, d]"""


class VectorFile(Protocol):
    """Interface of the writers."""

    def add(self, rows: Rows) -> None:
        """Write some rows."""
        ...


def writer_of(path: Path) -> Callable[[Path], Any]:
    """Return the writer of a file of vectors, by its suffix.

    Raises:
        ConfigError: there is no such kind of file.
    """
    writers = {".npz": _npz, ".csv": _csv, ".parquet": _parquet}
    if path.suffix.lower() not in writers:
        raise ConfigError(f"{path}: the name ends in {', '.join(ENDINGS)}, or .html for a map")
    return writers[path.suffix.lower()]


class _Npz:
    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._ids = file, [np.zeros(0, dtype="U1")]
        self._predictions: list[Array] = []
        self._scores: list[Floats] = []
        self.header: list[str] = []
        self._dtype: np.dtype[Any] = np.dtype(np.float32)
        self._width = 0

    def add(self, rows: Rows) -> None:
        self._ids.append(np.array(rows.ids, dtype=np.str_))
        self._predictions.append(rows.predictions)
        self._scores.append(rows.scores)
        self.header, self._dtype, self._width = rows.header, rows.vectors.dtype, rows.vectors.shape[1]
        self._file.write(np.ascontiguousarray(rows.vectors).tobytes())

    def finish(self, goal: Path) -> None:
        """Write the archive: predictions are in memory, vectors are copied from the temporary file."""
        ids = np.concatenate(self._ids)
        small = {"ids": ids, "columns": np.array(self.header, dtype=np.str_)}
        if self._predictions:
            small |= {"predictions": np.concatenate(self._predictions), "scores": np.concatenate(self._scores)}
        with zipfile.ZipFile(goal, "w", zipfile.ZIP_STORED) as archive:
            for name, array in small.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                    np.lib.format.write_array(part, array, allow_pickle=False)
            header = {"descr": self._dtype.str, "fortran_order": False, "shape": (len(ids), self._width)}
            with archive.open("vectors.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array_header_1_0(part, header)
                self._file.seek(0)
                while block := self._file.read(1 << 22):
                    part.write(block)


@contextmanager
def _npz(path: Path) -> Iterator[VectorFile]:
    with replacing(path) as draft, tempfile.TemporaryFile(dir=draft.parent) as file:
        made = _Npz(file)
        yield made
        made.finish(draft)


class _Csv:
    def __init__(self, text: IO[str]) -> None:
        self._text, self._begun = text, False

    def add(self, rows: Rows) -> None:
        piece = io.StringIO()
        writer = csv.writer(piece, lineterminator="\n")
        if not self._begun:
            writer.writerow(["graph", *map(csv_cell, rows.header), *_columns(rows.vectors)])
            self._begun = True
        for name, cells, vector in zip(rows.ids, rows.cells, rows.vectors.tolist(), strict=True):
            writer.writerow([csv_cell(name), *map(csv_cell, cells), *(f"{value:.7g}" for value in vector)])
        self._text.write(piece.getvalue())


@contextmanager
def _csv(path: Path) -> Iterator[VectorFile]:
    with output_text(path) as text:
        yield _Csv(text)


class _Parquet:
    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path, self._stack = path, stack
        self._writer: Any = None

    def add(self, rows: Rows) -> None:
        import pyarrow
        from pyarrow import parquet

        columns: dict[str, Any] = {"graph": rows.ids}
        for place, name in enumerate(rows.header):
            values = [row[place] for row in rows.cells]
            if name.startswith("p(") or not any(one.startswith("p(") for one in rows.header):
                columns[name] = [float(value) for value in values]  # a probability, or a value in regression
            else:
                columns[name] = values if all(isinstance(one, int) for one in values) else list(map(str, values))
        columns |= dict(zip(_columns(rows.vectors), rows.vectors.T, strict=True))
        table = pyarrow.table(columns)
        if self._writer is None:
            self._writer = self._stack.enter_context(parquet.ParquetWriter(self._path, table.schema))
        self._writer.write_table(table.cast(self._writer.schema))


@contextmanager
def _parquet(path: Path) -> Iterator[VectorFile]:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ConfigError("writing parquet needs pyarrow: pip install 'gcaps[tables]'") from error
    with replacing(path) as draft, ExitStack() as stack:
        yield _Parquet(draft, stack)


def _columns(vectors: Floats) -> list[str]:
    return [f"v{place}" for place in range(vectors.shape[1])]
