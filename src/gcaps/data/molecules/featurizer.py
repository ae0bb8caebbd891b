"""Atoms and bonds as labels and attributes, for many molecules at once.

The features are those of chemprop's and PyTorch Geometric's featurisers. Categories are columns of labels, so that
networks encode them one-hot, with a column for what is rare (setting ``rare_labels``), and kernels compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.preparation import MoleculePreparation

VERSION = 1
"""Raised whenever the features of a molecule change."""
ATOM_LABELS = (
    "element",
    "degree",
    "charge",
    "hydrogens",
    "hybridization",
    "aromatic",
    "ring",
    "chirality",
    "radical electrons",
)
"""Columns of :attr:`gcaps.GraphSet.node_labels`: atomic number (0 for a wildcard), number of neighbors, formal charge,
bound hydrogens, RDKit's codes of hybridization and chiral tag, whether the atom is aromatic, whether in a ring, and
unpaired electrons."""
ATOM_ATTRIBUTES = ("mass",)
"""Columns of :attr:`gcaps.GraphSet.x`: mass in units of 100 Da, which tells isotopes apart."""
BOND_LABELS = ("order", "conjugated", "ring", "stereo")
"""Columns of :attr:`gcaps.GraphSet.edge_labels`: 1, 2, 3, 4 if aromatic, 5 otherwise; whether the bond is conjugated,
whether in a ring; RDKit's code of its stereochemistry (0 none, 1 any, 2 Z, 3 E, 4 cis, 5 trans)."""
AROMATIC, OTHER_BOND = 4, 5
MASS_UNIT = 100.0


class MoleculeBlock(NamedTuple):
    """Atoms and bonds of several molecules, one after the other."""

    sizes: Ints
    """[m] atoms of each molecule."""
    atoms: Ints
    """[n, ·] columns of :data:`ATOM_LABELS`, or the element alone."""
    mass: Floats | None
    """[n] in Da; None if only elements were asked for."""
    bond_counts: Ints
    """[m] bonds of each molecule."""
    ends: Ints
    """[b, 2] ends of each bond, numbered within its molecule."""
    bonds: Ints
    """[b, ·] columns of :data:`BOND_LABELS`, or the order alone."""

    @classmethod
    def joined(cls, blocks: Sequence[MoleculeBlock]) -> MoleculeBlock:
        """Concatenate blocks."""
        if len(blocks) == 1:
            return blocks[0]
        columns: list[Any] = [None if c[0] is None else np.concatenate(c) for c in zip(*blocks, strict=True)]
        return cls(*columns)

    def to_graphs(self, name: str, preparation: MoleculePreparation) -> GraphSet:
        """Return a set without targets."""
        ptr = pointer(self.sizes)
        first: Array = np.repeat(ptr[:-1], self.bond_counts)
        u, v = self.ends.T + first
        # both directions, so that notes do not count every bond as one-way
        rows = EdgeRows(np.append(u, v), np.append(v, u), np.tile(self.bonds, (2, 1)))
        x = None if self.mass is None else (self.mass / MASS_UNIT)[:, None]
        return replace(assemble(name, ptr, rows, node_labels=self.atoms, x=x), preparation=preparation)


