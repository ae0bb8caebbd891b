"""Read tables of text: CSV, TSV, lists of SMILES and DataFrames; encoding and separator are found by content."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, ClassVar, TypeAlias, cast

from gcaps.data.molecules.parsing import Form
from gcaps.errors import DataError, DataWarning
from gcaps.files import MAX_PARSED_BYTES, max_line, max_unpacked, opened, require_file, unpacks_to

TABLES = (".csv", ".tsv", ".tab")
LISTS = (".smi", ".smiles", ".txt", ".ism", ".cxsmiles")
SAMPLE = 1000
"""Number of rows that are used to find columns by content."""
_SEPARATORS = (",", "\t", ";", "|")
_SAMPLE_BYTES = 1 << 16
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the amount done and the total."""


def ending(path: Path) -> str:
    """Ending of a file name in lower case without ``.gz``: ``".csv"`` for HIV.csv.gz."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def stem(path: Path) -> str:
    """Name of the set in a file: ``"HIV"`` for HIV.csv.gz."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return name[: len(name) - len(Path(name).suffix)] or name


class Table:
    """Rows of text under named columns.

    Args:
        place: file, or name of the object, in error messages.
        name: of the set.
        names: of the columns.
    """

    form: Form = "smiles"
    """Form of molecules: SMILES, SDF record, or RDKit molecules in the first column."""
    decimal_comma: bool = False
    """Whether ``0,5`` is a number, as in tables whose columns are separated by semicolons."""
    has_header: bool = True
    option: ClassVar[str] = "--{}"
    """Spelling of the options of reading in error messages."""

    def __init__(self, place: str, name: str, names: Sequence[str]) -> None:
        self.place, self.name, self.names = place, name, list(names)

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the line (counted from 1) and the cells of each row, from the beginning at every call."""
        raise NotImplementedError

    def error(self, problem: str, line: int | None = None) -> DataError:
        """Return the error for a line, or for the whole table."""
        return DataError(problem, self.place, line)

    def sample(self) -> list[list[Any]]:
        """Return the first rows that have as many cells as there are columns."""
        return [cells for _, cells in islice(self.rows(), SAMPLE) if len(cells) == len(self.names)]

    def progress(self) -> tuple[int, int]:
        """Return the amount read and the total."""
        return 0, 1


class _Lines:
    """Lines of a text, each of at most so many characters as :func:`gcaps.files.max_line` says."""

    def __init__(self, text: IO[str], table: Table) -> None:
        self._text, self._table = text, table

    def __iter__(self) -> Iterator[str]:
        limit = max_line()
        number = 0
        while line := self._text.readline(limit + 1):
            number += 1
            if len(line) > limit:
                raise self._table.error(f"has a line of more than {limit:,} characters; refused", number)
            yield line

    def read(self, size: int) -> str:
        """Return the beginning."""
        return self._text.read(size)


class TextTable(Table):
    """Table in a file whose first line names the columns.

    Args:
        path: file of comma-, tab-, semicolon- or bar-separated values, possibly gzipped.

    Raises:
        DataError: the file does not exist, is no text or is empty.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._read = 0
        require_file(self.path)
        super().__init__(str(self.path), stem(self.path), [])
        self.encoding = self._encoding()
        with self.text() as text:
            sample = text.read(_SAMPLE_BYTES)
        if not sample.strip():
            raise self.error("is empty; its first line should name its columns")
        self.read_header(sample)

    def read_header(self, sample: str) -> None:
        """Set separator and names from the beginning of the text."""
        self.separator = separator_of(sample)
        self.decimal_comma = self.separator == ";"
        with self._checked(1):
            self.names = [cell.strip() for cell in next(self._records(io.StringIO(sample, newline="")))[1]]
        twice = sorted({name for name in self.names if name and self.names.count(name) > 1})
        if twice:
            raise self.error(f"has two columns called {twice[0]!r}; rename one of them", 1)

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the line and the cells of each row below the header; blank lines are left out."""
        with self.text() as text:
            records = self._records(text)
            if self.has_header:
                next(records, None)
            yield from records

    def _records(self, text: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(text, delimiter=self.separator, strict=True)
        with self._checked(reader):
            for cells in reader:
                if cells:
                    yield reader.line_num, cells

    @contextmanager
    def _checked(self, reader: Any) -> Iterator[None]:
        try:
            yield
        except csv.Error as error:
            line = reader if isinstance(reader, int) else reader.line_num
            raise self.error(f"is not a table ({error})", line) from error

    @contextmanager
    def text(self) -> Iterator[_Lines]:
        """Open the file as text, whose lines are of a limited length."""
        with self.binary() as binary, io.TextIOWrapper(binary, encoding=self.encoding, newline="") as text:
            yield _Lines(text, self)

    @contextmanager
    def binary(self) -> Iterator[IO[bytes]]:
        """Open the file as bytes, unpacked; damage found while reading becomes a DataError."""
        try:
            with opened(self.path) as raw:
                packed = raw.read(2) == b"\x1f\x8b"
                raw.seek(0)
                self._raw = raw
                if packed or self.path.name.lower().endswith(".gz"):
                    with gzip.GzipFile(fileobj=raw) as unpacked:
                        yield cast(IO[bytes], unpacked)
                else:
                    yield raw
        except (OSError, EOFError, UnicodeError, zlib.error) as error:
            raise self.error(f"cannot be read ({error}); fetch it again") from error

    def progress(self) -> tuple[int, int]:
        """Return the number of bytes read and the size of the file."""
        return (0 if self._raw.closed else self._raw.tell()), self.path.stat().st_size

    def _encoding(self) -> str:
        """Return the encoding; warns if the text is neither UTF-8 nor UTF-16 with its mark."""
        packed, size = self.path.stat().st_size, 0
        limit = max_unpacked(packed)
        decoder = codecs.getincrementaldecoder("utf-8")()
        encoding = "utf-8-sig"
        with self.binary() as binary:
            first = True
            while chunk := binary.read(1 << 20):
                if first:
                    if chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                        return "utf-16"
                    self._require_text(chunk)
                    first = False
                size += len(chunk)
                if size > max(limit, packed):
                    raise self.error(unpacks_to(None, packed))
                if encoding == "utf-8-sig":
                    try:
                        decoder.decode(chunk)
                    except UnicodeDecodeError:
                        encoding = "latin-1"
        if encoding == "utf-8-sig":
            try:
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:  # the last character is cut off
                encoding = "latin-1"
        if encoding == "latin-1":
            warnings.warn(f"{self.path}: is not UTF-8 text; read as Latin-1", DataWarning, stacklevel=2)
        return encoding

    def _require_text(self, chunk: bytes) -> None:
        if chunk.startswith(b"PK\x03\x04"):
            raise self.error("is a zip or Excel file, not text; save the table as CSV")
        if b"\0" in chunk:
            raise self.error("is not text (it contains NUL bytes); save the table as CSV in UTF-8")


class SmilesList(TextTable):
    """List of SMILES, one a line, possibly followed by a name; or a table with a header, by its first line."""

    def read_header(self, sample: str) -> None:
        """Set separator and names; a first line that names no column is a molecule."""
        first = sample.lstrip().splitlines()[0]
        self.separator = next((mark for mark in ("\t", ",", ";") if mark in first), " ")
        cells = [cell.strip() for cell in first.split(self.separator)]
        if any(cell.lower() in ("smiles", "canonical_smiles", "smi") for cell in cells):
            self.names = [cell for cell in cells if cell] if self.separator == " " else cells
            return
        self.has_header = False
        if self.separator == " ":
            self.names = ["smiles", "name"]
        else:
            self.names = ["smiles", "name", *(f"column {i}" for i in range(3, len(cells) + 1))][: max(len(cells), 1)]

    def _records(self, text: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        if self.separator != " ":
            yield from super()._records(text)
            return
        for line, row in enumerate(text, start=1):
            cells = row.split(maxsplit=len(self.names) - 1)
            if cells:
                yield line, [cell.strip() for cell in cells] + [""] * (len(self.names) - len(cells))


class ObjectTable(Table):
    """Columns of Python objects: a list of SMILES, RDKit molecules or the columns of a DataFrame.

    Args:
        columns: values of each column by name; the first holds the molecules if ``form`` says so.
        name: of the set.
        form: how molecules are given.
    """

    option = "{}="

    def __init__(self, columns: Mapping[str, Sequence[Any]], name: str, form: Form = "smiles") -> None:
        super().__init__(name, name, list(columns))
        self.form = form
        self.values = columns
        self.properties = False
        """Whether values other than the molecules are text, so that ``"1"`` is a number."""

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the position counted from 0 and the values of each row."""
        yield from ((i, list(cells)) for i, cells in enumerate(zip(*self.values.values(), strict=True)))

    def error(self, problem: str, line: int | None = None) -> DataError:
        """Return the error for a row, called ``graphs[i]``, or for all of them."""
        return DataError(problem, self.place if line is None else f"graphs[{line}]")


