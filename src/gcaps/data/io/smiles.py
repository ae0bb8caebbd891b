"""Read tables of molecules, one a row, to GraphSets: files of any size in chunks, lists and DataFrames at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet, Skipped
from gcaps.data.io.columns import Choice, ColumnType, choose, stacked
from gcaps.data.io.sdf import SDFTable
from gcaps.data.io.tables import LISTS, TABLES, ObjectTable, Progress, Table, TextTable, ending, open_table
from gcaps.data.molecules.featurizer import MoleculeBlock
from gcaps.data.molecules.parsing import PARALLEL, Parsed, Parser, default_jobs, parse_batches
from gcaps.data.reading import Reading
from gcaps.errors import DataError

MOLECULES = 2048
"""Molecules that are parsed and, unless all are, assembled together."""
SDF = (".sdf", ".sd", ".mol")
SUFFIXES = (*TABLES, *LISTS, *SDF)


def is_table(path: Path) -> bool:
    """Whether the file name ends like that of a table of molecules, possibly gzipped."""
    return ending(path) in SUFFIXES


def read_smiles(path: str | Path, *, reading: Reading | None = None, **options: Any) -> GraphSet:
    """Read molecules: atoms are nodes, bonds are edges, with the labels and attributes that
    :mod:`gcaps.data.molecules.featurizer` lists.

    Hydrogens are nodes only where :attr:`MoleculePreparation.hydrogens` says so, or where RDKit keeps them (isotopes,
    bridges between atoms). The SMILES of each molecule are in ``columns["smiles"]``.

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


def read_molecules(table: Table, reading: Reading, progress: Progress | None = None) -> GraphSet:
    """Read all molecules of a table."""
    (graphs,) = molecule_chunks(table, reading, whole=True, progress=progress)
    return graphs


def check_columns(table: Table, reading: Reading) -> Choice:
    """Choose the columns of a table of molecules, or raise the DataError that reading it would raise."""
    parser = Parser(table.place, table.form) if table.form == "smiles" else None
    return choose(table, reading, None if parser is None else parser.is_smiles)


def molecule_chunks(
    table: Table,
    reading: Reading,
    *,
    whole: bool = False,
    molecules: int = MOLECULES,
    progress: Progress | None = None,
) -> Iterator[GraphSet]:
    """Yield the set of :func:`read_molecules` in chunks, or at once.

    A large table is parsed by several processes (:attr:`Reading.n_jobs`), in order and in bounded memory. Rows that are
    skipped belong to the chunk of the molecules before them.

    Args:
        table: the table.
        reading: options of :func:`gcaps.load`.
        whole: yield a single set.
        molecules: rows of a chunk.
        progress: called with the amount read and the total.
    """
    rows = _Rows(table, reading, check_columns(table, reading))
    n_jobs = (reading.n_jobs or default_jobs()) if rows.count >= PARALLEL and table.form != "molecule" else 1
    parser = Parser(table.place, table.form, reading.preparation)
    stream = rows.usable()
    batches = iter(lambda: list(islice(stream, molecules)), [])
    parts: list[_Part] = []
    pending: GraphSet | None = None
    for batch, parsed in parse_batches(batches, lambda batch: [row.structure for row in batch], parser, n_jobs):
        if progress is not None:
            progress(*table.progress())
        if (part := rows.part(batch, parsed)) is None:
            pass
        elif whole:
            parts.append(part)
        else:
            if pending is not None:
                yield pending
            pending = rows.assembled([part])
        if pending is not None:  # rows after this batch are known already where batches are parsed ahead
            pending = replace(pending, skipped=(*pending.skipped, *rows.pop_skipped(batch[-1].row)))
    if parts:
        pending = rows.assembled(parts)
    skipped = rows.pop_skipped()
    if pending is None:
        reason = f"; the first row: {skipped[0].reason}" if skipped else ""
        raise table.error(f"holds no molecule that can be read{reason}")
    yield replace(pending, skipped=(*pending.skipped, *skipped))


class _Row(NamedTuple):
    """The parts of a row that are kept."""

    row: int
    line: int
    name: str
    structure: Any
    cells: tuple[Any, ...]
    """Cells of the columns that are kept."""


class _Part(NamedTuple):
    """Rows that are molecules."""

    rows: list[_Row]
    block: MoleculeBlock
    smiles: list[str]


