"""Models that know their errors: every method and task, what calibrates them, coverage on real graphs, files."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

import gcaps
from gcaps.data import make_families
from gcaps.errors import ConfigError, DataError, ModelError
from gcaps.estimators import METHODS, calibrating, make_estimator
from gcaps.estimators.conformal import SPREAD_FLOOR
from gcaps.estimators.out_of_fold import InnerFolds
from gcaps.kernels.svm import inner_splits
from gcaps.persistence import _digest
from tests.estimators.test_conformal import tolerance
from tests.estimators.test_every_task import binary_targets, real_targets
from tests.estimators.test_manners import SMALL, suited

WL = {"n_iter": (1,), "C": (1.0,), "inner_folds": 2}
FGSD = {"bins": 10, "n_estimators": 10}


@pytest.fixture(scope="module")
def graphs():
    return make_families(60, seed=1)


@pytest.fixture(scope="module")
def mutag():
    return gcaps.load("MUTAG")


@pytest.fixture(scope="module")
def calibrated(mutag):
    return make_estimator("wl", WL).fit_calibrated(mutag[:140])


def targets(task, graphs):
    size = graphs.sizes.astype(float)
    if task == "multilabel":
        return binary_targets(size)
    return real_targets(size) if task == "regression" else np.where(size > np.median(size), "big", "small")


def uncertain(model, graphs):
    """Everything that a model says of its errors."""
    if model.target_.task == "regression":
        found = [model.predict_interval(graphs, 0.7)]
    else:
        found = [model.predict_calibrated(graphs), model.predict_set(graphs, 0.7)]
    return [*found, *model.novelty(graphs)]


@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_knows_its_errors_and_is_saved_with_them(method, task, graphs, tmp_path):
    given, y = suited(method, graphs), targets(task, graphs)
    model = make_estimator(method, SMALL[method], 0, task).fit_calibrated(given, y, how="split")
    assert model.uncertainty_.graphs == 12
    found = uncertain(model, given)
    if task == "regression":
        assert found[0].shape == (60, 2, 2)
        values = model.predict(given)
        assert ((found[0][:, :, 0] <= values) & (values <= found[0][:, :, 1])).all()
    else:
        assert found[0].shape == model.predict_proba(given).shape
        assert found[1].shape == ((60, 2) if task == "classification" else (60, 3, 2))
    if task == "classification":
        np.testing.assert_array_equal(model.classes_[found[0].argmax(axis=1)], model.predict(given))
    model.save(tmp_path / "m")
    again = gcaps.load_model(tmp_path / "m")
    for one, other in zip(found, uncertain(again, given), strict=True):
        np.testing.assert_array_equal(one, other) if one.dtype.kind in "bU" else np.testing.assert_allclose(
            other, one, rtol=1e-6, atol=1e-6
        )


def test_scores_are_those_of_models_that_did_not_see_the_graph(mutag, calibrated):
    some = mutag[:140]
    y = calibrated.target_.encode(some.y)
    expected = np.empty(140)
    for learn, check in inner_splits(y, 5, 0, None):
        model = make_estimator("wl", WL).fit(some[learn])
        expected[check] = 1 - model.predict_proba(some[check])[np.arange(len(check)), y[check]]
    np.testing.assert_allclose(calibrated.uncertainty_.scores.values, expected, atol=1e-6)
    plain = make_estimator("wl", WL).fit(some)
    np.testing.assert_array_equal(calibrated.predict_proba(mutag), plain.predict_proba(mutag))


def test_graphs_held_out_take_no_part_in_the_fit(mutag):
    model = make_estimator("wl", WL).fit_calibrated(mutag, how="split")
    assert (model.data_["graphs"], model.uncertainty_.graphs, len(model.uncertainty_.domain.names)) == (150, 38, 150)
    held = np.setdiff1d(np.arange(188), model.uncertainty_.domain.names.astype(int))
    plain = make_estimator("wl", WL).fit(mutag[np.setdiff1d(np.arange(188), held)])
    np.testing.assert_array_equal(model.predict_proba(mutag), plain.predict_proba(mutag))
    plain.calibrate(mutag[held])
    np.testing.assert_array_equal(model.predict_set(mutag, 0.8), plain.predict_set(mutag, 0.8))


@pytest.mark.parametrize("how", ["cross", "split"])
def test_sets_on_real_graphs_cover_what_was_promised(how, mutag):
    shares, errors = [], []
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(188)
        learn, test = mutag[order[:120]], mutag[order[120:]]
        model = make_estimator("wl", WL, seed).fit_calibrated(learn, how=how)
        truth = model.target_.encode(test.y)
        shares.append(model.predict_set(test, 0.9)[np.arange(68), truth].mean())
        losses = [
            -np.log(p[np.arange(68), truth]).mean() for p in (model.predict_proba(test), model.predict_calibrated(test))
        ]
        errors.append(losses)
    # graphs of different splits are the same 188: as if there were three splits with other test graphs
    calibration = 120 if how == "cross" else 24
    assert np.mean(shares) == pytest.approx(0.9, abs=tolerance(0.9, calibration, 68, splits=3))
    before, after = np.mean(errors, axis=0)
    assert after < before + 0.01, "a temperature from 24 graphs may be a little off"
    assert after < before or how == "split"


def test_intervals_on_synthetic_graphs_cover_what_was_promised():
    shares = []
    for seed in range(20):
        whole = make_families(160, seed)
        y = whole.sizes + np.random.default_rng(seed).normal(size=160)
        model = make_estimator("fgsd", FGSD, seed, "regression").fit_calibrated(whole[:100], y[:100])
        assert model.uncertainty_.spread, "trees disagree"
        low, high = model.predict_interval(whole[100:], 0.8).T
        shares.append(((low <= y[100:]) & (y[100:] <= high)).mean())
    assert np.mean(shares) == pytest.approx(0.8, abs=tolerance(0.8, 100, 60))


def test_intervals_are_wider_where_trees_disagree(graphs):
    y = graphs.sizes.astype(float)
    model = make_estimator("fgsd", FGSD, 0, "regression").fit_calibrated(graphs, y)
    x = model.transform(graphs)
    trees = [model.forests_[0]]
    ptr = trees[0].ptr
    single = []
    for a, b in pairwise(ptr):
        part = {name: v[a:b] for name, v in trees[0].arrays().items() if name not in ("ptr", "baseline")}
        single.append(type(trees[0])(ptr=np.array([0, b - a]), **part).predict(x)[:, 0])
    spread = np.std(single, axis=0) * model.target_.scale[0]
    np.testing.assert_allclose(model._spread(graphs)[:, 0], spread, atol=1e-6)
    low, high = model.predict_interval(graphs, 0.8).T
    ratio = (high - low) / (spread + SPREAD_FLOOR * model.target_.scale[0])
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)


def test_the_spread_of_networks_and_of_ensembles_is_that_of_their_members(graphs):
    y = graphs.sizes.astype(float)
    gin = make_estimator("gcaps", {"epochs": 1, "hidden": 4, "ensemble_size": 2, "with_svm": False}, 0, "regression")
    gin.fit(graphs, y)
    outputs = [replace(gin.fitted_, network=n).scores(graphs) for n in gin.fitted_.network.members]
    np.testing.assert_allclose(gin._spread(graphs), np.std(outputs, axis=0) * gin.target_.scale, rtol=1e-4)
    both = make_estimator("ensemble", {"methods": ("fgsd", "wl"), "weights": "mean"}, 0, "regression").fit(graphs, y)
    values = np.stack([m.predict(graphs) for m in both.estimators_])
    np.testing.assert_allclose(both._spread(graphs)[:, 0], values.std(axis=0), atol=1e-9)


def test_a_class_that_the_model_does_not_know_is_never_covered(mutag):
    model = make_estimator("wl", WL).fit(mutag[:100])
    y = mutag.y[100:].copy()
    y[:44] = 7
    model.calibrate(mutag[100:], y)
    assert (model.uncertainty_.scores.values == 1.0).sum() == 44
    assert model.predict_set(mutag[100:], 0.9).all(), "half of the graphs are of an unknown class"


def test_graphs_without_target_do_not_calibrate(mutag):
    model = make_estimator("wl", WL).fit(mutag[:100])
    y = mutag.y[100:].astype(float)
    y[:40] = np.nan
    assert model.calibrate(mutag[100:], y).uncertainty_.graphs == 48
    with pytest.raises(DataError, match="no graph to calibrate on has a target"):
        model.calibrate(mutag[100:], np.full(88, np.nan))


def test_a_new_fit_forgets_what_was_measured(mutag, calibrated):
    model = clone(calibrated).fit_calibrated(mutag[:60], how="split")
    model.fit(mutag[:60])
    assert model.uncertainty_ is None


def test_what_is_not_calibrated_says_how_to(mutag, graphs):
    model = make_estimator("wl", WL).fit(mutag)
    for ask in (model.predict_set, model.predict_calibrated, model.novelty):
        with pytest.raises(ConfigError, match="not calibrated; train it with --calibrate cross"):
            ask(mutag)
    with pytest.raises(ConfigError, match="there is no calibration 'jackknife'; there are cross, split"):
        model.fit_calibrated(mutag, how="jackknife")
    with pytest.raises(DataError, match="too few"):
        make_estimator("wl", WL).fit_calibrated(mutag[:4], how="split")
    with pytest.raises(DataError, match="too few"):
        make_estimator("wl", WL).fit_calibrated(mutag[[0, 1]], [0, 1])


def test_inner_folds_that_are_done_are_not_fitted_again(mutag, tmp_path, monkeypatch):
    model = make_estimator("wl", WL)
    options = {"checkpoint": tmp_path / "c", "keep_checkpoint": True}
    calibrating.fit_calibrated(model, mutag[:60], **options)
    fitted = []
    plain = type(model).fit_prepared
    monkeypatch.setattr(type(model), "fit_prepared", lambda self, *a, **k: (fitted.append(1), plain(self, *a, **k))[1])
    again = make_estimator("wl", WL)
    calibrating.fit_calibrated(again, mutag[:60], **options)
    assert len(fitted) == 1, "on all graphs"
    np.testing.assert_array_equal(again.uncertainty_.scores.values, model.uncertainty_.scores.values)
    calibrating.remove_folds(tmp_path / "c")
    assert not list(tmp_path.iterdir())


def test_groups_are_kept_whole_in_inner_folds(mutag, monkeypatch):
    groups, seen = np.arange(100) // 4, []
    plain = InnerFolds.of.__func__
    monkeypatch.setattr(InnerFolds, "of", classmethod(lambda cls, *a: (seen.append(plain(cls, *a)), seen[-1])[1]))
    calibrating.fit_calibrated(make_estimator("wl", WL), mutag[:100], groups=groups)
    for learn, check in seen[0].splits:
        assert not set(groups[learn]) & set(groups[check])


@pytest.mark.parametrize(
    "change",
    [
        lambda part: part.update(how="guess"),
        lambda part: part.update(slope=[-1.0]),
        lambda part: part.update(slope=[1.0, 1.0, 1.0]),
        lambda part: part["domain"]["names"].pop(),
        lambda part: part["domain"].update(molecules=3),
        lambda part: part["domain"]["kernel"].update(label_columns=-1),
        lambda part: part.pop("domain"),
    ],
)
def test_a_damaged_calibration_is_refused(change, calibrated, tmp_path):
    calibrated.save(tmp_path / "m")
    file = tmp_path / "m" / "model.json"
    page = json.loads(file.read_text())
    change(page["uncertainty"])
    page["sha256"] = _digest(page)
    file.write_text(json.dumps(page))
    with pytest.raises(ModelError):
        gcaps.load_model(tmp_path / "m")
