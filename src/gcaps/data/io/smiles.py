"""Reader of molecules written as SMILES in a CSV or TSV table, one molecule a row; needs RDKit (extra ``chem``)."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeAlias, cast

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import target_array
from gcaps.errors import DataError

OTHER_BOND = 5
"""Edge label of dative and other rare bonds."""
MOLECULES = 4096
"""Molecules that are assembled together."""
SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
SMILES_NAMES = ("smiles", "canonical_smiles", "smi", "mol", "molecule", "structure")
LABEL_NAMES = ("label", "labels", "y", "class", "target", "activity")
Label: TypeAlias = int | float | str


@dataclass(frozen=True)
class Columns:
    """How a table of molecules is to be read."""

    smiles: str | None = None
    """Name of the column with the SMILES; by default the first of smiles, canonical_smiles, smi, mol, molecule and
    structure that exists, in upper or lower case."""
    label: str | None = None
    """Name of the column with the labels; by default the first of label, labels, y, class, target and activity that
    exists, otherwise the only other column. Labels are integers, numbers or strings, like the first one."""
    skip_bad: bool = False
    """Leave out rows that cannot be read, and count them in ``notes["skipped_rows"]``."""


def is_table(path: Path) -> bool:
    """Whether the file name ends like that of a table."""
    return path.name.lower().endswith(SUFFIXES)


def table_name(path: Path) -> str:
    """Name of the set in that file: ``"hiv"`` for hiv.csv.gz."""
    ending = max((s for s in SUFFIXES if path.name.lower().endswith(s)), key=len, default="")
    return path.name[: len(path.name) - len(ending)]


def read_smiles(path: str | Path, columns: Columns | None = None, *, labelled: bool = True) -> GraphSet:
    """Read molecules: atoms are nodes labelled by atomic number, bonds edges labelled 1, 2, 3, or 4 if aromatic.

    Hydrogens are nodes only where the SMILES writes them as atoms of their own.

    Args:
        path: CSV or TSV file, possibly gzipped, whose first line names the columns.
        columns: which columns to read; by default chosen by their names.
        labelled: require a label for every molecule and at least two classes. Otherwise labels are read if the first
            row has one.

    Raises:
        DataError: the table is malformed (the message names file and line), or RDKit is missing.
    """
    (graphs,) = molecule_chunks(path, columns, labelled=labelled, molecules=None)
    return graphs


def molecule_chunks(
    path: str | Path,
    columns: Columns | None = None,
    *,
    labelled: bool = True,
    molecules: int | None = MOLECULES,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[GraphSet]:
    """Yield the set of :func:`read_smiles` in chunks of ``molecules`` molecules, or in one if that is None.

    ``progress`` is called with the number of bytes read and the size of the file.
    """
    parse = _parser(str(path))
    found: set[Label | None] = set()
    chunk = _Chunk()
    with _SmilesTable(path, columns or Columns(), labelled) as table:
        for smiles, label in table.rows():
            try:
                atoms, bonds = parse(smiles)
            except _BadSmiles as error:
                table.bad(f"{smiles[:80]!r} {error}")
                continue
            if len(chunk.atoms) == molecules:  # only now, so that the last chunk counts the rows skipped last
                yield chunk.assembled(table.name, table.pop_skipped())
                chunk = _Chunk()
                if progress is not None:
                    progress(*table.position())
            chunk.add(atoms, bonds, label)
            if len(found) < 2:
                found.add(label)
        if not chunk.atoms:
            raise DataError("holds no molecule that can be read", str(path))
        if labelled and len(found) < 2:
            problem = f"all molecules have the label {found.pop()}; a classifier needs at least two classes"
            raise DataError(problem, str(path))
        yield chunk.assembled(table.name, table.pop_skipped())


@dataclass
class _Chunk:
    """Molecules that are assembled together."""

    atoms: list[Ints] = field(default_factory=list)
    bonds: list[Ints] = field(default_factory=list)
    labels: list[Label | None] = field(default_factory=list)

    def add(self, atoms: Ints, bonds: Ints, label: Label | None) -> None:
        self.atoms.append(atoms)
        self.bonds.append(bonds)
        self.labels.append(label)

    def assembled(self, name: str, skipped: int) -> GraphSet:
        ptr = pointer(np.array([len(atoms) for atoms in self.atoms]))
        u, v, kind = np.concatenate(self.bonds).T
        first: Array = np.tile(np.repeat(ptr[:-1], [len(bonds) for bonds in self.bonds]), 2)
        # both directions, so that notes do not count every bond as one-way
        rows = EdgeRows(np.append(u, v) + first, np.append(v, u) + first, np.tile(kind, 2)[:, None])
        node_labels = np.concatenate(self.atoms)[:, None]
        graphs = assemble(name, ptr, rows, y=target_array(self.labels), node_labels=node_labels)
        return replace(graphs, notes={**graphs.notes, "skipped_rows": skipped}) if skipped else graphs


class _BadSmiles(Exception):  # noqa: N818 - becomes a DataError where file and line are known
    """What is wrong with a SMILES."""


def _parser(file: str) -> Callable[[str], tuple[Ints, Ints]]:
    """Return a function from a SMILES to its atomic numbers [n] and its bonds [b, 3]: two ends and a label."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise DataError("reading SMILES needs RDKit: pip install 'gcaps[chem]'", file) from error
    types = Chem.BondType
    labels = {types.SINGLE: 1, types.DOUBLE: 2, types.TRIPLE: 3, types.AROMATIC: 4}

    def parse(smiles: str) -> tuple[Ints, Ints]:
        with rdBase.BlockLogs():  # the reason goes into our error, not to the terminal
            molecule = Chem.MolFromSmiles(smiles)
            if molecule is None:
                raise _BadSmiles(reason(smiles))
        atoms = [atom.GetAtomicNum() for atom in molecule.GetAtoms()]
        if not atoms:
            raise _BadSmiles("has no atoms")
        bonds = [
            (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), labels.get(bond.GetBondType(), OTHER_BOND))
            for bond in molecule.GetBonds()
        ]
        return np.array(atoms, dtype=np.int64), np.array(bonds, dtype=np.int64).reshape(-1, 3)

    def reason(smiles: str) -> str:
        raw: Any = Chem.MolFromSmiles(smiles, sanitize=False)
        if raw is None:
            return "is not a SMILES"
        try:
            Chem.SanitizeMol(raw)
        except ValueError as error:
            return f"is not a valid molecule: {' '.join(str(error).split())}"
        return "is not a valid molecule"

    return parse