class _Rows:
    """Rows of a table, the types of its columns, and the rows that were skipped."""

    def __init__(self, table: Table, reading: Reading, choice: Choice) -> None:
        self.table, self.reading, self.choice = table, reading, choice
        self.skipped: list[Skipped] = []
        self.used = 0
        self.count = 0
        text = isinstance(table, TextTable | SDFTable) or getattr(table, "properties", False)
        self.kept = tuple(dict.fromkeys((*choice.targets, *choice.columns)))
        self.types = {i: ColumnType(table.names[i], text, table.decimal_comma) for i in self.kept}
        self._survey()

    def _survey(self) -> None:
        """Look at the whole table once, to find types and whether ids are unique."""
        ids: set[str] = set()
        width = len(self.table.names)
        for line, cells in self.table.rows():
            if len(cells) != width:
                continue
            self.count += 1
            for i, type_ in self.types.items():
                type_.look(cells[i], line)
            if self.choice.id is not None:
                ids.add(str(cells[self.choice.id]).strip())
        if self.choice.id is not None and (len(ids) < self.count or "" in ids):
            if self.reading.id is not None:
                problem = f"column {self.reading.id!r} does not name every row differently; choose another id"
                raise self.table.error(problem)
            self.choice = self.choice._replace(id=None)
        try:
            targets = [self.types[i] for i in self.choice.targets]
            for type_ in targets:
                type_.require_uniform(self.table)
            if self.count and targets and not any(type_.known for type_ in targets):
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

    def usable(self) -> Iterator[_Row]:
        """Yield each row whose width and targets are sound."""
        width, structure = len(self.table.names), self.choice.structure
        assert structure is not None
        for row, (line, cells) in enumerate(self.table.rows()):
            problem = None if len(cells) == width else f"has {len(cells)} columns, expected {width}"
            name = str(row)
            if self.choice.id is not None and problem is None:
                name = str(cells[self.choice.id]).strip()
            if problem is None and self.checked:
                problem = next((p for i in self.checked if (p := self.types[i].problem(cells[i]))), None)
                if problem is not None and not self.reading.labelled:
                    cells = [None if i in self.checked else cell for i, cell in enumerate(cells)]
                    problem = None
            if problem is None:
                yield _Row(row, line, name, cells[structure], tuple(cells[i] for i in self.kept))
            else:
                self.skip(row, line, name, problem)

    def skip(self, row: int, line: int, name: str, problem: str) -> None:
        """Record a row that is skipped, or raise a DataError."""
        if self.reading.invalid == "error":
            raise self.table.error(problem, line)
        self.skipped.append(Skipped(row, name, problem))

    def pop_skipped(self, last: int | None = None) -> tuple[Skipped, ...]:
        """Return and forget the rows skipped so far, up to the row ``last``."""
        found = sorted(self.skipped)
        self.skipped = [] if last is None else [one for one in found if one.row > last]
        return tuple(found[: len(found) - len(self.skipped)])

    def part(self, batch: list[_Row], parsed: Parsed) -> _Part | None:
        """Return those rows of a batch that are molecules; None if there are none."""
        for i, reason in parsed.problems.items():
            self.skip(batch[i].row, batch[i].line, batch[i].name, reason)
        if parsed.block is None:
            return None
        kept = [batch[i]._replace(structure=None) for i in parsed.kept.tolist()]
        return _Part(kept, parsed.block, parsed.smiles)

    def assembled(self, parts: list[_Part]) -> GraphSet:
        """Return the set of some parts."""
        rows = [row for part in parts for row in part.rows]
        values = dict(zip(self.kept, zip(*(row.cells for row in rows), strict=True), strict=True)) if self.kept else {}
        names = tuple(self.table.names[i] for i in self.choice.targets)
        targets = [self.types[i].array(values[i]) for i in self.choice.targets]
        columns = {self.table.names[i]: self.types[i].array(values[i]) for i in self.choice.columns}
        ids: Array | None = np.array([row.row for row in rows])
        if self.choice.id is not None:
            ids = np.array([row.name for row in rows], dtype=np.str_)
        elif ids is not None and np.array_equal(ids, np.arange(self.used, self.used + len(ids))):
            ids = None
        self.used += len(rows)
        smiles = [text for part in parts for text in part.smiles]
        block = MoleculeBlock.joined([part.block for part in parts])
        return replace(
            block.to_graphs(self.table.name, self.reading.preparation),
            y=stacked(targets, names, self.table),
            target_names=names,
            given_ids=ids,
            columns={**columns, "smiles": np.array(smiles, dtype=np.str_)},
        )
