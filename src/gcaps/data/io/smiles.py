"""Read tables of molecules, one a row, to GraphSets: files of any size in chunks, lists and DataFrames at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet, Skipped
from gcaps.data.io.columns import Choice, ColumnType, choose, stacked
from gcaps.data.io.molecules import Molecule, Parser, Unreadable, molecule_set
from gcaps.data.io.sdf import SDFTable
from gcaps.data.io.tables import LISTS, TABLES, ObjectTable, Progress, Table, TextTable, ending, open_table
from gcaps.data.reading import Reading
from gcaps.errors import DataError

MOLECULES = 4096
"""Molecules that are assembled together."""
SDF = (".sdf", ".sd", ".mol")
SUFFIXES = (*TABLES, *LISTS, *SDF)


def is_table(path: Path) -> bool:
    """Whether the file name ends like that of a table of molecules, possibly gzipped."""
    return ending(path) in SUFFIXES


def read_smiles(path: str | Path, *, reading: Reading | None = None, **options: Any) -> GraphSet:
    """Read molecules: atoms are nodes labelled by atomic number, bonds edges labelled 1, 2, 3, or 4 if aromatic.

    Hydrogens are nodes only where the SMILES writes them as atoms of their own. The SMILES of each molecule are in
    ``columns["smiles"]``.

    Args:
        path: CSV or TSV file whose first line names the columns, list of SMILES, or SDF; possibly gzipped.
        reading: options of :func:`gcaps.load`.
        options: the same by name.

    Raises:
        DataError: the table is malformed (the message names file and line), or RDKit is missing.
    """
    return read_molecules(molecule_table(path), reading or Reading(**options))


def molecule_table(path: str | Path) -> Table:
    """Open a file of molecules."""
    path = Path(path)
    return SDFTable(path) if ending(path) in SDF else open_table(path)


def from_smiles(smiles: Sequence[str], reading: Reading, name: str = "molecules") -> GraphSet:
    """Convert a list of SMILES."""
    try:
        return read_molecules(ObjectTable({"smiles": smiles}, name), reading)
    except DataError as error:
        hint = "a list of strings is one of SMILES, or of GraphML or JSON files"
        raise DataError(f"{error.problem} ({hint})", error.file) from error


def from_rdkit(molecules: Sequence[Any], reading: Reading, name: str = "molecules") -> GraphSet:
    """Convert RDKit molecules; their properties are columns, of which ``target`` may name some."""
    keys: dict[str, None] = {}
    for one in molecules:
        if one is not None:
            keys |= dict.fromkeys(one.GetPropNames())
    columns: dict[str, Sequence[Any]] = {"molecule": molecules}
    for key in keys:
        columns[key] = [one.GetProp(key) if one is not None and one.HasProp(key) else "" for one in molecules]
    table = ObjectTable(columns, name, "molecule")
    table.properties = True
    return read_molecules(table, reading)


def read_molecules(table: Table, reading: Reading) -> GraphSet:
    """Read all molecules of a table."""
    (graphs,) = molecule_chunks(table, reading, molecules=None)
    return graphs


def check_columns(table: Table, reading: Reading) -> Choice:
    """Choose the columns of a table of molecules, or raise the DataError that reading it would raise."""
    parser = Parser(table.place, table.form) if table.form == "smiles" else None
    return choose(table, reading, None if parser is None else parser.is_smiles)


def molecule_chunks(
    table: Table, reading: Reading, *, molecules: int | None = MOLECULES, progress: Progress | None = None
) -> Iterator[GraphSet]:
    """Yield the set of :func:`read_molecules` in chunks of ``molecules`` molecules, or in one if that is None.

    Rows that are skipped belong to the chunk of the molecules before them. ``progress`` is called with the amount read
    and the total.
    """
    parser = Parser(table.place, table.form)
    rows = _Rows(table, reading, check_columns(table, reading))
    pending: GraphSet | None = None
    stream = rows.usable()
    while batch := list(islice(stream, molecules)):
        chunk = rows.assembled(batch, parser)
        if chunk is not None:
            if pending is not None:
                yield pending
                if progress is not None:
                    progress(*table.progress())
            pending = chunk
        if pending is not None:
            pending = replace(pending, skipped=(*pending.skipped, *rows.pop_skipped()))
    if pending is None:
        first = rows.pop_skipped()
        reason = f"; the first row: {first[0].reason}" if first else ""
        raise table.error(f"holds no molecule that can be read{reason}")
    yield replace(pending, skipped=(*pending.skipped, *rows.pop_skipped()))


class _Rows:
    """Rows of a table, the types of its columns, and the rows that were skipped."""

    def __init__(self, table: Table, reading: Reading, choice: Choice) -> None:
        self.table, self.reading, self.choice = table, reading, choice
        self.skipped: list[Skipped] = []
        self.used = 0
        self.row = 0
        text = isinstance(table, TextTable | SDFTable) or getattr(table, "properties", False)
        kept = dict.fromkeys((*choice.targets, *choice.columns))
        self.types = {i: ColumnType(table.names[i], text, table.decimal_comma) for i in kept}
        self.unique_ids = choice.id is not None
        self._survey()

    def _survey(self) -> None:
        """Look at the whole table once, to find types and whether ids are unique."""
        ids: set[str] = set()
        width = len(self.table.names)
        lines = rows = 0
        for line, cells in self.table.rows():
            if len(cells) != width:
                continue
            rows += 1
            lines = line
            for i, type_ in self.types.items():
                type_.look(cells[i], line)
            if self.choice.id is not None:
                ids.add(str(cells[self.choice.id]).strip())
        if self.choice.id is not None and (len(ids) < rows or "" in ids):
            if self.reading.id is not None:
                problem = f"column {self.reading.id!r} does not name every row differently; choose another id"
                raise self.table.error(problem)
            self.choice = self.choice._replace(id=None)
        try:
            targets = [self.types[i] for i in self.choice.targets]
            for type_ in targets:
                type_.require_uniform(self.table)
            if lines and targets and not any(type_.known for type_ in targets):
                names = ", ".join(repr(type_.name) for type_ in targets)
                raise self.table.error(f"has no value in column {names}")
        except DataError:
            if self.reading.labelled:
                raise
            self.choice = self.choice._replace(targets=())
        self.checked = [i for i in self.choice.targets if self.types[i].counts["infinite"] or self._has_words(i)]

    def _has_words(self, i: int) -> bool:
        counts = self.types[i].counts
        return self.types[i].kind in ("integer", "number") and bool(counts["string"] or counts["boolean"])

    def usable(self) -> Iterator[tuple[int, int, list[Any]]]:
        """Yield position, line and cells of each row whose width and targets are sound."""
        width = len(self.table.names)
        for row, (line, cells) in enumerate(self.table.rows()):
            problem = None if len(cells) == width else f"has {len(cells)} columns, expected {width}"
            if problem is None and self.checked:
                problem = next((p for i in self.checked if (p := self.types[i].problem(cells[i]))), None)
                if problem is not None and not self.reading.labelled:
                    cells = [None if i in self.checked else cell for i, cell in enumerate(cells)]
                    problem = None
            if problem is None:
                yield row, line, cells
            else:
                self.skip(row, line, self.name_of(row, cells if len(cells) == width else None), problem)

    def name_of(self, row: int, cells: list[Any] | None) -> str:
        """Return the id of a row, by default its position."""
        return str(row) if self.choice.id is None or cells is None else str(cells[self.choice.id]).strip()

    def skip(self, row: int, line: int, name: str, problem: str) -> None:
        """Record a row that is skipped, or raise a DataError."""
        if self.reading.invalid == "error":
            raise self.table.error(problem, line)
        self.skipped.append(Skipped(row, name, problem))

    def pop_skipped(self) -> tuple[Skipped, ...]:
        """Return the rows skipped since the last call."""
        skipped, self.skipped = tuple(sorted(self.skipped)), []
        return skipped

    def assembled(self, batch: list[tuple[int, int, list[Any]]], parser: Parser) -> GraphSet | None:
        """Return the set of some rows; None if none of them is a molecule."""
        structure = self.choice.structure
        assert structure is not None
        kept: list[tuple[int, list[Any]]] = []
        molecules: list[Molecule] = []
        for (row, line, cells), one in zip(batch, parser.parse([row[2][structure] for row in batch]), strict=True):
            if isinstance(one, Unreadable):
                self.skip(row, line, self.name_of(row, cells), one.reason)
            else:
                kept.append((row, cells))
                molecules.append(one)
        if not kept:
            return None
        names = tuple(self.table.names[i] for i in self.choice.targets)
        targets = [self.types[i].array([cells[i] for _, cells in kept]) for i in self.choice.targets]
        columns = {self.table.names[i]: self.types[i].array([c[i] for _, c in kept]) for i in self.choice.columns}
        ids: Array | None = np.array([row for row, _ in kept])
        if self.choice.id is not None:
            ids = np.array([self.name_of(row, cells) for row, cells in kept], dtype=np.str_)
        elif ids is not None and np.array_equal(ids, np.arange(self.used, self.used + len(ids))):
            ids = None
        self.used += len(kept)
        return replace(
            molecule_set(self.table.name, molecules),
            y=stacked(targets, names, self.table),
            target_names=names,
            given_ids=ids,
            columns={**columns, "smiles": np.array([one.smiles for one in molecules], dtype=np.str_)},
        )
