"""Molecules written as SMILES in a table, a row a molecule; read with RDKit, which the extra ``chem`` brings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet
from gcaps.data.smiles_table import Columns, Label, SmilesTable
from gcaps.data.targets import target_array
from gcaps.errors import DataError

OTHER_BOND = 5
"""Edge label of dative bonds and other rarities."""
MOLECULES = 4096
"""Molecules that are assembled together."""


def read_smiles(path: str | Path, columns: Columns | None = None, *, labelled: bool = True) -> GraphSet:
    """A set of molecules: atoms are nodes labelled by atomic number, bonds edges labelled 1, 2, 3, and 4 if aromatic.

    Hydrogens count only where the SMILES writes them as atoms of their own.

    Args:
        path: a CSV or TSV file whose first line names its columns, perhaps packed by gzip.
        columns: which of them count; by default they are guessed from their names.
        labelled: every molecule must have a label, and there must be at least two classes. Otherwise labels are read
            where the first row has one.

    Raises:
        DataError: naming file and line, or what to install.
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
    """The set of :func:`read_smiles` in sets of so many molecules each, or all in one where that is None.

    ``progress`` is told how many bytes of the file have been read, and of how many.
    """
    parsed = _parser(str(path))
    found: set[Label | None] = set()
    some = _Molecules()
    with SmilesTable(path, columns or Columns(), labelled) as table:
        for smiles, label in table.rows():
            try:
                atoms, bonds = parsed(smiles)
            except _BadSmiles as error:
                table.bad(f"{smiles[:80]!r} {error}")
                continue
            if len(some.atoms) == molecules:  # not before the next is there: the last chunk takes what is skipped last
                yield some.assembled(table.name, table.pop_skipped())
                some = _Molecules()
                if progress is not None:
                    progress(*table.position())
            some.add(atoms, bonds, label)
            if len(found) < 2:
                found.add(label)
        if not some.atoms:
            raise DataError("holds no molecule that can be read", str(path))
        if labelled and len(found) < 2:
            problem = f"all molecules have the label {found.pop()}; a classifier needs at least two classes"
            raise DataError(problem, str(path))
        yield some.assembled(table.name, table.pop_skipped())


@dataclass
class _Molecules:
    """Molecules until they are assembled."""

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
        # both directions, so that notes do not call every bond one-way
        rows = EdgeRows(np.append(u, v) + first, np.append(v, u) + first, np.tile(kind, 2)[:, None])
        made = assemble(
            name,
            ptr,
            rows,
            y=target_array(self.labels),
            node_labels=np.concatenate(self.atoms)[:, None],
        )
        return replace(made, notes={**made.notes, "skipped_rows": skipped}) if skipped else made


class _BadSmiles(Exception):  # noqa: N818 - becomes a DataError where file and line are known
    """What is wrong with a SMILES."""


def _parser(file: str) -> Callable[[str], tuple[Ints, Ints]]:
    """A function from a SMILES to its atoms' numbers [n] and its bonds [b, 3]: two ends and a label."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise DataError("reading SMILES needs RDKit: pip install 'gcaps[chem]'", file) from error
    types = Chem.BondType
    labels = {types.SINGLE: 1, types.DOUBLE: 2, types.TRIPLE: 3, types.AROMATIC: 4}

    def parsed(smiles: str) -> tuple[Ints, Ints]:
        with rdBase.BlockLogs():  # what is wrong goes into our error, not to the terminal
            molecule = Chem.MolFromSmiles(smiles)
            if molecule is None:
                raise _BadSmiles(_reason(smiles))
        atoms = [atom.GetAtomicNum() for atom in molecule.GetAtoms()]
        if not atoms:
            raise _BadSmiles("has no atoms")
        bonds = [
            (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), labels.get(bond.GetBondType(), OTHER_BOND))
            for bond in molecule.GetBonds()
        ]
        return np.array(atoms, dtype=np.int64), np.array(bonds, dtype=np.int64).reshape(-1, 3)

    def _reason(smiles: str) -> str:
        raw: Any = Chem.MolFromSmiles(smiles, sanitize=False)
        if raw is None:
            return "is not a SMILES"
        try:
            Chem.SanitizeMol(raw)
        except ValueError as error:
            return f"is no molecule to RDKit: {' '.join(str(error).split())}"
        return "is no molecule to RDKit"

    return parsed
