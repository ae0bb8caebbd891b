"""Records: what they keep, what they round, and that damage is found."""

import json
from dataclasses import replace

import numpy as np
import pytest

from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation import Comparison, Result, compare, evaluate

FAST = {"deepsets": {"epochs": 3, "hidden": [2, 4]}, "fgsd": {"n_estimators": 5}, "wl": {"n_iter": [[0, 1]]}}


@pytest.fixture(scope="module")
def comparison(small):
    return compare(small, ["deepsets", "fgsd", "wl"], folds=3, seeds=(0, 1), grid=FAST, jobs=1)


@pytest.fixture(scope="module")
def result(small):
    return evaluate(small, "deepsets", folds=3, config={"epochs": 3, "hidden": 4}, jobs=1)


def rounded(fold):
    """A fold as a record keeps it."""
    single = {name: np.array(getattr(fold, name), np.float32).tolist()
              for name in ("train_loss", "train_score", "validation_score")}  # fmt: skip
    return replace(fold, scores=np.round(fold.scores, 4).tolist(), seconds=round(fold.seconds, 4), **single)


def test_a_result_survives_its_file(result, tmp_path):
    result.save(tmp_path / "r.json")
    again = Result.read(tmp_path / "r.json")
    assert again.folds == [rounded(fold) for fold in result.folds]
    assert replace(again, folds=result.folds) == result


def test_a_comparison_survives_its_file(comparison, tmp_path):
    comparison.save(tmp_path / "c.json")
    again = Comparison.read(tmp_path / "c.json")
    assert again.plan.entries == comparison.plan.entries
    assert [o.key for o in again.outcomes] == [o.key for o in comparison.outcomes]
    for a, b in zip(again.outcomes, comparison.outcomes, strict=True):
        assert a.result == rounded(b.result)
        assert (a.config, a.candidates, a.fingerprint) == (b.config, b.candidates, b.fingerprint)
        assert (a.embedding is None) == (b.embedding is None)
        if b.embedding is not None:
            np.testing.assert_allclose(a.embedding, b.embedding, atol=1e-3)
    for seed in (0, 1):
        for label in comparison.plan.labels:
            a, b = (found.result("families", label, seed) for found in (again, comparison))
            assert (a.protocols, a.config) == (b.protocols, b.config)
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "c.npz").read_bytes()
    assert (tmp_path / "again.json").read_text() == (tmp_path / "c.json").read_text()


def test_a_record_can_be_read_by_people(comparison, tmp_path):
    comparison.save(tmp_path / "c.json")
    page = json.loads((tmp_path / "c.json").read_text())
    assert [entry["label"] for entry in page["entries"]] == ["deepsets", "fgsd", "wl"]
    first = page["results"][0]
    assert (first["data"], first["label"], first["seed"]) == ("families", "deepsets", 0)
    assert set(first["protocols"]) == {"honest", "last", "gin", "best"}
    assert len(first["protocols"]["honest"]["folds"]) == 3
    assert {"C", "inner", "kernel"} < set(page["results"][4]["folds"][0]["chosen"])
    assert "path" not in page["data"][0]


def test_failures_and_missing_cells_are_kept(comparison, tmp_path):
    failed = replace(comparison.outcomes[0], status="time", result=None, config=None, error="too long", embedding=None)
    broken = Comparison(comparison.plan, [failed, *comparison.outcomes[2:]])
    broken.save(tmp_path / "c.json")
    again = Comparison.read(tmp_path / "c.json")
    assert [cell.key for cell in again.missing()] == [comparison.outcomes[1].key]
    first = again.outcomes[0]
    assert (first.status, first.error, first.config, first.result) == ("time", "too long", None, None)
    assert again.result("families", "deepsets", 0) is None
    assert again.result("families", "deepsets", 1) is not None


def test_damage_is_named(result, tmp_path):
    path = tmp_path / "r.json"
    with pytest.raises(ConfigError, match=r"a record's name ends in \.json"):
        result.save(tmp_path / "r.txt")
    result.save(path)
    (tmp_path / "other.json").write_text(path.read_text())
    with pytest.raises(GcapsError, match=r"other\.npz: is missing"):
        Result.read(tmp_path / "other.json")
    (tmp_path / "other.npz").write_bytes(b"PK")
    with pytest.raises(GcapsError, match="does not belong to"):
        Result.read(tmp_path / "other.json")
    page = json.loads(path.read_text())
    path.write_text(json.dumps(page | {"format": 99}))
    with pytest.raises(GcapsError, match="has format 99"):
        Result.read(path)
    del page["entries"]
    path.write_text(json.dumps(page))
    with pytest.raises(GcapsError, match="is not a record of gcaps"):
        Result.read(path)
    path.write_text('{"format": 1}')
    with pytest.raises(GcapsError, match="is not a record of gcaps"):
        Result.read(path)


def test_a_record_of_several_results_is_no_single_result(comparison, tmp_path):
    comparison.save(tmp_path / "c.json")
    with pytest.raises(GcapsError, match="holds 6 results"):
        Result.read(tmp_path / "c.json")


def test_results_make_up_a_comparison(comparison, result, small):
    joined = Comparison.of_results(comparison.results())
    assert joined.missing() == []
    assert [r.protocols for r in joined.results()] == [r.protocols for r in comparison.results()]
    assert [cell.fingerprint for cell in joined.plan.cells()] != []
    both = Comparison.join([comparison, Comparison.of_results([replace(result, label="mine")])])
    assert both.plan.labels == ["deepsets", "fgsd", "wl", "mine"]
    assert both.result("families", "mine").command == result.command
    assert both.plan.entry("families", "mine").seeds == [0]


def test_what_does_not_fit_together_is_refused(result):
    with pytest.raises(GcapsError, match="two results are about deepsets on families with seed 0"):
        Comparison.of_results([result, result])
    other = replace(result, label="other", data=result.data | {"fingerprint": "0"})
    with pytest.raises(GcapsError, match="are about different graphs"):
        Comparison.of_results([result, other])
    turned = replace(result, label="other", folds=[replace(f, fold=2 - f.fold) for f in reversed(result.folds)])
    with pytest.raises(GcapsError, match="have different folds"):
        Comparison.of_results([result, turned])
    with pytest.raises(GcapsError, match="there are no results"):
        Comparison.of_results([])


def test_seeds_of_one_row_are_joined(small, result):
    second = evaluate(small, "deepsets", folds=3, config={"epochs": 3, "hidden": 4}, jobs=1, seed=1)
    joined = Comparison.of_results([result, second])
    assert joined.plan.entry("families", "deepsets").seeds == [0, 1]
    assert joined.result("families", "deepsets", 1).protocols == second.protocols


def test_a_row_that_lacks_a_seed_is_unfinished(small, result):
    other = replace(result, label="other")
    joined = Comparison.of_results([result, other, replace(result, seed=4, splits="3 stratified folds, seed 4")])
    assert joined.result("families", "deepsets", 4) is not None
    assert joined.result("families", "other", 4) is None
    assert {cell.key[1:3] for cell in joined.missing()} == {("other", 4)}
