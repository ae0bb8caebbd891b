"""Cells of records are taken instead of being computed again, where they are the same cells."""

import json
from dataclasses import replace

import pytest

from gcaps.errors import ConfigError
from gcaps.estimators import auto
from gcaps.evaluation import Comparison, compare
from gcaps.evaluation.plan import digest_of_test

METHODS = {"few": ("fgsd", {"n_estimators": 5}), "more": ("fgsd", {"n_estimators": 7})}


@pytest.fixture(scope="module")
def record(small, tmp_path_factory):
    path = tmp_path_factory.mktemp("record") / "r.json"
    compare(small, METHODS, folds=3, jobs=1).save(path)
    return path


class Computed:
    """Counts the cells that are run."""

    def __init__(self):
        self.cells = []

    def begin(self, cells, there, workers):
        pass

    def cell(self, outcome):
        self.cells.append((outcome.label, outcome.seed, outcome.fold))


def test_recorded_cells_are_not_run_again(small, record, tmp_path):
    told = Computed()
    renamed = {"forest": METHODS["few"], "other": ("fgsd", {"n_estimators": 9})}
    found = compare(small, renamed, folds=3, run=tmp_path / "run", reuse=[record], jobs=1, report=told)
    assert {label for label, *_ in told.cells} == {"other"}
    before = {o.fold: o for o in Comparison.read(record).outcomes if o.label == "few"}
    for outcome in found.outcomes:
        if outcome.label == "forest":
            assert outcome.result == before[outcome.fold].result
            assert outcome.command == Comparison.read(record).plan.command
            assert outcome.versions == before[outcome.fold].versions


@pytest.mark.parametrize("method", ["dgcnn", "pscn"])
def test_networks_that_measure_their_training_graphs_are_not_run_again(small, method, tmp_path):
    methods = {method: (method, {"epochs": 1})}
    first = compare(small, methods, folds=3, jobs=1)
    first.save(tmp_path / "r.json")
    told = Computed()
    found = compare(small, methods, folds=3, run=tmp_path / "run", reuse=[tmp_path / "r.json"], jobs=1, report=told)
    assert told.cells == []
    assert [o.result.predictions for o in found.outcomes] == [o.result.predictions for o in first.outcomes]


def test_other_seeds_folds_settings_and_graphs_are_run(small, record, tmp_path):
    for name, arguments in {
        "seeds": {"seeds": (1,)},
        "folds": {"folds": 4},
        "settings": {"methods": {"few": ("fgsd", {"n_estimators": 5, "bins": 20})}},
        "graphs": {"data": small[:-1]},
    }.items():
        told = Computed()
        given = {"data": small, "methods": {"few": METHODS["few"]}, "folds": 3} | arguments
        found = compare(**given, run=tmp_path / name, reuse=[record], jobs=1, report=told)
        assert len(told.cells) == len(found.outcomes) > 0


def test_folds_of_which_a_record_knows_the_test_graphs_only_are_drawn(small, record, tmp_path):
    old = Comparison.read(record)
    folds = {"0": [digest_of_test(o.result.test) for o in old.outcomes if o.label == "few"]}
    plan = replace(old.plan, data=[replace(old.plan.data[0], folds=folds)])
    replace(old, plan=plan).save(tmp_path / "old.json")
    told = Computed()
    compare(small, METHODS, folds=3, run=tmp_path / "run", reuse=[tmp_path / "old.json"], jobs=1, report=told)
    assert told.cells == []


def test_settings_that_a_record_does_not_name_have_their_default(small, tmp_path):
    compare(small, {"wl": ("wl", {"n_iter": [1]})}, folds=3, jobs=1).save(tmp_path / "r.json")
    page = json.loads((tmp_path / "r.json").read_text())
    del page["entries"][0]["configs"][0]["class_weight"]
    (tmp_path / "r.json").write_text(json.dumps(page))
    told = Computed()
    compare(
        *(small, {"wl": ("wl", {"n_iter": [1]})}),
        folds=3,
        run=tmp_path / "run",
        reuse=[tmp_path / "r.json"],
        jobs=1,
        report=told,
    )
    assert told.cells == []


def test_records_are_taken_into_a_folder_only(small, record):
    with pytest.raises(ConfigError, match="give run"):
        compare(small, METHODS, folds=3, reuse=[record])


def test_auto_equals_what_it_is_resolved_to(small, tmp_path):
    fast = {"epochs": 2, "hidden": 4, "layers": 1, "with_svm": False, "ensemble_size": 1}
    explicit = fast | {"features": "degree", "edge_features": "none", "device": "cpu", "weight_decay": 1e-3}
    compare(small, {"gcaps": ("gcaps", explicit)}, folds=3, jobs=1).save(tmp_path / "r.json")
    for name, settings, count in (("same", fast, 0), ("other", fast | {"features": "constant"}, 3)):
        told = Computed()
        compare(
            *(small, {"gcaps": ("gcaps", settings)}),
            folds=3,
            run=tmp_path / name,
            reuse=[tmp_path / "r.json"],
            jobs=1,
            report=told,
        )
        assert len(told.cells) == count


def test_auto_of_a_record_is_what_it_was_when_the_record_was_made(small, tmp_path, monkeypatch):
    fast = {"epochs": 2, "hidden": 4, "layers": 1, "ensemble_size": 1}
    rule = auto.RULES["with_svm"]
    with monkeypatch.context() as earlier:
        earlier.setitem(auto.RULES, "with_svm", lambda config, facts: (False, "an earlier rule"))
        compare(small, {"gcaps": ("gcaps", fast)}, folds=3, jobs=1).save(tmp_path / "r.json")
        told = Computed()
        again = {"folds": 3, "reuse": [tmp_path / "r.json"], "jobs": 1, "report": told}
        compare(small, {"gcaps": ("gcaps", fast | {"with_svm": False})}, run=tmp_path / "explicit", **again)
        assert told.cells == []
    assert rule is auto.RULES["with_svm"]
    compare(small, {"gcaps": ("gcaps", fast)}, run=tmp_path / "now", **again)
    assert len(told.cells) == 3
    taken = Comparison.read(tmp_path / "explicit")
    taken.save(tmp_path / "taken.json")
    assert {o.config["with_svm"] for o in Comparison.read(tmp_path / "taken.json").outcomes} == {"auto"}
