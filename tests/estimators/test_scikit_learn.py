"""scikit-learn's tools over graphs: searches, cross-validation, calibration, ensembles of estimators, thresholds."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, VotingClassifier, VotingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from gcaps.data.catalog import load
from gcaps.errors import DataWarning
from gcaps.kernels import Graphlet, WeisfeilerLehman
from gcaps.testing import example_graphs
from gcaps.testing.checks import as_objects
from tests.estimators.test_estimator_checks import quick

FORMS = ("GraphSet", "list", "list of PyG Data", "object array", "object array of PyG Data")


def graphs_as(form, count=24):
    """Graphs without targets in one of several forms, and their classes as words."""
    graphs, _ = example_graphs(count)
    words, graphs = np.array(["no", "yes"])[graphs.y], replace(graphs, y=None)
    if form == "GraphSet":
        return graphs, words
    if form == "list":
        return list(graphs), words
    if form == "object array":
        return as_objects(graphs), words
    data = graphs.to_pyg()
    if form == "list of PyG Data":
        return data, words
    array = np.empty(len(data), dtype=object)
    for i, one in enumerate(data):
        array[i] = one
    return array, words


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


def wl(**changes):
    return quick("wl", "classification", **changes)


def test_splits_searches_and_predictions_take_graphs_in_every_form(form):
    X, y = graphs_as(form)
    train, test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    assert type(train) is type(X)
    search = GridSearchCV(wl(), {"n_iter": [(0,), (1,)]}, cv=2, error_score="raise").fit(train, y_train)
    assert search.score(test, y_test) > 0.5
    assert set(search.predict(test)) <= {"no", "yes"}
    drawn = RandomizedSearchCV(wl(), {"C": [(0.1,), (1.0,), (10.0,)]}, n_iter=2, cv=2, random_state=0)
    assert np.isfinite(drawn.fit(X, y).cv_results_["mean_test_score"]).all()
    assert cross_val_predict(wl(), X, y, cv=3, method="predict_proba").shape == (24, 2)
    assert cross_val_score(wl(), X, y, cv=3, error_score="raise").min() > 0.5
    _, curve, _ = learning_curve(wl(), X, y, cv=2, train_sizes=[0.5, 1.0], error_score="raise")
    assert curve.shape == (2, 2)


def test_other_estimators_on_estimators_take_graphs_in_every_form(form):
    X, y = graphs_as(form)
    for model in (
        CalibratedClassifierCV(wl(), cv=2, ensemble=False),
        VotingClassifier([("wl", wl()), ("sp", quick("sp", "classification"))], voting="soft"),
        StackingClassifier([("wl", wl()), ("gin", quick("gin", "classification"))], LogisticRegression(), cv=2),
        TunedThresholdClassifierCV(wl(), cv=2, scoring="balanced_accuracy"),
        FixedThresholdClassifier(wl(), threshold=0.3, pos_label="yes"),
        make_pipeline(WeisfeilerLehman(2), SVC(kernel="precomputed")),
        make_pipeline(quick("gin", "classification"), StandardScaler(), LogisticRegression()),
    ):
        assert set(model.fit(X, y).predict(X)) <= {"no", "yes"}, model
    score, scores, p = permutation_test_score(wl(), X, y, cv=2, n_permutations=4, random_state=0)
    assert score > scores.mean()
    assert 0 < p <= 1


@pytest.mark.parametrize("method", ["gcaps", "wl"])
def test_several_processes_give_the_results_of_one(method):
    X, y = graphs_as("GraphSet")
    model = quick(method, "classification")
    one, two = (cross_val_predict(model, X, y, cv=2, method="predict_proba", n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    name = {"gcaps": "capsule_size", "wl": "n_iter"}[method]
    values = {"gcaps": [1, 2], "wl": [(0,), (1,)]}[method]
    found = GridSearchCV(model, {name: values}, cv=2, n_jobs=2, error_score="raise").fit(X, y)
    assert found.predict(X[:3]).dtype.kind == "U"
    data, _ = graphs_as("list of PyG Data")
    assert VotingClassifier([("a", model), ("b", model)], n_jobs=2).fit(data, y).predict(data).shape == (24,)


def test_regressors_stand_in_scikit_learns_tools():
    graphs, share = example_graphs(24)
    X, y = replace(graphs, y=None), np.exp(3 * share)
    model = TransformedTargetRegressor(quick("wl", "regression"), func=np.log, inverse_func=np.exp).fit(X, y)
    assert model.predict(X).min() > 0
    assert model.score(X, y) > 0
    both = VotingRegressor([("wl", quick("wl", "regression")), ("fgsd", quick("fgsd", "regression"))])
    assert both.fit(X, y).predict(X).shape == (24,)
    assert len(cross_val_score(quick("wl", "regression"), X, y, cv=2, scoring="neg_mean_absolute_error")) == 2


def test_sample_weights_are_routed():
    X, y = graphs_as("GraphSet")
    weight = np.where(np.arange(24) < 12, 1.0, 3.0)
    with config_context(enable_metadata_routing=True):
        scorer = get_scorer("accuracy").set_score_request(sample_weight=True)
        model = wl().set_fit_request(sample_weight=True)
        search = GridSearchCV(model, {"C": [(0.01,), (1.0,)]}, scoring=scorer, cv=2, error_score="raise")
        search.fit(X, y, sample_weight=weight)
        plain = wl(C=search.best_params_["C"]).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(search.predict_proba(X), plain.predict_proba(X))
        found = cross_validate(model, X, y, params={"sample_weight": weight}, scoring=scorer, cv=2, error_score="raise")
        assert np.isfinite(found["test_score"]).all()


def test_kernels_are_normalised_so_that_an_svm_ends():
    graphs = load("MUTAG")
    pipeline = make_pipeline(Graphlet(), SVC(kernel="precomputed")).fit(graphs, graphs.y)
    assert pipeline.score(graphs, graphs.y) > 0.6


def test_folds_of_graphs_that_carry_their_targets():
    """Without y scikit-learn draws folds in order, which leaves classes out; with y=graphs.y they are stratified."""
    graphs, _ = example_graphs(24, classes=3)
    ordered = graphs[np.argsort(graphs.y, kind="stable")]
    with pytest.warns(DataWarning, match="no training graph has the class [012]; .* pass y"):
        assert cross_val_score(wl(), ordered, cv=3, error_score="raise").max() == 0
    own = cross_val_score(wl(), ordered, ordered.y, cv=3, error_score="raise")
    folds = StratifiedKFold(3).split(ordered, ordered.y)
    np.testing.assert_array_equal(own, cross_val_score(wl(), ordered, cv=folds, error_score="raise"))
