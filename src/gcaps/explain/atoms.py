"""Atoms of RDKit molecules that are the nodes of graphs, and molecules in which one atom is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import Graph, GraphSet
from gcaps.data.molecules.featurizer import AROMATIC, ATOM_LABELS, MASS_UNIT, Featurizer
from gcaps.data.molecules.preparation import MoleculePreparation
from gcaps.data.molecules.structures import molecules_of
from gcaps.errors import DataError

CHIRALITY = ATOM_LABELS.index("chirality")
"""Column of the labels that depends on the order of atoms, so that it cannot be compared."""


class AtomsOf(NamedTuple):
    """A molecule, and the atom of each node of its graph."""

    molecule: Any
    """RDKit molecule with implicit hydrogens."""
    smiles: str
    """As in the source; if salts were stripped or charges neutralised, of what remained. In the order of the atoms."""
    atom: Ints
    """[n] atom of each node; of a hydrogen that is a node, the atom it is bound to."""
    is_hydrogen: Array
    """[n] whether a node is such a hydrogen."""


class _Skeleton(NamedTuple):
    """Labels and bonds by which the atoms of two molecules are matched."""

    elements: Ints
    """[n]"""
    kinds: Floats
    """[n, ·] all labels and attributes that do not depend on the order of atoms; the element is the first."""
    orders: dict[tuple[int, int], int]
    """Code of the order of each bond, by its ends in ascending order."""

    def equals(self, other: _Skeleton) -> bool:
        """Whether both have the same atoms and bonds in the same order."""
        same = self.kinds.shape == other.kinds.shape and np.allclose(self.kinds, other.kinds, rtol=0, atol=1e-4)
        return same and self.orders == other.orders


def atoms_of(graphs: GraphSet) -> list[AtomsOf]:
    """Return the molecule of each graph and the atom of each of its nodes.

    Molecules are prepared as the graphs were. Nodes are usually in the order of the SMILES; those of a record of an SDF
    are found by matching the structure.

    Raises:
        DataError: the graphs are not molecules, RDKit is missing, or a graph is not that of its SMILES.
    """
    molecules = molecules_of(graphs)
    preparation = graphs.preparation or MoleculePreparation()
    featurizer, found = Featurizer(preparation), []
    texts = graphs.columns["smiles"].tolist()
    for graph, molecule, text, name in zip(graphs, molecules, texts, graphs.ids.tolist(), strict=True):
        match, bound_to = _matched(graph, molecule, featurizer, f"{graphs.name}, molecule {name}")
        atoms = AtomsOf(molecule, text, bound_to[match], match >= molecule.GetNumAtoms())
        found.append(_renumbered(atoms) if preparation.changes_molecules else atoms)
    return found


def _matched(graph: Graph, molecule: Any, featurizer: Featurizer, place: str) -> tuple[Ints, Ints]:
    """Return the atom of each node, hydrogens that are nodes counted last, and the heavy atom of each atom."""
    from rdkit import Chem

    whole: Any = Chem.AddHs(molecule) if featurizer.explicit else molecule  # appends the hydrogens
    if graph.node_labels is None or whole.GetNumAtoms() != graph.num_nodes:
        raise DataError("the graph is not the molecule of its SMILES", place)
    heavy = molecule.GetNumAtoms()
    bound_to = [i if i < heavy else whole.GetAtomWithIdx(i).GetNeighbors()[0].GetIdx() for i in range(graph.num_nodes)]
    own, read = _of_graph(graph), _of_molecule(molecule, featurizer)
    if own.equals(read):
        return np.arange(graph.num_nodes), np.array(bound_to)
    for numbers in _numbers_of_kinds(own, read):
        match = _structure(read, numbers[1]).GetSubstructMatch(_structure(own, numbers[0]))
        if len(match) == graph.num_nodes:
            return np.array(match, dtype=np.int64), np.array(bound_to)
    raise DataError("the graph is not the molecule of its SMILES", place)


def _of_graph(graph: Graph) -> _Skeleton:
    assert graph.node_labels is not None
    labels = graph.node_labels
    kinds = [np.delete(labels, CHIRALITY, axis=1) if labels.shape[1] > CHIRALITY else labels]
    codes = np.zeros(graph.edge_index.shape[1]) if graph.edge_labels is None else graph.edge_labels[:, 0]
    orders = {(u, v): int(code) for (u, v), code in zip(graph.edge_index.T.tolist(), codes, strict=True) if u < v}
    return _Skeleton(labels[:, 0], np.column_stack(kinds if graph.x is None else [*kinds, graph.x]), orders)


def _of_molecule(molecule: Any, featurizer: Featurizer) -> _Skeleton:
    block = featurizer.block([molecule], [False])
    kinds: list[Array] = [np.delete(block.atoms, CHIRALITY, axis=1) if featurizer.full else block.atoms]
    if block.mass is not None:
        kinds.append(block.mass[:, None] / MASS_UNIT)
    codes = block.bonds[:, 0].tolist()
    orders = {(min(u, v), max(u, v)): code for (u, v), code in zip(block.ends.tolist(), codes, strict=True)}
    return _Skeleton(block.atoms[:, 0], np.column_stack(kinds), orders)


def _numbers_of_kinds(own: _Skeleton, read: _Skeleton) -> Iterator[tuple[Ints | None, Ints | None]]:
    """Yield the number of the kind of each atom in both, then None: where the kinds differ, elements are matched."""
    if own.kinds.shape == read.kinds.shape:
        numbers = np.unique(np.round([*own.kinds, *read.kinds], 3), axis=0, return_inverse=True)[1].ravel() + 1
        yield numbers[: len(own.kinds)], numbers[len(own.kinds) :]
    yield None, None


def _structure(skeleton: _Skeleton, numbers: Ints | None) -> Any:
    """Return an RDKit molecule to be matched: its isotopes are ``numbers``; without them, all bonds are alike."""
    from rdkit import Chem

    made: Any = Chem.RWMol()
    for i, element in enumerate(skeleton.elements.tolist()):
        atom: Any = Chem.Atom(element)
        if numbers is not None:
            atom.SetIsotope(int(numbers[i]))
        made.AddAtom(atom)
    names = Chem.BondType
    orders = {1: names.SINGLE, 2: names.DOUBLE, 3: names.TRIPLE, AROMATIC: names.AROMATIC}
    for (u, v), code in skeleton.orders.items():
        made.AddBond(u, v, names.SINGLE if numbers is None else orders.get(code, names.ZERO))
    return made


def _renumbered(atoms: AtomsOf) -> AtomsOf:
    """Return the molecule with its canonical SMILES, and its atoms in that order."""
    from rdkit import Chem

    smiles = Chem.MolToSmiles(atoms.molecule)
    order = list(atoms.molecule.GetPropsAsDict(includePrivate=True, includeComputed=True)["_smilesAtomOutputOrder"])
    place = np.argsort(order)  # of each atom in the SMILES
    return AtomsOf(Chem.RenumberAtoms(atoms.molecule, order), smiles, place[atoms.atom], atoms.is_hydrogen)


def smiles_with_hidden_atoms(atoms: AtomsOf, nodes: Ints) -> str:
    """Return the SMILES in which the atoms of some nodes are wildcards; those of hydrogens stay as they are.

    It is of a molecule that is prepared already.
    """
    from rdkit import Chem

    heavy = nodes[~atoms.is_hydrogen[nodes]]
    if not len(heavy):
        return atoms.smiles
    copy = _editable(atoms)
    for number in atoms.atom[heavy].tolist():
        copy.ReplaceAtom(number, Chem.Atom(0))
    copy.UpdatePropertyCache(strict=False)
    return str(Chem.MolToSmiles(copy))


def smiles_without_bond(atoms: AtomsOf, u: int, v: int) -> str:
    """Return the SMILES without the bond of two nodes; hydrogens fill the free valences.

    It is of a molecule that is prepared already. A bond to a hydrogen stays.
    """
    from rdkit import Chem

    if atoms.is_hydrogen[[u, v]].any():
        return atoms.smiles
    copy = _editable(atoms)
    copy.RemoveBond(int(atoms.atom[u]), int(atoms.atom[v]))
    copy.UpdatePropertyCache(strict=False)
    return str(Chem.MolToSmiles(copy))


def _editable(atoms: AtomsOf) -> Any:
    """Return a copy with alternating bonds, as a ring that is changed need not be aromatic."""
    from rdkit import Chem

    copy: Any = Chem.RWMol(atoms.molecule)
    Chem.Kekulize(copy, clearAromaticFlags=True)
    return copy
