"""Budgets, experiments, progress and verification."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation import METHODS, Outcome, compare, evaluate, stratified_folds
from gcaps.evaluation.budget import Budget
from gcaps.evaluation.cells import Cell
from gcaps.evaluation.experiments import read_experiment
from gcaps.evaluation.progress import Tally, comparison_progress
from gcaps.evaluation.verify import verify

CONFIG = {"epochs": 2, "hidden": 4}


def test_budgets_as_people_write_them():
    assert Budget.of("30m", "4G") == Budget(1800, 4096)
    assert Budget.of("1.5h", "512MiB") == Budget(5400, 512)
    assert Budget.of(90, 2**20) == Budget(90, 1)
    assert Budget.of("45s", "800mb") == Budget(45, 800)
    assert Budget.of("10min", None) == Budget(600, None)
    for text in ("soon", "-3m", "0", "3 fortnights"):
        with pytest.raises(ConfigError, match="is not a time"):
            Budget.of(text, None)
    with pytest.raises(ConfigError, match="'4Q' is not a memory"):
        Budget.of(None, "4Q")


def test_the_papers_experiment_names_its_data_and_all_methods():
    paper = read_experiment("paper")
    assert len(paper.data) == 11
    assert paper.methods == "all"
    assert paper.folds == 10
    assert Budget.of(paper.time_limit, paper.memory_limit).seconds == 86400


def test_experiments_that_are_not_are_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"no experiment 'pape'; there are .*paper"):
        read_experiment("pape")
    (tmp_path / "e.toml").write_text('data = ["MUTAG"]\nepochs = 3\n')
    with pytest.raises(ConfigError, match="an experiment has no epochs"):
        read_experiment(str(tmp_path / "e.toml"))
    (tmp_path / "e.toml").write_text("folds = 3\n")
    with pytest.raises(ConfigError, match="data: Field required"):
        read_experiment(str(tmp_path / "e.toml"))


def outcome(method, status="done", seconds=1.0, fold=0):
    result = evaluate_result if status == "done" else None
    error = None if status == "done" else "no luck"
    return Outcome("D", method, 0, fold, "f", status, {}, result, error, seconds, 1.0, [], None, {}, "now")


@pytest.fixture(scope="module", autouse=True)
def _result(small):
    global evaluate_result
    evaluate_result = evaluate(small, "set", folds=2, config=CONFIG, jobs=1).folds[0]


def cells(*methods):
    return [Cell("D", method, (), 0, 0, "f") for method in methods]


def test_time_left_is_reckoned_by_data_and_method():
    tally = Tally()
    tally.begin(cells("a", "a", "b", "c"), [], 2)
    assert tally.seconds_left() is None
    tally.cell(outcome("a", seconds=10))
    assert tally.seconds_left() == pytest.approx(30 / 2)
    tally.cell(outcome("b", "time", seconds=50))
    assert tally.seconds_left() == pytest.approx((10 + 30) / 2)
    assert (tally.open, tally.failed) == (2, 1)
    assert str(tally) == "2 running, 1 failed, 0:00:20 left"


def test_progress_is_a_line_a_cell_where_there_is_no_terminal():
    console = Console(file=io.StringIO())
    with comparison_progress(console) as report:
        report.begin(cells("a", "b"), [], 1)
        report.cell(outcome("a", seconds=3))
        report.cell(outcome("b", "memory"))
    first, second, third = console.file.getvalue().splitlines()
    assert first == "2 cells to run, 0 there already, 1 at a time"
    assert second.startswith("1/2  D a seed 0 fold 0: ")
    assert "memory: no luck" in third


def test_progress_is_a_bar_on_a_terminal():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with comparison_progress(console) as report:
        report.begin(cells("a", "b"), [], 1)
        report.cell(outcome("a", "failed"))
        report.cell(outcome("b"))
    shown = console.file.getvalue()
    assert "D a seed 0 fold 0: failed: no luck" in shown
    assert "2/2" in shown


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "families.json"
    result = evaluate("families", "set", folds=3, config=CONFIG, jobs=1)
    result.save(path)
    return path, result


def verdicts(path, **options):
    return [(v.verdict, v.detail) for v in verify(path, **options)]


def test_a_recorded_result_is_verified_by_running_a_fold(recorded):
    path, result = recorded
    assert verdicts(path) == verdicts(path.parent)
    assert verdicts(path)[0][0] == "same"
    assert verdicts(path, fold=2) == [("same", f"fold 2: {len(result.folds[2].test)} predictions")]
    with pytest.raises(ConfigError, match="has no fold 7"):
        verdicts(path, fold=7)
    with pytest.raises(GcapsError, match="does not exist"):
        verdicts(path.parent / "none.json")


def test_what_differs_is_counted(recorded, tmp_path):
    _, result = recorded
    wrong = replace(result.folds[1], predictions=[3 - p for p in result.folds[1].predictions[:2]] +
                    result.folds[1].predictions[2:])  # fmt: skip
    replace(result, folds=[result.folds[0], wrong]).save(tmp_path / "r.json")
    found = verdicts(tmp_path / "r.json", fold=1)
    assert found == [("different", f"fold 1: 2 of {len(wrong.test)} predictions differ, scores by up to 0")]
    scores = [[a + 0.01, *rest] for a, *rest in result.folds[0].scores]
    replace(result, folds=[replace(result.folds[0], scores=scores)]).save(tmp_path / "r.json")
    assert verdicts(tmp_path / "r.json")[0][0] == "different"


def test_what_cannot_be_compared_says_why(recorded, tmp_path):
    _, result = recorded
    cases = {
        "the data are not at hand": {"data": result.data | {"name": "NOT-A-SET"}},
        "its fingerprint differs": {"data": result.data | {"fingerprint": "0"}},
        "its folds are not at hand": {"splits": "3 folds given by the caller"},
        "its folds are others here": {"splits": "3 stratified folds, seed 5"},
    }
    for reason, change in cases.items():
        replace(result, **change).save(tmp_path / "r.json")
        ((verdict, detail),) = verdicts(tmp_path / "r.json")
        assert verdict == "not comparable"
        assert reason in detail


def test_the_first_of_more_folds_are_found_again(recorded, tmp_path):
    _, result = recorded
    few = replace(result, folds=result.folds[:1], splits="the first 1 of 3 stratified folds, seed 0")
    few.save(tmp_path / "r.json")
    assert verdicts(tmp_path / "r.json")[0][0] == "same"


def test_folds_of_a_file_are_found_again(tmp_path, small):
    import gcaps

    graphs = gcaps.load("families")
    parts = stratified_folds(graphs.targets, 3, seed=1)[:1]
    sides = [{"train": fold.train.tolist(), "test": fold.test.tolist()} for fold in parts]
    (tmp_path / "s.json").write_text(json.dumps(sides))
    evaluate(graphs, "set", splits=tmp_path / "s.json", config=CONFIG, jobs=1).save(tmp_path / "r.json")
    assert verdicts(tmp_path / "r.json")[0][0] == "same"


def test_a_comparison_is_verified_method_by_method(small, tmp_path):
    grid = {"set": CONFIG | {"hidden": [2, 4]}, "fgsd": {"trees": 5}}
    found = compare(small, "set,fgsd", run=tmp_path / "run", folds=2, grid=grid, jobs=1)
    assert [verdict for verdict, _ in verdicts(tmp_path / "run")] == ["same", "same"]
    first = found.outcomes[0]
    path = next((tmp_path / "run").glob("cells/families/set/seed0-fold0*"))
    replace(first, config=first.config | {"epochs": 9}).save(path)
    assert verdicts(tmp_path / "run", fold=0)[0] == ("different", "another configuration was chosen")
    assert set(METHODS) > {"set", "fgsd"}
