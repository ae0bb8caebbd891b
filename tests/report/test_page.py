from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gcaps.config import Config
from gcaps.errors import ConfigError
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.coverage import coverage_of
from gcaps.evaluation.result import FoldResult
from gcaps.report import page as page_module
from gcaps.report import write_report
from gcaps.report.study import Study, method_name
from tests.fake_runs import SKILL, fake_comparison, save
from tests.read_page import Page

PAIR = ("PROTEINS", "NCI1")


def page_of(comparison: Comparison, folder: Path) -> str:
    write_report(comparison, folder / "page.html")
    return (folder / "page.html").read_text(encoding="utf-8")


def changed(comparison: Comparison, change: Callable[[FoldResult], FoldResult]) -> Comparison:
    """Return the comparison with every fold result changed."""
    outcomes = [replace(o, result=None if o.result is None else change(o.result)) for o in comparison.outcomes]
    return replace(comparison, outcomes=outcomes)


@pytest.fixture(scope="module")
def one() -> Comparison:
    return fake_comparison(methods=("gcaps", "gin", "deepsets", "wl"))


@pytest.fixture(scope="module")
def usual(one: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(one, tmp_path_factory.mktemp("usual"))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(fake_comparison(data=(*PAIR, "MUTAG"), methods=tuple(SKILL)), tmp_path_factory.mktemp("several"))


@pytest.fixture(scope="module")
def alone() -> Comparison:
    """One method on one data set."""
    return fake_comparison(data=("PROTEINS",), methods=("gcaps",))


@pytest.fixture(scope="module")
def single(alone: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(alone, tmp_path_factory.mktemp("single"))


def test_headline_comes_first_and_states_significance(usual: str, one: Comparison) -> None:
    study, text = Study.of(one), Page(usual).text
    best = study.complete("MUTAG")[0]
    assert best.label == "wl"
    gap = best.protocols["honest"].mean - study.entries["MUTAG", "gcaps"].protocols["honest"].mean
    test = study.tests["MUTAG"]["wl", "gcaps"]
    assert f"WL has the highest honest accuracy, {100 * best.protocols['honest'].mean:.1f} ±" in text
    verdict = "a significant difference" if test.holm < 0.05 else "a difference that is not significant"
    assert (
        f"GCAPS-CNN is {100 * gap:.1f} points behind, {verdict} (p = {test.p:.3f}, corrected {test.holm:.3f})" in text
    )


def test_every_entry_is_listed_under_every_rule(usual: str, one: Comparison) -> None:
    study, text = Study.of(one), Page(usual).text
    for entry in study.complete("MUTAG"):
        for summary in entry.protocols.values():
            assert f"{100 * summary.mean:.2f} ± {100 * summary.std:.2f}" in text


def test_one_data_set_has_no_ranks_and_says_why(usual: str) -> None:
    assert "Average ranks and a critical-difference diagram need 5 data sets or more" in Page(usual).text
    assert "Critical-difference diagram" not in usual


def test_few_data_sets_have_no_ranks_and_the_page_leads_with_each_of_them(several: str) -> None:
    text = Page(several).text
    assert "Average ranks and a critical-difference diagram need 5 data sets or more" in text
    assert "Critical-difference diagram" not in several
    assert "best average rank" not in text
    assert text.index("On PROTEINS") < text.index("Computing time")


def test_five_data_sets_have_ranks(tmp_path: Path) -> None:
    sets = ("A", "B", "C", "D", "E")
    text = Page(page_of(fake_comparison(data=sets, methods=("gcaps", "wl", "rw"), folds=3), tmp_path)).text
    assert "Critical-difference diagram after Demšar" in text
    assert "Over 5 data sets" in text
    assert "Average rank" in text


def test_published_results_are_shown_beside_ours_with_their_protocol(several: str) -> None:
    assert '<span class="pub" data-published><i>paper</i>76.40 ± 4.17</span>' in several
    assert '<span class="pub" data-published><i>fair</i>73.30 ± 4.00</span>' in several
    assert '<span class="pub" data-published><i>svm</i>&gt; 1 day</span>' in several
    assert "Errica et al., 2020: nested selection, test fold read once" in Page(several).text
    assert "not directly comparable" in several


def test_methods_with_only_published_results_have_their_own_rows(tmp_path: Path) -> None:
    raw = page_of(fake_comparison(data=("PROTEINS",), methods=("gcaps", "wl")), tmp_path)
    rows = re.findall(
        r'class="only" data-published data-family="published".*?<th scope="row" data-v="(.*?)"', raw, re.S
    )
    assert "DGCNN" in rows
    assert "GCAPS-CNN" not in rows
    assert "WL" not in rows


def test_data_that_can_be_loaded_is_drawn_and_checked_for_leakage(usual: str, several: str) -> None:
    assert "Hardest graphs" in usual
    assert 'aria-label="Graph ' in usual
    assert "Leakage: test graphs that have a duplicate" in usual
    assert "The data could not be loaded, so there are no facts" in several


def test_failed_and_missing_cells_are_listed(tmp_path: Path) -> None:
    comparison = fake_comparison(
        data=PAIR,
        methods=("gcaps", "rw", "gk"),
        broken={("NCI1", "rw"): "time", ("PROTEINS", "rw"): "memory", ("PROTEINS", "gk"): "failed"},
        missing=[("NCI1", "gk")],
    )
    raw = page_of(comparison, tmp_path)
    text = Page(raw).text
    assert "This run is not finished: 5 of 60 cells have not been run" in text
    for status in ("over time", "over memory", "failed", "5 of 10 folds"):
        assert f">{status}</span>" in raw
    assert "NCI1 RW 0 of 10 10 over time rw <gave up>" in text
    assert "NCI1 GK 5 of 10 5 not run yet –" in text
    assert "so far" in text


@pytest.mark.parametrize(
    ("methods", "kept", "words"),
    [
        (("gcaps", "wl"), (), "no method has a result yet"),
        (("gcaps", "wl"), ("gcaps",), "no other method has a result yet"),
        (("gcaps",), (), "there is no result yet: not run"),
    ],
    ids=["none of two", "one of two", "none of one"],
)
def test_a_run_that_has_just_begun_has_a_page(
    methods: tuple[str, ...], kept: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    comparison = fake_comparison(methods=methods)
    outcomes = [outcome for outcome in comparison.outcomes if outcome.label in kept]
    assert words in Page(page_of(Comparison(comparison.plan, outcomes), tmp_path)).text


def test_a_run_read_from_its_folder_gives_the_same_bytes(usual: str, one: Comparison, tmp_path: Path) -> None:
    assert page_of(Comparison.read(save(one, tmp_path / "run")), tmp_path) == usual


@pytest.mark.parametrize("methods", [("gcaps", "EVIL"), ("EVIL",)], ids=["two methods", "one method"])
def test_hostile_names_are_text(methods: tuple[str, ...], tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'&{{7*7}}$x^$"
    labels = [evil if method == "EVIL" else method for method in methods]
    comparison = fake_comparison(data=(evil, "B"), methods=labels, broken={("B", evil): "failed"})
    comparison = changed(comparison, lambda fold: replace(fold, resolved={evil: evil}))
    data = [replace(planned, classes=[evil, "\x00\x1b]0;"]) for planned in comparison.plan.data]
    plan = replace(comparison.plan, name=evil, command=evil, versions={evil: evil}, created=evil, data=data)
    raw = page_of(replace(comparison, plan=plan), tmp_path)
    page = Page(raw)
    assert page.tags.count("script") == raw.count("<script") == 1
    assert evil in " ".join(page.words)
    assert not any(key.startswith("on") for key, _ in page.attributes)


@pytest.mark.parametrize("which", ["usual", "single"])
def test_page_loads_nothing_and_runs_only_its_own_script(which: str, request: pytest.FixtureRequest) -> None:
    raw: str = request.getfixturevalue(which)
    page = Page(raw)
    assert all(link.startswith("#") or link == "data:," for link in page.links)
    assert not re.search(r"https?://|@import|url\(", raw)
    assert not {"iframe", "object", "embed", "img"} & set(page.tags)
    script = re.findall(r"<script>(.*?)</script>", raw, re.S)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'" in raw


@pytest.mark.parametrize(("which", "svgs"), [("usual", 15), ("several", 15), ("single", 10)])
def test_everything_is_described_and_every_link_has_its_target(
    which: str, svgs: int, request: pytest.FixtureRequest
) -> None:
    raw: str = request.getfixturevalue(which)
    page = Page(raw)
    assert page.tags.count("table") == page.tags.count("caption") > 5
    assert raw.count('role="img" aria-label="') + raw.count('aria-hidden="true"') == page.tags.count("svg") > svgs
    assert page.tags.count("h1") == 1
    assert len(page.ids) == len(set(page.ids))
    targets = {link[1:] for link in page.links if link.startswith("#")}
    assert targets
    assert targets <= set(page.ids)
    assert raw.count(' aria-sort="') == raw.count('<button type="button">') > 1
    assert "nan" not in page.text.split()


@pytest.mark.parametrize("which", ["usual", "single"])
def test_charts_take_their_colors_from_the_style_sheet(which: str, request: pytest.FixtureRequest) -> None:
    raw: str = request.getfixturevalue(which)
    assert re.findall(r"#[0-9a-fA-F]{6}\b", raw.split("</style>")[1].split("<script>")[0]) == []


def test_a_page_of_the_size_of_the_paper_stays_small(tmp_path: Path) -> None:
    sets = [f"set{number}" for number in range(11)]
    comparison = fake_comparison(data=sets, methods=tuple(SKILL), folds=3, graphs=600, epochs=100)
    assert len(page_of(comparison, tmp_path).encode()) < 1_600_000


@pytest.mark.parametrize(
    "options",
    [
        {"folds": 2, "seeds": (0, 1)},
        {"data": ("A",), "classes": 6, "epochs": 1},
        {"data": ("A",), "classes": 12},
        {"data": ("A", "B"), "methods": ("wl",)},
        {"data": ("A", "B"), "methods": ("gcaps",), "seeds": (0, 1), "folds": 3},
        {"data": ("A", "B"), "methods": ("wl", "fgsd")},
        {"data": ("A",), "methods": ("gcaps",), "folds": 1},
        {"data": ("A",), "methods": ("gcaps",), "folds": 2, "epochs": 1, "seeds": (3, 4)},
        {"data": ("A",), "methods": ("gcaps",), "classes": 30, "graphs": 700},
        {"data": ("A",), "methods": ("gcaps",), "folds": 1, "epochs": 1, "graphs": 3},
        {"data": ("A",), "methods": ("gin",), "stop_early": True},
        {"data": ("图集",), "methods": {"我的": "gcaps"}},
        {"data": ("A",), "methods": ("gcaps",), "broken": {("A", "gcaps"): "failed"}},
        {"data": ("A",), "methods": ("gcaps",), "missing": [("A", "gcaps")]},
    ],
    ids=str,
)
def test_page_is_well_formed_for_any_shape(options: dict[str, object], tmp_path: Path) -> None:
    text = Page(page_of(fake_comparison(**options), tmp_path)).text  # type: ignore[arg-type]
    assert "How to reproduce this" in text
    assert "nan" not in text.split()


def test_a_label_that_was_not_planned_on_a_data_set_has_an_empty_cell(tmp_path: Path) -> None:
    comparison = fake_comparison(data=("A", "B"), methods=("gcaps", "wl"))
    entries = [entry for entry in comparison.plan.entries if (entry.data, entry.label) != ("B", "wl")]
    outcomes = [outcome for outcome in comparison.outcomes if (outcome.data, outcome.label) != ("B", "wl")]
    text = Page(page_of(Comparison(replace(comparison.plan, entries=entries), outcomes), tmp_path)).text
    assert "On B , GCAPS-CNN has the highest honest accuracy" in text
    assert "no other method has a result yet" in text
    assert "Missing results" not in text


def test_an_unknown_format_is_refused(one: Comparison, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="choose html, markdown, latex, csv"):
        write_report(one, tmp_path / "page.pdf", format="pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_page_and_nothing_else(
    alone: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal = tmp_path / "page.html"
    goal.write_text("the old page", encoding="utf-8")

    def fail(*_: object) -> None:
        raise RuntimeError("no ink")

    monkeypatch.setattr(page_module, "settings_of", fail)
    with pytest.raises(RuntimeError, match="no ink"):
        write_report(alone, goal)
    assert goal.read_text(encoding="utf-8") == "the old page"
    assert list(tmp_path.iterdir()) == [goal]


@pytest.mark.parametrize(
    ("label", "method", "expected"),
    [
        ("gcaps", "gcaps", ("GCAPS-CNN", "ours")),
        ("deepsets", "deepsets", ("DeepSets", "baseline")),
        ("capsule-svm", "capsule-svm", ("Capsule SVM", "ours")),
        ("own settings", "gcaps", ("own settings", "ours")),
        ("mine", None, ("mine", "other")),
        ("mine", "unheard of", ("mine", "other")),
    ],
)
def test_labels_are_named_after_their_method(label: str, method: str | None, expected: tuple[str, str]) -> None:
    name = method_name(label, method)
    assert (name.short, name.family) == expected


# One method on one data set


def test_single_page_states_the_result_and_how_to_reproduce_it(single: str, alone: Comparison) -> None:
    text, entry = Page(single).text, Study.of(alone).entries["PROTEINS", "gcaps"]
    honest = entry.protocols["honest"]
    assert f"{100 * honest.mean:.1f} ± {100 * honest.std:.1f} %" in text
    for rule, summary in entry.protocols.items():
        assert f"{rule} {100 * summary.mean:.2f} ± {100 * summary.std:.2f}" in text
        assert summary.rule in text
    for fold in entry.folds:
        correct = round(fold.accuracy * len(fold.y))
        assert f"{fold.fold} {len(fold.y)} {correct} {100 * fold.accuracy:.2f} {fold.epoch}" in text
    for words in (alone.plan.command, alone.plan.data[0].fingerprint, "10 stratified folds", "numpy 2.3.1"):
        assert words in text


def test_single_page_has_no_winners_and_no_ranks(single: str) -> None:
    text = Page(single).text
    for words in ("Ranks", "the best.", "significantly", "Differences between methods", "Holm", "Show all"):
        assert words not in text
    for words in ("Learning curves", "Accuracy of each fold", "Errors and calibration", "Most confident mistakes"):
        assert words in text


def test_headline_of_one_method_compares_with_the_majority_class(single: str, alone: Comparison) -> None:
    y = [label for outcome in alone.outcomes if outcome.result for label in outcome.result.y]
    name, share = max(((str(number + 1), y.count(number) / len(y)) for number in (0, 1)), key=lambda pair: pair[1])
    text, honest = Page(single).text, Study.of(alone).entries["PROTEINS", "gcaps"].protocols["honest"]
    gain = f"{100 * (honest.mean - share):.1f} points more than always predicting the most frequent class “{name}”"
    assert f"{gain} ({100 * share:.1f} %)" in text
    assert f"Majority class {100 * share:.1f} % always predicting “{name}”" in text


def test_settings_are_shown_with_default_resolved_value_and_meaning(single: str) -> None:
    text, fields = Page(single).text, Config.model_fields
    default = Config().hidden
    assert f"hidden 33 (default {default}) {fields['hidden'].description}" in text
    assert f"layers auto 4 (few graphs (180)) {fields['layers'].description}" in text
    assert "batch_size – 30 to 39" in text, "folds resolved it to different numbers"


def test_resolved_settings_are_listed_by_data_set_where_they_differ(tmp_path: Path) -> None:
    comparison = fake_comparison(data=("A", "B"), methods=("gcaps",), folds=2)
    outcomes = [
        replace(o, result=o.result and replace(o.result, resolved={"layers": 1 if o.data == "A" else 4}))
        for o in comparison.outcomes
    ]
    text = Page(page_of(replace(comparison, outcomes=outcomes), tmp_path)).text
    assert "layers auto A: 1; B: 4 (few graphs (100))" in text


def test_published_results_of_the_data_set_are_listed(single: str) -> None:
    text = Page(single).text
    assert "GCAPS-CNN graph capsules" in text
    assert "paper 76.40 ± 4.17" in text
    assert "GIN Errica et al., 2020 fair 73.30 ± 4.00" in text
    assert "not directly comparable" in text


def test_a_data_set_of_another_size_than_the_published_one_is_pointed_out(single: str, tmp_path: Path) -> None:
    words = "The published results for PROTEINS are about 1113 graphs"
    assert f"{words}; this data set has 200." in Page(single).text
    same = page_of(fake_comparison(data=("PROTEINS",), methods=("gcaps",), graphs=1113), tmp_path)
    assert words not in Page(same).text


def test_confident_mistakes_are_listed_by_probability(single: str, alone: Comparison) -> None:
    wrong = sorted(
        (-scores[guess], graph)
        for outcome in alone.outcomes
        if (fold := outcome.result) is not None
        for graph, label, guess, scores in zip(fold.test, fold.y, fold.predictions, fold.scores, strict=True)
        if label != guess
    )
    rows = re.findall(r'<th scope="row" class="n">(\d+)</th>.*?<td class="n">([01]\.\d{3})</td>', single)
    assert [int(graph) for graph, _ in rows] == [graph for _, graph in wrong[:10]]
    assert [probability for _, probability in rows] == [f"{-minus:.3f}" for minus, _ in wrong[:10]]


def test_a_method_without_epochs_or_probabilities_has_no_such_charts(alone: Comparison, tmp_path: Path) -> None:
    bare = changed(
        alone,
        lambda fold: replace(fold, scores=[], train_loss=[], train_score=[], test_score=[], resolved={}, resolution=[]),
    )
    bare = replace(bare, outcomes=[replace(outcome, embedding=None) for outcome in bare.outcomes])
    page = Page(page_of(bare, tmp_path))
    for words in ("Learning curves", "Most confident", "Brier", "Resolved", "Graph embeddings"):
        assert words not in page.text
    assert "Accuracy of each fold" in page.text


def test_a_perfect_result_lists_no_mistakes(alone: Comparison, tmp_path: Path) -> None:
    text = Page(page_of(changed(alone, lambda fold: replace(fold, predictions=fold.y)), tmp_path)).text
    assert "0 of 200 test graphs are misclassified" in text
    assert "Most confident mistakes" not in text
    assert "Hardest graphs" not in text


def test_class_names_are_escaped_once(alone: Comparison, tmp_path: Path) -> None:
    data = [replace(alone.plan.data[0], classes=["a<b", "R&D"])]
    raw = page_of(replace(alone, plan=replace(alone.plan, data=data)), tmp_path)
    assert '<th scope="row">a&lt;b</th>' in raw
    assert '<th scope="row">R&amp;D</th>' in raw
    assert "amp;amp;" not in raw


def test_coverage_and_calibration_of_each_method_are_listed(usual: str, one: Comparison) -> None:
    text, study = Page(usual).text, Study.of(one)
    assert "Coverage of sets of classes" in text
    for entry in study.complete("MUTAG"):
        found = coverage_of(entry.repetitions)
        assert found is not None
        assert f"{100 * found.measured[0.9]:.1f} ± {100 * found.deviation[0.9]:.1f}" in text
        assert f"{100 * found.error_after:.1f}" in text
