"""A text table with a column of SMILES and perhaps one of classes, read row by row."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeAlias, cast

from gcaps.errors import DataError

Label: TypeAlias = int | float | str
SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
SMILES_NAMES = ("smiles", "canonical_smiles", "smi", "mol", "molecule", "structure")
LABEL_NAMES = ("label", "labels", "y", "class", "target", "activity")


@dataclass(frozen=True)
class Columns:
    """How a table of molecules is to be read."""

    smiles: str | None = None
    """Name of the column with the SMILES; by default one called smiles, canonical_smiles, smi, mol, molecule or
    structure, in that order and in any case."""
    label: str | None = None
    """Name of the column with the labels: integers, other numbers or strings, as the first row has it; by default one
    called label, labels, y, class, target or activity, else the only other column."""
    skip_bad: bool = False
    """Leave out rows that cannot be read, and count them in ``notes["skipped_rows"]``."""


def is_table(path: Path) -> bool:
    """Whether the file is called as tables are."""
    return path.name.lower().endswith(SUFFIXES)


def table_name(path: Path) -> str:
    """What a set from that file is called: ``"hiv"`` of hiv.csv.gz."""
    ending = max((s for s in SUFFIXES if path.name.lower().endswith(s)), key=len, default="")
    return path.name[: len(path.name) - len(ending)]


class SmilesTable:
    """The rows of one file, as a context manager.

    Args:
        path: a file whose first line names its columns, divided by commas, semicolons or tabs; perhaps gzipped.
        columns: which count.
        labelled: every row must have a label; otherwise labels are read where the first row has one.
    """

    def __init__(self, path: str | Path, columns: Columns, labelled: bool) -> None:
        self.path, self.columns, self.labelled = Path(path), columns, labelled
        self.name = table_name(self.path)
        self._skipped = 0
        self._line = 0

    def __enter__(self) -> Self:
        try:
            self._raw: IO[bytes] = self.path.open("rb")
        except FileNotFoundError as error:
            raise DataError("does not exist", str(self.path)) from error
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror or error})", str(self.path)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raw.close()

    def position(self) -> tuple[int, int]:
        """Bytes read so far, and bytes in all."""
        return self._raw.tell(), self.path.stat().st_size

    def rows(self) -> Iterator[tuple[str, Label | None]]:
        """SMILES and label of each row; labels are all of the first one's type."""
        packed = self.path.name.lower().endswith(".gz")
        binary = cast(IO[bytes], gzip.GzipFile(fileobj=self._raw)) if packed else self._raw
        try:
            with io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text:
                yield from self._parsed(text)
        except UnicodeDecodeError as error:
            raise DataError("is not UTF-8 text; save it as UTF-8", str(self.path), self._line + 1) from error
        except csv.Error as error:
            raise DataError(f"is not a table ({error})", str(self.path), self._line + 1) from error
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"cannot be read ({error}); fetch it again", str(self.path)) from error

    def bad(self, problem: str) -> None:
        """The row just read cannot be used: DataError, or one more that is skipped."""
        if not self.columns.skip_bad:
            raise DataError(problem, str(self.path), self._line)
        self._skipped += 1

    def pop_skipped(self) -> int:
        """How many rows were skipped since this was last asked."""
        skipped, self._skipped = self._skipped, 0
        return skipped

    def _parsed(self, text: io.TextIOWrapper) -> Iterator[tuple[str, Label | None]]:
        header = text.readline()
        self._line = 1
        if not header.strip():
            raise DataError("is empty; its first line should name its columns", str(self.path))
        delimiter = max(",;\t", key=header.count)
        names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
        smiles, label = self._chosen(names)
        read: Callable[[str], Label | None] | None = None
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        for row in reader:
            self._line = 1 + reader.line_num
            if not row:
                continue
            if len(row) != len(names):
                self.bad(f"has {len(row)} columns where {len(names)} are due")
                continue
            value = None
            if label is not None:
                read = read or _type_of(row[label])
                value = None if read is None else read(row[label])
                if read is None and not self.labelled:
                    label = None
                elif value is None:
                    self.bad(self._not_a_label(row[label], read))
                    continue
            yield row[smiles].strip(), value

    def _chosen(self, names: list[str]) -> tuple[int, int | None]:
        """Positions of the two columns."""
        smiles = self._position(names, self.columns.smiles, SMILES_NAMES)
        if smiles is None:
            problem = f"has no column called smiles; name one (--smiles NAME) of {', '.join(names)}"
            raise DataError(problem, str(self.path), 1)
        label = self._position(names, self.columns.label, LABEL_NAMES)
        if label is None and self.labelled:
            if len(names) != 2:
                problem = "has no column called label, y, class, target or activity; name one (--label NAME) of "
                raise DataError(problem + ", ".join(names), str(self.path), 1)
            label = 1 - smiles
        return smiles, label

    def _position(self, names: list[str], wanted: str | None, usual: tuple[str, ...]) -> int | None:
        if wanted is not None:
            if wanted not in names:
                raise DataError(f"has no column {wanted!r}; it has {', '.join(names)}", str(self.path), 1)
            return names.index(wanted)
        lower = [name.lower() for name in names]
        return next((lower.index(name) for name in usual if name in lower), None)

    def _not_a_label(self, entry: str, read: Callable[[str], Label | None] | None) -> str:
        if not entry.strip():
            return "has no label"
        wanted = "an integer" if read is _integer else "a finite number"
        return f"the label {entry.strip()[:40]!r} is not {wanted}; correct it, or name another column (--label)"


def _type_of(entry: str) -> Callable[[str], Label | None] | None:
    """What reads the labels of a column, by its first one; None where that is missing or not finite."""
    try:
        float(entry)
    except ValueError:
        return _string if entry.strip() else None
    return next((read for read in (_integer, _number) if read(entry) is not None), None)


def _integer(entry: str) -> int | None:
    """``1``, ``-1`` and ``1.0`` are integers."""
    value = _number(entry)
    return int(value) if value is not None and value.is_integer() and abs(value) < 2**53 else None


def _number(entry: str) -> float | None:
    try:
        value = float(entry)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _string(entry: str) -> str | None:
    return entry.strip() or None
