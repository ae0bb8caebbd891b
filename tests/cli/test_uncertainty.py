"""``gcaps train --calibrate`` and ``gcaps predict --uncertainty`` as a user types them."""

import csv

import numpy as np
import pytest

import gcaps
from tests.cli.test_verbs import run

WL = ["--method", "wl", "--n-iter", "1", "--C", "1", "--inner-folds", "2"]


def table(text):
    return list(csv.DictReader(text.splitlines()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("models")
    said = run("train", "MUTAG", *WL, "--calibrate", "cross", "-o", "m", cwd=found)
    assert "calibrated on 188 graphs" in said.stdout
    assert [p.name for p in found.iterdir()] == ["m"], "no checkpoint is left"
    return found


def test_uncertainty_adds_columns_to_the_same_predictions(folder):
    plain = table(run("predict", "m", "MUTAG", cwd=folder).stdout)
    found = run("predict", "m", "MUTAG", "--uncertainty", "--coverage", "0.95", cwd=folder)
    rows, model = table(found.stdout), gcaps.load_model(folder / "m")
    own = ["calibrated(-1)", "calibrated(1)", "set", "similarity", "nearest", "novel"]
    assert list(rows[0]) == [*plain[0], *own]
    assert [{name: row[name] for name in plain[0]} for row in rows] == plain
    graphs = gcaps.load("MUTAG")
    sets = model.predict_set(graphs, 0.95)
    assert [row["set"] for row in rows] == ["{" + "|".join(np.array(["-1", "1"])[one]) + "}" for one in sets]
    shown = [float(row["calibrated(1)"]) for row in rows]
    np.testing.assert_allclose(shown, model.predict_calibrated(graphs)[:, 1], atol=1e-6)
    assert {row["novel"] for row in rows} == {"no"}
    inside = sets[np.arange(188), model.target_.encode(graphs.y)].mean()
    assert (
        f"they contain {inside:.1%} of 188 known targets, with {sets.sum(1).mean():.2f} classes on average"
        in found.stderr
    )
    assert "0 of 188 graphs are unlike anything seen" in found.stderr


def test_intervals_of_several_targets_and_rows_that_are_no_graphs(tmp_path):
    pytest.importorskip("rdkit")
    text = ["smiles,size,weight"] + [f"{'C' * n},{n},{14 * n + 2}" for n in range(1, 31)] + ["nothing!,1,1"]
    (tmp_path / "a.csv").write_text("\n".join(text) + "\n")
    wanted = ["--task", "regression", "--target", "size,weight"]
    run("train", "a.csv", *wanted, "--method", "ecfp", "--n-estimators", "5", "--calibrate", "split", "-o", "m",
        cwd=tmp_path)  # fmt: skip
    found = run("predict", "m", "a.csv", "--uncertainty", "--coverage", "0.5", cwd=tmp_path)
    rows = table(found.stdout)
    for row in rows[:-1]:
        for name in ("size", "weight"):
            assert float(row[f"lower({name})"]) <= float(row[name]) <= float(row[f"upper({name})"])
    assert set(rows[-1].values()) == {"", rows[-1]["graph"]}
    assert "intervals for a coverage of 50%, from 6 calibration graphs" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--coverage", "0.9"], "--coverage and --by-class are about --uncertainty"),
        (["--uncertainty", "--coverage", "90"], "coverage: 90 is not between 0 and 1"),
    ],
)
def test_what_makes_no_sense_is_one_line(folder, arguments, words):
    found = run("predict", "m", "MUTAG", *arguments, cwd=folder, check=False)
    assert found.returncode == 4
    assert words in found.stderr
    assert "Traceback" not in found.stderr


def test_a_model_without_calibration_says_how_to_get_it(tmp_path):
    run("train", "MUTAG", *WL, "-o", "m", cwd=tmp_path)
    found = run("predict", "m", "MUTAG", "--uncertainty", cwd=tmp_path, check=False)
    assert found.returncode != 0
    assert "train it with --calibrate cross" in found.stderr
    found = run("train", "MUTAG", *WL, "--calibrate", "guess", "-o", "n", cwd=tmp_path, check=False)
    assert "there is no calibration 'guess'; there are cross, split" in found.stderr
    assert not (tmp_path / "n").exists()
