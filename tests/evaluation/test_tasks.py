"""Evaluations of every task from graphs to records, tables and pages; small sets, few epochs."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import gcaps
from gcaps.config import CONFIGS
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError, DataError
from gcaps.evaluation import Comparison, GraphKFold, Result, compare, evaluate, stratified_folds
from gcaps.evaluation.metrics import compute_metrics
from gcaps.evaluation.plan import Limits, Plan
from gcaps.evaluation.planning import make_plan
from gcaps.evaluation.verify import verify
from gcaps.report import print_comparison, report_text
from gcaps.report.study import Study
from tests.read_page import Page

QUICK = {"fgsd": {"n_estimators": 5}, "deepsets": {"epochs": 2, "hidden": 4}}


def sized(n: int) -> GraphSet:
    """Graphs of several families, in an order that mixes them."""
    graphs = gcaps.load("families")
    return graphs.subset(np.random.default_rng(0).permutation(len(graphs))[:n])


@pytest.fixture(scope="module")
def numbers() -> GraphSet:
    """A regression target that grows with the number of edges; two graphs have none."""
    graphs = sized(40)
    edges = np.array([graphs[i].edge_index.shape[1] for i in range(len(graphs))], dtype=np.float64)
    y = 1000 + 10 * edges + np.random.default_rng(1).normal(size=len(graphs))
    y[[3, 17]] = np.nan
    columns = {"batch": np.arange(40) // 4, "year": 1990 + np.arange(40) // 2}
    return replace(graphs, y=y, target_names=("energy",), columns=columns, name="numbers")


@pytest.fixture(scope="module")
def labels(numbers: GraphSet) -> GraphSet:
    """Three binary targets with missing values; the last has a single positive."""
    rng = np.random.default_rng(2)
    y = np.stack([np.arange(40) % 2, rng.integers(0, 2, 40), np.arange(40) == 5], axis=1).astype(np.float64)
    y[rng.random(y.shape) < 0.15] = np.nan
    y[5, 2], y[7] = 1.0, np.nan
    return replace(numbers, y=y, target_names=("a", "b", "c"), name="labels")


@pytest.fixture(scope="module")
def runs(numbers: GraphSet, labels: GraphSet) -> dict[str, Comparison]:
    return {
        "regression": compare(numbers, ["fgsd", "deepsets"], folds=3, grid=QUICK, jobs=1),
        "multilabel": compare(labels, ["fgsd", "deepsets"], folds=3, grid=QUICK, jobs=1),
    }


def test_regression_is_evaluated_in_the_units_of_the_target(numbers: GraphSet) -> None:
    result = evaluate(numbers, "deepsets", folds=3, config=QUICK["deepsets"], jobs=1)
    assert (result.task, result.metric) == ("regression", "rmse")
    assert result.data["targets"] == ["energy"]
    assert result.data["notes"] == [
        f"2 graphs have no target and are left out ({', '.join(map(str, numbers.ids[[3, 17]]))})"
    ]
    assert sorted(n for fold in result.folds for n in fold.test) == [n for n in range(40) if n not in (3, 17)]
    for fold in result.folds:
        y, predictions = np.array(fold.y), np.array(fold.predictions)
        np.testing.assert_array_equal(y, numbers.y[fold.test])
        assert fold.scores == []
        assert fold.metrics["rmse"] == pytest.approx(np.sqrt(np.mean((y - predictions) ** 2)))
        assert fold.train_size == 38 - len(fold.test)
        assert len(fold.test_score) == 2
        assert 500 < predictions.mean() < 3000
    assert result.score == pytest.approx(np.mean([fold.metrics["rmse"] for fold in result.folds]))
    assert list(result.protocols) == ["honest"]
    assert list(result.metrics) == ["rmse", "mae", "r2", "spearman"]


def test_multilabel_is_evaluated_on_known_labels_of_each_target(labels: GraphSet) -> None:
    result = evaluate(labels, "fgsd", folds=3, config=QUICK["fgsd"], jobs=1)
    assert (result.task, result.metric, result.data["targets"]) == ("multilabel", "roc_auc", ["a", "b", "c"])
    assert 7 not in [n for fold in result.folds for n in fold.test]
    undefined = 0
    for fold in result.folds:
        known = ~np.isnan(labels.y[fold.test])
        assert [[value is not None for value in row] for row in fold.y] == known.tolist()
        assert [target["known"] for target in fold.targets] == known.sum(axis=0).tolist()
        undefined += "roc_auc" not in fold.targets[2]
        values = [target["roc_auc"] for target in fold.targets if "roc_auc" in target]
        assert fold.metrics["roc_auc"] == pytest.approx(np.mean(values))
    assert undefined == 2, "the only positive of c is in one fold"


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_records_and_runs_survive_their_files(task: str, runs: dict[str, Comparison], tmp_path: Path) -> None:
    comparison = runs[task]
    comparison.save(tmp_path / "r.json")
    again = Comparison.read(tmp_path / "r.json")
    assert again.plan.data[0].about == comparison.plan.data[0].about
    for a, b in zip(again.outcomes, comparison.outcomes, strict=True):
        assert a.result is not None
        assert b.result is not None
        assert (a.result.y, a.result.predictions) == (b.result.y, b.result.predictions)
        assert (a.result.metrics, a.result.targets) == (b.result.metrics, b.result.targets)
        np.testing.assert_allclose(a.result.scores, b.result.scores, atol=5.1e-5)
        np.testing.assert_allclose(a.result.test_score, b.result.test_score, rtol=1e-6)
        b.save(tmp_path / "cell.json")
        assert type(b).read(tmp_path / "cell.json") == b
    for one, other in zip(again.results(), comparison.results(), strict=True):
        assert one.protocols == other.protocols
    comparison.plan.save(tmp_path)
    assert Plan.read(tmp_path) == comparison.plan
    single = comparison.results()[0]
    single.save(tmp_path / "one.json")
    assert Result.read(tmp_path / "one.json").metrics == single.metrics


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_recorded_folds_can_be_verified(task: str, numbers: GraphSet, labels: GraphSet, tmp_path: Path) -> None:
    graphs = numbers if task == "regression" else labels
    compare(graphs, ["fgsd"], folds=3, run=tmp_path / "run", grid=QUICK, jobs=1)
    (verdict,) = verify(tmp_path / "run")
    assert verdict.verdict == "same", str(verdict)


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_pages_and_tables_follow_the_headline_metric(task: str, runs: dict[str, Comparison]) -> None:
    comparison = runs[task]
    study, name = Study.of(comparison), comparison.plan.data[0].name
    entries, metric = study.complete(name), study.metric(name)
    means = [entry.protocols["honest"].mean for entry in entries]
    assert means == sorted(means, reverse=metric.greater_is_better), "the best comes first"
    raw = report_text(comparison)
    text = Page(raw).text
    words = {
        "regression": ("lowest honest RMSE", "Predicted and true values"),
        "multilabel": ("highest honest ROC AUC",),
    }
    assert all(one in text for one in words[task])
    for unwanted in ("Confusion", "Errors and calibration", "Selection rules", "accuracy in percent", "Published"):
        assert unwanted not in text
    assert "nan" not in text.split()
    assert ("Known" in text) == (task == "multilabel")
    markdown = report_text(comparison, "markdown")
    assert markdown.count("**") == 2
    assert metric.text(means[0], entries[0].protocols["honest"].std) in markdown
    assert f"Honest {metric.title}" in markdown
    other = {"regression": "mae", "multilabel": "pr_auc"}[task]
    again = Study.of(comparison.with_metric(other))
    assert again.metric(name).name == other
    assert again.complete(name)[0].protocols["honest"].mean == pytest.approx(
        min(e.metrics["mae"].mean for e in entries)
        if task == "regression"
        else max(e.metrics["pr_auc"].mean for e in entries)
    )


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_the_page_of_one_method_has_its_errors(task: str, runs: dict[str, Comparison]) -> None:
    comparison = Comparison.of_results([runs[task].results()[1]])
    text = Page(report_text(comparison)).text
    assert ("Largest errors" in text) == (task == "regression")
    console = Console(file=io.StringIO(), width=100)
    print_comparison(comparison, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert {"regression": "constant mean", "multilabel": "chance"}[task] in shown
    if task == "multilabel":
        assert "without 2 of 9 targets × folds" in shown
        assert "targets × folds" in text


def test_metric_and_task_can_be_chosen(labels: GraphSet, numbers: GraphSet) -> None:
    first = replace(labels, y=labels.y[:, 0], target_names=("a",))
    config = QUICK["fgsd"]
    assert evaluate(first, "fgsd", folds=2, config=config, jobs=1).task == "classification"
    result = evaluate(first, "fgsd", folds=2, config=config, jobs=1, metric="log_loss")
    assert (result.metric, list(result.protocols)) == ("log_loss", ["honest"])
    assert result.score == pytest.approx(np.mean([fold.metrics["log_loss"] for fold in result.folds]))
    as_numbers = evaluate(first, "fgsd", folds=2, config=config, jobs=1, task="regression")
    assert (as_numbers.task, as_numbers.metric) == ("regression", "rmse")
    with pytest.raises(ConfigError, match="accuracy is no metric of regression; there are rmse"):
        evaluate(numbers, "fgsd", metric="accuracy")
    with pytest.raises(ConfigError, match="no task 'ranking'"):
        evaluate(numbers, "fgsd", task="ranking")
    with pytest.raises(ConfigError, match="is about classes"):
        evaluate(numbers, "gin", config={"class_weight": "balanced"})
    with pytest.raises(ConfigError, match="the protocol best is for accuracy; rmse has only honest"):
        evaluate(numbers, "deepsets", "best", folds=2, config=QUICK["deepsets"], jobs=1)


@pytest.mark.parametrize("split", ["group:batch", "time:year", "random"])
def test_nothing_of_a_test_fold_reaches_the_training(split: str, numbers: GraphSet) -> None:
    """Other targets of the test graphs give the same predictions."""
    result = evaluate(numbers, "deepsets", folds=2, split=split, config=QUICK["deepsets"], jobs=1)
    fold = result.folds[0]
    y = numbers.y.copy()
    y[fold.test] = 5 - 3 * y[fold.test]
    changed = evaluate(replace(numbers, y=y), "deepsets", folds=2, split=split, config=QUICK["deepsets"], jobs=1)
    assert changed.folds[0].test == fold.test
    assert changed.folds[0].predictions == fold.predictions
    assert changed.folds[0].y != fold.y


@pytest.mark.parametrize("split", ["group:batch", "time:year", "random"])
def test_splits_are_drawn_again_in_other_processes_and_on_resume(split: str, numbers: GraphSet, tmp_path: Path) -> None:
    here = compare(numbers, ["fgsd"], folds=2, split=split, grid=QUICK, jobs=1)
    there = compare(numbers, ["fgsd"], folds=2, split=split, grid=QUICK, jobs=2, run=tmp_path / "run")
    assert [o.result.predictions for o in there.outcomes] == [o.result.predictions for o in here.outcomes]
    assert compare(run=tmp_path / "run").missing() == []
    assert there.plan.data[0].split == split
    kept = Comparison.of_results(there.results())
    assert kept.plan.data[0].split == split
    assert kept.results()[0].splits == f"2 {split} folds, seed 0"


def test_repeats_give_the_spread_over_repetitions(numbers: GraphSet, tmp_path: Path) -> None:
    result = evaluate(numbers, "fgsd", folds=2, repeats=3, seed=4, config=QUICK["fgsd"], jobs=1)
    assert [part.seed for part in result.repetitions] == [4, 5, 6]
    assert len({tuple(part.folds[0].test) for part in result.repetitions}) == 3, "other folds each time"
    single = evaluate(numbers, "fgsd", folds=2, seed=5, config=QUICK["fgsd"], jobs=1)
    assert result.repetitions[1].folds[0].predictions == single.folds[0].predictions
    honest, means = result.protocols["honest"], [part.score for part in result.repetitions]
    assert honest.repetitions == means
    assert honest.repetition_std == pytest.approx(np.std(means, ddof=1))
    assert honest.std == pytest.approx(np.std([fold.value("rmse") for fold in result.folds]))
    assert single.protocols["honest"].repetition_std is None
    result.save(tmp_path / "r.json")
    again = Result.read(tmp_path / "r.json")
    assert again.protocols == result.protocols
    text = Page(report_text(Comparison.read(tmp_path / "r.json"))).text
    assert "Over 3 repetitions" in text
    assert "(divided by n − 1)" in text
    with pytest.raises(ConfigError, match="give seeds or repeats"):
        compare(numbers, ["fgsd"], seeds=(0, 1), repeats=2)


def test_a_class_that_is_missing_from_training_crashes_nothing() -> None:
    graphs = replace(sized(20), y=np.array(["a"] * 19 + ["b"]))
    result = evaluate(graphs, "fgsd", folds=4, config=QUICK["fgsd"], jobs=1)
    (fold,) = [fold for fold in result.folds if 19 in fold.test]
    assert fold.predictions == [0] * 5, "all training graphs have class a"
    assert fold.metrics["accuracy"] == 0.8
    assert "roc_auc" in result.metrics
    assert len(result.metrics["roc_auc"].folds) == 1
    three = replace(graphs, y=np.array(["a"] * 10 + ["b"] * 9 + ["c"]))
    found = compare(three, ["fgsd", "deepsets"], folds=4, grid=QUICK, jobs=1)
    assert [outcome.status for outcome in found.outcomes] == ["done"] * 8
    assert found.plan.data[0].notes == [
        "classes with fewer graphs than the 4 folds are missing from some of them: c (1)"
    ]
    assert "nan" not in Page(report_text(found)).text.split()


def test_a_metric_that_no_fold_defines_is_said_to_be_undefined() -> None:
    graphs = replace(sized(20), y=np.array(["a"] * 10 + ["b"] * 10))
    one_class = [fold._replace(test=fold.test[graphs.y[fold.test] == "a"]) for fold in stratified_folds(graphs.y, 2, 0)]
    found = compare(graphs, ["fgsd"], split=one_class, metric="roc_auc", grid=QUICK, jobs=1)
    assert Study.of(found).entries["families", "fgsd"].status == "undefined"
    assert "undefined" in Page(report_text(found)).text


def test_configurations_are_chosen_by_the_headline_metric(numbers: GraphSet) -> None:
    grid = {"deepsets": {"epochs": [1, 60], "hidden": 8, "lr": 0.02}}
    found = compare(numbers, ["deepsets"], folds=2, grid=grid, jobs=1)
    for outcome in found.outcomes:
        inner = {c["config"]["epochs"]: c["inner"] for c in outcome.candidates}
        assert outcome.config is not None
        assert inner[outcome.config["epochs"]] == min(inner.values()), "the lowest RMSE"
    result = found.results()[0]
    assert result.folds[0].chosen["inner"] == min(c["inner"] for c in found.outcomes[0].candidates)


class Sizes(BaseEstimator):
    """Number of nodes of each graph."""

    def fit(self, graphs, y=None):
        return self

    def transform(self, graphs):
        return np.array([[graphs[i].num_nodes, graphs[i].edge_index.shape[1]] for i in range(len(graphs))], dtype=float)


class Constant(RegressorMixin, BaseEstimator):
    def fit(self, graphs, y):
        self.y_ = float(np.mean(y))
        return self

    def predict(self, graphs):
        return np.full(len(graphs), self.y_)


class Votes(ClassifierMixin, BaseEstimator):
    """Predicts several targets and knows no probabilities."""

    def fit(self, graphs, y):
        self.y_ = np.nan_to_num(np.nanmean(y, axis=0)) > 0.5
        return self

    def predict(self, graphs):
        return np.tile(self.y_, (len(graphs), 1)).astype(float)


def test_estimators_of_the_caller_do_every_task(numbers: GraphSet, labels: GraphSet) -> None:
    forest = make_pipeline(Sizes(), RandomForestRegressor(5))
    found = compare(numbers, {"forest": forest, "mean": Constant()}, folds=3, jobs=1)
    scores = {result.label: result for result in found.results()}
    assert scores["forest"].score < scores["mean"].score
    assert scores["mean"].metrics["r2"].mean < 0.01
    assert "spearman" not in scores["mean"].metrics
    full = replace(labels, y=np.nan_to_num(labels.y))
    several = make_pipeline(Sizes(), RandomForestClassifier(5))
    result = evaluate(full, several, folds=3, jobs=1)
    assert (result.task, len(result.folds[0].scores[0])) == ("multilabel", 3)
    assert evaluate(labels, Votes(), folds=3, jobs=1).metrics["accuracy"].mean > 0.5


def test_ties_and_directions_are_respected_by_tests_between_methods(runs: dict[str, Comparison]) -> None:
    study = Study.of(runs["regression"])
    best = study.best("numbers")
    other = next(label for label in study.names if label != best)
    assert study.tests["numbers"][other, best].difference > 0, "its RMSE is higher"
    entry = study.entries["numbers", best]
    differences = [study.entries["numbers", other].values[key] - entry.values[key] for key in entry.values]
    assert study.tests["numbers"][other, best].difference == pytest.approx(np.mean(differences))


def test_cross_val_score_without_y_is_stratified_and_shuffled() -> None:
    graphs = gcaps.load("families")
    sorted_graphs = graphs.subset(np.argsort(graphs.y, kind="stable")[::8])
    model = gcaps.estimators.FGSDForestClassifier(n_estimators=5, random_state=0)
    cv = GraphKFold(3, random_state=1)
    without = cross_val_score(model, sorted_graphs, cv=cv)
    np.testing.assert_array_equal(without, cross_val_score(model, sorted_graphs, sorted_graphs.y, cv=cv))
    expected = stratified_folds(sorted_graphs.y, 3, 1)
    for (train, test), fold in zip(cv.split(sorted_graphs), expected, strict=True):
        np.testing.assert_array_equal(train, fold.train)
        np.testing.assert_array_equal(test, fold.test)
    groups = np.arange(len(sorted_graphs)) // 5
    for train, test in GraphKFold(3).split(sorted_graphs, groups=groups):
        assert not np.intersect1d(groups[train], groups[test]).size
    assert GraphKFold(4).get_n_splits() == 4
    with pytest.raises(DataError, match="has no targets; give y"):
        next(GraphKFold(2).split(replace(sorted_graphs, y=None)))


def test_metrics_of_older_results_come_from_their_predictions() -> None:
    found = Comparison.read(Path(__file__).parents[2] / "results" / "plain.json")
    result = found.results()[0]
    assert (result.task, result.metric) == ("classification", "accuracy")
    fold = result.folds[0]
    assert fold.metrics == {}
    y, scores = np.array(fold.y), np.array(fold.scores)
    target = gcaps.data.targets.Target.of(y, "classification")
    expected = compute_metrics(target, y, scores)
    assert {name: fold.value(name) for name in expected} == pytest.approx(expected)
    page = json.loads((Path(__file__).parents[2] / "results" / "plain.json").read_text(encoding="utf-8"))
    recorded = next(
        row for row in page["results"] if (row["data"], row["label"]) == (result.data["name"], result.label)
    )
    assert recorded["protocols"]["honest"]["folds"] == result.protocols["honest"].folds


def test_a_molecules_table_is_read_with_its_options_in_every_process(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    chains = ["C" * n + tail for n in range(1, 9) for tail in ("", "O", "N", "c1ccccc1", "C1CCCC1", "c1ccncc1")]
    rows = [f"{s},{len(s)}.5,{'Train' if i % 4 else 'Test'},x{i}" for i, s in enumerate(chains)]
    rows[5] = "not a molecule,1.5,Train,x5"
    (tmp_path / "m.csv").write_text("smiles,weight,Model,name\n" + "\n".join(rows) + "\n", encoding="utf-8")
    reading = {"target": "weight", "invalid": "skip"}
    for split, folds in (("column:Model", 1), ("scaffold", 3)):
        run = tmp_path / split.partition(":")[0]
        found = compare(
            tmp_path / "m.csv", ["fgsd"], folds=3, split=split, reading=reading, run=run, grid=QUICK, jobs=2
        )
        assert [o.status for o in found.outcomes] == ["done"] * folds, found.outcomes[0].error
        planned = found.plan.data[0]
        assert (planned.task, planned.targets, planned.graphs) == ("regression", ["weight"], 47)
        assert planned.notes[0].startswith("1 row of the source is left out (row 6:")
        assert planned.load().columns["smiles"][0] == "C"
        assert compare(run=run).missing() == []


def test_plans_refuse_graphs_without_targets(numbers: GraphSet) -> None:
    from gcaps.evaluation.experiments import Evaluation, named_methods, rows_of

    rows = rows_of(replace(numbers, y=None), named_methods("fgsd"), Evaluation())
    with pytest.raises(DataError, match="has no targets to evaluate predictions with"):
        make_plan(rows, Limits())


def test_every_method_can_be_evaluated_on_every_task(numbers: GraphSet, labels: GraphSet) -> None:
    small = {
        "capsule-svm": {"layers": 1},
        "gcaps": {"epochs": 1, "hidden": 4, "layers": 1, "ensemble_size": 1, "with_svm": False},
        "wl": {"n_iter": (1,), "C": (1.0,)},
    }
    for graphs in (numbers, labels):
        few = replace(graphs.subset(np.arange(20)), name=graphs.name)
        for method, settings in small.items():
            config = CONFIGS[method].parse(settings)
            result = evaluate(few, method, folds=2, config=config, jobs=1)
            assert np.isfinite(result.score), method
