"""The report in a real browser: nothing complains or is fetched, tables sort, filters filter, pictures are seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gcaps.report import write_comparison
from tests.fake_runs import fake_comparison

METHODS = ("gcaps", "gin", "set", "wl", "rw", "fgsd")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two data sets, one of them real; a method without a number; a data set with an unfriendly name."""
    goal = tmp_path_factory.mktemp("browser") / "report.html"
    comparison = fake_comparison(
        data=("MUTAG", "PROTEINS", "<script>alert(1)</script>"),
        methods=METHODS,
        folds=4,
        broken={("PROTEINS", "rw"): "time"},
    )
    write_comparison(comparison, goal)
    return goal.as_uri()


@pytest.fixture
def opened(browser: Any, report: str) -> Iterator[Callable[..., Any]]:
    """Open the report; at the end, insist that nothing complained and nothing but the page was asked for."""
    complaints: list[str] = []
    requests: list[str] = []
    contexts = []

    def open_page(**options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(report)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if url != report and not url.startswith("data:")] == []


def column(page: Any, number: int) -> list[str]:
    """The text of a column of the main table, of the rows that are seen, from top to bottom."""
    cells = page.locator("#main-table tbody tr:visible").all()
    return [cell.locator("th, td").nth(number).inner_text().splitlines()[0] for cell in cells]


def test_a_click_sorts_and_says_so(opened: Callable[..., Any]) -> None:
    page = opened()
    head = page.locator("#main-table thead th").nth(1)
    assert head.get_attribute("aria-sort") == "none"
    numbers = []
    for order in ("descending", "ascending"):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == order
        numbers = [float(text.split(" ")[0]) for text in column(page, 1) if text[0].isdigit()]
        assert numbers == sorted(numbers, reverse=order == "descending")
        assert len(numbers) >= len(METHODS)
    other = page.locator("#main-table thead th").nth(2).locator("button")
    other.focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "none"
    kinds = [text[0].isdigit() for text in column(page, 2)]
    assert kinds == sorted(kinds, reverse=True), "what has no number stands at the end"
    page.locator("#main-table thead th").nth(0).locator("button").click()
    assert column(page, 0) == sorted(column(page, 0), key=str.lower)


def test_filters_filter_rows_columns_and_sections(opened: Callable[..., Any]) -> None:
    page = opened()
    everything = column(page, 0)
    page.select_option("select[name=family]", "kernel")
    assert column(page, 0) == ["WL", "RW"]
    page.select_option("select[name=family]", "")
    page.fill("input[name=text]", "weisfeiler")
    assert column(page, 0) == ["WL"]
    assert page.locator("#filtered").inner_text().startswith("1 of ")
    page.fill("input[name=text]", "")
    page.select_option("select[name=set]", "1")
    assert page.locator("#main-table thead th:visible").count() == 3  # method, the data set, average rank
    assert page.locator("details.set:visible").count() == 1
    page.uncheck("input[name=published]")
    assert page.locator(".pub:visible").count() == 0
    page.click("button[type=reset]")
    page.wait_for_function("document.querySelectorAll('details.set:not([hidden])').length === 3")
    assert column(page, 0) == everything


def test_pictures_are_there(opened: Callable[..., Any]) -> None:
    page = opened(viewport={"width": 1100, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(el => el.open = true)")
    boxes = page.evaluate(
        "[...document.querySelectorAll('figure svg')].map(el => {const b = el.getBoundingClientRect();"
        "const inside = [...el.querySelectorAll('path, circle')].some(p => p.getBBox().width + p.getBBox().height > 0);"
        "return [b.width, b.height, inside]})"
    )
    assert len(boxes) > 40
    assert all(width > 100 and height > 60 and inside for width, height, inside in boxes)
    titles = page.evaluate("[...document.querySelectorAll('figure svg')].map(el => el.getAttribute('aria-label'))")
    assert all(titles)
    for words in ("Average ranks over", "Points that each rule adds", "Graph ", "Reliability of", "accuracy by epoch"):
        assert any(words in title for title in titles), words


def test_a_hostile_name_is_words(opened: Callable[..., Any]) -> None:
    page = opened()
    assert page.locator("details.set h2").nth(2).inner_text() == "<script>alert(1)</script>"
    assert page.locator("script").count() == 1


def test_dark_follows_the_reader(opened: Callable[..., Any]) -> None:
    tones = []
    for scheme in ("light", "dark"):
        page = opened(color_scheme=scheme)
        tone = page.evaluate("getComputedStyle(document.body).backgroundColor")
        tones.append(sum(int(part) for part in tone[4:-1].split(",")))
    assert tones[0] > 600 > 200 > tones[1]


@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_scrolls_tables_and_not_the_page(opened: Callable[..., Any], width: int) -> None:
    page = opened(viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(el => el.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator("#main-table").locator("xpath=..")
    assert box.evaluate("el => el.scrollWidth > el.clientWidth")
    assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 15


def test_where_scripts_do_not_run_no_filters_are_offered(opened: Callable[..., Any]) -> None:
    page = opened()
    assert page.locator("form.filters").is_visible()
    page.evaluate("document.documentElement.classList.remove('js')")  # which only the script puts there
    assert page.locator("form.filters").is_hidden()
    assert page.locator("#main-table tbody tr:visible").count() >= len(METHODS)


def test_paper_shows_every_part(opened: Callable[..., Any], tmp_path: Path) -> None:
    page = opened()
    page.emulate_media(media="print")
    assert page.locator("form.filters").is_hidden()
    page.pdf(path=tmp_path / "report.pdf")
    assert page.evaluate("[...document.querySelectorAll('details')].every(el => el.open)")
    assert (tmp_path / "report.pdf").stat().st_size > 50_000
