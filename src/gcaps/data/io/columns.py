"""Choose the columns of a table: structure, id and targets, by name, by content or as asked; and find their types.

Nothing is guessed where a table leaves a choice: the error lists the candidates.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.io.tables import ObjectTable, Table
from gcaps.data.reading import Reading, listed
from gcaps.errors import DataError

SMILES_NAMES = (
    "smiles", "canonical_smiles", "isomeric_smiles", "smi", "smile", "smiles_string", "structure", "mol", "molecule",
    "structure_smiles", "compound_smiles", "rdkit_smiles", "std_smiles",
)  # fmt: skip
TARGET_NAMES = ("target", "targets", "label", "labels", "y")
"""A column of such a name is the target, whatever the other columns are."""
_ID_NAME = re.compile(
    r"(.*_)?(id|ids|name|names|cid|sid|cas|inchi|inchikey|iupac|chemblid|molid|identifier|nombre|bezeichnung|kennung)"
    r"|index|idx|num|number|nr|no|row|key|title|nom|nome|naam|nummer|graph|compound|unnamed_0"
)
_ID_ORDER = ("id", "mol_id", "molecule_id", "compound_id", "graph_id", "cid", "name")
_MISSING = frozenset(("", "nan", "na", "n/a", "null", "<na>"))
_MISSING_NUMBERS = _MISSING | {"none", "-", "?", "."}
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_KINDS = ("missing", "perhaps missing", "string", "boolean", "integer", "number", "infinite")
MOST_BAD = 0.1
"""Largest share of a column of numbers that may be something else and is reported row by row."""


class Choice(NamedTuple):
    """Positions of columns."""

    structure: int | None
    id: int | None
    targets: tuple[int, ...]
    columns: tuple[int, ...]


def choose(table: Table, reading: Reading, parses: Callable[[str], bool] | None = None) -> Choice:
    """Choose the columns of a table of molecules.

    Args:
        table: the table.
        reading: names that the user gave.
        parses: whether a string is a SMILES, to find the column by content.

    Raises:
        DataError: a name is not there, or nothing tells which column is meant; the message lists the candidates.
    """
    sample = table.sample()
    structure = _structure(table, reading, sample, parses)
    return choose_targets(table, reading, sample, {structure})._replace(structure=structure)


def choose_targets(table: Table, reading: Reading, sample: list[list[Any]], taken: set[int]) -> Choice:
    """Choose id and targets among the columns that are not ``taken``."""
    names = table.names
    id_ = _id(names, sample, taken) if reading.id is None else position(table, reading.id, "id")
    columns = tuple(position(table, name, "columns") for name in reading.columns)
    targets = _targets(table, reading, sample, taken if id_ is None else taken | {id_})
    return Choice(None, id_, targets, columns)


def position(table: Table, name: str, option: str) -> int:
    """Return the position of a column; a DataError lists those that there are."""
    if name in table.names:
        return table.names.index(name)
    lower = [known.lower() for known in table.names]
    near = f" (did you mean {table.names[lower.index(name.lower())]!r}?)" if name.lower() in lower else ""
    written = table.option.format(option)
    raise table.error(f"has no column {name!r}{near} for {written}; it has {listed(table.names)}", _header(table))


def _structure(table: Table, reading: Reading, sample: list[list[Any]], parses: Callable[[str], bool] | None) -> int:
    names = table.names
    if table.form != "smiles":
        return 0
    if reading.smiles is not None:
        return position(table, reading.smiles, "smiles")
    lower = [normal(name) for name in names]
    for usual in SMILES_NAMES:
        if lower.count(usual) == 1:
            return lower.index(usual)
    found = [] if parses is None else [i for i in range(len(names)) if _is_structure([r[i] for r in sample], parses)]
    if parses is not None and table.has_header and _starts_with_a_molecule(names, found, parses):
        problem = "has no header: its first line is a molecule; add a line that names the columns, such as smiles,y"
        raise table.error(problem, _header(table))
    if len(found) == 1:
        return found[0]
    option = table.option.format("smiles")
    if len(found) > 1:
        several = listed(names[i] for i in found)
        raise table.error(f"has several columns of SMILES: {several}; choose one: {option} NAME", _header(table))
    problem = f"has no column of SMILES; name one ({option} NAME) of {listed(names)}"
    raise table.error(problem, _header(table))


def _starts_with_a_molecule(names: Sequence[str], found: list[int], parses: Callable[[str], bool]) -> bool:
    """Whether the names are a row of the table: that of a column of SMILES is one too, or one is more than a word."""
    if found:
        return any(len(names[i]) > 2 and parses(names[i]) for i in found)
    return any(len(name) > 2 and not name.isalpha() and parses(name) for name in names)


def _is_structure(cells: list[Any], parses: Callable[[str], bool]) -> bool:
    """Whether most of the first cells are molecules, or SMILES and not numbers, elements or codes such as ``CI``."""
    if any(hasattr(cell, "GetNumAtoms") for cell in cells):
        return True
    texts = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()][:50]
    if not texts or max(map(len, texts)) < 3 or len(set(texts)) < min(len(texts), 3):
        return False
    if all(_number(text, False) is not None for text in texts):
        return False
    return sum(map(parses, texts)) >= 0.75 * len(texts)


def _id(names: Sequence[str], sample: list[list[Any]], taken: set[int]) -> int | None:
    """Return the column that is called like an id and has no value twice among the first rows."""
    called = [i for i in range(len(names)) if i not in taken and is_id_name(names[i])]

    def order(i: int) -> tuple[int, int]:
        name = normal(names[i])
        return (_ID_ORDER.index(name) if name in _ID_ORDER else len(_ID_ORDER) - (name.endswith("id")), i)

    for i in sorted(called, key=order):
        values = [str(row[i]).strip() for row in sample]
        if values and all(values) and len(set(values)) == len(values):
            return i
    return None


def _targets(table: Table, reading: Reading, sample: list[list[Any]], taken: set[int]) -> tuple[int, ...]:
    given = reading.targets
    if given is not None:
        try:
            found = matching(table, given)
        except DataError:
            if reading.labelled:
                raise
            return ()
        return tuple(found)
    names = table.names
    free = [i for i in range(len(names)) if i not in taken]
    named = [i for i in free if normal(names[i]) in TARGET_NAMES]
    if len(named) == 1:
        return (named[0],)
    candidates = [i for i in free if not is_id_name(names[i]) and not _are_names([row[i] for row in sample])]
    if len(candidates) == 1:
        return (candidates[0],)
    if not reading.labelled:
        return ()
    option = table.option.format("target")
    if not candidates:
        problem = f"has no column to predict beside {listed(names)}; give one: {option} NAME"
        raise table.error(problem, _header(table))
    problem = (
        f"does not say which column to predict; choose with {option} NAME among {listed(names[i] for i in candidates)}"
    )
    raise table.error(problem, _header(table))


def matching(table: Table, wanted: Iterable[str]) -> list[int]:
    """Return the columns that names, lists of names or patterns mean, each once."""
    found: list[int] = []
    for name in wanted:
        parts = [name] if name in table.names else [part.strip() for part in name.split(",") if part.strip()]
        for part in parts:
            matches = [i for i, known in enumerate(table.names) if fnmatch.fnmatchcase(known, part)]
            if part in table.names or not matches:
                matches = [position(table, part, "target")]
            found += [i for i in matches if i not in found]
    return found


def is_id_name(name: str) -> bool:
    """Whether a column is called like an id or a name."""
    return _ID_NAME.fullmatch(normal(name)) is not None or not name.strip()


def normal(name: str) -> str:
    """Lower case, words joined by underscores."""
    return re.sub(r"[^\w]+", "_", name.strip().lower()).strip("_")


def _are_names(cells: list[Any]) -> bool:
    """Whether all cells are different strings, so that they cannot be classes."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str)]
    return (
        len(texts) == len(cells) > 2
        and len(set(texts)) == len(texts)
        and all(_number(text, True) is None for text in texts)
    )


