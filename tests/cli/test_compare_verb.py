"""``gcaps compare`` as a user types it."""

import json
import sys
from dataclasses import replace

import pytest

from gcaps.cli.app import main
from gcaps.evaluation import Comparison, executor
from tests.cli.test_verbs import run

GRID = "[deepsets]\nepochs = 2\nhidden = [2, 4]\n[fgsd]\nn_estimators = 5\n"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verb")
    (folder / "grid.toml").write_text(GRID)
    said = run("compare", "families", "--methods", "deepsets,fgsd", "--folds", 2, "--seeds", "0,1",
               "--grid", folder / "grid.toml", "-o", folder / "run", "--jobs", 1)  # fmt: skip
    return folder, said


def test_compare_prints_a_line_a_cell_and_a_table(done):
    folder, said = done
    assert "8 cells to run, 0 there already, 1 at a time" in said.stderr
    assert said.stderr.count("families deepsets seed") == 4
    assert "8 cells done" in said.stdout
    assert [line.split()[0] for line in said.stdout.splitlines()[1:3]] == ["deepsets", "fgsd"]
    found = Comparison.read(folder / "run")
    assert found.missing() == []
    assert found.plan.command.startswith("gcaps compare families --methods deepsets,fgsd")


def test_without_data_it_continues_and_then_verifies(done):
    folder, said = done
    next((folder / "run").glob("cells/families/fgsd/seed1-fold1*")).unlink()
    again = run("compare", "-o", folder / "run", "--jobs", 1)
    assert "1 cells to run, 7 there already" in again.stderr
    assert again.stdout == said.stdout
    found = run("compare", "--verify", folder / "run").stdout.splitlines()
    assert [line.partition(":")[0] for line in found] == ["same", "same"]


def test_verify_fails_where_a_prediction_differs(done, tmp_path):
    folder, _ = done
    result = Comparison.read(folder / "run").result("families", "fgsd")
    wrong = [replace(fold, predictions=[(fold.predictions[0] + 1) % 4, *fold.predictions[1:]]) for fold in result.folds]
    replace(result, folds=wrong).save(tmp_path / "r.json")
    found = run("compare", "--verify", tmp_path / "r.json", check=False)
    assert found.returncode == 1
    assert found.stdout.startswith("different: ")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["families", "--methods", "magic", "-o", "{tmp}/r"], 4, "there is no method 'magic'"),
        (["-o", "{tmp}/r"], 1, "is not the folder of a comparison"),
        (["families"], 4, "say where the comparison is kept: -o RUN"),
        (["families", "-o", "{tmp}/r", "--seeds", "one"], 4, "is not a list of numbers"),
        (["families", "-o", "{tmp}/r", "--time-limit", "soon"], 4, "'soon' is not a time"),
        (["--experiment", "pape", "-o", "{tmp}/r"], 4, "there is no experiment 'pape'"),
        (["-o", "{tmp}/r", "--folds", "3"], 4, "--folds needs a data set"),
        (["--verify"], 4, "--verify needs recorded results"),
        (["families", "-o", "{tmp}/r", "--record", "{tmp}/r.txt"], 4, "a record's name ends in .json"),
        (["ENZYMES", "--experiment", "own", "-o", "{tmp}/r", "--grid", "nothing.toml"], 4, "nothing.toml"),
        (["MUTAG", "--experiment", "own", "-o", "{tmp}/r"], 4, "the experiment has no entry on MUTAG"),
    ],
)
def test_mistakes_are_one_line(arguments, code, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        main(["compare", *(a.format(tmp=tmp_path) for a in arguments)])
    assert left.value.code == code
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(executor, "TIMEOUT", 1)
    with pytest.raises(SystemExit) as left:
        main(
            [
                "compare",
                "families",
                "--methods",
                "deepsets",
                "-o",
                str(tmp_path / "r"),
                "--cluster",
                "tcp://127.0.0.1:9",
            ]
        )
    assert left.value.code == 1
    assert "tcp://127.0.0.1:9: no Dask scheduler answers there" in capsys.readouterr().err.splitlines()[-1]


def test_a_cluster_without_dask_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SystemExit) as left:
        main(
            [
                "compare",
                "families",
                "--methods",
                "deepsets",
                "-o",
                str(tmp_path / "r"),
                "--cluster",
                "tcp://127.0.0.1:9",
            ]
        )
    assert left.value.code == 4
    assert "pip install 'gcaps[cluster]'" in capsys.readouterr().err