def open_table(path: Path) -> TextTable:
    """Open a table or a list of SMILES by the ending of its name."""
    return SmilesList(path) if ending(path) in LISTS else TextTable(path)


def separator_of(sample: str) -> str:
    """Return the separator that gives most rows the width of the header; a comma if nothing is separated."""
    best, score = ",", (0.0, 0)
    for separator in _SEPARATORS:
        try:
            rows = [row for row in csv.reader(io.StringIO(sample, newline=""), delimiter=separator) if row]
        except csv.Error:
            continue
        rows = rows[:-1] or rows if len(sample) >= _SAMPLE_BYTES else rows  # the last is cut
        width = len(rows[0])
        same = sum(len(row) == width for row in rows) / len(rows)
        if width > 1 and (round(same, 1), width) > score:
            best, score = separator, (round(same, 1), width)
    return best


def frame_table(frame: Any, name: str) -> ObjectTable:
    """Return the columns of a pandas DataFrame or Series; missing values become empty strings."""
    columns = {str(frame.name or "smiles"): frame} if frame.ndim == 1 else {str(c): frame[c] for c in frame.columns}
    if len(columns) < (1 if frame.ndim == 1 else frame.shape[1]):
        raise DataError("has two columns of the same name; rename one of them", name)
    plain = {key: ["" if lack else v for v, lack in zip(column.tolist(), column.isna().tolist(), strict=True)]
             for key, column in columns.items()}  # fmt: skip
    return ObjectTable(plain, name)