class Featurizer:
    """Reads atoms and bonds out of RDKit molecules.

    Args:
        preparation: whether hydrogens are nodes, and which features there are.
    """

    def __init__(self, preparation: MoleculePreparation) -> None:
        from rdkit import Chem

        self._chem: Any = Chem
        self.full = preparation.atom_features == "full"
        self.explicit = preparation.hydrogens == "explicit"
        kinds = Chem.BondType
        self._orders = {kinds.SINGLE: 1, kinds.DOUBLE: 2, kinds.TRIPLE: 3, kinds.AROMATIC: AROMATIC}

    def block(self, molecules: Sequence[Any], plain: Sequence[bool]) -> MoleculeBlock:
        """Return the atoms and bonds of molecules.

        Args:
            molecules: sanitised RDKit molecules.
            plain: whether a molecule is known to have no charges, chirality, isotopes and radicals, because its SMILES
                has no brackets.
        """
        if self.explicit:
            molecules = [self._chem.AddHs(molecule) for molecule in molecules]
            plain = [False] * len(molecules)
        sizes = np.array([molecule.GetNumAtoms() for molecule in molecules], dtype=np.int64)
        counts = np.array([molecule.GetNumBonds() for molecule in molecules], dtype=np.int64)
        first = pointer(sizes)[:-1]
        elements, ends, orders = self._skeleton(molecules)
        if not self.full:
            return MoleculeBlock(sizes, elements[:, None], None, counts, ends, orders[:, None])
        nodes = ends + np.repeat(first, counts)[:, None]
        atoms = np.zeros((len(elements), len(ATOM_LABELS)), dtype=np.int64)
        bonds = np.zeros((len(orders), len(BOND_LABELS)), dtype=np.int64)
        atoms[:, 0], bonds[:, 0] = elements, orders
        atoms[:, 1] = np.bincount(nodes.ravel(), minlength=len(elements))
        atoms[:, 3], atoms[:, 4] = self._of_atoms(molecules)
        atoms[nodes[orders == AROMATIC].ravel(), 5] = 1
        bonds[:, 1] = self._conjugated(molecules)
        rings = [molecule.GetRingInfo().BondRings() for molecule in molecules]
        before = pointer(counts)[:-1].tolist()
        at = [b + bond for b, found in zip(before, rings, strict=True) for ring in found for bond in ring]
        bonds[at, 2] = 1
        atoms[nodes[bonds[:, 2] == 1].ravel(), 6] = 1
        mass = self._masses()[elements]
        for i in np.flatnonzero(~np.asarray(plain, dtype=bool)).tolist():
            self._rare(molecules[i], atoms, bonds, mass, int(first[i]), before[i])
        return MoleculeBlock(sizes, atoms, mass, counts, ends, bonds)

    def _skeleton(self, molecules: Sequence[Any]) -> tuple[Ints, Ints, Ints]:
        """Return atomic numbers [n], ends of bonds [b, 2] and their orders [b]."""
        orders = self._orders
        elements: list[int] = []
        bonds: list[tuple[int, int, int]] = []
        for molecule in molecules:
            atom, bond = molecule.GetAtomWithIdx, molecule.GetBondWithIdx  # half the time of GetAtoms() and GetBonds()
            elements += [atom(i).GetAtomicNum() for i in range(molecule.GetNumAtoms())]
            for i in range(molecule.GetNumBonds()):
                one = bond(i)
                bonds.append((one.GetBeginAtomIdx(), one.GetEndAtomIdx(), orders.get(one.GetBondType(), OTHER_BOND)))
        table = np.fromiter(chain.from_iterable(bonds), dtype=np.int64, count=3 * len(bonds)).reshape(-1, 3)
        return np.array(elements, dtype=np.int64), table[:, :2], table[:, 2]

    @staticmethod
    def _of_atoms(molecules: Sequence[Any]) -> tuple[list[int], list[int]]:
        """Return hydrogens and hybridization of all atoms."""
        hydrogens: list[int] = []
        hybridization: list[Any] = []
        for molecule in molecules:
            atom = molecule.GetAtomWithIdx
            for i in range(molecule.GetNumAtoms()):
                one = atom(i)
                hydrogens.append(one.GetTotalNumHs(True))
                hybridization.append(one.GetHybridization())
        codes = {kind: int(kind) for kind in set(hybridization)}
        return hydrogens, [codes[kind] for kind in hybridization]

    @staticmethod
    def _conjugated(molecules: Sequence[Any]) -> list[bool]:
        found: list[bool] = []
        for molecule in molecules:
            bond = molecule.GetBondWithIdx
            found += [bond(i).GetIsConjugated() for i in range(molecule.GetNumBonds())]
        return found

    def _masses(self) -> Floats:
        """[119] mean mass of each element in Da; 0 for a wildcard."""
        weight = self._chem.GetPeriodicTable().GetAtomicWeight
        return np.array([0.0, *(weight(z) for z in range(1, 119))])

    @staticmethod
    def _rare(molecule: Any, atoms: Ints, bonds: Ints, mass: Floats, first: int, first_bond: int) -> None:
        """Write what most molecules do not have: charges, chirality, radicals, isotopes and stereo bonds."""
        for at, atom in enumerate(molecule.GetAtoms(), first):
            atoms[at, 2] = atom.GetFormalCharge()
            atoms[at, 7] = int(atom.GetChiralTag())
            atoms[at, 8] = atom.GetNumRadicalElectrons()
            if atom.GetIsotope():
                mass[at] = atom.GetMass()
        for at, bond in enumerate(molecule.GetBonds(), first_bond):
            bonds[at, 3] = int(bond.GetStereo())
