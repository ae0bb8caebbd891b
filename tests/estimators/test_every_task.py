"""Every method for every kind of target: classes of any type, several binary targets, real numbers, missing values."""

from dataclasses import replace

import numpy as np
import pytest

import gcaps
from gcaps.data import make_families
from gcaps.errors import ConfigError, DataError
from gcaps.estimators import METHODS, GraphCapsuleClassifier, GraphCapsuleRegressor, make_estimator
from tests.estimators.test_manners import SMALL, suited

NAN = float("nan")


@pytest.fixture(scope="module")
def graphs():
    whole = make_families(48, seed=1)
    return replace(whole, y=None)


@pytest.fixture(scope="module")
def size(graphs):
    return graphs.sizes.astype(float)


def binary_targets(size):
    y = np.stack([size > np.median(size), size % 2 == 0, size < 20], axis=1).astype(float)
    y[::5, 0] = NAN
    y[1::7, 1] = NAN
    y[3] = NAN
    return y


def real_targets(size):
    y = np.stack([1000 * size + 5e6, -size / 100], axis=1)
    y[::4, 1] = NAN
    y[3] = NAN
    return y


@pytest.mark.parametrize("method", METHODS)
def test_several_binary_targets_with_missing_values(method, graphs, size, tmp_path):
    graphs, y = suited(method, graphs), binary_targets(size)
    model = make_estimator(method, SMALL[method], 0).fit(graphs, y)
    probability = model.predict_proba(graphs)
    assert probability.shape == (len(graphs), 3)
    assert ((probability >= 0) & (probability <= 1)).all()
    predicted = model.predict(graphs)
    np.testing.assert_array_equal(predicted, (probability > 0.5).astype(int))
    assert 0 <= model.score(graphs, y) <= 1
    model.save(tmp_path / "model")
    np.testing.assert_allclose(gcaps.load_model(tmp_path / "model").predict_proba(graphs), probability, atol=1e-6)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_regression_is_in_the_units_of_the_targets(method, columns, graphs, size, tmp_path):
    graphs, y = suited(method, graphs), real_targets(size)
    y = y[:, 0] if columns == 1 else y
    model = make_estimator(method, SMALL[method], 0, "regression").fit(graphs, y)
    values = model.predict(graphs)
    assert values.shape == y.shape
    first = values.reshape(len(graphs), -1)[:, 0]
    assert 4.9e6 < np.median(first) < 5.2e6, "thousands of nodes beyond five million"
    assert model.score(graphs, y) <= 1
    model.save(tmp_path / "model")
    again = gcaps.load_model(tmp_path / "model")
    assert type(again) is type(model)
    np.testing.assert_allclose(again.predict(graphs), values, rtol=1e-5)


def test_the_scale_of_a_target_does_not_matter(graphs, size):
    settings = {"epochs": 3, "hidden": 4, "ensemble_size": 1}
    plain = GraphCapsuleRegressor(**settings).fit(graphs, size).predict(graphs)
    other = GraphCapsuleRegressor(**settings).fit(graphs, 1e6 * size - 3e7).predict(graphs)
    np.testing.assert_allclose(other, 1e6 * plain - 3e7, rtol=1e-3)


def test_a_graph_without_target_is_as_if_it_were_not_there(graphs, size):
    y = size.copy()
    y[[2, 11]] = NAN
    kept = np.flatnonzero(~np.isnan(y))
    settings = {"epochs": 3, "hidden": 4}
    with_gaps = GraphCapsuleRegressor(**settings).fit(graphs, y)
    without = GraphCapsuleRegressor(**settings).fit(graphs[kept], y[kept])
    np.testing.assert_array_equal(with_gaps.predict(graphs), without.predict(graphs))


def test_a_zero_weight_is_as_if_the_graph_were_not_there(graphs, size):
    weight = np.ones(len(graphs))
    weight[[2, 11]] = 0
    kept = np.flatnonzero(weight)
    model = GraphCapsuleRegressor(epochs=3, hidden=4)
    weighted = model.fit(graphs, size, weight).predict(graphs)
    np.testing.assert_allclose(weighted, model.fit(graphs[kept], size[kept]).predict(graphs), rtol=1e-6)


