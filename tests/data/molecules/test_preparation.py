"""Salts, charges and hydrogens: prepared as asked, recorded with set and model, and the same for predictions."""

import numpy as np
import pytest

import gcaps
from gcaps.data.molecules import MoleculePreparation, molecules_of
from gcaps.errors import ConfigError, DataError

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install 'gcaps[chem]'")


def test_salts_are_kept_or_stripped():
    salt = ["CC(N)C(=O)O.Cl", "CCO"]
    assert gcaps.load(salt, labelled=False).sizes.tolist() == [7, 3]
    stripped = gcaps.load(salt, labelled=False, salts="strip")
    assert stripped.sizes.tolist() == [6, 3]
    assert stripped.preparation.salts == "strip"
    assert [m.GetNumAtoms() for m in molecules_of(stripped)] == [6, 3]


def test_charges_are_kept_or_neutralised():
    ion = ["CC(=O)[O-]", "C[NH3+]", "C[N+](C)(C)C"]
    charge = 2
    kept = gcaps.load(ion, labelled=False)
    assert kept.node_labels[:, charge].tolist() == [0, 0, 0, -1, 0, 1, 0, 1, 0, 0, 0]
    neutral = gcaps.load(ion, labelled=False, charges="neutralize")
    assert neutral.node_labels[:, charge].tolist() == [0] * 7 + [1, 0, 0, 0], "no proton to remove from the last"
    acid = gcaps.load(["CC(=O)O", "CN"], labelled=False)
    assert neutral[:2].fingerprint() == acid.fingerprint()


def test_wrong_values_are_refused_in_one_line():
    with pytest.raises(ConfigError, match="salts is 'remove'; it should be 'keep' or 'strip'"):
        gcaps.load(["C"], labelled=False, salts="remove")


def test_a_saved_set_remembers_its_preparation(tmp_path):
    graphs = gcaps.load(["CCO", "C"], labelled=False, hydrogens="explicit")
    graphs.save(tmp_path / "a.gset")
    assert gcaps.load(tmp_path / "a.gset", labelled=False).preparation == graphs.preparation
    table = tmp_path / "b.csv"
    table.write_text("smiles,y\nCCO,1\nC,2\n")
    found = gcaps.data.convert(table, tmp_path / "b.gset", hydrogens="explicit")
    assert found.preparation == MoleculePreparation(hydrogens="explicit")
    assert graphs[:1].preparation == graphs.preparation


@pytest.mark.parametrize("method", ["gcaps", "wl"])
def test_a_model_prepares_molecules_as_its_training_did(tmp_path, method):
    smiles = ["CCO", "CCN.Cl", "CCC", "CC[NH3+]", "CO", "CN.Br", "CCCC", "CCCN"]
    y = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    graphs = gcaps.load(smiles, labelled=False, salts="strip", charges="neutralize")
    settings = {"epochs": 2} if method == "gcaps" else {}
    model = gcaps.estimators.make_estimator(method, settings).fit(graphs, y)
    expected = model.predict_proba(graphs)
    np.testing.assert_array_equal(model.predict_proba(smiles), expected)
    model.save(tmp_path / "model")
    again = gcaps.load_model(tmp_path / "model")
    assert again.preparation_ == graphs.preparation
    np.testing.assert_allclose(again.predict_proba(smiles), expected, atol=1e-6)
    with pytest.raises(DataError, match=r"salts = keep.*salts = strip"):
        model.predict(gcaps.load(smiles, labelled=False))


def test_graphs_that_are_not_molecules_have_no_preparation():
    assert gcaps.load("families").preparation is None
