"""The search on functions whose values are known: no graphs, no training."""

import json
import math

import pytest

from gcaps.config.spaces import Choice, Range
from gcaps.errors import GcapsError
from gcaps.tuning import Search, fold_workers
from gcaps.tuning.importance import importances
from gcaps.tuning.journal import FILE, opened

pytest.importorskip("optuna")

SPACE = {
    "x": Range(0.0, 1.0),
    "lr": Range(1e-3, 1.0, log=True),
    "n": Range(1, 9),
    "kind": Choice(["a", None, True, [1, 2]]),
}
BASE = {"x": 0.1, "lr": 0.5, "n": 2, "kind": "a", "fixed": 7}


def score(settings, fold):
    """Best at x = 0.8, lr = 0.01, n = 9, whatever the kind; the fold adds a little."""
    assert settings["fixed"] == 7
    return (
        -((settings["x"] - 0.8) ** 2) - 0.05 * abs(math.log10(settings["lr"]) + 2) + 0.01 * settings["n"] + 0.001 * fold
    )


def search(trials=12, function=score, storage=None, space=SPACE, base=BASE, **options):
    found = Search(
        space, base, options.pop("folds", 3), options.pop("greater_is_better", True), storage=storage, **options
    )
    with fold_workers(function) as workers:
        found.run(workers, trials)
    return found


def plain(trials):
    return [(t.number, t.changes, t.state, t.value, t.folds) for t in trials]


def test_the_first_trial_is_the_default():
    first = search(1).trials()[0]
    assert first.changes == {name: BASE[name] for name in SPACE}
    assert first.folds == pytest.approx([score(BASE, fold) for fold in range(3)])
    assert first.value == pytest.approx(score(BASE, 1))


def test_the_same_seed_gives_the_same_trials_and_another_seed_others():
    one, same, other = search(), search(), search(seed=1)
    assert plain(one.trials()) == plain(same.trials())
    assert plain(one.trials()) != plain(other.trials())


def test_settings_lie_in_the_space_and_none_is_tried_twice():
    trials = search(40, pruner="none").trials()
    for trial in trials:
        assert 0 <= trial.changes["x"] <= 1
        assert 1e-3 <= trial.changes["lr"] <= 1
        assert isinstance(trial.changes["n"], int)
        assert trial.changes["kind"] in ("a", None, True, [1, 2])
    assert len({json.dumps(trial.changes, sort_keys=True) for trial in trials}) == len(trials) == 40


def test_the_search_comes_close_to_the_best_settings():
    found = search(60)
    assert found.best.value > score(BASE, 1) + 0.45, "of the 0.65 that the best settings are better than the default"


def test_a_metric_that_is_better_where_it_is_smaller_is_minimised():
    found = search(60, lambda settings, fold: -score(settings, fold), greater_is_better=False)
    done = [trial.value for trial in found.trials() if trial.state == "done"]
    assert found.best.value == min(done) < -score(BASE, 1) - 0.4


def test_a_small_space_is_tried_out_and_then_the_search_ends():
    space = {"a": Choice([1, 2, 3]), "b": Choice([True, False])}
    trials = search(100, lambda s, fold: s["a"] + s["b"], space=space, base={"a": 1, "b": True}, pruner="none").trials()
    assert sorted((t.changes["a"], t.changes["b"]) for t in trials) == [
        (a, b) for a in (1, 2, 3) for b in (False, True)
    ]


def test_hopeless_trials_are_given_up_before_their_last_fold_unless_nothing_is_pruned():
    pruned = [trial for trial in search(40).trials() if trial.state == "pruned"]
    assert pruned
    assert all(2 <= len(trial.folds) < 3 for trial in pruned), "the first two folds are always done"
    assert {trial.state for trial in search(40, pruner="none").trials()} == {"done"}
    assert {trial.state for trial in search(40, pruner="hyperband").trials()} <= {"done", "pruned"}


def test_a_failing_trial_is_recorded_and_a_failing_default_is_raised():
    def fragile(settings, fold):
        if settings["n"] > 4:
            raise GcapsError("too wide\nfor this machine")
        return score(settings, fold)

    trials = search(20, fragile).trials()
    failed = [trial for trial in trials if trial.state == "failed"]
    assert failed
    assert {(trial.value, trial.error) for trial in failed} == {(None, "too wide for this machine")}
    assert all(trial.state == "failed" or trial.changes["n"] <= 4 for trial in trials)
    with pytest.raises(GcapsError, match="too wide"):
        search(2, fragile, base=BASE | {"n": 5})


class Killed(BaseException):
    """What a signal does to the process."""


