"""Fingerprints and descriptors as columns for a network."""

import json
from dataclasses import replace

import numpy as np
import pytest

import gcaps
from gcaps.config import Config
from gcaps.data.prepared import PreparedSet
from gcaps.errors import DataError, ModelError
from gcaps.features import GraphFeatures, NodeFeatures, graph_features
from gcaps.features.fingerprints import fingerprint, fingerprint_columns
from gcaps.features.graph_features import MAX_DEVIATIONS, ScaledFingerprint
from gcaps.testing import hostile_graphs

Chem = pytest.importorskip("rdkit.Chem")

SMILES = ["CCO", "CCCCO", "c1ccccc1", "CC(=O)O", "CCN", "[Na+].[Cl-]", "CCBr", "c1ccncc1", "O=C(N)c1ccccc1", "C"]
TRAIN = np.array([0, 1, 2, 3, 5, 9])
EVERY = ("morgan", "morgan_bits", "descriptors", "maccs", "atom_pairs")


@pytest.fixture(scope="module")
def molecules():
    return gcaps.load(SMILES, labelled=False)


def oracle(name, vectors, train):
    """Columns one after the other, as the documentation says."""
    columns = []
    for column in vectors.T.astype(np.float64):
        values = np.array([np.log(1 + c) for c in column]) if name in ("morgan", "atom_pairs") else column
        known = values[train][~np.isnan(values[train])]
        if len(known) == 0 or np.ptp(known) < 1e-6 * (1 + abs(known.mean())):
            continue
        if name == "descriptors":
            scaled = (values - known.mean()) / known.std()
            values = np.array([0 if np.isnan(s) else max(-MAX_DEVIATIONS, min(MAX_DEVIATIONS, s)) for s in scaled])
        columns.append(values)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("name", EVERY)
def test_columns_are_scaled_by_the_training_graphs(molecules, name):
    fitted = GraphFeatures.fit([name], molecules, TRAIN)
    found, expected = fitted.encode(molecules), oracle(name, fingerprint(molecules, name), TRAIN)
    assert found.dtype == np.float32
    assert found.shape == expected.shape == (len(SMILES), fitted.num_features)
    assert 0 < fitted.num_features < len(fingerprint_columns(name)), "constant columns are left out"
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_undefined_and_absurd_descriptors_do_no_harm():
    names = fingerprint_columns("descriptors")
    vectors = np.tile(np.arange(8.0)[:, None], len(names)).astype(np.float32)
    vectors[:, 0] = np.nan
    vectors[::2, 1] = np.nan
    vectors[:, 2] = 3.0
    part = ScaledFingerprint("descriptors").fit([vectors[:5], vectors[5:]])
    assert part.columns_ == [names[1], *names[3:]]
    new = np.full((2, len(names)), 1e38, dtype=np.float32)
    new[1] = np.nan
    found = part.transform(new)
    assert (found[0] == MAX_DEVIATIONS).all()
    assert (found[1] == 0).all()
    np.testing.assert_allclose(part.transform(vectors)[1::2, 0], (np.arange(1, 8, 2) - 4) / np.sqrt(5), rtol=1e-6)


def test_other_graphs_move_nothing(molecules):
    state = GraphFeatures.fit(EVERY, molecules, TRAIN).state()
    changed = molecules.columns["smiles"].copy()
    changed[np.setdiff1d(np.arange(len(SMILES)), TRAIN)] = "CCS"
    assert GraphFeatures.fit(EVERY, replace(molecules, columns={"smiles": changed}), TRAIN).state() == state


def test_a_mapped_a_prepared_and_a_plain_set_give_the_same(molecules, tmp_path, monkeypatch):
    monkeypatch.setattr(graph_features, "PIECE", 4)
    molecules.save(tmp_path / "set")
    mapped = gcaps.GraphSet.open(tmp_path / "set")
    assert mapped.mapped
    expected = GraphFeatures.fit(EVERY, molecules, TRAIN)
    for graphs in (mapped, PreparedSet(mapped), PreparedSet(molecules)):
        found = GraphFeatures.fit(EVERY, graphs, TRAIN)
        assert found.state() == expected.state()
        assert (found.encode(graphs) == expected.encode(molecules)).all()


def test_atoms_may_be_written_in_any_order(molecules):
    fitted = GraphFeatures.fit(("morgan", "maccs", "descriptors"), molecules, TRAIN)
    for seed in range(3):
        other = [Chem.MolToRandomSmilesVect(Chem.MolFromSmiles(text), 1, seed + 1)[0] for text in SMILES]
        found = fitted.encode(gcaps.load(other, labelled=False))
        np.testing.assert_allclose(found, fitted.encode(molecules), atol=1e-4)


def test_the_state_survives_json(molecules):
    fitted = NodeFeatures.fit(Config(features="labels", extra_features="maccs,descriptors"), molecules, TRAIN)
    again = NodeFeatures.from_state(json.loads(json.dumps(fitted.state())))
    assert again.shape == fitted.shape == {"graph_dim": fitted.graphs.num_features}
    assert (again.encode(molecules).graphs == fitted.encode(molecules).graphs).all()


def test_without_extra_features_there_are_none(molecules):
    fitted = NodeFeatures.fit(Config(features="labels", edge_features=()), molecules)
    assert (fitted.shape, fitted.encode(molecules).graphs) == ({}, None)
    assert list(fitted.state()) == ["labels"]


def test_a_descriptor_that_this_rdkit_lacks_is_named(molecules):
    state = GraphFeatures.fit(("descriptors",), molecules, TRAIN).state()
    state["descriptors"]["columns"][0] = "Philosophy"
    with pytest.raises(ModelError, match="trained with Philosophy, which this RDKit does not have"):
        GraphFeatures.from_state(state).encode(molecules)


def test_graphs_that_are_not_molecules_are_refused_in_one_line():
    with pytest.raises(DataError, match=r"^extra_features: morgan needs molecules .*SMILES.*hostile has other graphs$"):
        GraphFeatures.fit(("morgan",), replace(hostile_graphs(8), name="hostile"), np.arange(8))