def test_an_experiment_becomes_a_record_that_verifies(tmp_path):
    (tmp_path / "e.toml").write_text(
        '[[entries]]\nlabel = "few trees"\nmethod = "fgsd"\ndata = "families"\nfolds = 3\nfirst = 2\n'
        "settings = { n_estimators = 5 }\n"
    )
    run("compare", "--experiment", tmp_path / "e.toml", "-o", tmp_path / "run", "--record", tmp_path / "few.json")
    page = json.loads((tmp_path / "few.json").read_text())
    assert [(row["data"], row["label"], len(row["folds"])) for row in page["results"]] == [("families", "few trees", 2)]
    assert page["command"].startswith("gcaps compare --experiment")
    for path in (tmp_path / "few.json", tmp_path / "run"):
        found = run("compare", "--verify", path, "--only", "few trees").stdout
        assert found.startswith(f"same: {path}: families few trees (fold ")


def test_numbers_are_compared_by_group_with_the_metric_asked_for(tmp_path):
    pytest.importorskip("rdkit")
    rows = [f"{'C' * n}{tail},{n + len(tail)}.5,{n}" for n in range(1, 9) for tail in ("", "O", "N", "S")]
    (tmp_path / "m.csv").write_text("smiles,weight,length\n" + "\n".join(rows) + "\n")
    (tmp_path / "grid.toml").write_text("[fgsd]\nn_estimators = 5\n[wl]\nn_iter = [[1]]\nC = [[1.0]]\n")
    said = run("compare", tmp_path / "m.csv", "--target", "weight", "--methods", "fgsd,wl", "--split", "group:length",
               "--folds", 2, "--seeds", "1,2", "--metric", "mae", "--grid", tmp_path / "grid.toml",
               "-o", tmp_path / "run", "--jobs", 1)  # fmt: skip
    lines = said.stdout.splitlines()
    assert lines[0].split() == ["honest", "MAE", "m", "vs", "best", "p", "Holm"]
    assert lines[1].count("±") == 2, "over the folds, and in brackets over the repetitions"
    assert "in brackets: of the repetitions' means (divided by n − 1)" in " ".join(said.stdout.split())
    planned = Comparison.read(tmp_path / "run").plan.data[0]
    assert (planned.task, planned.metric, planned.split, list(planned.folds)) == (
        "regression", "mae", "group:length", ["1", "2"]
    )  # fmt: skip
    again = run("compare", "-o", tmp_path / "run", "--jobs", 1)
    assert again.stdout == said.stdout, "the table is read again with the same options"


def test_compare_tests_methods_over_repetitions_of_one_division(tmp_path):
    (tmp_path / "grid.toml").write_text(GRID)
    said = run("compare", "families", "--methods", "deepsets,fgsd", "--folds", 1, "--repeats", 3, "--train-sizes", 50,
               "--grid", tmp_path / "grid.toml", "-o", tmp_path / "run", "--jobs", 1).stdout  # fmt: skip
    assert said.splitlines()[0].split() == ["honest,", "%", "families", "vs", "best", "p", "Holm"]
    assert "p: corrected resampled t-test over 3 repetitions, n_test / n_train = 0.11" in said
    assert "12 cells done" in said
    assert "training graphs" in said
    again = run("compare", "-o", tmp_path / "run", "--jobs", 1)
    assert "0 cells to run" in again.stderr or "cells to run" not in again.stderr
