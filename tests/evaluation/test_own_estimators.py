"""Anybody's scikit-learn estimator or pipeline on graphs can be evaluated and compared."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC

import gcaps
from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation import compare, evaluate
from gcaps.evaluation.worker import fold_seed, seeded_clone
from gcaps.features import GraphFGSD


class Sizes(TransformerMixin, BaseEstimator):
    """Nodes and arcs of each graph."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.stack([X.sizes, X.arc_counts], axis=1)


def forest():
    return make_pipeline(GraphFGSD(20), RandomForestClassifier(10))


def test_a_pipeline_is_cross_validated_with_a_seed_for_each_fold(small):
    one, again = (evaluate(small, forest(), folds=3, jobs=1) for _ in range(2))
    assert [f.scores for f in one.folds] == [f.scores for f in again.folds]
    assert evaluate(small, forest(), folds=3, jobs=1, seed=1).folds[0].test != one.folds[0].test
    assert (one.method, one.label, list(one.protocols)) == (None, "Pipeline", ["honest"])
    assert "RandomForestClassifier(n_estimators=10)" in one.config["estimator"]
    for f in one.folds:
        assert np.allclose(np.sum(f.scores, axis=1), 1)


def test_every_random_state_that_is_none_is_seeded():
    given = Pipeline(
        [
            ("a", Sizes()),
            ("b", RandomForestClassifier(random_state=None)),
            ("c", RandomForestClassifier(random_state=7)),
        ]
    )
    found = seeded_clone(given, 5)
    assert (found["b"].random_state, found["c"].random_state) == (5, 7)
    assert given["b"].random_state is None
    assert fold_seed(0, 1) != fold_seed(0, 2)


def test_an_estimator_without_probabilities_has_certain_scores(small):
    found = evaluate(small, make_pipeline(Sizes(), LinearSVC()), folds=2, jobs=1)
    for fold in found.folds:
        assert [row.index(1.0) for row in fold.scores] == fold.predictions
        assert {value for row in fold.scores for value in row} == {0.0, 1.0}


def test_processes_run_a_pipeline_of_the_callers_own_module(small):
    """Its class is not to be imported by a child: it comes by value through the pipe."""
    alone = compare(small, {"sizes": make_pipeline(Sizes(), LogisticRegression())}, folds=2, jobs=1)
    in_children = compare(small, {"sizes": make_pipeline(Sizes(), LogisticRegression())}, folds=2, jobs=2)
    assert [o.status for o in in_children.outcomes] == ["done", "done"]
    assert [o.unmeasured() for o in in_children.outcomes] == [o.unmeasured() for o in alone.outcomes]


def test_names_and_estimators_mix(small, tmp_path):
    methods = ["fgsd", forest(), forest(), gcaps.GraphEnsemble(methods=("fgsd",))]
    found = compare(small, methods, run=tmp_path / "run", folds=2, grid={"fgsd": {"n_estimators": 5}}, jobs=1)
    assert found.plan.labels == ["fgsd", "Pipeline", "Pipeline-2", "ensemble"]
    assert {o.status for o in found.outcomes} == {"done"}
    assert found.plan.entry("families", "ensemble").method == "ensemble"
    next((tmp_path / "run").glob("cells/families/Pipeline/seed0-fold1*")).unlink()
    with pytest.raises(ConfigError, match="Pipeline is an estimator of yours; give data and methods again"):
        compare(run=tmp_path / "run", jobs=1)
    again = compare(small, methods, run=tmp_path / "run", folds=2, grid={"fgsd": {"n_estimators": 5}}, jobs=1)
    assert [o.unmeasured() for o in again.outcomes] == [o.unmeasured() for o in found.outcomes]


def test_our_own_estimators_count_as_their_method(small):
    found = evaluate(small, gcaps.GraphCapsuleClassifier(epochs=2, hidden=4, layers=1), folds=2, jobs=1)
    assert (found.method, found.config["hidden"]) == ("gcaps", 4)
    by_name = evaluate(small, "gcaps", config={"epochs": 2, "hidden": 4, "layers": 1}, folds=2, jobs=1)
    assert [f.scores for f in found.folds] == [f.scores for f in by_name.folds]


def test_what_goes_wrong_inside_is_raised_or_recorded(small):
    class Broken(Sizes):
        def transform(self, X):
            raise KeyError("nothing here")

    broken = make_pipeline(Broken(), LinearSVC())
    with pytest.raises(KeyError, match="nothing here"):
        evaluate(small, broken, folds=2, jobs=1)
    with pytest.raises(GcapsError, match=r"fold [01]: KeyError: 'nothing here'"):
        evaluate(small, broken, folds=2, jobs=2)
    found = compare(small, [broken, "fgsd"], folds=2, grid={"fgsd": {"n_estimators": 5}}, jobs=1)
    assert [o.status for o in found.outcomes] == ["failed", "failed", "done", "done"]


def test_what_is_no_estimator_is_refused(small):
    with pytest.raises(ConfigError, match="is no method"):
        evaluate(small, 3)
    with pytest.raises(ConfigError, match="is no method"):
        evaluate(small, LinearSVC)


def test_the_test_fold_decides_nothing(small):
    fold = gcaps.evaluation.stratified_folds(small.y, 4, seed=0)[0]
    both = [evaluate(small, forest(), splits=[fold._replace(test=t)], jobs=1) for t in (fold.test, fold.test[:3])]
    assert both[0].folds[0].scores[:3] == both[1].folds[0].scores
