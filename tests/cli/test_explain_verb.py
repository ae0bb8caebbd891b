"""``gcaps explain``: a page from a saved model and a table; mistakes are one line."""

from __future__ import annotations

import pytest

from tests.cli.test_verbs import run
from tests.molecule_sets import molecules, write_table

pytest.importorskip("rdkit")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("explain")
    write_table(made / "mols.csv", molecules(42))
    run("train", "mols.csv", "--target", "value", "--method", "wl", "--salts", "strip", "-o", "model", cwd=made)
    run("train", "mols.csv", "--target", "a", "--target", "b", "--method", "ecfp", "-o", "two", cwd=made)
    return made


def test_the_first_molecules_are_explained(folder):
    done = run("explain", "model", "mols.csv", cwd=folder)
    assert "explanation.html: 12 molecules explained" in done.stderr
    text = (folder / "explanation.html").read_text(encoding="utf-8")
    assert text.count("predicted <b>") == 12
    assert "gcaps explain model mols.csv" in text


def test_molecules_and_target_are_chosen(folder):
    run("explain", "two", "mols.csv", "--graph", "m7", "--graph", "m3", "--target", "b", "-o", "b.html", cwd=folder)
    text = (folder / "b.html").read_text(encoding="utf-8")
    assert text.index("<strong>m7") < text.index("<strong>m3")
    assert "probability that b is 1" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("model", "mols.csv", "--graph", "m99"), "has no molecule 'm99'; its molecules are called m0, m1, m2"),
        (("two", "mols.csv", "--target", "c"), "the model has no target 'c'; it predicts a, b"),
        (("model", "mols.csv", "--method", "gradients"), "choose from auto, substructures, occlusion"),
        (("model", "mols.csv", "--method", "saliency"), "has no gradients; choose --method occlusion or auto"),
        (("two", "mols.csv", "--method", "substructures"), "explains support vector machines on the kernels"),
        (("nowhere", "mols.csv"), "nowhere"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(folder, arguments, words):
    done = run("explain", *arguments, "-o", "wrong.html", cwd=folder, check=False)
    assert done.returncode != 0
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (folder / "wrong.html").exists()
