"""Molecules as graphs: atoms are nodes labelled by atomic number, bonds are labelled edges; needs RDKit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet
from gcaps.data.io.tables import Form
from gcaps.errors import DataError

OTHER_BOND = 5
"""Edge label of dative and other rare bonds."""
_ORDERS = {1.0: 1, 2.0: 2, 3.0: 3, 1.5: 4}
"""Edge label of single, double, triple and aromatic bonds by RDKit's bond order."""
_MATRIX_ATOMS = 500
"""Molecules of up to this many atoms are read from their dense matrix of bond orders, in one call."""


class Molecule(NamedTuple):
    """One molecule."""

    atoms: Ints
    """[n] atomic numbers; 0 for a wildcard."""
    bonds: Ints
    """[b, 3] two ends and a label: 1, 2, 3, 4 if aromatic, 5 otherwise."""
    smiles: str


class Unreadable(NamedTuple):
    """What is wrong with a molecule."""

    reason: str


class Parser:
    """Reads molecules in bulk; RDKit's own messages are not printed.

    Args:
        place: file in the error message if RDKit is missing.
        form: how molecules are given.
    """

    def __init__(self, place: str, form: Form = "smiles") -> None:
        try:
            from rdkit import Chem, rdBase
        except ImportError as error:
            raise DataError("reading molecules needs RDKit: pip install 'gcaps[chem]'", place) from error
        self.form = form
        self._chem: Any = Chem
        self._base: Any = rdBase
        kinds = Chem.BondType
        self._labels = {kinds.SINGLE: 1, kinds.DOUBLE: 2, kinds.TRIPLE: 3, kinds.AROMATIC: 4}

    def parse(self, cells: Sequence[Any]) -> list[Molecule | Unreadable]:
        """Return each molecule, or what is wrong with it."""
        one = {"smiles": self._from_smiles, "molblock": self._from_block, "molecule": self._from_object}[self.form]
        with self._base.BlockLogs():
            return [one(cell) for cell in cells]

    def is_smiles(self, text: str) -> bool:
        """Whether a string is a SMILES with atoms."""
        with self._base.BlockLogs():
            found: Any = self._chem.MolFromSmiles(text.strip(), sanitize=False)
        return found is not None and found.GetNumAtoms() > 0

    def _from_smiles(self, cell: Any) -> Molecule | Unreadable:
        if hasattr(cell, "GetNumAtoms"):
            return self._from_object(cell)
        if not isinstance(cell, str):
            return Unreadable(f"{cell!r} is not a SMILES")
        text = cell.strip()
        if not text:
            return Unreadable("has no SMILES")
        found = self._chem.MolFromSmiles(text)
        if found is None:
            return Unreadable(
                f"{text[:80]!r} {self._reason(self._chem.MolFromSmiles(text, sanitize=False), 'a SMILES')}"
            )
        if not found.GetNumAtoms():
            return Unreadable(f"{text[:80]!r} has no atoms")
        dative = "->" in text or "<-" in text
        bonds = None if dative or found.GetNumAtoms() > _MATRIX_ATOMS else self._bonds_of_matrix(found)
        return Molecule(self._atoms(found), self._bonds(found) if bonds is None else bonds, text)

    def _from_block(self, text: str) -> Molecule | Unreadable:
        found = self._chem.MolFromMolBlock(text)
        if found is None:
            raw = self._chem.MolFromMolBlock(text, sanitize=False)
            return Unreadable("its structure " + self._reason(raw, "an MDL mol block"))
        return self._from_object(found)

    def _from_object(self, found: Any) -> Molecule | Unreadable:
        if found is None or not hasattr(found, "GetNumAtoms"):
            return Unreadable(f"is {found!r}, not an RDKit molecule; RDKit returns None for what it cannot read")
        if not found.GetNumAtoms():
            return Unreadable("has no atoms")
        return Molecule(self._atoms(found), self._bonds(found), self._chem.MolToSmiles(found))

    def _reason(self, raw: Any, what: str) -> str:
        if raw is None:
            return f"is not {what}"
        try:
            self._chem.SanitizeMol(raw)
        except ValueError as error:
            return f"is not a valid molecule: {' '.join(str(error).split())}"
        return "is not a valid molecule"

    @staticmethod
    def _atoms(found: Any) -> Ints:
        atom = found.GetAtomWithIdx  # twice as fast as iterating over GetAtoms()
        return np.array([atom(i).GetAtomicNum() for i in range(found.GetNumAtoms())], dtype=np.int64)

    def _bonds(self, found: Any) -> Ints:
        labels = self._labels
        bonds = [
            (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), labels.get(bond.GetBondType(), OTHER_BOND))
            for bond in found.GetBonds()
        ]
        return np.array(bonds, dtype=np.int64).reshape(-1, 3)

    def _bonds_of_matrix(self, found: Any) -> Ints | None:
        """Return bonds from the matrix of bond orders, five times as fast; None if some are of a rare kind."""
        order: Array = self._chem.GetAdjacencyMatrix(found, useBO=True)
        u, v = np.nonzero(order)
        u, v = u[u < v], v[u < v]
        values = order[u, v]
        label = np.zeros(len(u), dtype=np.int64)
        for known, code in _ORDERS.items():
            label[values == known] = code
        if len(u) != found.GetNumBonds() or not label.all():
            return None
        return np.stack([u, v, label], axis=1)


def molecule_set(name: str, molecules: Sequence[Molecule]) -> GraphSet:
    """Assemble molecules to a set without targets."""
    ptr = pointer(np.array([len(one.atoms) for one in molecules]))
    u, v, kind = np.concatenate([one.bonds for one in molecules]).T
    first: Array = np.tile(np.repeat(ptr[:-1], [len(one.bonds) for one in molecules]), 2)
    # both directions, so that notes do not count every bond as one-way
    rows = EdgeRows(np.append(u, v) + first, np.append(v, u) + first, np.tile(kind, 2)[:, None])
    return assemble(name, ptr, rows, node_labels=np.concatenate([one.atoms for one in molecules])[:, None])


def canonical_smiles(smiles: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return the canonical SMILES of molecules with and without stereochemistry; None without RDKit."""
    try:
        parser = Parser("")
    except DataError:
        return None
    chem = parser._chem
    with parser._base.BlockLogs():
        found = [chem.MolFromSmiles(text) for text in smiles]
        with_stereo = [text if one is None else chem.MolToSmiles(one) for one, text in zip(found, smiles, strict=True)]
        flat = [
            text if one is None else chem.MolToSmiles(one, isomericSmiles=False)
            for one, text in zip(found, smiles, strict=True)
        ]
    return with_stereo, flat