@pytest.mark.parametrize(
    "labels",
    [np.array(["ja", "nein", ""]), np.array([1.0, 2.0, NAN]), np.array(["ja", "nein", None], dtype=object)],
    ids=["string", "number", "object"],
)
def test_missing_classes_are_left_out(labels, graphs):
    y = labels[np.arange(len(graphs)) % 3]
    model = GraphCapsuleClassifier(epochs=2, hidden=4).fit(graphs, y)
    assert len(model.classes_) == 2
    assert set(model.predict(graphs).tolist()) <= set(model.classes_.tolist())


@pytest.mark.parametrize("method", [m for m in METHODS if m != "ensemble"])
def test_balanced_classes_give_the_rare_class_more(method, graphs, size):
    graphs, y = suited(method, graphs), np.where(size > np.quantile(size, 0.8), "rare", "often")
    longer = {"epochs": 20} if "epochs" in SMALL[method] else {}
    settings = {**SMALL[method], **longer}
    plain = make_estimator(method, settings, 0).fit(graphs, y)
    balanced = make_estimator(method, {**settings, "class_weight": "balanced"}, 0).fit(graphs, y)
    assert balanced.predict_proba(graphs)[:, 1].mean() >= plain.predict_proba(graphs)[:, 1].mean() - 1e-3
    if METHODS[method].family == "network":
        assert (balanced.predict_proba(graphs) != plain.predict_proba(graphs)).any()


def test_class_weights_are_sample_weights_of_each_class(graphs, size):
    y = np.where(size > np.median(size), 7, 3)
    settings = {"epochs": 2, "hidden": 4}
    named = GraphCapsuleClassifier(class_weight={7: 4.0}, **settings).fit(graphs, y)
    counted = GraphCapsuleClassifier(**settings).fit(graphs, y, np.where(y == 7, 4.0, 1.0))
    np.testing.assert_allclose(named.predict_proba(graphs), counted.predict_proba(graphs), atol=1e-6)
    with pytest.raises(ConfigError, match="class_weight: there is no class 5; there are 3, 7"):
        GraphCapsuleClassifier(class_weight={5: 2.0}, **settings).fit(graphs, y)


def test_balanced_sampling_draws_every_class_equally_often(graphs, size):
    from gcaps.training.loop import balanced_sample

    y = np.where(np.arange(len(size)) % 10 == 0, 1, 0)
    indices = np.arange(len(y))
    drawn = balanced_sample(indices, y, np.random.default_rng(0))
    assert len(drawn) == len(y)
    many = np.concatenate([balanced_sample(indices, y, np.random.default_rng(seed)) for seed in range(100)])
    assert y[many].mean() == pytest.approx(0.5, abs=0.03)
    model = GraphCapsuleClassifier(epochs=2, hidden=4, sampling="balanced").fit(graphs, y)
    np.testing.assert_array_equal(
        model.predict_proba(graphs), GraphCapsuleClassifier(**model.get_params()).fit(graphs, y).predict_proba(graphs)
    )
    with pytest.raises(ConfigError, match="balanced needs classes"):
        GraphCapsuleClassifier(epochs=1, sampling="balanced").fit(graphs, binary_targets(size))


def test_settings_about_classes_are_refused_in_regression():
    with pytest.raises(ConfigError, match="class_weight is about classes; it has no effect in regression"):
        make_estimator("gin", {"class_weight": "balanced"}, 0, "regression")
    with pytest.raises(TypeError, match="class_weight"):
        GraphCapsuleRegressor(class_weight="balanced")


def test_targets_of_the_wrong_kind_are_refused_before_anything_starts(graphs, size):
    with pytest.raises(DataError, match="real numbers, not classes; a regressor takes them"):
        GraphCapsuleClassifier().fit(graphs, size + 0.5)
    with pytest.raises(DataError, match="contains strings; regression takes numbers"):
        GraphCapsuleRegressor().fit(graphs, np.where(size > 20, "big", "small"))
    with pytest.raises(DataError, match="y must hold 48 targets, one row for each graph"):
        GraphCapsuleRegressor().fit(graphs, size[:5])


def test_the_epoch_is_picked_by_loss_in_regression(graphs, size):
    model = GraphCapsuleRegressor(epochs=8, hidden=4, selection="validation", validation=0.25, with_svm=False)
    model.fit(graphs, size)
    assert len(model.curves_.validation) == 8
    assert model.curves_.validation[model.epoch_ - 1] == max(model.curves_.validation)
