"""The report on data sets of molecules: drawings, nearest training molecules, coverage, distribution of targets."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcaps.data.molecules.similarity import PackedBits
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.outcome import Outcome
from gcaps.evaluation.result import FoldResult
from gcaps.features.fingerprints import fingerprint
from gcaps.report import report_text, tested_graphs
from gcaps.report.chemical_space import MAX_POINTS, Coverage, find_coverage, in_steps, project, sample
from gcaps.report.data_set import data_section
from gcaps.report.study import Entry, Study
from gcaps.report.target_charts import binary_bars, class_bars, value_histogram
from tests.molecule_sets import evaluated, molecules, write_table
from tests.read_page import Page

pytest.importorskip("rdkit")

EVIL = "<script>alert(1)</script>"


def tanimoto(bits: np.ndarray) -> np.ndarray:
    """Common bits over all bits of every pair."""
    common = bits.astype(float) @ bits.T.astype(float)
    own = bits.sum(axis=1)
    return common / (own[:, None] + own - common)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("molecules") / "mols.csv", molecules(42), EVIL)


@pytest.fixture(scope="module")
def regression(table: Path) -> Comparison:
    return evaluated(table, "value", repeats=2)


@pytest.fixture(scope="module")
def page(regression: Comparison) -> str:
    return report_text(regression)


def test_worst_errors_are_shown_with_the_nearest_training_molecules_of_their_fold(regression: Comparison) -> None:
    study = Study.of(regression)
    section = data_section(study, 0)
    graphs, entry = section.loaded.graphs, study.of_set("mols")[0]
    assert graphs is not None
    assert section.molecules is not None
    assert section.molecules.worst is not None
    shown = section.molecules.worst.molecules
    largest = [error.graph for error in section.residuals[0].largest][:6]
    assert [item.molecule.graph for item in shown] == largest
    assert shown[0].molecule.id == "m2", "its value is wrong by 40"
    similar = tanimoto(fingerprint(graphs, "morgan_bits"))
    for item in shown:
        outcome = next(o for o in entry.outcomes if (o.seed, o.fold) == (item.seed, item.fold))
        assert outcome.result is not None
        test = outcome.result.test
        assert item.molecule.graph in test
        train = np.setdiff1d(np.arange(len(graphs)), test)
        every = np.sort(similar[item.molecule.graph, train])[::-1]
        assert [near.similarity for near in item.neighbors] == pytest.approx(every[:3].tolist())
        assert not {near.molecule.graph for near in item.neighbors} & set(test)
        assert (
            item.truth
            == f"{float(graphs.y[item.molecule.graph]):.{3 if abs(graphs.y[item.molecule.graph]) < 10 else 2}f}"
        )


def test_the_page_shows_smiles_values_and_the_command_that_explains(page: str) -> None:
    text = Page(page).text
    for words in (
        "Worst errors and their nearest training molecules",
        "Coverage of chemical space",
        "Distribution of the target",
        "CC(=O)C[N+](=O)[O-]",
        "similarity",
        "gcaps explain model",
        "--graph m2",
        "--target value",
    ):
        assert words in text, words
    assert '<code class="smiles">' in page
    assert 'class="chart mol"' in page


def test_the_page_stays_self_contained_and_described(page: str) -> None:
    parsed = Page(page)
    assert parsed.tags.count("script") == page.count("<script") == 1
    assert EVIL in " ".join(parsed.words)
    assert not re.search(r"https?://|@import|url\(", page)
    assert re.findall(r"#[0-9a-fA-F]{6}\b", page.split("</style>")[1].split("<script>")[0]) == []
    assert page.count('role="img" aria-label="') + page.count('aria-hidden="true"') == parsed.tags.count("svg")
    assert len(parsed.ids) == len(set(parsed.ids))
    assert {link[1:] for link in parsed.links if link.startswith("#")} <= set(parsed.ids)
    assert "nan" not in parsed.text.split()


def test_without_rdkit_or_data_the_page_has_no_part_about_molecules(
    regression: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcaps.report.molecule_drawing.find_spec", lambda name: None)
    text = report_text(regression)
    assert "Coverage of chemical space" not in text
    assert 'aria-label="Graph 2 of mols' in text, "graphs are drawn as before"
    monkeypatch.undo()
    lost = [replace(planned, source="gone.csv", path="gone.csv") for planned in regression.plan.data]
    text = report_text(replace(regression, plan=replace(regression.plan, data=lost)))
    assert "The graphs cannot be drawn because the data could not be loaded" in text
    assert "Coverage of chemical space" not in text


@pytest.mark.parametrize("target", ["class", "a,b"])
def test_pages_of_several_methods_and_other_tasks(table: Path, target: str) -> None:
    comparison = evaluated(table, target, ("wl", "deepsets"))
    raw = report_text(comparison)
    text = Page(raw).text
    assert "Of " in text.split("Worst errors and their nearest training molecules")[-1]
    assert "most confident wrong predictions" in text
    assert "Coverage of chemical space" in text
    assert ("Distribution of the targets" if "," in target else "Distribution of the target") in text
    assert "nan" not in text.split()


def test_a_record_gives_the_same_page(regression: Comparison, page: str, tmp_path: Path) -> None:
    regression.save(tmp_path / "record.json")
    again = report_text(Comparison.read(tmp_path / "record.json"))
    part = re.compile(r'<h2 id="neighbors">.*?</section>', re.S)
    assert part.findall(again) == part.findall(page) != []


# Arrays behind the charts


def entry_of(*folds: FoldResult) -> Entry:
    outcomes = [
        Outcome("d", "m", "wl", 0, one.fold, f"{i}", "done", {}, one, None, 1.0, 1.0, [], None, {}, "now")
        for i, one in enumerate(folds)
    ]
    return Entry("d", "m", "wl", [{}], len(folds), outcomes)


def fold(test: list[int], y: list, predictions: list, scores: list, task: str) -> FoldResult:
    return FoldResult(0, test, y, predictions, scores, 1, [], [], [], [], 0.0, task=task)  # type: ignore[arg-type]


def test_the_worst_classes_are_the_wrong_ones_with_the_highest_probability() -> None:
    scores = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.45, 0.55]]
    tested = tested_graphs.TestedGraphs.of(
        entry_of(fold([5, 6, 7, 8], [0, 0, 1, 0], [0, 1, 0, 1], scores, "classification")), "classification"
    )
    assert tested is not None
    assert [int(tested.graph[one.place]) for one in tested.worst(9)] == [6, 7, 8]
    np.testing.assert_allclose(tested.errors()[:, 0], [0.1, 0.8, 0.7, 0.55])
    assert tested.metric("accuracy", np.array([0, 1])) == 0.5


def test_the_worst_of_several_targets_is_named_and_missing_values_do_not_count() -> None:
    y, p = [[1, None], [0, 1], [1, 1]], [[0.9, 0.0], [0.1, 0.2], [0.3, 0.6]]
    one = fold([3, 4, 5], y, [[1, 0], [0, 0], [0, 1]], p, "multilabel")
    tested = tested_graphs.TestedGraphs.of(entry_of(one), "multilabel")
    assert tested is not None
    assert [(int(tested.graph[w.place]), w.target) for w in tested.worst(9)] == [(4, 1), (5, 0)]


def test_the_worst_value_is_furthest_relative_to_the_spread_of_its_target() -> None:
    y = [[0.0, 0.0], [2.0, 200.0], [None, 100.0]]
    one = fold([0, 1, 2], y, [[0.5, 0.0], [2.0, 230.0], [9.0, 0.0]], [], "regression")
    tested = tested_graphs.TestedGraphs.of(entry_of(one), "regression")
    assert tested is not None
    assert [(int(tested.graph[w.place]), w.target) for w in tested.worst(2)] == [(2, 1), (0, 0)]


def test_coverage_is_the_similarity_to_the_nearest_training_molecule_of_the_fold() -> None:
    from gcaps.evaluation.splits import Fold

    bits = np.random.default_rng(0).integers(0, 2, (9, 64))
    folds = {0: Fold(np.arange(3, 9), np.arange(3)), 1: Fold(np.array([0, 1, 2, 6, 7]), np.array([3, 4, 5]))}
    found = find_coverage(PackedBits.of(bits), folds)
    every = tanimoto(bits)
    expected = [every[g, f.train].max() for f in folds.values() for g in f.test]
    np.testing.assert_allclose(found.similarity, expected)
    assert found.graph.tolist() == [0, 1, 2, 3, 4, 5]


def test_bins_contain_their_upper_limit() -> None:
    values = np.array([0.0, 0.05, 0.1, 0.11, 0.95, 1.0])
    assert Coverage(np.arange(6), values, 6).bins.tolist() == [0, 0, 0, 1, 9, 9]


def test_the_map_is_a_principal_component_analysis() -> None:
    bits = np.random.default_rng(1).integers(0, 2, (40, 64))
    bits[:20, :10] = 1
    places, chosen = project(PackedBits.of(bits))
    assert chosen.tolist() == list(range(40))
    centred = bits - bits.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(np.abs(places), np.abs(u[:, :2] * s[:2]), atol=0.05 * s[0])


def test_samples_are_the_same_each_time_and_no_larger_than_allowed() -> None:
    first = sample(10 * MAX_POINTS)
    assert len(np.unique(first)) == MAX_POINTS
    assert np.array_equal(first, sample(10 * MAX_POINTS))


def test_steps_are_named_by_their_limits() -> None:
    steps, names = in_steps(np.array([0.0, 1.0, 1.5, 9.0]), [1.0, 2.0, 2.0])
    assert steps.tolist() == [0, 0, 1, 2]
    assert names == ["up to 1", "1 to 2", "above 2"]


def test_charts_of_targets_count_what_is_missing() -> None:
    assert "2 values from 1.000 to 3.000" in value_histogram("x", np.array([1.0, np.nan, 3.0])).caption
    assert "1 missing" in value_histogram("x", np.array([1.0, np.nan, 3.0])).caption
    assert class_bars("c", ["no", "yes"], np.array([0, 1, 1, -1])).caption == "c: no 1, yes 2; 1 missing"
    chart = binary_bars(["a<b"], np.array([[1], [0], [-1]]), ["0", "1"])
    assert "a&lt;b: 1 are 1, 1 are 0, 1 missing" in chart.picture
    assert value_histogram("x", np.full(2, np.nan)).picture == ""
