"""Trees on fingerprints: what they are fitted to, and molecules that break careless code."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor

import gcaps
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError, DataError
from gcaps.estimators import (
    DescriptorClassifier,
    DescriptorRegressor,
    ECFPClassifier,
    ECFPRegressor,
    fingerprint_methods,
)
from gcaps.features import fingerprints as computed

SMILES = [
    *("C", "CC", "CCO", "c1ccccc1", "CC(=O)O", "[Na+].[Cl-]", "O", "[He]", "CC(=O)[O-].[Na+]", "CCO", "CCO", "N#N"),
    *("CCCCCCCC", "c1ccc2ccccc2c1", "CCN(CC)CC", "OC[C@H](O)CO", "C1CCCCC1", "FC(F)(F)F", "[Fe]", "BrCCBr", "CS(C)=O"),
    *("Cn1cnc2c1c(=O)n(C)c(=O)n2C", "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "Clc1ccccc1"),
]
"""One atom, ions, salts, a noble gas, a metal, duplicates, and drugs."""


@pytest.fixture(scope="module")
def molecules():
    graphs = gcaps.load(SMILES, labelled=False)
    return replace(graphs, y=graphs.sizes.astype(np.float64))


@pytest.fixture(scope="module")
def classes(molecules):
    return np.array(["small", "medium", "large"])[np.digitize(molecules.sizes, [4, 7])]


def standardised(y):
    return (y - y.mean()) / y.std()


def test_a_forest_is_scikit_learns_on_the_fingerprints(molecules, classes):
    x = computed.fingerprint(molecules, "morgan", radius=1, bits=128)
    model = ECFPClassifier(n_estimators=7, radius=1, bits=128, random_state=3).fit(molecules, classes)
    forest = RandomForestClassifier(7, random_state=3).fit(x, classes)
    np.testing.assert_allclose(model.predict_proba(molecules), forest.predict_proba(x), rtol=1e-12)
    regressor = ECFPRegressor(n_estimators=7, radius=1, bits=128, random_state=3).fit(molecules)
    forest = RandomForestRegressor(7, max_features=1 / 3, random_state=3).fit(x, standardised(molecules.y))
    expected = forest.predict(x) * molecules.y.std() + molecules.y.mean()
    np.testing.assert_allclose(regressor.predict(molecules), expected, rtol=1e-9)


def test_boosting_is_scikit_learns_on_the_descriptors(molecules):
    x = computed.fingerprint(molecules, "descriptors")
    assert np.isnan(x).any()
    assert not np.isnan(x).all(axis=0).any()
    y = standardised(molecules.y)
    model = DescriptorRegressor(n_estimators=9, random_state=3).fit(molecules)
    options = {"learning_rate": 0.05, "min_samples_leaf": 5, "max_features": 0.1, "early_stopping": False}
    boosting = HistGradientBoostingRegressor(max_iter=9, random_state=3, **options).fit(x, y)
    expected = boosting.predict(x) * molecules.y.std() + molecules.y.mean()
    np.testing.assert_allclose(model.predict(molecules), expected, rtol=1e-6)
    assert model.describes == "9 boosted trees on descriptors"


@pytest.mark.parametrize("model", ["forest", "boosting"])
def test_undefined_descriptors_are_missing_values(model, molecules, classes, tmp_path):
    fitted = DescriptorClassifier(n_estimators=4, model=model).fit(molecules[5:], classes[5:])
    fitted.save(tmp_path / "m")
    found = fitted.predict_proba(molecules)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(gcaps.load_model(tmp_path / "m").predict_proba(molecules), found)


@pytest.mark.parametrize("model", ["forest", "boosting"])
def test_a_descriptor_that_no_training_molecule_has_is_ignored(model, molecules):
    metals = gcaps.load(["[Fe]", "[Zn]", "[Cu]", "[Ni]"] * 4, labelled=False)
    assert np.isnan(computed.fingerprint(metals, "descriptors")).all(axis=0).any()
    fitted = DescriptorRegressor(n_estimators=3, model=model).fit(metals, np.arange(16.0) % 4)
    assert np.isfinite(fitted.predict(molecules)).all()


def test_several_targets_are_each_fitted_to_the_molecules_that_have_them(molecules, tmp_path):
    y = np.stack([molecules.sizes > 3, molecules.sizes > 0, molecules.sizes % 2], axis=1).astype(float)
    y[::4, 0] = np.nan
    model = ECFPClassifier(model="boosting", n_estimators=5, bits=64).fit(molecules, y)
    known = np.flatnonzero(~np.isnan(y[:, 0]))
    alone = ECFPClassifier(model="boosting", n_estimators=5, bits=64).fit(molecules[known], y[known, 0].astype(int))
    found = model.predict_proba(molecules)
    np.testing.assert_allclose(found[:, 0], alone.predict_proba(molecules)[:, 1], atol=1e-12)
    np.testing.assert_array_equal(found[:, 1], 1.0)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(gcaps.load_model(tmp_path / "m").predict_proba(molecules), found)


def test_fingerprints_of_a_prepared_set_are_computed_once(molecules, monkeypatch):
    prepared, calls = PreparedSet(molecules), []
    real = computed._function
    monkeypatch.setattr(computed, "_function", lambda *given: calls.append(given) or real(*given))
    train, test = np.arange(0, 24, 2), np.arange(1, 24, 2)
    model = ECFPRegressor(n_estimators=3, fingerprints="morgan,maccs").fit_prepared(prepared, train)
    found = model.scores_prepared(prepared, test)
    ECFPRegressor(n_estimators=3, fingerprints="morgan,maccs").fit_prepared(prepared, test)
    assert [name for name, *_ in calls] == ["morgan", "maccs"]
    np.testing.assert_array_equal(model.scores(molecules[test]), found)


def test_many_molecules_are_predicted_piece_by_piece(molecules, monkeypatch):
    model = ECFPRegressor(n_estimators=3).fit(molecules)
    expected = model.predict(molecules)
    monkeypatch.setattr(fingerprint_methods, "NODES", 9)
    monkeypatch.setattr(computed, "MOLECULES", 2)
    np.testing.assert_array_equal(model.predict(molecules), expected)


def test_threads_change_nothing(molecules):
    one, two = (ECFPRegressor(n_estimators=6, threads=threads).fit(molecules).predict(molecules) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_order_and_preparation_of_the_fingerprints(molecules):
    names = ("maccs", "morgan")
    model = ECFPRegressor(n_estimators=2, fingerprints=names, bits=32).fit(molecules)
    parts = [computed.fingerprint(molecules, name, bits=32) for name in names]
    np.testing.assert_array_equal(model.transform(molecules), np.hstack(parts))
    assert len(model.get_feature_names_out()) == 167 + 32


def test_mistakes_are_one_line(molecules):
    with pytest.raises(ConfigError, match=r"fingerprints: .*'ecfp'"):
        ECFPRegressor(fingerprints="ecfp").fit(molecules)
    fitted = ECFPRegressor(n_estimators=1).fit(molecules)
    with pytest.raises(DataError, match="ecfp needs molecules"):
        fitted.predict(replace(molecules, columns={}))


def test_settings_without_effect_are_named(molecules):
    model = DescriptorRegressor(n_estimators=1, model="forest", radius=3, bits=64, learning_rate=0.1).fit(molecules)
    assert sorted(map(str, model.resolution_)) == [
        "bits = 64 has no effect: none of the fingerprints is folded",
        "learning_rate = 0.1 has no effect: model = forest",
        "radius = 3 has no effect: no Morgan fingerprint is used",
    ]
