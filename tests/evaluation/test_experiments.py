"""Limits, experiments and progress."""

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import gcaps
from gcaps.config import CONFIGS
from gcaps.errors import ConfigError
from gcaps.estimators.registry import METHODS
from gcaps.evaluation import Cell, FoldResult, Limits, Outcome, compare
from gcaps.evaluation.experiments import Experiment, read_experiment
from gcaps.evaluation.progress import Tally, comparison_progress

WRITTEN = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))


def test_limits_as_people_write_them():
    assert Limits.of("30m", "4G") == Limits(1800, 4096)
    assert Limits.of("1.5h", "512MiB") == Limits(5400, 512)
    assert Limits.of(90, 2**20) == Limits(90, 1)
    assert Limits.of("45s", "800mb") == Limits(45, 800)
    assert Limits.of("10min", None) == Limits(600, None)
    for text in ("soon", "-3m", "0", "3 fortnights"):
        with pytest.raises(ConfigError, match="is not a time"):
            Limits.of(text, None)
    with pytest.raises(ConfigError, match="'4Q' is not a memory"):
        Limits.of(None, "4Q")


def test_the_papers_experiment_names_its_data_and_all_methods():
    paper = read_experiment("paper")
    assert len(paper.data) == 11
    cells = {(row.method, row.source) for row in paper.rows()}
    graph_methods = [name for name, method in METHODS.items() if name != "ensemble" and not method.needs_molecules]
    assert cells == {(name, data) for name in graph_methods for data in paper.data}
    assert paper.folds == 10
    assert Limits.of(paper.time_limit, paper.memory_limit).seconds == 86400


def test_experiments_that_are_not_are_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"no experiment 'pape'; there are .*paper"):
        read_experiment("pape")
    (tmp_path / "e.toml").write_text('data = ["MUTAG"]\nepochs = 3\n')
    with pytest.raises(ConfigError, match="an experiment has no epochs"):
        read_experiment(str(tmp_path / "e.toml"))
    (tmp_path / "e.toml").write_text("folds = 3\n")
    with pytest.raises(ConfigError, match="names no data sets"):
        read_experiment(str(tmp_path / "e.toml"))
    (tmp_path / "e.toml").write_text('[[entries]]\ndata = "MUTAG"\nepochs = 3\n')
    with pytest.raises(ConfigError, match="an entry has no epochs; it has label, method, methods, data, settings"):
        read_experiment(str(tmp_path / "e.toml"))
    (tmp_path / "e.toml").write_text('[[entries]]\ndata = "MUTAG"\nsettings = {hiden = 3}\n')
    with pytest.raises(ConfigError, match="hiden: there is no such setting"):
        read_experiment(str(tmp_path / "e.toml")).rows()


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.stem)
def test_experiments_that_are_written_down_are_valid(file):
    found = read_experiment(file.stem)
    assert found.description
    rows = found.rows()
    assert rows
    assert len({(row.source, row.label) for row in rows}) == len(rows)
    for row in rows:
        for config in row.configs:
            assert CONFIGS[row.method].parse(config).to_dict() == config


def test_entries_have_settings_data_and_folds_of_their_own():
    experiment = Experiment.parse(
        {
            "data": ("A", "B"),
            "methods": ("wl",),
            "seeds": (0, 1),
            "settings": {"hidden": 8},
            "entries": (
                {"label": "wide", "settings": {"hidden": 64}, "data": "A", "seeds": (5,), "first": 3},
                {"label": "tuned", "method": "gin", "settings": {"hidden": [4, 8], "lr": 0.1}, "grid": True},
                {"label": "listed", "settings": {"features": ["degree", "fgsd"]}, "folds": 5, "data": ("C", "D")},
            ),
        }
    )
    rows = {(row.source, row.label): row for row in experiment.rows()}
    assert list(rows) == [("A", "wl"), ("B", "wl"), ("A", "wide"), ("A", "tuned"), ("B", "tuned"), ("C", "listed"),
                          ("D", "listed")]  # fmt: skip
    wide, listed = rows["A", "wide"], rows["C", "listed"]
    assert (wide.method, wide.configs[0]["hidden"], wide.seeds, wide.first) == ("gcaps", 64, (5,), 3)
    assert [config["hidden"] for config in rows["B", "tuned"].configs] == [4, 8]
    assert (listed.configs[0]["features"], listed.configs[0]["hidden"], listed.folds) == (["degree", "fgsd"], 8, 5)
    assert {row.source for row in experiment.on(["A"]).rows()} == {"A"}
    with pytest.raises(ConfigError, match="no entry on E"):
        experiment.model_copy(update={"entries": experiment.entries[2:]}).on(["E"])


