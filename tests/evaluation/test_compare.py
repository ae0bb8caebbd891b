"""Comparisons: cells that are pure, skipped when done, and never lost to what happens to another."""

import os
import signal
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
from gcaps.evaluation import Comparison, Fold, Outcome, Plan, compare, evaluate, stratified_folds
from gcaps.evaluation import child as child_module
from gcaps.evaluation.cells import cell, digest
from gcaps.evaluation.kernel_methods import KernelMethod
from gcaps.evaluation.supervise import Child, Task, supervise

FAST = {"set": {"epochs": 3, "hidden": 4}, "fgsd": {"trees": 10}, "wl": {"heights": [[0, 1]], "C": [[1.0, 10.0]]}}
ENDLESS = {"set": {"epochs": 10**7, "hidden": 4}}


@pytest.fixture(scope="module")
def run(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare") / "run"
    compare(small, ["set", "wl", "fgsd"], run=folder, folds=3, grid=FAST, jobs=1)
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


@pytest.mark.parametrize("method", ["set", "wl", "fgsd"])
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
        network = outcome.method == "set" and outcome.fold == 0
        assert (outcome.embedding is not None) == network
    shown = np.array(found.outcomes[0].embedding)
    assert shown.shape == (len(small), 2)
    assert np.abs(shown.mean(axis=0)).max() < 1e-3


def test_a_second_run_computes_nothing(run, small):
    before, told = files(run), Told()
    again = compare(small, "set,wl,fgsd", run=run, folds=3, grid=FAST, jobs=1, report=told)
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
    assert [(o.method, o.fold) for o in told.cells] == [(first.method, first.fold)]
    assert Outcome.read(chosen).unmeasured() == first.unmeasured()
    assert {path: time for path, time in files(run).items() if path != chosen} == {
        path: time for path, time in before.items() if path != chosen
    }


def test_a_changed_configuration_is_another_cell(run, small, tmp_path):
    changed = FAST | {"fgsd": {"trees": 11}}
    told = Told()
    found = compare(small, ["set", "wl", "fgsd"], run=run, folds=3, grid=changed, jobs=1, report=told)
    assert {o.method for o in told.cells} == {"fgsd"}
    assert len(told.cells) == 3
    assert len(files(run)) == 12
    assert {o.config["trees"] for o in found.outcomes if o.method == "fgsd"} == {11}
    compare(small, ["set", "wl", "fgsd"], run=run, folds=3, grid=FAST, jobs=1)
    assert Comparison.read(run).result("families", "fgsd").config["trees"] == 10


def test_a_fingerprint_depends_on_every_input_and_not_on_names():
    fold = Fold(np.array([0, 1, 2]), np.array([3]))
    inputs = {"data": "a", "graphs": "f0", "method": "set", "configs": ({"x": 1},), "number": 0,
              "fold": digest(fold), "seed": 0}  # fmt: skip
    first = cell(**inputs).fingerprint
    assert cell(**inputs | {"data": "b"}).fingerprint == first
    other_fold = digest(fold._replace(validation=np.array([2])))
    changes = {"graphs": "f1", "method": "gin", "configs": ({"x": 2},), "number": 1, "fold": other_fold, "seed": 1}
    others = {cell(**inputs | {name: value}).fingerprint for name, value in changes.items()}
    assert len(others | {first}) == len(changes) + 1


def test_failures_are_outcomes_of_their_cells_alone(small, tmp_path):
    grid = {"set": {"epochs": 3, "lr": 1e30}, "fgsd": {"trees": 10}}
    found = compare(small, ["set", "fgsd"], run=tmp_path / "run", folds=2, grid=grid, jobs=1)
    assert [o.status for o in found.outcomes] == ["failed", "failed", "done", "done"]
    assert "diverged" in found.outcomes[0].error
    assert "\n" not in found.outcomes[0].error
    assert found.result("families", "set") is None
    assert found.missing() == []
    before = files(tmp_path / "run")
    compare(run=tmp_path / "run", jobs=1)
    assert files(tmp_path / "run") == before
    compare(run=tmp_path / "run", jobs=1, retry=True)
    changed = {path.parent.name for path, time in files(tmp_path / "run").items() if before[path] != time}
    assert changed == {"set"}


def test_going_over_a_budget_is_an_outcome(small, tmp_path):
    found = compare(small, ["set", "fgsd"], run=tmp_path / "t", folds=2, grid=FAST | ENDLESS, jobs=1, time_limit=2)
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
        only = stratified_folds(small.targets, 2, seed=0)[:1]
        found = compare(small, ["set", "fgsd"], run=folder, splits=only, grid=FAST | ENDLESS, jobs=1, time_limit=60)
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
    from gcaps.evaluation.budget import Budget
    from gcaps.evaluation.grid import configurations
    from gcaps.evaluation.plan import make_plan

    configs = {name: configurations(name, FAST) for name in ("wl", "fgsd")}
    found = make_plan(tmp_path / "run", [small], configs, 3, None, [0], Budget(), None)
    found.save(tmp_path / "run")
    return found


def request_of(plan, method, folds, **changes):
    data = asdict(plan.data[0])
    return {"data": data, "method": method, "configs": plan.methods[method], "seed": 0, "folds": folds} | changes


def test_folds_of_a_kernel_share_one_preparation(plan, monkeypatch):
    calls, prepare = [], KernelMethod.prepared
    monkeypatch.setattr(KernelMethod, "prepared", lambda *given: calls.append(1) or prepare(*given))
    events = list(child_module.answer(request_of(plan, "wl", [2, 0])))
    assert [(e["event"], e.get("fold")) for e in events] == [
        ("load", None), ("prepare", None), ("fold", 2), ("done", 2), ("fold", 0), ("done", 0), ("end", None)
    ]  # fmt: skip
    assert calls == [1]


def test_a_preparation_that_fails_fails_all_its_folds(plan, monkeypatch):
    def prepared(self, graphs, config):
        raise MemoryError

    monkeypatch.setattr(KernelMethod, "prepared", prepared)
    events = list(child_module.answer(request_of(plan, "wl", [0, 1])))
    assert events[2:] == [
        {"event": "failed", "fold": None, "status": "memory", "error": "MemoryError"}, {"event": "end"}
    ]  # fmt: skip


def test_other_graphs_or_folds_than_planned_are_refused(plan):
    from gcaps.evaluation.plan import PlannedData

    data = asdict(plan.data[0])
    with pytest.raises(DataError, match="other graphs than the comparison was planned with"):
        PlannedData(**data | {"fingerprint": "0"}).load()
    with pytest.raises(DataError, match="other folds than"):
        PlannedData(**data | {"folds": {"0": ["0", "0", "0"]}}).fold(plan.data[0].load(), 0, 1)


def test_a_task_skips_cells_that_have_appeared_meanwhile(plan, tmp_path, run):
    cells = [c for c in plan.cells() if c.method == "fgsd"]
    task = Task(str(tmp_path / "run"), asdict(plan.data[0]), tuple(cells))
    done = next(o for o in Comparison.read(run).outcomes if o.method == "fgsd" and o.fold == 1)
    done.save(tmp_path / "run" / cells[1].path)
    assert supervise(task, plan.budgets, os.getpid()) == 2
    assert Outcome.read(tmp_path / "run" / cells[1].path) == done
    assert supervise(task, plan.budgets, os.getpid()) == 0


def test_a_worker_that_does_not_see_the_folder_says_so(plan):
    with pytest.raises(GcapsError, match="all workers must share its folder"):
        supervise(Task("/nowhere/run", {}, ()), plan.budgets, None)


def test_graphs_folds_and_seeds_can_be_given_as_they_are(small, tmp_path):
    folds = stratified_folds(small.targets, 4, seed=3)[:2]
    found = compare([small], "fgsd", run=tmp_path / "run", splits=folds, seeds=(0, 1), grid=FAST, jobs=1)
    assert [(o.seed, o.fold) for o in found.outcomes] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    expected = evaluate(small, "fgsd", splits=folds, seed=1, config={"trees": 10}, jobs=1)
    second = found.result("families", "fgsd", seed=1)
    assert [timeless(f) for f in second.folds] == [timeless(f) for f in expected.folds]
    assert Path(second.splits).exists()
    assert Plan.read(tmp_path / "run").data[0].load().fingerprint() == small.fingerprint()


def test_processes_give_the_same_cells(run, small, tmp_path):
    found = compare(small, ["set", "wl", "fgsd"], run=tmp_path / "run", folds=3, grid=FAST, jobs=2)
    assert [o.unmeasured() for o in found.outcomes] == [o.unmeasured() for o in Comparison.read(run).outcomes]


def test_bad_requests_are_one_line(small, tmp_path):
    with pytest.raises(ConfigError, match="no method 'magic'"):
        compare(small, "set,magic", run=tmp_path / "a")
    with pytest.raises(ConfigError, match="two data sets are called families"):
        compare([small, small], "set", run=tmp_path / "a", folds=2)
    with pytest.raises(ConfigError, match="the grid of set: hiden: there is no such setting"):
        compare(small, "set", run=tmp_path / "a", grid={"set": {"hiden": 3}})
    with pytest.raises(ConfigError, match="seed stands twice"):
        compare(small, "set", run=tmp_path / "a", seeds=(1, 1))
    with pytest.raises(GcapsError, match=r"not the folder of a comparison \(it has no run.json\)"):
        compare(run=tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("precious")
    with pytest.raises(GcapsError, match="is not the folder of a comparison; choose a new one"):
        compare(small, "set", run=tmp_path / "b")
    with pytest.raises(ConfigError, match="give a folder with a file of folds for each"):
        compare([small, "MUTAG"], "set", run=tmp_path / "a", splits=tmp_path / "s.json")
    assert not (tmp_path / "a" / "run.json").exists()


def test_damaged_files_are_named(run, tmp_path):
    (tmp_path / "run.json").write_text('{"format": 1}')
    with pytest.raises(GcapsError, match="is not a plan of gcaps"):
        Plan.read(tmp_path)
    (tmp_path / "c.json").write_text('{"format": 1}')
    with pytest.raises(GcapsError, match="is not a gcaps cell"):
        Outcome.read(tmp_path / "c.json")
