"""Contributions of atoms: prediction minus prediction with the atom hidden, whatever the method and the preparation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gcaps
from gcaps.errors import ConfigError, DataError
from gcaps.estimators import make_estimator
from gcaps.explain import atom_contributions, explain
from gcaps.explain.occlusion import HIDDEN, neutral_attributes, with_hidden_nodes
from gcaps.testing import example_graphs
from tests.molecule_sets import molecules, write_table

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install 'gcaps[chem]'")

QUERIES = ["c1ccc([N+](=O)[O-])cc1", "CC(=O)CN", "C", "CCO.Cl"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("molecules") / "mols.csv", molecules(42))


@pytest.fixture(scope="module")
def network(table):
    graphs = gcaps.load(table, target="value")
    return gcaps.GraphCapsuleRegressor(epochs=3, ensemble_size=1, weight_decay=1e-3).fit(graphs)


def one_by_one(model, graphs, column):
    """The definition: a copy of the set for each node, its labels and attributes replaced, predicted alone."""
    found = []
    mean = neutral_attributes(model, graphs)
    for g in range(len(graphs)):
        single = graphs.subset([g])
        whole = model.scores(single)[0, column]
        for i in range(single.num_nodes):
            labels = single.node_labels.copy()
            labels[i] = HIDDEN
            x = None if single.x is None else single.x.copy()
            if x is not None:
                x[i] = mean[g]
            found.append(whole - model.scores(replace(single, node_labels=labels, x=x))[0, column])
    return np.array(found)


def occluded(model, graphs, target=None):
    """Contributions of nodes by occlusion, as for any model."""
    return explain(model, graphs, target, method="occlusion")


def test_occlusion_is_its_definition_for_a_network(network):
    graphs = gcaps.load(QUERIES, labelled=False)
    found = atom_contributions(network, graphs)
    assert [len(one) for one in found] == graphs.sizes.tolist()
    np.testing.assert_allclose(np.concatenate(found), one_by_one(network, graphs, 0), atol=1e-5)
    assert np.abs(np.concatenate(found)).max() > 1e-3


def test_occlusion_is_its_definition_for_a_kernel(table):
    model = make_estimator("wl").fit(gcaps.load(table, target="class"))
    graphs = gcaps.load(QUERIES, labelled=False)
    np.testing.assert_allclose(
        np.concatenate(atom_contributions(model, graphs)), one_by_one(model, graphs, 1), atol=1e-9
    )


@pytest.mark.parametrize("method", ["ecfp", "descriptors", "tanimoto"])
def test_an_atom_is_a_wildcard_for_methods_that_read_smiles(method, table):
    model = make_estimator(method).fit(gcaps.load(table, target="class"))
    (found,) = atom_contributions(model, ["CCO"])
    hidden = model.predict_proba(["*CO", "C*O", "CC*"])[:, 1]
    np.testing.assert_allclose(found, model.predict_proba(["CCO"])[0, 1] - hidden, atol=1e-12)


def test_an_ensemble_is_explained_by_its_mean(table):
    graphs = gcaps.load(table, target="class")
    model = gcaps.GraphEnsemble(["wl", "ecfp"], weights="mean").fit(graphs)
    own = [atom_contributions(member, QUERIES) for member in model.estimators_]
    for found, *each in zip(atom_contributions(model, QUERIES), *own, strict=True):
        np.testing.assert_allclose(found, np.mean(each, axis=0), atol=1e-9)


@pytest.mark.parametrize("text", ["c1ccc([N+](=O)[O-])cc1C", "CC(=O)C(N)CO", "C[C@H](N)C(=O)O"])
def test_contributions_move_with_the_atoms(text, network):
    molecule = Chem.MolFromSmiles(text)
    order = np.random.default_rng(3).permutation(molecule.GetNumAtoms()).tolist()
    shuffled = Chem.RenumberAtoms(molecule, order)
    plain, moved = (atom_contributions(network, [one])[0] for one in (molecule, shuffled))
    place = occluded(network, [shuffled]).atoms[0].atom
    of_atom = np.empty(len(moved))
    of_atom[place] = moved
    written = occluded(network, [shuffled]).atoms[0].molecule
    match = written.GetSubstructMatch(molecule)
    np.testing.assert_allclose(of_atom[list(match)], plain, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "heavy"),
    [
        ({"salts": "strip"}, 3),
        ({"salts": "strip", "charges": "neutralize", "hydrogens": "explicit"}, 3),
        ({"hydrogens": "explicit"}, 4),
        ({"atom_features": "element"}, 4),
    ],
)
def test_molecules_are_explained_as_they_are_prepared(options, heavy, table):
    graphs = gcaps.load(table, target="value", **options)
    model = gcaps.GraphCapsuleRegressor(epochs=2, ensemble_size=1).fit(graphs)
    found = explain(model, ["Cl.CC[O-]"])
    atoms = found.atoms[0]
    assert atoms.molecule.GetNumAtoms() == heavy
    assert sorted(set(atoms.atom.tolist())) == list(range(heavy))
    labels = found.graphs.node_labels[:, 0]
    symbols = [atoms.molecule.GetAtomWithIdx(i).GetAtomicNum() for i in atoms.atom.tolist()]
    assert labels[~atoms.is_hydrogen].tolist() == np.array(symbols)[~atoms.is_hydrogen].tolist()
    assert set(labels[atoms.is_hydrogen].tolist()) <= {1}
    assert Chem.MolFromSmiles(atoms.smiles).GetNumAtoms() == heavy


def test_records_of_an_sdf_are_matched_with_their_atoms(tmp_path, network):
    molecule = Chem.RenumberAtoms(Chem.MolFromSmiles("OC(=O)c1ccccc1N"), [9, 3, 4, 0, 5, 6, 1, 7, 8, 2])
    with Chem.SDWriter(str(tmp_path / "a.sdf")) as file:
        file.write(molecule)
    found = occluded(network, tmp_path / "a.sdf")
    atoms = found.atoms[0]
    elements = [atoms.molecule.GetAtomWithIdx(i).GetAtomicNum() for i in atoms.atom.tolist()]
    assert elements == found.graphs.node_labels[:, 0].tolist()
    of_atom = np.empty(10)
    of_atom[atoms.atom] = found.nodes[0]
    np.testing.assert_allclose(of_atom, atom_contributions(network, [Chem.MolToSmiles(atoms.molecule)])[0], atol=1e-5)


def test_one_of_several_targets_is_chosen(table):
    model = make_estimator("ecfp").fit(gcaps.load(table, target=["a", "b"]))
    both = [occluded(model, QUERIES, target) for target in ("a", "b")]
    assert both[1].output.words == "probability that b is 1"
    assert not np.allclose(*(np.concatenate(one.nodes) for one in both))
    np.testing.assert_array_equal(occluded(model, QUERIES).nodes[0], both[0].nodes[0])
    with pytest.raises(ConfigError, match="the model has no target 'c'; it predicts a, b"):
        explain(model, QUERIES, "c")


def test_of_three_classes_the_predicted_one_is_explained(table):
    graphs = gcaps.load(table, target="class")
    model = make_estimator("wl").fit(graphs, np.arange(len(graphs)) % 3)
    found = occluded(model, QUERIES)
    assert found.output.words == "probability of the predicted class"
    np.testing.assert_array_equal(found.output.column, found.scores.argmax(axis=1))


def test_an_estimator_may_explain_itself(network):
    class Own(type(network)):
        def atom_contributions(self, graphs, column):
            return [np.full(n, 7.0) for n in graphs.sizes]

    own = Own.__new__(Own)
    own.__dict__.update(network.__dict__)
    assert atom_contributions(own, ["CCO"])[0].tolist() == [7.0, 7.0, 7.0]


def test_only_the_hidden_node_differs():
    graphs = gcaps.load(["CCO", "C"], labelled=False)
    copies = with_hidden_nodes(graphs, np.array([2, 3]), np.zeros(graphs.x.shape[1]))
    assert (copies.node_labels[[2, 3]] == HIDDEN).all()
    np.testing.assert_array_equal(copies.node_labels[:2], graphs.node_labels[:2])
    assert (copies.x[[2, 3]] == 0).all()
    assert (graphs.x != 0).all(), "the set itself is unchanged"


def test_what_is_not_a_molecule_is_refused(network):
    with pytest.raises(DataError, match="columns of node labels"):
        atom_contributions(network, gcaps.load("MUTAG"))
    with pytest.raises(DataError, match="needs molecules"):
        atom_contributions(make_estimator("wl", {"n_iter": (1,)}).fit(gcaps.load("MUTAG")), gcaps.load("MUTAG")[:1])
    graphs = gcaps.load(["CCO"], labelled=False)
    other = replace(graphs, columns={**graphs.columns, "smiles": np.array(["CCN"])})
    with pytest.raises(DataError, match="the graph is not the molecule of its SMILES"):
        atom_contributions(network, other)


def test_an_explanation_is_shown_in_one_line():
    graphs, _ = example_graphs(6)
    shown = repr(make_estimator("wl").fit(graphs).explain(graphs[:2]))
    assert shown.startswith("Explanation(")
    assert "graphs=2, decision value of class" in shown
    assert "\n" not in shown
    assert len(shown) < 120


def test_contributions_of_nodes_alone_are_the_same(network):
    whole, alone = explain(network, QUERIES[:2]), explain(network, QUERIES[:2], nodes_only=True)
    for one, other in zip(whole.nodes, alone.nodes, strict=True):
        np.testing.assert_array_equal(one, other)
    assert alone.edges is None
    assert alone.groups is None
