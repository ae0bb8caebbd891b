"""SVMs and Gaussian processes on the Tanimoto kernel."""

from dataclasses import replace

import numpy as np
import pytest

import gcaps
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError, MemoryLimitError
from gcaps.estimators import TanimotoSVC, TanimotoSVR, kernel_svm
from gcaps.kernels import Tanimoto, tanimoto
from gcaps.testing import example_molecules


@pytest.fixture(scope="module")
def molecules():
    graphs, share = example_molecules(40)
    return replace(graphs, y=100 * share)


def test_fingerprint_and_radius_are_chosen_from(molecules):
    model = TanimotoSVR(fingerprints="morgan,atom_pairs,maccs", radius=(0, 2), C=(1.0,), inner_folds=2)
    kernels = [(kernel.fingerprint, kernel.radius) for kernel in model.kernels()]
    assert kernels == [("morgan", 0), ("morgan", 2), ("atom_pairs", 2), ("maccs", 2)]
    model.fit(molecules)
    assert (model.chosen_["fingerprint"], model.chosen_["radius"]) in kernels


def test_a_gaussian_process_predicts_its_mean_in_the_units_of_the_target(molecules, tmp_path):
    train, test = molecules[:30], molecules[30:]
    model = TanimotoSVR(model="gp", radius=(1, 2)).fit(train)
    noise, scale = model.chosen_["noise"][0], model.chosen_["scale"][0]
    kernel = Tanimoto(radius=model.chosen_["radius"])
    K = kernel.fit_transform(train)
    mean, deviation = train.y.mean(), train.y.std()
    alpha = np.linalg.solve(scale * K + noise * np.eye(30), (train.y - mean) / deviation)
    expected = mean + deviation * scale * kernel.transform(test) @ alpha
    np.testing.assert_allclose(model.predict(test), expected, rtol=1e-7)
    assert "Gaussian process" in model.describes
    model.save(tmp_path / "m")
    again = gcaps.load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(test), model.predict(test))
    assert again.describes == model.describes


def test_the_likeliest_kernel_is_taken(molecules):
    alone = [TanimotoSVR(model="gp", radius=(r,)).fit(molecules).chosen_["log_likelihood"] for r in (0, 1, 3)]
    both = TanimotoSVR(model="gp", radius=(0, 1, 3)).fit(molecules)
    assert both.chosen_["log_likelihood"] == max(alone)
    assert both.chosen_["radius"] == (0, 1, 3)[int(np.argmax(alone))]


def test_gaussian_processes_of_several_targets_with_missing_values(molecules):
    y = np.stack([molecules.y, -molecules.y], axis=1)
    y[::4, 1] = np.nan
    model = TanimotoSVR(model="gp", radius=(1,)).fit(molecules, y)
    assert len(model.chosen_["noise"]) == 2
    assert np.abs(model.predict(molecules)[::4, 1] + molecules.y[::4]).mean() < molecules.y.std()


def test_weights_of_a_gaussian_process_are_inverse_variances(molecules):
    weight = np.where(np.arange(40) % 2, 100.0, 0.01)
    y = molecules.y + 30 * np.where(np.arange(40) % 2, 0.0, (-1.0) ** (np.arange(40) // 2))
    plain, weighted = (TanimotoSVR(model="gp", radius=(1,)).fit(molecules, y, w) for w in (None, weight))
    odd = molecules[1::2]
    worse, better = (np.abs(model.predict(odd) - odd.y).mean() for model in (plain, weighted))
    assert better < worse


def test_settings_that_a_gaussian_process_does_not_use_are_named(molecules):
    model = TanimotoSVR(model="gp", radius=(1,), C=(1.0,), inner_folds=3).fit(molecules)
    assert [str(entry) for entry in model.resolution_] == [
        "C = 1.0 has no effect: model = gp",
        "inner_folds = 3 has no effect: model = gp",
    ]


def test_a_gaussian_process_refuses_classes(molecules):
    with pytest.raises(ConfigError, match="model = gp is for regression; set model to svm for classes"):
        TanimotoSVC(model="gp").fit(molecules, np.arange(40) % 2)


def test_too_many_molecules_are_refused_before_anything_is_computed(molecules, monkeypatch):
    monkeypatch.setattr(tanimoto.os, "sysconf", lambda name: 64)
    with pytest.raises(MemoryLimitError, match="use method ecfp"):
        TanimotoSVR(radius=(1,)).fit(molecules)


@pytest.mark.parametrize("model", ["svm", "gp"])
def test_a_prepared_set_and_pieces_give_the_same_predictions(model, molecules, monkeypatch):
    prepared, train, test = PreparedSet(molecules), np.arange(0, 40, 2), np.arange(1, 40, 2)
    fitted = TanimotoSVR(model=model, radius=(1, 2), C=(1.0,)).fit_prepared(prepared, train)
    found = fitted.scores_prepared(prepared, test)
    np.testing.assert_allclose(fitted.scores(molecules[test]), found, rtol=1e-9)
    monkeypatch.setattr(kernel_svm, "VALUES", 50)
    np.testing.assert_allclose(fitted.scores(molecules[test]), found, rtol=1e-9)
