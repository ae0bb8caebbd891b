"""The page of explained molecules: colors, numbers and words; hostile names stay text."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gcaps
from gcaps.estimators import make_estimator
from gcaps.explain import explain
from gcaps.report.explanation import chosen_graphs, explanation_page
from gcaps.report.explanation_drawing import color_legend, signed_text
from tests.molecule_sets import molecules, write_table
from tests.read_page import Page

pytest.importorskip("rdkit")

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("molecules") / "mols.csv", molecules(42), EVIL)


@pytest.fixture(scope="module")
def page(table):
    model = make_estimator("wl").fit(gcaps.load(table, target="class"))
    return explanation_page(model, explain(model, gcaps.load(table, target="class")[:5]), "gcaps explain <model>")


def test_hostile_names_are_text_and_nothing_is_loaded(page):
    read = Page(page)
    assert EVIL not in page
    assert "script" not in read.tags
    assert EVIL in " ".join(read.words)
    assert [link for link in read.links if not link.startswith("#")] == ["data:,"]
    assert "gcaps explain &lt;model&gt;" in page
    assert len(read.ids) == len(set(read.ids))


def test_every_molecule_has_a_picture_its_prediction_and_a_row_for_each_atom(page, table):
    graphs = gcaps.load(table, target="class")[:5]
    assert page.count("<figure>") == 5
    assert len(re.findall(r'<th scope="row" class="n">', page)) == graphs.num_nodes
    assert page.count("predicted <b>") == 5
    assert page.count("decision value of class yes") >= 5
    assert ", true <b>yes</b>" in page


def test_values_are_explained_in_their_units(table):
    model = make_estimator("wl", task="regression").fit(gcaps.load(table, target="value"))
    text = explanation_page(model, explain(model, gcaps.load(table, target="value")[:2]))
    assert "Explained: <strong>value</strong>" in text
    assert "How to reproduce" not in text
    unknown = explanation_page(model, explain(model, ["CCO"]))
    assert ", true <b>" not in unknown


def test_hydrogens_that_are_nodes_count_for_their_atom(table):
    model = make_estimator("wl", task="regression").fit(gcaps.load(table, target="value", hydrogens="explicit"))
    found = explain(model, ["CCO"])
    text = explanation_page(model, found)
    assert "Contributions of hydrogens are added" in text
    assert len(re.findall(r'<th scope="row" class="n">', text)) == 3
    by_atom = np.bincount(found.atoms[0].atom, weights=found.nodes[0])
    assert all(signed_text(float(value), probability=False) in text for value in by_atom)


@pytest.mark.parametrize(
    ("value", "probability", "expected"),
    [(0.1234, True, "+0.123"), (-0.5, True, "−0.500"), (0.0, True, "0.000"), (-0.00001, True, "0.000")],
)
def test_signed_numbers(value, probability, expected):
    assert signed_text(value, probability=probability) == expected


def test_the_legend_names_both_ends():
    text = str(color_legend(0.25, probability=True))
    assert "≤ −0.250" in text
    assert "≥ +0.250" in text
    assert text.count("<path") == 9


def test_graphs_are_chosen_by_id_or_the_first_ones():
    assert chosen_graphs(["a", "b", "a"], (), 2) == [0, 1]
    assert chosen_graphs(["a", "b", "a"], ("b", "a", "c"), 2) == [1, 0, -1]
