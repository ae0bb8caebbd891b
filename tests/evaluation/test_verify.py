"""Verification: a recorded fold is run again and must predict what was recorded."""

import json
from dataclasses import replace

import pytest
from sklearn.dummy import DummyClassifier

import gcaps
from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation import Comparison, compare, evaluate, stratified_folds
from gcaps.evaluation.verify import verify
from tests.evaluation.test_own_estimators import Sizes

CONFIG = {"epochs": 2, "hidden": 4}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "families.json"
    result = evaluate("families", "deepsets", folds=3, config=CONFIG, jobs=1)
    result.save(path)
    return path, result


def verdicts(path, **options):
    return [(v.verdict, v.detail) for v in verify(path, **options)]


def test_a_recorded_result_is_verified_by_running_a_fold(recorded):
    path, result = recorded
    (path.parent / "times.json").write_text("[1, 2]")
    assert verdicts(path) == verdicts(path.parent)
    assert verdicts(path)[0][0] == "same"
    assert verdicts(path, fold=2) == [("same", f"fold 2: {len(result.folds[2].test)} predictions")]
    with pytest.raises(ConfigError, match="has no fold 7"):
        verdicts(path, fold=7)
    with pytest.raises(GcapsError, match="does not exist"):
        verdicts(path.parent / "none.json")


def test_what_differs_is_counted(recorded, tmp_path):
    _, result = recorded
    fold = result.folds[1]
    wrong = replace(fold, predictions=[3 - p for p in fold.predictions[:2]] + fold.predictions[2:])
    replace(result, folds=[result.folds[0], wrong, result.folds[2]]).save(tmp_path / "r.json")
    ((verdict, detail),) = verdicts(tmp_path / "r.json", fold=1)
    assert verdict == "different"
    assert detail.startswith(f"fold 1: 2 of {len(wrong.test)} predictions differ, scores by up to ")
    scores = [[a + 0.01, *rest] for a, *rest in result.folds[0].scores]
    replace(result, folds=[replace(result.folds[0], scores=scores), *result.folds[1:]]).save(tmp_path / "r.json")
    assert verdicts(tmp_path / "r.json", fold=0)[0][0] == "different"


def test_what_cannot_be_compared_says_why(recorded, tmp_path):
    _, result = recorded
    cases = {
        "no data set 'NOT-A-SET' was found": {"data": result.data | {"name": "NOT-A-SET"}},
        "holds other graphs than": {"data": result.data | {"fingerprint": "0" * 64}},
        "the folds are not here": {"splits": "3 folds given by the caller"},
        "holds other folds than": {"splits": "3 stratified folds, seed 5", "seed": 5},
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


def test_folds_of_a_file_are_found_again(tmp_path):
    graphs = gcaps.load("families")
    parts = stratified_folds(graphs.y, 3, seed=1)[:1]
    sides = [{"train": fold.train.tolist(), "test": fold.test.tolist()} for fold in parts]
    (tmp_path / "s.json").write_text(json.dumps(sides))
    evaluate(graphs, "deepsets", splits=tmp_path / "s.json", config=CONFIG, jobs=1).save(tmp_path / "r.json")
    assert verdicts(tmp_path / "r.json")[0][0] == "same"


def test_a_comparison_is_verified_row_by_row(small, tmp_path):
    grid = {"deepsets": CONFIG | {"hidden": [2, 4]}, "fgsd": {"n_estimators": 5}}
    found = compare(small, "deepsets,fgsd", run=tmp_path / "run", folds=2, grid=grid, jobs=1)
    assert [verdict for verdict, _ in verdicts(tmp_path / "run")] == ["same", "same"]
    assert next(str(v) for v in verify(tmp_path / "run", only=["fgsd", "families"])).startswith("same: ")
    assert len(verdicts(tmp_path / "run", only=["fgsd"])) == 1
    with pytest.raises(ConfigError, match="has no data set or row 'magic'"):
        verdicts(tmp_path / "run", only=["magic"])
    first = found.outcomes[0]
    path = next((tmp_path / "run").glob("cells/families/deepsets/seed0-fold0*"))
    replace(first, config=first.config | {"epochs": 9}).save(path)
    assert verdicts(tmp_path / "run", fold=0)[0] == ("different", "another configuration was chosen")


def test_a_record_of_a_comparison_repeats_the_choice(tmp_path):
    grid = {"deepsets": CONFIG | {"hidden": [2, 4]}}
    found = compare("families", "deepsets", folds=2, grid=grid, jobs=1)
    found.save(tmp_path / "r.json")
    assert Comparison.read(tmp_path / "r.json").outcomes[0].candidates == found.outcomes[0].candidates
    assert [verdict for verdict, _ in verdicts(tmp_path / "r.json")] == ["same"]


def test_an_estimator_of_the_callers_cannot_be_verified(tmp_path):
    from sklearn.pipeline import make_pipeline

    evaluate("families", make_pipeline(Sizes(), DummyClassifier()), folds=2, jobs=1).save(tmp_path / "r.json")
    ((verdict, detail),) = verdicts(tmp_path / "r.json")
    assert (verdict, "not part of the record" in detail) == ("not comparable", True)


def test_a_mean_that_was_changed_is_not_the_same(recorded, tmp_path):
    _, result = recorded
    result.save(tmp_path / "r.json")
    page = json.loads((tmp_path / "r.json").read_text())
    page["results"][0]["protocols"]["honest"]["mean"] = 0.999
    (tmp_path / "r.json").write_text(json.dumps(page))
    ((verdict, detail),) = verdicts(tmp_path / "r.json")
    assert verdict == "different"
    assert detail.startswith("it says 0.999 under honest")


def test_a_cell_copied_over_another_is_refused(tmp_path):
    from gcaps.evaluation import compare
    from gcaps.evaluation.comparison import Comparison
    from gcaps.testing import hostile_graphs

    run = tmp_path / "run"
    compare(hostile_graphs(24, seed=0), ["wl"], run=run, folds=3)
    first, second = sorted(run.glob("cells/*/*/*.json"))[:2]
    original = second.read_text()
    second.write_text(first.read_text())
    with pytest.raises(GcapsError, match="outcome of another cell"):
        Comparison.read(run)
    cell, other = json.loads(original), json.loads(first.read_text())
    cell["result"] = other["result"] | {"fold": cell["fold"]}  # a fold twice, under the other's name
    second.write_text(json.dumps(cell))
    with pytest.raises(GcapsError, match="tests graphs of another fold"):
        Comparison.read(run)