def test_a_search_that_is_killed_again_and_again_makes_the_trials_of_one_that_is_not(tmp_path):
    whole, runs, trials = search(15), 0, []
    while len([t for t in trials if t.state != "running"]) < 15:
        left = [1 + runs % 4]

        def mortal(settings, fold, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return score(settings, fold)

        with opened(tmp_path) as storage:
            one = Search(SPACE, BASE, 3, True, storage=storage)
            try:
                with fold_workers(mortal) as workers:
                    one.run(workers, 15)
            except Killed:
                runs += 1
            trials = one.trials()
        with (tmp_path / FILE).open("ab") as file:
            file.write(b'{"op_code": 7, "wor')  # what it was writing
    assert runs > 8
    assert [t.number for t in trials] == list(range(15)), "no trial is lost or repeated"
    assert plain(trials) == plain(whole.trials())


def test_more_trials_add_to_a_search(tmp_path):
    for count in (4, 9):
        with opened(tmp_path) as storage:
            found = search(count, storage=storage)
    assert plain(found.trials()) == plain(search(9).trials())


def test_time_that_is_up_ends_the_search_after_the_default():
    found = Search(SPACE, BASE, 3, True)
    with fold_workers(score) as workers:
        found.run(workers, 100, time_limit=0.0)
    assert [(t.number, t.state) for t in found.trials()] == [(0, "done")]


def test_processes_compute_what_this_one_computes():
    found = Search(SPACE, BASE, 3, True, pruner="none")
    with fold_workers(score, 2) as workers:
        found.run(workers, 6)
    trials = found.trials()
    assert [t.number for t in trials] == list(range(6))
    for trial in trials:
        assert trial.folds == pytest.approx([score(found.settings(trial), fold) for fold in range(3)])


def test_only_one_process_searches_in_a_folder(tmp_path):
    with opened(tmp_path), pytest.raises(GcapsError, match="another process"), opened(tmp_path):
        pass


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"no json", "is not JSON"),
        (b"[" * 100 + b"]" * 100, "levels of brackets"),
        (b'{"op_code": 99, "worker_id": "w"}', "op_code"),
        (b'{"op_code": 7, "worker_id": "w", "trial_id": 0, "step": -1}', "step"),
        (b'{"op_code": 7, "worker_id": "w", "trial_id": 99, "step": 0, "intermediate_value": 1e999}', "JSON"),
        (
            b'{"op_code": 4, "worker_id": "w", "study_id": 0, "distributions": {"x": "{}"}, "params": {"x": 1}}',
            "journal",
        ),
    ],
)
def test_a_journal_that_is_none_is_refused_in_one_line(tmp_path, line, problem):
    with opened(tmp_path) as storage:
        search(2, storage=storage)
    with (tmp_path / FILE).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(GcapsError, match=problem) as raised, opened(tmp_path):
        pass
    assert "\n" not in str(raised.value)


def lines_of(folder):
    return (folder / FILE).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[1:],
        lambda lines: [*lines, b'{"op_code": 1, "worker_id": "w", "study_id": 0}\n'],
        lambda lines: [lines[0].replace(b'"gcaps"', b'"another"'), *lines[1:]],
        lambda lines: [b" ".join(line.strip() for line in lines)],
        lambda lines: [line.replace(b"\n", b"\r") for line in lines],
    ],
)
def test_a_journal_that_does_not_begin_with_its_search_or_has_no_lines_is_refused_and_kept(tmp_path, change):
    with opened(tmp_path) as storage:
        search(2, storage=storage)
    (tmp_path / FILE).write_bytes(content := b"".join(change(lines_of(tmp_path))))
    with pytest.raises(GcapsError, match="journal"), opened(tmp_path):
        pass
    assert (tmp_path / FILE).read_bytes() == content


def test_reading_a_search_does_not_write_to_its_journal(tmp_path):
    with opened(tmp_path) as storage:
        search(2, storage=storage)
        before = lines_of(tmp_path)
        assert len(Search(SPACE, BASE, 3, True, storage=storage).trials()) == 2
        assert lines_of(tmp_path) == before
        with pytest.raises(GcapsError, match="the other end"):
            Search(SPACE, BASE, 3, False, storage=storage)


def test_only_as_many_unfinished_trials_are_finished_as_are_asked_for(tmp_path):
    with opened(tmp_path) as storage:
        search(4, storage=storage)
    begun = [line for line in lines_of(tmp_path) if b'"op_code":4' in line]
    with (tmp_path / FILE).open("ab") as file:
        file.writelines(begun)
    with opened(tmp_path) as storage:
        trials = search(6, storage=storage).trials()
    assert [trial.state == "running" for trial in trials] == [False] * 6 + [True] * 2


def test_the_journal_of_another_space_is_refused(tmp_path):
    with opened(tmp_path) as storage:
        search(3, storage=storage)
    with opened(tmp_path) as storage, pytest.raises(GcapsError, match="not one of this search"):
        Search({"x": Range(0.0, 2.0)}, BASE, 3, True, storage=storage)


def test_the_setting_that_matters_has_the_largest_importance():
    found = search(40, lambda settings, fold: settings["x"], pruner="none")
    shares = importances(SPACE, found.trials())
    assert next(iter(shares)) == "x"
    assert shares["x"] > 0.9
    assert sum(shares.values()) == pytest.approx(1)


def test_a_few_trials_have_no_importance():
    assert importances(SPACE, search(4).trials()) == {}


def test_a_trial_of_the_journal_that_lacks_a_setting_is_refused(tmp_path):
    with opened(tmp_path) as storage:
        search(3, storage=storage)
    lines = [json.loads(line) for line in lines_of(tmp_path)]
    last = [line for line in lines if line["op_code"] == 4][-1]
    del last["params"]["x"]
    (tmp_path / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    with opened(tmp_path) as storage, pytest.raises(GcapsError, match="trial 2 of the journal is not one"):
        Search(SPACE, BASE, 3, True, storage=storage)
