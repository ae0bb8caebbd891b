from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gcaps.errors import ConfigError
from gcaps.evaluation.comparison import Comparison
from gcaps.report import write_comparison
from gcaps.report.study import Study
from tests.fake_runs import SKILL, fake_comparison, save
from tests.read_page import Page

PAIR = ("PROTEINS", "NCI1")


def page_of(comparison: Comparison, folder: Path) -> str:
    write_comparison(comparison, folder / "page.html")
    return (folder / "page.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def one() -> Comparison:
    return fake_comparison(methods=("gcaps", "gin", "set", "wl"))


@pytest.fixture(scope="module")
def usual(one: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(one, tmp_path_factory.mktemp("usual"))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(fake_comparison(data=(*PAIR, "MUTAG"), methods=tuple(SKILL)), tmp_path_factory.mktemp("several"))


def test_the_answer_stands_first_and_says_how_sure_it_is(usual: str, one: Comparison) -> None:
    study, text = Study.of(one), Page(usual).text
    best = study.complete("MUTAG")[0]
    assert best.method == "wl"
    gap = best.protocols["honest"].mean - study.entry("MUTAG", "gcaps").protocols["honest"].mean
    test = study.tests("MUTAG")["wl", "gcaps"]
    assert f"the best honest method is WL with {100 * best.protocols['honest'].mean:.1f} ±" in text
    verdict = "a significant difference" if test.holm < 0.05 else "a difference that is not significant"
    assert (
        f"GCAPS-CNN is {100 * gap:.1f} points behind, {verdict} (p = {test.p:.3f}, corrected {test.holm:.3f})" in text
    )


def test_every_entry_stands_in_the_table_under_every_rule(usual: str, one: Comparison) -> None:
    study, text = Study.of(one), Page(usual).text
    for entry in study.complete("MUTAG"):
        for summary in entry.protocols.values():
            assert f"{100 * summary.mean:.2f} ± {100 * summary.std:.2f}" in text


def test_one_data_set_has_no_ranks_and_says_why(usual: str) -> None:
    assert "Ranks need several data sets" in Page(usual).text
    assert "Critical-difference diagram" not in usual


def test_several_data_sets_have_ranks(several: str) -> None:
    text = Page(several).text
    assert "Critical-difference diagram after Demšar" in text
    assert "Over 3 data sets" in text
    assert "Average rank" in text


def test_published_numbers_stand_beside_ours_with_their_protocol(several: str) -> None:
    assert '<span class="pub" data-published><i>paper</i>76.40 ± 4.17</span>' in several
    assert '<span class="pub" data-published><i>fair</i>73.30 ± 4.00</span>' in several
    assert '<span class="pub" data-published><i>svm</i>&gt; 1 day</span>' in several
    assert "Errica et al., 2020: nested selection, test fold read once" in Page(several).text
    assert "not comparable one to one" in several


def test_methods_that_only_others_ran_have_rows_of_their_own(tmp_path: Path) -> None:
    raw = page_of(fake_comparison(data=("PROTEINS",), methods=("gcaps", "wl")), tmp_path)
    rows = re.findall(
        r'class="only" data-published data-family="published".*?<th scope="row" data-v="(.*?)"', raw, re.S
    )
    assert "DGCNN" in rows
    assert "GCAPS-CNN" not in rows
    assert "WL" not in rows


def test_graphs_that_are_at_hand_are_drawn_and_audited(usual: str, several: str) -> None:
    assert "The hardest graphs" in usual
    assert 'aria-label="Graph ' in usual
    assert "Audit: tested graphs whose like" in usual
    assert "The data is not at hand, so there are no facts" in several


def test_what_failed_and_what_is_missing_is_named(tmp_path: Path) -> None:
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
    ("nothing", "words"),
    [(True, "no method has a number yet"), (False, "no other method has a number yet")],
    ids=["empty", "one method"],
)
def test_a_run_that_has_just_begun_has_a_page(nothing: bool, words: str, tmp_path: Path) -> None:
    comparison = fake_comparison(methods=("gcaps", "wl"))
    kept = [] if nothing else [o for o in comparison.outcomes if o.method == "gcaps"]
    assert words in Page(page_of(Comparison(comparison.plan, kept), tmp_path)).text


def test_a_run_read_from_its_folder_gives_the_same_bytes(usual: str, one: Comparison, tmp_path: Path) -> None:
    assert page_of(Comparison.read(save(one, tmp_path / "run")), tmp_path) == usual


def test_hostile_names_are_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'&{{7*7}}"
    comparison = fake_comparison(data=(evil, "B"), methods=("gcaps", evil), broken={("B", evil): "failed"})
    plan = replace(comparison.plan, name=evil, command=evil, versions={evil: evil}, created=evil)
    raw = page_of(replace(comparison, plan=plan), tmp_path)
    page = Page(raw)
    assert page.tags.count("script") == raw.count("<script") == 1
    assert evil in " ".join(page.words)
    assert not any(key.startswith("on") for key, _ in page.attributes)


def test_page_loads_nothing_and_only_its_own_script_may_run(usual: str) -> None:
    page = Page(usual)
    assert all(link.startswith("#") or link == "data:," for link in page.links)
    assert not re.search(r"https?://|@import|url\(", usual)
    assert not {"iframe", "object", "embed", "img"} & set(page.tags)
    script = re.findall(r"<script>(.*?)</script>", usual, re.S)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'" in usual


@pytest.mark.parametrize("which", ["usual", "several"])
def test_everything_is_described_and_every_link_has_its_goal(which: str, request: pytest.FixtureRequest) -> None:
    raw: str = request.getfixturevalue(which)
    page = Page(raw)
    assert page.tags.count("table") == page.tags.count("caption") > 5
    assert raw.count('role="img" aria-label="') + raw.count('aria-hidden="true"') == page.tags.count("svg") > 15
    assert page.tags.count("h1") == 1
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert raw.count(' aria-sort="') == raw.count('<button type="button">') > 5
    assert "nan" not in page.text.split()


def test_pictures_take_their_colours_from_the_page(usual: str) -> None:
    assert re.findall(r"#[0-9a-fA-F]{6}\b", usual.split("</style>")[1].split("<script>")[0]) == []


def test_a_page_of_the_papers_size_stays_small(tmp_path: Path) -> None:
    sets = [f"set{number}" for number in range(11)]
    comparison = fake_comparison(data=sets, methods=tuple(SKILL), folds=3, graphs=600, epochs=100)
    assert len(page_of(comparison, tmp_path).encode()) < 1_500_000


@pytest.mark.parametrize(
    "options",
    [
        {"folds": 2, "seeds": (0, 1)},
        {"data": ("A",), "classes": 6, "epochs": 1},
        {"data": ("A",), "classes": 12},
        {"data": ("A", "B"), "methods": ("wl",)},
        {"data": ("A", "B"), "methods": ("wl", "fgsd")},
    ],
    ids=str,
)
def test_page_is_well_formed_whatever_the_shape(options: dict[str, object], tmp_path: Path) -> None:
    text = Page(page_of(fake_comparison(**options), tmp_path)).text  # type: ignore[arg-type]
    assert "How to make it again" in text
    assert "nan" not in text.split()


def test_an_unknown_format_is_refused(one: Comparison, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are html, markdown, latex, csv"):
        write_comparison(one, tmp_path / "page.pdf", format="pdf")
    assert list(tmp_path.iterdir()) == []