def test_variants_change_every_entry():
    experiment = Experiment.parse(
        {
            "entries": ({"data": "A", "settings": {"epochs": 5}}, {"data": "B", "settings": {"epochs": 7}}),
            "variants": {"plain": {}, "mean": {"readout": "mean"}},
        }
    )
    found = [(row.source, row.label, row.configs[0]["epochs"], row.configs[0]["readout"]) for row in experiment.rows()]
    assert found == [("A", "plain", 5, "covariance"), ("A", "mean", 5, "mean"), ("B", "plain", 7, "covariance"),
                     ("B", "mean", 7, "mean")]  # fmt: skip


def test_an_experiment_is_run_as_written(tmp_path):
    (tmp_path / "e.toml").write_text(
        'data = ["families"]\nmethods = ["fgsd"]\nfolds = 3\n[grid.fgsd]\nn_estimators = 5\n'
        '[[entries]]\nlabel = "few"\nmethod = "fgsd"\nsettings = {n_estimators = 2}\nfirst = 1\n'
    )
    found = compare(experiment=str(tmp_path / "e.toml"), jobs=1)
    assert [(o.label, o.fold, o.config["n_estimators"]) for o in found.outcomes] == [
        ("fgsd", 0, 5), ("fgsd", 1, 5), ("fgsd", 2, 5), ("few", 0, 2)
    ]  # fmt: skip
    assert found.result("families", "few").splits == "the first 1 of 3 stratified folds, seed 0"
    assert found.missing() == []


def test_rows_on_one_set_have_the_same_folds():
    entries = ({"label": "a", "data": "families"}, {"label": "b", "data": "families", "folds": 3})
    with pytest.raises(ConfigError, match="the rows on families have different folds"):
        compare(experiment=Experiment.parse({"entries": entries}))
    entries = ({"label": "a", "data": "families", "first": 11},)
    with pytest.raises(ConfigError, match="first = 11, but there are 10 folds"):
        compare(experiment=Experiment.parse({"entries": entries}))


def test_splits_are_found_below_the_data_folders(tmp_path, monkeypatch):
    graphs = gcaps.load("families")
    from gcaps.evaluation.plan import find_splits
    from gcaps.evaluation.splits import stratified_folds, write_splits
    from gcaps.files import write_json

    write_json(tmp_path / "splits" / "families.json", write_splits(stratified_folds(graphs.y, 4, 1)[:2]))
    monkeypatch.setenv("GCAPS_DATA", str(tmp_path))
    assert find_splits("splits") == tmp_path / "splits"
    found = compare(graphs, {"few": ("fgsd", {"n_estimators": 2})}, splits="splits", jobs=1)
    assert len(found.outcomes) == 2
    assert np.array_equal(found.outcomes[0].result.test, stratified_folds(graphs.y, 4, 1)[0].test)


def outcome(label, status="done", seconds=1.0, fold=0):
    result = (
        FoldResult(0, [0, 1], [0, 1], [0, 0], [[1.0, 0.0]] * 2, 1, [], [], [], [], 0.5) if status == "done" else None
    )
    error = None if status == "done" else "no luck"
    return Outcome("D", label, "gcaps", 0, fold, "f", status, {}, result, error, seconds, 1.0, [], None, {}, "now")


def cells(*labels):
    return [Cell("D", label, "gcaps", (), 0, 0, "f") for label in labels]


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