def _header(table: Table) -> int | None:
    return None if isinstance(table, ObjectTable) or table.form != "smiles" else 1


@dataclass
class ColumnType:
    """Type of a column, found by looking at every cell.

    Args:
        name: of the column.
        text: whether cells are text of a file, so that ``"1"`` is a number.
        decimal_comma: whether ``"0,5"`` is a number.
    """

    name: str
    text: bool = True
    decimal_comma: bool = False
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0))
    first: dict[str, int] = field(default_factory=dict)
    """Line of the first cell of each kind."""

    def look(self, cell: Any, line: int) -> None:
        """Count a cell."""
        kind = self._kind(cell)
        self.counts[kind] += 1
        self.first.setdefault(kind, line)

    def _kind(self, cell: Any) -> str:
        if isinstance(cell, str):
            text = cell.strip()
            lower = text.lower()
            if lower in _MISSING:
                return "missing"
            if not self.text:
                return "string"
            if lower in _MISSING_NUMBERS:
                return "perhaps missing"
            value = _number(text, self.decimal_comma)
            if value is None:
                return "boolean" if lower in ("true", "false") else "string"
        elif cell is None:
            return "missing"
        elif isinstance(cell, bool | np.bool_):
            return "boolean"
        elif isinstance(cell, int | float | np.number):
            value = float(cell)
        else:
            return "string"
        if math.isnan(value):
            return "missing"
        if not math.isfinite(value):
            return "infinite"
        return "integer" if value.is_integer() and abs(value) < 2**53 else "number"

    @property
    def kind(self) -> Literal["string", "boolean", "integer", "number"]:
        """Type of the column; that of most cells if some cannot be read."""
        n = self.counts
        numbers = n["integer"] + n["number"] + n["infinite"]
        words = n["string"] + n["boolean"]
        if words > numbers or not numbers:
            if n["string"] or not n["boolean"]:
                return "string" if words + n["perhaps missing"] else "number"
            return "boolean" if not n["missing"] + n["perhaps missing"] else "number"
        lacking = n["missing"] + n["perhaps missing"] + words + n["infinite"]
        return "number" if n["number"] or lacking else "integer"

    @property
    def known(self) -> int:
        """Number of cells that are not missing."""
        return sum(self.counts.values()) - self.counts["missing"] - self.counts["perhaps missing"]

    def require_uniform(self, table: Table) -> None:
        """Raise a DataError if many cells do not have the column's type."""
        if self.kind in ("string", "boolean"):
            return
        words = self.counts["string"] + (
            self.counts["boolean"] if self.counts["integer"] + self.counts["number"] else 0
        )
        if words > max(MOST_BAD * self.known, 1) and words < self.known:
            line = self.first["string"] if "string" in self.first else self.first["boolean"]
            problem = (
                f"column {self.name!r} mixes {self.known - words:,} numbers and {words:,} words, of which this is the "
                f"first; correct it, or choose another column"
            )
            raise table.error(problem, line)

    def is_missing(self, cell: Any) -> bool:
        """Whether a cell has no value."""
        kind = self._kind(cell)
        return kind == "missing" or (kind == "perhaps missing" and self.kind != "string")

    def problem(self, cell: Any) -> str | None:
        """Return what is wrong with a cell of a column of this type; None for nothing."""
        kind = self._kind(cell)
        if kind == "infinite":
            return f"{str(cell).strip()[:40]!r} in column {self.name!r} is not finite; correct it, or leave it empty"
        if self.kind in ("integer", "number") and (kind == "string" or (kind == "boolean" and self._mixed)):
            return f"{str(cell).strip()[:40]!r} in column {self.name!r} is not a number; correct it, or leave it empty"
        return None

    @property
    def _mixed(self) -> bool:
        return bool(self.counts["integer"] + self.counts["number"])

    def array(self, cells: Sequence[Any]) -> Array:
        """[n] values of cells that have no problem."""
        kind = self.kind
        if kind == "string":
            texts = ["" if cell is None else str(cell).strip() for cell in cells]
            return np.array(["" if text.lower() in _MISSING else text for text in texts], dtype=np.str_)
        if kind == "boolean":
            return np.array([str(cell).strip().lower() == "true" for cell in cells], dtype=np.bool_)
        values = [self._value(cell) for cell in cells]
        if kind == "integer":
            return np.array([int(value) for value in values], dtype=np.int64)
        return np.array(values, dtype=np.float64)

    def _value(self, cell: Any) -> float:
        if isinstance(cell, str):
            text = cell.strip().lower()
            if text in ("true", "false"):
                return float(text == "true")
            value = _number(text, self.decimal_comma)
            return math.nan if value is None else value
        return math.nan if cell is None else float(cell)


def _number(text: str, decimal_comma: bool) -> float | None:
    if decimal_comma and _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def stacked(arrays: Sequence[Array], names: Sequence[str], table: Table) -> Array | None:
    """Return targets as [n] or [n, T]; a DataError if some are strings and others numbers."""
    if not arrays:
        return None
    if len(arrays) == 1:
        return arrays[0]
    texts = [array.dtype.kind == "U" for array in arrays]
    if any(texts) and not all(texts):
        first, other = names[texts.index(True)], names[texts.index(False)]
        problem = f"column {first!r} holds strings and {other!r} numbers; several targets are of one kind"
        raise table.error(problem)
    return np.stack(arrays, axis=1) if all(texts) else np.stack(arrays, axis=1, dtype=np.result_type(*arrays))
