from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import matplotlib as mpl
import pytest

from gcaps.config import Config
from gcaps.evaluation.result import Result
from gcaps.report import figures, write_page
from tests.read_page import Page


@pytest.fixture(scope="module")
def usual(make_result: Callable[..., Result], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page that most claims can be checked on, drawn once."""
    goal = tmp_path_factory.mktemp("usual") / "page.html"
    write_page(make_result(), goal, {"Largest graph": "620 nodes"})
    return goal.read_text(encoding="utf-8")


@pytest.fixture
def written(make_result: Callable[..., Result], tmp_path: Path) -> Callable[..., str]:
    def write(facts: dict[str, str] | None = None, **options: object) -> str:
        write_page(make_result(**options), tmp_path / "page.html", facts)
        return (tmp_path / "page.html").read_text(encoding="utf-8")

    return write


def test_page_says_what_was_found_and_how_to_find_it_again(usual: str, make_result: Callable[..., Result]) -> None:
    result = make_result()
    text = Page(usual).text
    honest = result.protocols["honest"]
    assert f"{100 * honest.mean:.1f} ± {100 * honest.std:.1f} %" in text
    for summary in result.protocols.values():
        assert f"{100 * summary.mean:.2f} ± {100 * summary.std:.2f}" in text
        assert summary.rule in text
    assert "Largest graph 620 nodes" in text
    assert result.command in text
    assert result.data["fingerprint"] in text
    assert result.splits in text
    assert "torch 2.13.0" in text
    default, meaning = Config().hidden, Config.model_fields["hidden"].description
    assert f"hidden {default + 1} (default {default}) {meaning}" in text


def test_majority_class_is_counted_from_the_labels(usual: str, make_result: Callable[..., Result]) -> None:
    labels = [label for fold in make_result().folds for label in fold.labels]
    share = labels.count(0) / len(labels)
    assert share > 0.5
    assert f"Majority class {100 * share:.1f} % always answering “1”" in Page(usual).text


def test_published_rows_name_source_and_protocol_and_warn(written: Callable[..., str]) -> None:
    text = Page(written(name="PROTEINS", graphs=1113)).text
    assert "GCAPS-CNN 76.40 ± 4.17 GCAPS-CNN paper paper" in text
    assert "GIN 73.30 ± 4.00 Errica et al., 2020 fair" in text
    assert "not comparable one to one" in text
    assert "published rows are about" not in text


def test_a_set_of_another_size_than_the_published_one_is_pointed_out(written: Callable[..., str]) -> None:
    assert "The published rows are about 1113 graphs; this set has 200." in Page(written(graphs=200)).text


def test_confident_mistakes_are_the_surest_wrong_answers_in_order(
    usual: str, make_result: Callable[..., Result]
) -> None:
    wrong = sorted(
        (-scores[guess], graph)
        for fold in make_result().folds
        for graph, label, guess, scores in zip(fold.test, fold.labels, fold.predictions, fold.scores, strict=True)
        if label != guess
    )
    rows = re.findall(r'<th scope="row" class="n">(\d+)</th>.*?<td class="n">(0\.\d{3})</td>', usual)
    assert [int(graph) for graph, _ in rows] == [graph for _, graph in wrong[:10]]
    assert [probability for _, probability in rows] == [f"{-minus:.3f}" for minus, _ in wrong[:10]]


def test_hostile_names_are_text(written: Callable[..., str], make_result: Callable[..., Result]) -> None:
    evil = "<script>alert(1)</script>\"'&$x^$"
    data = {**make_result().data, "name": evil, "classes": [evil, "\x00\x1b]0;"], "fingerprint": evil}
    options = {"data": data, "command": evil, "splits": evil, "versions": {evil: evil}, "config": {evil: evil}}
    raw = written(facts={evil: evil}, method=evil, **options)
    page = Page(raw)
    assert "script" not in page.tags
    assert "<script" not in raw
    assert evil in " ".join(page.words)
    assert not any(key.startswith("on") for key, _ in page.attributes)


def test_page_loads_nothing_from_outside(usual: str) -> None:
    raw, page = usual, Page(usual)
    assert all(link.startswith("#") or link == "data:," for link in page.links)
    assert "http://" not in raw
    assert "https://" not in raw
    assert "@import" not in raw
    assert all(target.startswith("#") for target in re.findall(r"url\((.*?)\)", raw))
    assert not {"script", "iframe", "object", "embed"} & set(page.tags)


def test_ids_are_unique_and_every_reference_has_its_target(usual: str) -> None:
    raw, page = usual, Page(usual)
    assert len(page.ids) == len(set(page.ids))
    targets = {link[1:] for link in page.links if link.startswith("#")} | set(re.findall(r"url\(#(.*?)\)", raw))
    assert targets
    assert targets <= set(page.ids)


def test_figures_take_their_colours_from_the_page(usual: str) -> None:
    body = usual.split("</style>")[1]
    assert "var(--blue)" in body
    assert re.findall(r"#[0-9a-fA-F]{6}\b", "".join(re.findall(r'style="[^"]*"', body))) == []


def test_every_figure_and_table_is_described(usual: str) -> None:
    raw, page = usual, Page(usual)
    assert page.tags.count("svg") == page.tags.count("figcaption") == raw.count('role="img" aria-label="') == 6
    assert page.tags.count("table") == page.tags.count("caption")
    assert page.tags.count("h1") == 1


@pytest.mark.parametrize(
    "options",
    [
        {"folds": 1},
        {"folds": 2, "epochs": 1},
        {"classes": 10},
        {"classes": 30, "graphs": 700},
        {"folds": 1, "epochs": 1, "graphs": 3},
        {"stop_early": True, "method": "gin"},
        {"name": "图集", "data": {"name": "图集", "fingerprint": "f", "graphs": 400, "classes": ["有毒", "无毒"]}},
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_page_is_well_formed_whatever_the_shape(written: Callable[..., str], options: dict[str, object]) -> None:
    text = Page(written(**options)).text
    assert "Honest accuracy" in text
    assert "nan" not in text.split()


def test_a_method_without_epochs_or_probabilities_has_no_such_pictures(
    make_result: Callable[..., Result], tmp_path: Path
) -> None:
    result = make_result()
    nothing: list[float] = []
    bare = [
        replace(fold, scores=[], train_loss=nothing, train_accuracy=nothing, test_accuracy=nothing)
        for fold in result.folds
    ]
    result = replace(result, method="wl", folds=bare, protocols={"honest": result.protocols["honest"]}, config={})
    write_page(result, tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.tags.count("svg") == 3
    assert "How it learned" not in page.text
    assert "Most confidently" not in page.text


def test_a_perfect_result_lists_no_mistakes(make_result: Callable[..., Result], tmp_path: Path) -> None:
    result = make_result()
    result = replace(result, folds=[replace(fold, predictions=fold.labels) for fold in result.folds])
    write_page(result, tmp_path / "page.html")
    assert "0 of 400 tested graphs are misclassified" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_saved_result_gives_the_same_bytes_whatever_matplotlibs_settings(
    usual: str, make_result: Callable[..., Result], tmp_path: Path
) -> None:
    make_result().save(tmp_path / "result.json")
    with mpl.rc_context({"font.size": 30, "svg.hashsalt": None}):
        before = dict(mpl.rcParams)
        write_page(Result.read(tmp_path / "result.json"), tmp_path / "again.html", {"Largest graph": "620 nodes"})
        assert dict(mpl.rcParams) == before
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == usual


def test_a_failure_leaves_the_old_page_and_nothing_else(
    make_result: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal = tmp_path / "page.html"
    goal.write_text("the old page", encoding="utf-8")

    def fail(result: Result) -> str:
        raise RuntimeError("no ink")

    monkeypatch.setattr(figures, "confusion_matrix", fail)
    with pytest.raises(RuntimeError, match="no ink"):
        write_page(make_result(), goal)
    assert goal.read_text(encoding="utf-8") == "the old page"
    assert list(tmp_path.iterdir()) == [goal]


def test_figure_text_is_escaped_once(make_result: Callable[..., Result]) -> None:
    result = make_result()
    svg = figures.confusion_matrix(replace(result, data={**result.data, "classes": ["a<b", "R&D"]}))
    assert "a&lt;b" in svg
    assert "a<b" in unescape(svg)
    assert "R&amp;D" in svg
