"""Comparisons: cells that are pure, skipped when done, and never lost to what happens to another."""

import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import psutil
import pytest

import gcaps
from gcaps.errors import ConfigError, DataError, GcapsError
from gcaps.estimators.kernel_methods import WeisfeilerLehmanSVC
from gcaps.estimators.kernel_svm import KernelEstimator
from gcaps.estimators.registry import METHODS, estimator_class
from gcaps.evaluation import Comparison, Fold, Limits, Outcome, Plan, PlannedData, compare, evaluate, stratified_folds
from gcaps.evaluation.child import answer
from gcaps.evaluation.experiments import Evaluation, named_methods, rows_of
from gcaps.evaluation.outcome import cell_of, fold_digest
from gcaps.evaluation.planning import make_plan, write_inputs
from gcaps.evaluation.runner import shares_folds
from gcaps.evaluation.session import Session
from gcaps.evaluation.supervise import Child, Children, Listener, Task, supervise

FAST = {
    "deepsets": {"epochs": 3, "hidden": 4},
    "fgsd": {"n_estimators": 10},
    "wl": {"n_iter": [[0, 1]], "C": [[1.0, 10.0]]},
}
ENDLESS = {"deepsets": {"epochs": 10**7, "hidden": 4}}


@pytest.fixture(scope="module")
def run(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare") / "run"
    compare(small, ["deepsets", "wl", "fgsd"], run=folder, folds=3, grid=FAST, jobs=1)
    return folder


class Told:
    """What a report is told."""

    def __init__(self):
        self.begun, self.cells = [], []

    def begin(self, cells, there, workers):
        self.begun.append((len(cells), len(there), workers))

    def cell(self, outcome):
        self.cells.append(outcome)


def timeless(fold):
    return replace(fold, seconds=0.0)


def files(run):
    return {path: path.stat().st_mtime_ns for path in Path(run).glob("cells/*/*/*.json")}


@pytest.mark.parametrize("method", ["deepsets", "wl", "fgsd"])
def test_cells_are_exactly_the_folds_of_evaluate(run, small, method):
    found = gcaps.Comparison.read(run).result("families", method)
    config = {name: value[0] if isinstance(value, list) else value for name, value in FAST[method].items()}
    expected = evaluate(small, method, folds=3, config=config, jobs=1)
    assert [timeless(f) for f in found.folds] == [timeless(f) for f in expected.folds]
    assert found.protocols == expected.protocols
    assert (found.config, found.seed, found.splits) == (expected.config, expected.seed, expected.splits)
    assert found.data == expected.data


def test_outcomes_say_what_was_run_and_what_it_cost(run, small):
    found = Comparison.read(run)
    assert len(found.outcomes) == 9
    assert found.missing() == []
    for outcome in found.outcomes:
        assert outcome.status == "done"
        assert outcome.error is None
        assert outcome.seconds >= outcome.result.seconds > 0
        assert "torch" in outcome.versions
        network = outcome.label == "deepsets" and outcome.fold == 0
        assert (outcome.embedding is not None) == network
    shown = np.array(found.outcomes[0].embedding)
    assert shown.shape == (len(small), 2)
    assert np.abs(shown.mean(axis=0)).max() < 1e-3


def test_a_second_run_computes_nothing(run, small):
    before, told = files(run), Told()
    again = compare(small, "deepsets,wl,fgsd", run=run, folds=3, grid=FAST, jobs=1, report=told)
    assert files(run) == before
    assert told.begun == []
    assert compare(run=run).outcomes == again.outcomes


def test_only_what_is_missing_is_run_and_reported(run, small):
    before = files(run)
    chosen = sorted(before)[4]
    first = Outcome.read(chosen)
    chosen.unlink()
    told = Told()
    compare(run=run, jobs=1, report=told)
    assert told.begun == [(1, 8, 1)]
    assert [(o.label, o.fold) for o in told.cells] == [(first.label, first.fold)]
    assert Outcome.read(chosen).unmeasured() == first.unmeasured()
    assert {path: time for path, time in files(run).items() if path != chosen} == {
        path: time for path, time in before.items() if path != chosen
    }


def test_a_changed_configuration_is_another_cell(run, small, tmp_path):
    changed = FAST | {"fgsd": {"n_estimators": 11}}
    told = Told()
    found = compare(small, ["deepsets", "wl", "fgsd"], run=run, folds=3, grid=changed, jobs=1, report=told)
    assert {o.label for o in told.cells} == {"fgsd"}
    assert len(told.cells) == 3
    assert len(files(run)) == 12
    assert {o.config["n_estimators"] for o in found.outcomes if o.label == "fgsd"} == {11}
    compare(small, ["deepsets", "wl", "fgsd"], run=run, folds=3, grid=FAST, jobs=1)
    assert Comparison.read(run).result("families", "fgsd").config["n_estimators"] == 10


def test_a_fingerprint_depends_on_every_input_and_not_on_names():
    fold = Fold(np.array([0, 1, 2]), np.array([3]))
    inputs = {"data": "a", "graphs": "f0", "label": "l", "method": "gin", "configs": ({"x": 1},), "number": 0,
              "fold": fold_digest(fold), "seed": 0}  # fmt: skip
    first = cell_of(**inputs).fingerprint
    assert cell_of(**inputs | {"data": "b", "label": "m"}).fingerprint == first
    other_fold = fold_digest(fold._replace(validation=np.array([2])))
    changes = {"graphs": "f1", "method": "wl", "configs": ({"x": 2},), "number": 1, "fold": other_fold, "seed": 1,
               "groups": "scaffold", "train_size": 2}  # fmt: skip
    others = {cell_of(**inputs | {name: value}).fingerprint for name, value in changes.items()}
    assert len(others | {first}) == len(changes) + 1


def test_failures_are_outcomes_of_their_cells_alone(small, tmp_path):
    grid = {"deepsets": {"epochs": 3, "lr": 1e12}, "fgsd": {"n_estimators": 10}}
    found = compare(small, ["deepsets", "fgsd"], run=tmp_path / "run", folds=2, grid=grid, jobs=1)
    assert [o.status for o in found.outcomes] == ["failed", "failed", "done", "done"]
    assert "diverged" in found.outcomes[0].error
    assert "\n" not in found.outcomes[0].error
    assert found.result("families", "deepsets") is None
    assert found.missing() == []
    before = files(tmp_path / "run")
    compare(run=tmp_path / "run", jobs=1)
    assert files(tmp_path / "run") == before
    compare(run=tmp_path / "run", jobs=1, retry=True)
    changed = {path.parent.name for path, time in files(tmp_path / "run").items() if before[path] != time}
    assert changed == {"deepsets"}


def test_exceeding_a_limit_is_an_outcome(small, tmp_path):
    found = compare(small, ["deepsets", "fgsd"], run=tmp_path / "t", folds=2, grid=FAST | ENDLESS, jobs=1, time_limit=2)
    assert [o.status for o in found.outcomes] == ["time", "time", "done", "done"]
    assert found.outcomes[0].error == "took longer than its limit of 2 s"
    assert found.outcomes[0].seconds >= 2
    found = compare(small, ["fgsd"], run=tmp_path / "m", folds=2, grid=FAST, jobs=1, memory_limit="60M")
    assert [o.status for o in found.outcomes] == ["memory", "memory"]
    assert found.outcomes[0].error.endswith("took more memory than its limit of 60 MiB")
    assert found.outcomes[0].peak_mib > 60


def test_a_process_that_dies_takes_only_its_cell(small, tmp_path):
    folder = tmp_path / "run"
    over = threading.Event()

    def crash():
        while not over.is_set():
            for process in psutil.Process().children():
                with suppress(psutil.Error):
                    if "gcaps.evaluation.child" in process.cmdline() and process.cpu_times().user > 6:
                        process.send_signal(signal.SIGSEGV)
                        return
            time.sleep(0.2)

    killer = threading.Thread(target=crash)
    killer.start()
    try:
        only = stratified_folds(small.y, 2, seed=0)[:1]
        found = compare(
            small, ["deepsets", "fgsd"], run=folder, splits=only, grid=FAST | ENDLESS, jobs=1, time_limit=60
        )
    finally:
        over.set()
        killer.join()
    assert [o.status for o in found.outcomes] == ["failed", "done"]
    assert found.outcomes[0].error == "its process died of SIGSEGV"


def test_a_process_ends_with_its_lifeline_whatever_it_is_doing():
    worker = Child()
    worker._lifeline.close()
    assert worker.process.wait(60) in (-signal.SIGIO, 1)
    worker.stop()


@pytest.fixture
def plan(small, tmp_path):
    found, memory = make_plan(rows_of(small, named_methods(["wl", "fgsd"], FAST), Evaluation(folds=3)), Limits())
    found = write_inputs(found, memory, tmp_path / "run")
    found.save(tmp_path / "run")
    return found


def events_of(plan, label, folds, **changes):
    """What a child tells of some folds of a row."""
    entry, events = plan.entry("families", label), []
    request = {"data": asdict(plan.data[0]), "method": entry.method, "configs": entry.configs, "seed": 0,
               "train_size": entry.train_size, "folds": folds, "estimator": None, "tuning": None,
               "epochs": False}  # fmt: skip
    answer(request | changes, events.append, Session())
    return events


def test_folds_of_a_kernel_share_one_preparation(plan, monkeypatch):
    calls, grams = [], WeisfeilerLehmanSVC.grams
    monkeypatch.setattr(WeisfeilerLehmanSVC, "grams", lambda *given: calls.append(1) or grams(*given))
    events = events_of(plan, "wl", [2, 0])
    assert [(e["event"], e.get("fold")) for e in events] == [
        ("load", None), ("prepare", None), ("fold", 2), ("done", 2), ("fold", 0), ("done", 0), ("end", None)
    ]  # fmt: skip
    assert calls == [1]


def test_a_preparation_that_fails_fails_all_its_folds(plan, monkeypatch):
    def prepare(self, prepared):
        raise MemoryError

    monkeypatch.setattr(KernelEstimator, "prepare", prepare)
    assert events_of(plan, "wl", [0, 1])[2:] == [
        {"event": "failed", "fold": None, "status": "memory", "error": "MemoryError"}, {"event": "end"}
    ]  # fmt: skip


def test_epochs_come_in_few_messages_and_none_is_lost(plan):
    config = {"epochs": 40, "hidden": 4}
    changes = {"method": "deepsets", "configs": [config], "epochs": True}
    events = events_of(plan, "fgsd", [1], **changes)
    messages = [e for e in events if e["event"] == "epochs"]
    assert [epoch[0] for message in messages for epoch in message["epochs"]] == list(range(1, 41))
    assert len(messages) < 40
    assert [e["event"] for e in events[-2:]] == ["done", "end"]


def test_what_shares_its_folds_is_known_without_importing_it():
    for name in METHODS:
        assert shares_folds(name) == estimator_class(name).shares_folds, name


def test_other_graphs_or_folds_than_planned_are_refused(plan):
    data = asdict(plan.data[0])
    with pytest.raises(DataError, match="other graphs than the comparison was planned with"):
        PlannedData(**data | {"fingerprint": "0"}).load()
    with pytest.raises(DataError, match="other folds than"):
        PlannedData(**data | {"folds": {"0": ["0", "0", "0"]}}).fold(plan.data[0].load(), 0, 1)


def test_a_set_that_was_in_memory_is_in_memory_again(plan, small):
    assert not plan.data[0].load().mapped
    assert plan.data[0].load().fingerprint() == small.fingerprint()


def supervised(task, plan, folder):
    children, told = Children(), []
    try:
        listener = Listener(folder, lambda outcome: told.append(outcome.fold))
        return supervise(task, plan.limits, listener, children, threading.Event()), told
    finally:
        children.close()


def test_a_task_skips_cells_that_have_appeared_meanwhile(plan, tmp_path, run):
    cells = [c for c in plan.cells() if c.label == "fgsd"]
    task = Task(plan.data[0], tuple(cells))
    done = next(o for o in Comparison.read(run).outcomes if o.label == "fgsd" and o.fold == 1)
    done.save(tmp_path / "run" / cells[1].path)
    outcomes, told = supervised(task, plan, tmp_path / "run")
    assert (told, sorted(o.fold for o in outcomes)) == ([0, 2], [0, 1, 2])
    assert Outcome.read(tmp_path / "run" / cells[1].path) == done
    assert supervised(task, plan, tmp_path / "run")[1] == []


def test_a_worker_that_does_not_see_the_folder_says_so(plan):
    with pytest.raises(GcapsError, match="all workers must share the folder of the run"):
        supervised(Task(plan.data[0], ()), plan, Path("/nowhere/run"))


def test_graphs_folds_and_seeds_can_be_given_as_they_are(small, tmp_path):
    folds = stratified_folds(small.y, 4, seed=3)[:2]
    found = compare([small], "fgsd", run=tmp_path / "run", splits=folds, seeds=(0, 1), grid=FAST, jobs=1)
    assert [(o.seed, o.fold) for o in found.outcomes] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    expected = evaluate(small, "fgsd", splits=folds, seed=1, config={"n_estimators": 10}, jobs=1)
    second = found.result("families", "fgsd", seed=1)
    assert [timeless(f) for f in second.folds] == [timeless(f) for f in expected.folds]
    assert Path(second.splits).exists()
    assert Plan.read(tmp_path / "run").data[0].load().fingerprint() == small.fingerprint()


def test_processes_give_the_same_cells(run, small, tmp_path):
    found = compare(small, ["deepsets", "wl", "fgsd"], run=tmp_path / "run", folds=3, grid=FAST, jobs=2)
    assert [o.unmeasured() for o in found.outcomes] == [o.unmeasured() for o in Comparison.read(run).outcomes]


def test_bad_requests_are_one_line(small, tmp_path):
    with pytest.raises(ConfigError, match="no method 'magic'"):
        compare(small, "deepsets,magic", run=tmp_path / "a")
    with pytest.raises(ConfigError, match="two data sets are called families"):
        compare([small, small.subset(np.arange(30))], "deepsets", run=tmp_path / "a", folds=2)
    with pytest.raises(ConfigError, match="two rows on families are called 'deepsets'"):
        compare([small, small], "deepsets", run=tmp_path / "a", folds=2)
    with pytest.raises(ConfigError, match="the grid of deepsets: hiden: there is no such setting"):
        compare(small, "deepsets", run=tmp_path / "a", grid={"deepsets": {"hiden": 3}})
    with pytest.raises(ConfigError, match="seed is given twice"):
        compare(small, "deepsets", run=tmp_path / "a", seeds=(1, 1))
    with pytest.raises(GcapsError, match=r"not the folder of a comparison \(it has no run.json\)"):
        compare(run=tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("precious")
    with pytest.raises(GcapsError, match="is not the folder of a comparison; choose a new one"):
        compare(small, "deepsets", run=tmp_path / "b")
    with pytest.raises(ConfigError, match="give a folder with a file of folds for each"):
        compare([small, "MUTAG"], "deepsets", run=tmp_path / "a", splits=tmp_path / "s.json")
    assert not (tmp_path / "a" / "run.json").exists()


def test_damaged_files_are_named(run, tmp_path):
    (tmp_path / "run.json").write_text('{"format": 2}')
    with pytest.raises(GcapsError, match="is not a plan of gcaps"):
        Plan.read(tmp_path)
    (tmp_path / "c.json").write_text('{"format": 2}')
    with pytest.raises(GcapsError, match="is not a gcaps cell"):
        Outcome.read(tmp_path / "c.json")


def test_what_only_watches_does_not_load_torch(small, tmp_path):
    code = (
        "import sys, gcaps\n"
        "gcaps.compare(sys.argv[1], {'few': ('fgsd', {'n_estimators': 5})}, folds=2, jobs=2)\n"
        "print('torch' in sys.modules)"
    )
    small.save(tmp_path / "g.gset")
    call = [sys.executable, "-c", code, str(tmp_path / "g.gset")]
    found = subprocess.run(call, capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


def test_a_comparison_begins_in_a_folder_where_another_has_begun_to_write_its_plan(small, tmp_path):
    (tmp_path / "run" / ".run.json.abcdefgh").mkdir(parents=True)
    assert compare(small, ["wl"], run=tmp_path / "run", folds=2, jobs=1).outcomes
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").touch()
    with pytest.raises(GcapsError, match="choose a new one"):
        compare(small, ["wl"], run=tmp_path / "other", folds=2, jobs=1)


def test_without_a_folder_it_is_kept_in_memory(small):
    found = compare(small, ["fgsd"], folds=2, grid=FAST, jobs=1)
    assert found.missing() == []
    assert found.plan.data[0].path is None
    again = compare(small, ["fgsd"], folds=2, grid=FAST, jobs=2, time_limit=60)
    assert again.plan.data == found.plan.data
    assert [o.unmeasured() for o in again.outcomes] == [o.unmeasured() for o in found.outcomes]
    with pytest.raises(ConfigError, match="give data to compare on"):
        compare()


def test_rows_may_have_names_and_settings_of_their_own(small):
    methods = {"few trees": ("fgsd", {"n_estimators": 2}), "more trees": ("fgsd", {"n_estimators": 5})}
    found = compare(small, methods, folds=2, jobs=1)
    assert found.plan.labels == ["few trees", "more trees"]
    assert [found.result("families", label).config["n_estimators"] for label in methods] == [2, 5]
    assert found.result("families", "few trees").method == "fgsd"
