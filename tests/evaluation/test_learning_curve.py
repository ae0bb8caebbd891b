"""Learning curves: nested, stratified parts of the training graphs of the same folds, in every way to run them."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from sklearn.base import BaseEstimator, ClassifierMixin

from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.evaluation import Comparison, Fold, Result, compare, evaluate
from gcaps.evaluation.learning_curve import curve_sizes, nested_fold, nested_order
from gcaps.evaluation.verify import verify
from gcaps.report import print_comparison, report_text
from gcaps.report.study import Study

FAST = {"n_estimators": 5}


def test_sizes_are_given_or_halved() -> None:
    assert curve_sizes(5, 900) == [56, 112, 225, 450]
    assert curve_sizes(5, 9) == [2, 4]
    assert curve_sizes([300, 100], 900) == [100, 300]
    assert curve_sizes([], 900) == []
    for wrong, words in (([900], "less than the 900"), ([1, 5], "at least 2"), ([5, 5], "twice"), (1, "2 points")):
        with pytest.raises(ConfigError, match=words):
            curve_sizes(wrong, 900)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(5, 80))
def test_beginnings_have_every_class_and_the_proportions_of_all(seed: int, classes: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.choice(classes, n, p=rng.dirichlet(np.ones(classes)))])
    order = nested_order(y, seed % 1000)
    assert sorted(order) == list(range(len(y)))
    for size in range(1, len(y) + 1):
        counts = np.bincount(y[order[:size]], minlength=classes)
        if size >= classes:
            assert counts.min() > 0
        exact = size * np.bincount(y) / len(y)
        assert np.abs(counts - exact).max() <= classes, "never more than a graph of each class off"
    others = (nested_order(y, seed % 1000 + more) for more in range(1, 20))
    assert not all(np.array_equal(order, other) for other in others), "the seed decides"


def test_parts_are_nested_and_keep_their_validation_graphs() -> None:
    y = np.random.default_rng(0).normal(size=(60, 2))
    fold = Fold(np.arange(5, 60), np.arange(5), np.arange(40, 60))
    parts = [nested_fold(fold, y, size, 7) for size in (10, 20, 55)]
    assert [len(part.train) for part in parts] == [10, 20, 55]
    for small, large in pairwise(parts):
        assert np.isin(small.train, large.train).all()
    for part in parts:
        assert part.test is fold.test
        assert part.validation.tolist() == [i for i in part.train if i >= 40]
    assert parts[-1].train.tolist() == fold.train.tolist()
    assert nested_fold(fold._replace(validation=np.array([5])), y, 3, 7).validation is None


@pytest.fixture(scope="module")
def curve(small: GraphSet) -> Result:
    return evaluate(small, "fgsd", folds=2, repeats=2, train_sizes=[4, 8], config=FAST, jobs=1)


def test_a_result_has_its_learning_curve(curve: Result, small: GraphSet) -> None:
    assert [size for size, _ in curve.learning_curve] == [4, 8, 16]
    assert curve.learning_curve[-1][1].mean == curve.score
    assert [one.train_size for one in curve.smaller] == [4, 8]
    whole = evaluate(small, "fgsd", folds=2, repeats=2, config=FAST, jobs=1)
    assert [f.predictions for f in curve.folds] == [f.predictions for f in whole.folds]
    for one in curve.smaller:
        assert [f.test for f in one.folds] == [f.test for f in curve.folds]
        assert {f.train_size for f in one.folds} == {one.train_size}
        assert len(one.repetitions) == 2
    assert whole.smaller == []
    assert "train_sizes=(4, 8)" in curve.command


def test_a_part_gives_what_training_on_its_graphs_alone_gives(curve: Result, small: GraphSet) -> None:
    from gcaps.data.prepared import PreparedSet
    from gcaps.estimators.registry import make_estimator
    from gcaps.evaluation.splits import folds_of
    from gcaps.evaluation.worker import fold_seed

    fold = folds_of(small, 2, "stratified", 0)[0]
    part = nested_fold(fold, np.unique(small.y, return_inverse=True)[1], 8, fold_seed(0, 0))
    estimator = make_estimator("fgsd", FAST, fold_seed(0, 0), "classification")
    estimator.fit_prepared(PreparedSet(small), part.train)
    expected = estimator.scores_prepared(PreparedSet(small), fold.test)
    np.testing.assert_allclose(curve.smaller[1].folds[0].scores, expected, atol=1e-6)


def test_records_carry_the_sizes(curve: Result, tmp_path: Path) -> None:
    curve.save(tmp_path / "curve.json")
    again = Result.read(tmp_path / "curve.json")
    assert again.learning_curve == curve.learning_curve
    assert [one.train_size for one in again.smaller] == [4, 8]
    assert [entry.train_size for entry in Comparison.read(tmp_path / "curve.json").plan.entries] == [None, 4, 8]


def test_a_comparison_resumes_its_curves_and_keeps_them_apart(small: GraphSet, tmp_path: Path) -> None:
    grid = {"fgsd": FAST, "deepsets": {"epochs": 2, "hidden": 4}}
    call = {"folds": 2, "train_sizes": 2, "grid": grid, "run": tmp_path / "run", "jobs": 1}
    found = compare(small, ["fgsd", "deepsets"], **call)
    assert found.plan.labels == ["fgsd", "fgsd @ 8", "deepsets", "deepsets @ 8"]
    next((tmp_path / "run").glob("cells/families/fgsd*8/*")).unlink()
    assert len(Comparison.read(tmp_path / "run").missing()) == 1
    again = compare(small, ["fgsd", "deepsets"], **call)
    assert [o.unmeasured() for o in again.outcomes] == [o.unmeasured() for o in found.outcomes]
    study = Study.of(found)
    assert list(study.names) == ["fgsd", "deepsets"]
    assert list(study.tests["families"]) == [("fgsd", "deepsets"), ("deepsets", "fgsd")]
    console = Console(file=io.StringIO(), width=100)
    print_comparison(found, console)
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    at = lines.index(["training", "graphs", "fgsd", "deepsets"])
    assert [line[0] for line in lines[at + 1 : at + 3]] == ["8", "16"]
    page = report_text(found)
    assert "Number of training graphs" in page
    assert "families by number of training graphs" in page
    assert [str(verdict).split(":")[0] for verdict in verify(tmp_path / "run")] == ["same"] * 4


def test_runs_without_curves_show_none(small: GraphSet) -> None:
    found = compare(small, ["fgsd"], folds=2, grid={"fgsd": FAST}, jobs=1)
    assert "Number of training graphs" not in report_text(found)


class Majority(ClassifierMixin, BaseEstimator):
    """Predicts the most frequent class of its training graphs."""

    def fit(self, X: GraphSet, y: np.ndarray) -> Majority:
        self.classes_, counts = np.unique(y, return_counts=True)
        self.best_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X: GraphSet) -> np.ndarray:
        return np.full(len(X), self.best_)


@pytest.mark.parametrize("jobs", [1, 2])
def test_estimators_of_the_user_have_learning_curves(small: GraphSet, jobs: int) -> None:
    found = evaluate(small, Majority(), folds=2, train_sizes=[4], jobs=jobs)
    assert [size for size, _ in found.learning_curve] == [4, 16]


def test_a_size_without_room_is_one_clear_line(small: GraphSet) -> None:
    with pytest.raises(ConfigError, match="less than the 16 training graphs of a fold"):
        evaluate(small, "fgsd", folds=2, train_sizes=[16], jobs=1)


def test_targets_with_numbers_have_curves(small: GraphSet) -> None:
    numbers = replace(small, y=np.random.default_rng(0).normal(size=len(small)))
    found = evaluate(numbers, "fgsd", folds=1, split="random", train_sizes=3, config=FAST, jobs=1)
    assert [size for size, _ in found.learning_curve] == [7, 14, 28]