class ParquetTable(ObjectTable):
    """Columns of a parquet file."""

    option = Table.option

    def error(self, problem: str, line: int | None = None) -> DataError:
        """Return the error for a row, counted from 1, or for all of them."""
        return DataError(problem if line is None else f"row {line + 1}: {problem}", self.place)


MAX_CELLS = 1 << 26
"""Cells of a parquet file, which become Python objects."""


def _parquet_columns(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a parquet file, read piece by piece until a limit is reached."""
    from pyarrow.parquet import ParquetFile

    columns: dict[str, list[Any]] = {}
    with opened(path, MAX_PARSED_BYTES) as stream, ParquetFile(stream) as file:
        packed, read, cells = path.stat().st_size, 0, 0
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            raise DataError("has two columns of the same name; rename one of them", str(path))
        columns = {name: [] for name in names}
        for batch in file.iter_batches(batch_size=1 << 14):
            read, cells = read + batch.nbytes, cells + batch.num_rows * max(batch.num_columns, 1)
            if read > max_unpacked(packed, MAX_PARSED_BYTES):
                raise DataError(unpacks_to(None, packed), str(path))
            if cells > MAX_CELLS:
                raise DataError(f"has more than {MAX_CELLS:,} cells; save it as CSV, which is streamed", str(path))
            for name, values in batch.to_pydict().items():
                columns[name] += values
    return columns


def parquet_table(path: Path) -> ParquetTable:
    """Read a parquet file; needs pyarrow (extra ``tables``)."""
    require_file(path, MAX_PARSED_BYTES)
    try:
        from pyarrow import ArrowException
    except ImportError as error:
        raise DataError("reading parquet needs pyarrow: pip install 'gcaps[tables]'", str(path)) from error
    try:
        columns = _parquet_columns(path)
    except (ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is not a parquet file ({' '.join(str(error).split())[:100]})", str(path)) from error
    plain = {name: ["" if value is None else value for value in values] for name, values in columns.items()}
    table = ParquetTable(plain, stem(path))
    table.place = str(path)
    return table
