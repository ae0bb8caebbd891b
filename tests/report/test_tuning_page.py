"""The page of a search."""

import re
from dataclasses import replace

import pytest

from gcaps.config.spaces import SPACES
from gcaps.evaluation.tuning_study import StudyPlan, TuningStudy, settings_toml, trials_csv
from gcaps.report.tuning import parallel_coordinates, tuning_page
from gcaps.tuning import Trial

pytest.importorskip("optuna")


def study(count=12, **changes) -> TuningStudy:
    from gcaps.config import CONFIGS

    settings = CONFIGS["gcaps"].parse({}).to_dict()
    space = SPACES["gcaps"]
    plan = StudyPlan(
        data="<i>set",
        fingerprint="0" * 64,
        graphs=100,
        method="gcaps",
        task="classification",
        metric="accuracy",
        split="stratified",
        folds=2,
        inner="1" * 64,
        seed=0,
        pruner="median",
        settings=settings,
        space=space,
        command="gcaps tune '<i>set' -o s",
        created="2026-01-01T00:00:00",
    )
    default = {name: settings[name] for name in space}
    trials = [
        Trial(n, default | {"hidden": 16 + 4 * n, "rank": 16}, "done", 0.5 + 0.02 * n, [0.5, 0.5 + 0.04 * n], 1.5)
        for n in range(count)
    ]
    trials[3:4] = [replace(trials[3], state="failed", value=None, folds=[], error="<script>no</script>")]
    trials[4:5] = [replace(trials[4], state="pruned", folds=[0.4], value=0.4)]
    return replace(TuningStudy(plan, trials), **changes)


def test_the_page_shows_the_best_trial_against_the_default_and_says_it_is_optimistic():
    page = tuning_page(study())
    for words in (
        "72.00",
        "50.00",
        "+22.00",
        "too optimistic",
        "--tune 12",
        "1 given up early",
        "1 failed",
        "best.toml",
    ):
        assert words in page, words


def test_names_and_errors_are_escaped_and_nothing_is_loaded():
    page = tuning_page(study())
    assert "<i>set" not in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_most_important_setting_comes_first():
    page = tuning_page(study(30))
    assert "Importance of settings in percent: hidden 100" in page
    assert "Parallel coordinates of 28 trials: settings hidden," in page


def test_an_unfinished_search_has_a_page():
    begun = study()
    for trials in ([], [replace(begun.trials[0], state="running", value=None, folds=[0.5])]):
        page = tuning_page(replace(begun, trials=trials))
        assert "No trial is done yet" in page


def test_settings_are_toml_that_gcaps_reads(tmp_path):
    from gcaps.config import CONFIGS

    found = study()
    best = found.trials[-1]
    found = replace(found, trials=[*found.trials[:-1], replace(best, changes=best.changes | {"dropout": 0.2})])
    (tmp_path / "best.toml").write_text(settings_toml(found))
    settings = CONFIGS["gcaps"].from_toml(tmp_path / "best.toml")
    assert settings == {"hidden": 60, "rank": 16, "dropout": 0.2}


def test_the_table_is_safe_in_a_spreadsheet():
    found = study()
    found = replace(found, trials=[replace(found.trials[0], state="failed", error="=cmd()")])
    assert "'=cmd()" in trials_csv(found)


def test_ticks_of_a_narrow_axis_differ():
    """Whole percents made three ticks of "88" when the trials were closer together than a percent."""
    found = study()
    trials = [replace(one, value=0.88 + 0.0005 * one.number) for one in found.trials if one.state == "done"]
    picture = parallel_coordinates(replace(found, trials=trials), ["hidden"])
    ticks = re.findall(r">(88[.\d]*)<", str(picture))
    assert len(ticks) >= 3
    assert len(set(ticks)) == len(ticks)
