"""``gcaps.tune`` and tuning inside an evaluation."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import gcaps
from gcaps.cli.app import main
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation import Fold, Plan, TunedClassifier, TunedRegressor
from gcaps.evaluation.inner import inner_folds
from gcaps.evaluation.tuning_run import tune
from gcaps.evaluation.tuning_study import TuningStudy
from gcaps.report.tuning import tuning_page
from gcaps.testing import example_graphs

pytest.importorskip("optuna")

QUICK = {"n_estimators": 5}


@pytest.fixture(scope="module")
def graphs() -> GraphSet:
    found, _ = example_graphs(36)
    return replace(found, y=np.where(found.y == 0, "no", "yes"), name="example")


def plain(study):
    return [(t.number, t.changes, t.state, t.value, t.folds) for t in study.trials]


def test_tune_writes_settings_that_train_reads(graphs, tmp_path):
    study = tune(graphs, "fgsd", tmp_path / "s", trials=4, config=QUICK, folds=3)
    assert [trial.number for trial in study.trials] == [0, 1, 2, 3]
    assert study.best.value >= study.default.value
    graphs.save(tmp_path / "g.gset")
    paths = {name: str(tmp_path / name) for name in ("g.gset", "s/best.toml", "m")}
    with pytest.raises(SystemExit) as ended:
        main(["train", paths["g.gset"], "--config", paths["s/best.toml"], "-o", paths["m"]])
    assert ended.value.code in (0, None)
    model = gcaps.load_model(tmp_path / "m")
    assert model.method == "fgsd"
    expected = study.estimator().fit(graphs)
    np.testing.assert_array_equal(model.predict_proba(graphs), expected.predict_proba(graphs))


def test_the_folder_is_read_again_and_its_table_has_every_inner_fold(graphs, tmp_path):
    study = tune(graphs, "fgsd", tmp_path / "s", trials=4, config=QUICK, folds=3)
    again = TuningStudy.read(tmp_path / "s")
    assert plain(again) == plain(study)
    with (tmp_path / "s" / "trials.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, trial in zip(rows, study.trials, strict=True):
        found = [float(row[f"fold {number}"]) for number in range(len(trial.folds))]
        np.testing.assert_allclose(found, trial.folds, rtol=1e-5)
        assert row["spacing"] == trial.changes["spacing"]
    assert "bins" in (page := tuning_page(again))
    assert "<script" not in page


def test_an_inner_value_is_the_metric_of_a_fit_on_the_other_folds(graphs):
    study = tune(graphs, "fgsd", trials=1, config=QUICK, folds=3, metric="roc_auc")
    from sklearn.metrics import roc_auc_score

    from gcaps.estimators.registry import make_estimator
    from gcaps.evaluation.worker import fold_seed

    expected = []
    for number, fold in enumerate(inner_folds(graphs, np.arange(36), 3, 0, "classification")):
        model = make_estimator("fgsd", QUICK, fold_seed(0, number)).fit(graphs.subset(fold.train))
        held = graphs.subset(fold.test)
        expected.append(roc_auc_score(held.y == "yes", model.predict_proba(held)[:, 1]))
    np.testing.assert_allclose(study.trials[0].folds, expected)


def test_settings_that_are_given_are_not_searched(graphs):
    study = tune(graphs, "fgsd", trials=3, config={**QUICK, "spacing": "quantile"}, folds=2)
    assert set(study.plan.space) == {"bins"}
    assert study.best_settings.items() >= {"n_estimators": 5, "spacing": "quantile"}.items()
    with pytest.raises(ConfigError, match="all settings that are searched for sp are given"):
        tune(graphs, "sp", config={"normalize": False})


def test_a_folder_of_another_search_or_of_something_else_is_refused(graphs, tmp_path):
    tune(graphs, "fgsd", tmp_path / "s", trials=1, config=QUICK, folds=2)
    with pytest.raises(ConfigError, match=r"not the same seed\); choose a new folder"):
        tune(graphs, "fgsd", tmp_path / "s", trials=1, config=QUICK, folds=2, seed=1)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("precious")
    with pytest.raises(GcapsError, match="holds other files"):
        tune(graphs, "fgsd", tmp_path / "other", trials=1)
    page = json.loads((tmp_path / "s" / "study.json").read_text())
    (tmp_path / "s" / "study.json").write_text(json.dumps(page | {"pruner": "axe"}))
    with pytest.raises(GcapsError, match="pruner"):
        TuningStudy.read(tmp_path / "s")


def test_a_search_that_was_killed_is_continued_without_losing_or_repeating_a_trial(graphs, tmp_path):
    graphs.save(tmp_path / "g.gset")
    options = ["--method", "fgsd", "--n-estimators", "30", "--folds", "3", "--trials", "8"]
    command = [sys.executable, "-m", "gcaps", "tune", str(tmp_path / "g.gset"), *options, "-o", str(tmp_path / "s")]
    journal = tmp_path / "s" / "journal.log"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))
    while process.poll() is None:
        if journal.exists() and journal.read_bytes().count(b"\n") > 16:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.005)
    assert process.wait() == -signal.SIGKILL, "it was killed before its end"
    subprocess.run(command, check=True, capture_output=True)
    whole = tune(graphs, "fgsd", trials=8, config={"n_estimators": 30}, folds=3)
    assert plain(TuningStudy.read(tmp_path / "s")) == plain(whole)


def folds_of(count):
    order = np.random.default_rng(0).permutation(count)
    return [Fold(np.sort(np.setdiff1d(order, part)), np.sort(part)) for part in np.array_split(order, 3)]


@pytest.mark.parametrize("method", ["fgsd", "sp"])
def test_nothing_of_the_test_graphs_decides_which_settings_are_chosen(graphs, method):
    folds = folds_of(len(graphs))
    config = QUICK if method == "fgsd" else None
    before = chosen(graphs, method, [folds[0]], config)
    test = folds[0].test
    y = graphs.y.copy()
    y[test] = np.where(y[test] == "no", "yes", "no")
    others = graphs.subset(np.where(np.isin(np.arange(len(graphs)), test), folds[0].train[0], np.arange(len(graphs))))
    for changed in (replace(graphs, y=y), replace(others, y=y)):
        assert changed.fingerprint() != graphs.fingerprint()
        assert chosen(changed, method, [folds[0]], config) == before


def chosen(graphs, method, folds, config):
    from gcaps.evaluation.experiments import Evaluation, named_methods, rows_of
    from gcaps.evaluation.plan import Limits
    from gcaps.evaluation.planning import make_plan
    from gcaps.evaluation.run import tuned_row
    from gcaps.evaluation.runner import run_plan

    rows = rows_of(graphs, named_methods({method: (method, config)}), Evaluation(split=folds))
    plan, memory = make_plan([tuned_row(row, 4, 3) for row in rows], Limits())
    return [(one.config, one.candidates) for one in run_plan(plan, memory, 1).outcomes]


def test_a_tuned_evaluation_is_recorded_resumed_and_verified(graphs, tmp_path):
    (tmp_path / "e.toml").write_text(
        'folds = 2\n[[entries]]\nmethod = "fgsd"\nlabel = "tuned"\ntune = 3\ntune_folds = 2\n'
        "[entries.settings]\nn_estimators = 5\n[entries.space]\nbins = [10, 50, 200]\n"
    )
    graphs.save(tmp_path / "g.gset")
    from gcaps.evaluation.experiments import read_experiment

    experiment = read_experiment(str(tmp_path / "e.toml")).on([str(tmp_path / "g.gset")])
    found = gcaps.compare(experiment=experiment, run=tmp_path / "run", jobs=1)
    assert [len(one.candidates) for one in found.outcomes] == [3, 3]
    assert {one["config"]["bins"] for one in found.outcomes[0].candidates} == {10, 50, 200}
    assert Plan.read(tmp_path / "run") == found.plan
    before = {path: path.read_bytes() for path in (tmp_path / "run" / "cells").rglob("*.json")}
    gcaps.compare(run=tmp_path / "run", jobs=1)
    assert {path: path.read_bytes() for path in before} == before
    found.save(tmp_path / "r.json")
    from gcaps.evaluation.verify import verify

    assert [one.verdict for one in verify(tmp_path / "r.json")] == ["same"]
    again = gcaps.compare(experiment=experiment, run=tmp_path / "again", jobs=1, reuse=[tmp_path / "r.json"])
    assert any(one.config != one.candidates[0]["config"] for one in again.outcomes)
    assert [one.seconds for one in again.outcomes] == pytest.approx([one.seconds for one in found.outcomes], abs=1e-4)


def test_evaluate_searches_inside_each_fold(graphs):
    result = gcaps.evaluate(graphs, "fgsd", folds=3, tune=3, tune_folds=2, config=QUICK, jobs=1)
    assert len(result.folds) == 3
    assert all("inner" in fold.chosen for fold in result.folds)
    assert "tune=3" in result.command


def test_inner_folds_keep_groups_whole(graphs):
    groups = np.repeat(np.arange(9), 4)
    train = np.arange(2, 34)
    for fold in inner_folds(graphs, train, 3, 0, "classification", groups=groups):
        assert not set(groups[fold.train]) & set(groups[fold.test])
        assert set(fold.train) | set(fold.test) == set(train)


def test_tuned_estimators_fit_predict_save_and_are_evaluated_like_others(graphs, tmp_path):
    model = TunedClassifier("fgsd", settings=QUICK, n_trials=3, inner_folds=2).fit(graphs)
    assert model.best_score_ == model.study_.best.value
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.transform(graphs).shape[0] == len(graphs)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(gcaps.load_model(tmp_path / "m").predict(graphs), model.predict(graphs))
    result = gcaps.evaluate(graphs, TunedClassifier("fgsd", settings=QUICK, n_trials=2, inner_folds=2), folds=3, jobs=1)
    assert result.label == "TunedClassifier"
    values = graphs.sizes.astype(np.float64)
    regressor = TunedRegressor("fgsd", settings=QUICK, n_trials=2, inner_folds=2).fit(graphs, values)
    assert regressor.score(graphs, values) > 0.3
    assert regressor.study_.metric.name == "rmse"


def test_a_search_that_was_killed_before_its_description_was_written_begins(graphs, tmp_path):
    folder = tmp_path / "s"
    (folder / ".study.json.abcdefgh").mkdir(parents=True)
    (folder / "journal.log").touch()
    (folder / ".lock").touch()
    assert len(tune(graphs, "fgsd", folder, trials=1, config=QUICK, folds=2).done) == 1
