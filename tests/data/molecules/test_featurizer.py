"""Atoms and bonds in bulk are what RDKit says atom by atom and bond by bond."""

import numpy as np
import pytest

import gcaps
from gcaps.data.graphset import GraphSet

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install 'gcaps[chem]'")

from gcaps.data.molecules.featurizer import ATOM_LABELS, BOND_LABELS, Featurizer  # noqa: E402
from gcaps.data.molecules.preparation import MoleculePreparation  # noqa: E402

SMILES = [
    "CCO",
    "c1ccccc1C#N",
    "[Na+].[Cl-]",
    "*C(=O)*",
    "N->[Cu]",
    "C",
    "[H][H]",
    "[2H]OC",
    "C$C",
    "C[C@H](N)C(=O)O",
    "C[C@@H](N)C(=O)O",
    "F/C=C/F",
    "F/C=C\\F",
    "[O-][n+]1ccccc1",
    "[CH3]",
    "[13CH4]",
    "C1CC2CC1CC2c1ccc2[nH]ccc2c1",
    "F[P-](F)(F)(F)(F)F",
    "[Xe]",
    "CC1=CC(=O)C=CC1=O",
    "C=CC=C",
    "CCO |$;;R$|",
    "N" + "CC(=O)N" * 60,
]


def by_hand(smiles: str, explicit: bool = False) -> tuple[list[tuple], dict[tuple[int, int], tuple]]:
    """Labels and mass of each atom, and labels of each bond by its ends, one RDKit call each."""
    molecule = Chem.MolFromSmiles(smiles)
    if explicit:
        molecule = Chem.AddHs(molecule)
    orders = {Chem.BondType.SINGLE: 1, Chem.BondType.DOUBLE: 2, Chem.BondType.TRIPLE: 3, Chem.BondType.AROMATIC: 4}
    atoms = [
        (
            atom.GetAtomicNum(),
            atom.GetDegree(),
            atom.GetFormalCharge(),
            atom.GetTotalNumHs(includeNeighbors=True),
            int(atom.GetHybridization()),
            int(atom.GetIsAromatic()),
            int(atom.IsInRing()),
            int(atom.GetChiralTag()),
            atom.GetNumRadicalElectrons(),
            atom.GetMass(),
        )
        for atom in molecule.GetAtoms()
    ]
    bonds = {
        tuple(sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))): (
            orders.get(bond.GetBondType(), 5),
            int(bond.GetIsConjugated()),
            int(bond.IsInRing()),
            int(bond.GetStereo()),
        )
        for bond in molecule.GetBonds()
    }
    return atoms, bonds


def assert_equal(graphs: GraphSet, explicit: bool = False) -> None:
    for i, smiles in enumerate(graphs.columns["smiles"].tolist()):
        atoms, bonds = by_hand(smiles, explicit)
        graph = graphs[i]
        assert [tuple(row) for row in graph.node_labels.tolist()] == [atom[:-1] for atom in atoms], smiles
        assert graph.x[:, 0] * 100 == pytest.approx([atom[-1] for atom in atoms], rel=1e-6), smiles
        found = {
            (u, v): tuple(labels)
            for u, v, labels in zip(*graph.edge_index.tolist(), graph.edge_labels.tolist(), strict=True)
        }
        assert found == bonds | {(v, u): labels for (u, v), labels in bonds.items()}, smiles


def test_labels_and_masses_are_those_of_rdkit_atom_by_atom():
    graphs = gcaps.load(SMILES, labelled=False)
    assert graphs.node_labels.shape[1] == len(ATOM_LABELS)
    assert graphs.edge_labels.shape[1] == len(BOND_LABELS)
    assert graphs.preparation == MoleculePreparation()
    assert_equal(graphs)


def test_explicit_hydrogens_are_nodes():
    graphs = gcaps.load(SMILES, labelled=False, hydrogens="explicit")
    assert graphs[0].num_nodes == 9, "CH3CH2OH"
    assert_equal(graphs, explicit=True)


def test_elements_alone_are_the_first_column_of_all():
    full = gcaps.load(SMILES, labelled=False)
    plain = gcaps.load(SMILES, labelled=False, atom_features="element")
    assert plain.x is None
    np.testing.assert_array_equal(plain.node_labels, full.node_labels[:, :1])
    np.testing.assert_array_equal(plain.edge_labels, full.edge_labels[:, :1])


def test_one_molecule_at_a_time_is_the_same_as_all_at_once():
    together = gcaps.load(SMILES, labelled=False)
    for i, smiles in enumerate(SMILES):
        alone = gcaps.load([smiles], labelled=False)
        assert alone.fingerprint() == together[[i]].fingerprint()


def test_molecules_that_differ_in_bonds_hydrogens_or_stereo_have_different_graphs():
    smiles = ["c1ccccc1", "C1CCCCC1", "C1CCCC=C1", "F/C=C/F", "F/C=C\\F", "C[C@H](N)O", "C[C@@H](N)O", "[CH3]", "C"]
    prints = [gcaps.load([text], labelled=False).fingerprint() for text in smiles]
    assert len(set(prints)) == len(smiles)


def test_no_molecule_at_all_is_an_empty_block():
    block = Featurizer(MoleculePreparation()).block([], [])
    assert len(block.sizes) == len(block.atoms) == len(block.ends) == 0
