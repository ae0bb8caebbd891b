"""What every method shares beyond scikit-learn's conventions, which test_estimator_checks.py checks."""

import inspect
import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gcaps
import gcaps.estimators.kernel_svm as kernel_svm
from gcaps.config import CONFIGS
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError, DataError
from gcaps.estimators import METHODS, KernelSVC, make_estimator
from gcaps.estimators.registry import estimator_class
from gcaps.kernels import ShortestPath, WeisfeilerLehman, WLOptimalAssignment
from gcaps.kernels.svm import Choice
from gcaps.testing import hostile_graphs

NETWORK = {"epochs": 2, "hidden": 4}
SMALL = {
    "gcaps": {**NETWORK, "layers": 2, "rank": 4, "fc": 8},
    "capsule-svm": {"layers": 2, "hidden": 4, "rank": 4, "C": (1.0,), "gamma": (1.0,)},
    "dcnn": {"epochs": 2, "hops": 2},
    "pscn": {**NETWORK, "field": 3, "channels": 4},
    "ecc": {**NETWORK, "top": 4, "filter_hidden": 3},
    "dgcnn": {**NETWORK, "layers": 2, "channels": 4, "dense": 4},
    "gin": {**NETWORK, "layers": 2},
    "deepsets": NETWORK,
    "rw": {"decays": (1e-2,), "C": (1.0,), "inner_folds": 2},
    "sp": {"C": (1.0,), "inner_folds": 2},
    "gk": {"sizes": (3,), "C": (1.0,), "inner_folds": 2},
    "wl": {"n_iter": (1, 2), "C": (1.0, 10.0), "inner_folds": 2},
    "wloa": {"n_iter": (1,), "C": (1.0,), "inner_folds": 2},
    "retgk": {"gamma": (10.0,), "n_features": 20, "C": (1.0,), "inner_folds": 2},
    "wwl": {"n_iter": (1,), "rates": (1.0,), "C": (1.0,), "inner_folds": 2},
    "dgk": {"n_iter": (1,), "sizes": (3,), "dimension": 4, "C": (1.0,), "inner_folds": 2},
    "mlg": {"levels": (1,), "eta": (1.0,), "gamma": (0.1,), "rank": 3, "samples": 8, "C": (1.0,), "inner_folds": 2},
    "tanimoto": {"radius": (1, 2), "C": (1.0,), "inner_folds": 2},
    "fgsd": {"bins": 10, "n_estimators": 5},
    "ltp": {"bins": 5, "n_estimators": 5},
    "ecfp": {"n_estimators": 5, "bits": 64},
    "descriptors": {"n_estimators": 5, "fingerprints": ("morgan", "maccs"), "bits": 64},
    "ensemble": {"methods": ("wl", "deepsets")},
}


def suited(method, graphs):
    """The graphs, or chains of as many atoms for a method that needs molecules."""
    if not METHODS[method].needs_molecules:
        return graphs
    return replace(gcaps.load(["C" * int(n) for n in graphs.sizes], labelled=False), y=graphs.y)


@pytest.fixture(scope="module")
def graphs():
    return hostile_graphs(48, seed=7, largest=10)


@pytest.fixture(scope="module")
def words(graphs):
    """Classes as strings."""
    return np.where(graphs.y == 1, "toxic", "harmless")


@pytest.fixture(scope="module")
def fitted(graphs, words):
    """Every method, fitted once on the first 40 graphs."""
    return {name: make_estimator(name, SMALL[name]).fit(suited(name, graphs)[:40], words[:40]) for name in METHODS}


def test_every_method_has_settings_an_estimator_and_is_tested_here():
    assert set(METHODS) == set(CONFIGS) == set(SMALL)


@pytest.mark.parametrize("method", METHODS)
def test_the_constructor_spells_out_the_settings_and_their_defaults(method):
    kind, config = estimator_class(method), CONFIGS[method]
    parameters = inspect.signature(kind.__init__).parameters
    assert not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values())
    assert {name: parameters[name].default for name in config.model_fields} == {
        name: field.default for name, field in config.model_fields.items()
    }
    assert set(parameters) - set(config.model_fields) <= {"self", "random_state", "verbose"}
    assert all(p.annotation is not inspect.Parameter.empty for name, p in parameters.items() if name != "self")


@pytest.mark.parametrize("method", METHODS)
def test_parameters_are_stored_as_given_cloned_and_set(method):
    estimator = make_estimator(method, SMALL[method], random_state=5)
    assert clone(estimator).get_params() == estimator.get_params()
    assert {name: estimator.get_params()[name] for name in SMALL[method]} == SMALL[method]
    assert estimator.set_params(random_state=6).random_state == 6
    with pytest.raises(TypeError, match="wings"):
        estimator_class(method)(wings=2)


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_model_predicts_the_same_bits(method, fitted, graphs, tmp_path):
    model, graphs = fitted[method], suited(method, graphs)
    model.save(tmp_path / "m")
    again = gcaps.load_model(tmp_path / "m")
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict_proba(graphs), model.predict_proba(graphs))
    assert again.get_params() == model.get_params()
    assert (again.resolved_, again.data_) == (json.loads(json.dumps(model.resolved_)), model.data_)
    assert not [p for p in (tmp_path / "m").rglob("*") if p.suffix not in ("", ".json", ".safetensors")]
    again.save(tmp_path / "again")
    np.testing.assert_array_equal(gcaps.load_model(tmp_path / "again").predict(graphs), model.predict(graphs))


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_auto_after_fit_and_each_resolution_has_a_reason(method, fitted):
    model = fitted[method]
    assert "auto" not in model.resolved_.values()
    assert {entry.setting for entry in model.resolution_} >= {
        name for name, value in model.config.to_dict().items() if value == "auto"
    }
    assert all(entry.reason for entry in model.resolution_)