class _SmilesTable:
    """Rows of one table, as a context manager.

    Args:
        path: file whose first line names its columns, separated by commas, semicolons or tabs; possibly gzipped.
        columns: which columns to read.
        labelled: every row must have a label; otherwise labels are read if the first row has one.
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
        """Return the number of bytes read and the size of the file."""
        return self._raw.tell(), self.path.stat().st_size

    def rows(self) -> Iterator[tuple[str, Label | None]]:
        """Yield SMILES and label of each row; labels all have the type of the first."""
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
        """Raise a DataError for the row just read, or count it as skipped."""
        if not self.columns.skip_bad:
            raise DataError(problem, str(self.path), self._line)
        self._skipped += 1

    def pop_skipped(self) -> int:
        """Return the number of rows skipped since the last call."""
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
                self.bad(f"has {len(row)} columns, expected {len(names)}")
                continue
            value = None
            if label is not None:
                read = read or _label_reader(row[label])
                value = None if read is None else read(row[label])
                if read is None and not self.labelled:
                    label = None
                elif value is None:
                    self.bad(_label_problem(row[label].strip(), read))
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


def _label_reader(entry: str) -> Callable[[str], Label | None] | None:
    """Return the function that reads a column of labels whose first is ``entry``; None if that is no label."""
    try:
        float(entry)
    except ValueError:
        return _string if entry.strip() else None
    return next((read for read in (_integer, _number) if read(entry) is not None), None)


def _label_problem(entry: str, read: Callable[[str], Label | None] | None) -> str:
    if not entry:
        return "has no label"
    wanted = "an integer" if read is _integer else "a finite number"
    return f"the label {entry[:40]!r} is not {wanted}; correct it, or name another column (--label)"


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