@pytest.mark.parametrize("method", ["gcaps", "gin", "capsule-svm", "fgsd"])
def test_random_state_decides(method, graphs, words):
    one, two, other = (
        make_estimator(method, SMALL[method], random_state=seed).fit(graphs, words).predict_proba(graphs)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("method", METHODS)
def test_sample_weights_count(method, graphs, words):
    graphs, weight = suited(method, graphs), np.where(words == "toxic", 50.0, 1.0)
    longer = {"epochs": 20, "with_svm": False} if method == "gcaps" else {}
    model = make_estimator(method, {**SMALL[method], **longer})
    plain = clone(model).fit(graphs, words).predict_proba(graphs)[:, 1].mean()
    assert model.fit(graphs, words, sample_weight=weight).predict_proba(graphs)[:, 1].mean() > plain
    if METHODS[method].family in ("network", "baseline") or method == "gcaps":  # an SVM's weights scale C, as in SVC
        equal = clone(model).fit(graphs, words, np.full(48, 2.0)).predict_proba(graphs)
        np.testing.assert_allclose(equal[:, 1].mean(), plain, atol=1e-5)


def test_any_kernels_can_be_chosen_from_saved_and_loaded(graphs, words, tmp_path):
    model = KernelSVC([WeisfeilerLehman(1), ShortestPath()], C=(1.0, 10.0)).fit(graphs, words)
    assert model.chosen_["kernel"] in ("WeisfeilerLehman", "ShortestPath")
    assert model.decision_function(graphs).shape == (48,)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(gcaps.load_model(tmp_path / "m").predict_proba(graphs), model.predict_proba(graphs))
    with pytest.raises(ConfigError, match="positive penalties"):
        KernelSVC(WeisfeilerLehman(1), C=()).fit(graphs, words)


@pytest.mark.parametrize("chosen", [0, 1])
def test_kernels_of_the_same_parameters_are_told_apart(chosen, graphs, words, monkeypatch):
    """A prepared set has a Gram matrix for each kernel; the chosen one's must be used."""
    monkeypatch.setattr(kernel_svm, "choose", lambda grams, *_: Choice(chosen, 1.0, len([*grams]) / 2))
    prepared = PreparedSet(replace(graphs, y=words))
    model = KernelSVC([WeisfeilerLehman(1), WLOptimalAssignment(1)]).fit_prepared(prepared, np.arange(40))
    assert type(model.kernel_) is (WeisfeilerLehman, WLOptimalAssignment)[chosen]
    found = model.scores_prepared(prepared, np.arange(40, 48))
    np.testing.assert_allclose(found, model.predict_proba(graphs[40:]), atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_registry_and_the_estimator_agree_on_molecules(method, graphs, words):
    needed = METHODS[method].needs_molecules
    for task in ("classification", "regression"):
        assert getattr(estimator_class(method, task), "needs_molecules", False) == needed
    if needed:
        with pytest.raises(DataError, match=f"hostile: {method} needs molecules: a table with a column of SMILES"):
            make_estimator(method, SMALL[method]).fit(graphs, words)


@pytest.mark.parametrize("method", METHODS)
def test_mistakes_are_named(method, graphs):
    model, graphs = make_estimator(method, SMALL[method]), suited(method, graphs)
    with pytest.raises(NotFittedError):
        model.save("nowhere")
    with pytest.raises(DataError, match="at least two classes"):
        model.fit(graphs, np.zeros(48, dtype=int))
    with pytest.raises(DataError, match="48 targets, one row for each graph"):
        model.fit(graphs, np.zeros(3, dtype=int))
    with pytest.raises(DataError, match="contains real numbers"):
        model.fit(graphs, np.linspace(0, 1, 48))


def test_settings_are_checked_in_fit_and_not_before(graphs):
    model = gcaps.GraphCapsuleClassifier(hidden=0)
    with pytest.raises(ConfigError, match=r"hidden: .* \(given: 0\)"):
        model.fit(graphs)
    with pytest.raises(ConfigError, match="no effect under schedule = cosine"):
        gcaps.GraphCapsuleClassifier(decay=0.5).fit(graphs)


def test_a_class_without_training_graphs_has_no_column(graphs):
    y = np.array(["a", "b", "c"] * 16)
    model = make_estimator("wl", SMALL["wl"]).fit(graphs.subset(np.flatnonzero(y != "c")), y[y != "c"])
    assert model.classes_.tolist() == ["a", "b"]


def test_the_ensemble_averages_its_members(graphs, words):
    model = make_estimator("ensemble", SMALL["ensemble"] | {"weights": "mean"}).fit(graphs, words)
    members = [make_estimator(name).fit(graphs, words).predict_proba(graphs) for name in ("wl", "deepsets")]
    np.testing.assert_allclose(model.predict_proba(graphs), np.mean(members, axis=0), atol=1e-12)
    mixed = gcaps.GraphEnsemble([KernelSVC(WeisfeilerLehman(1)), "sp"], weights="mean").fit(graphs, words)
    assert mixed.predict(graphs).shape == (48,)
