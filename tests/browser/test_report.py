"""The report in a real browser: no errors, no requests, sortable tables, working filters, visible charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gcaps.report import write_report
from tests.fake_runs import fake_comparison

METHODS = ("gcaps", "gin", "deepsets", "wl", "rw", "fgsd")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three data sets, one of them real and one with a hostile name; one entry without a result."""
    goal = tmp_path_factory.mktemp("browser") / "report.html"
    comparison = fake_comparison(
        data=("MUTAG", "PROTEINS", "<script>alert(1)</script>"),
        methods=METHODS,
        folds=4,
        broken={("PROTEINS", "rw"): "time"},
    )
    write_report(comparison, goal)
    return goal.as_uri()


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One method on one data set."""
    goal = tmp_path_factory.mktemp("browser") / "single.html"
    write_report(fake_comparison(methods=("gcaps",), stop_early=True), goal)
    return goal.as_uri()


@pytest.fixture
def opened(browser: Any, report: str) -> Iterator[Callable[..., Any]]:
    """Open a page; at the end, assert that nothing was logged and nothing but the page was requested."""
    messages: list[str] = []
    requests: list[str] = []
    contexts = []
    pages: list[str] = []

    def open_page(url: str = report, **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("dialog", lambda dialog: messages.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        pages.append(url)
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert messages == []
    assert [url for url in requests if url.partition("#")[0] not in pages and not url.startswith("data:")] == []


def column(page: Any, number: int) -> list[str]:
    """Return the text of a column of the main table, of the visible rows from top to bottom."""
    cells = page.locator("#main-table tbody tr:visible").all()
    return [cell.locator("th, td").nth(number).inner_text().splitlines()[0] for cell in cells]


def test_a_click_sorts_and_sets_aria_sort(opened: Callable[..., Any]) -> None:
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
    assert kinds == sorted(kinds, reverse=True), "rows without a result come last"
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
    assert page.locator("#main-table thead th:visible").count() == 2  # method, the data set; three sets have no ranks
    assert page.locator("details.set:visible").count() == 1
    page.uncheck("input[name=published]")
    assert page.locator(".pub:visible").count() == 0
    page.click("button[type=reset]")
    page.wait_for_function("document.querySelectorAll('details.set:not([hidden])').length === 3")
    assert column(page, 0) == everything


def test_charts_are_visible(opened: Callable[..., Any]) -> None:
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
    for words in ("Points that each rule adds", "Graph ", "Reliability of", "accuracy by epoch"):
        assert any(words in title for title in titles), words


def test_a_hostile_name_is_text(opened: Callable[..., Any]) -> None:
    page = opened()
    assert page.locator("details.set h2").nth(2).inner_text() == "<script>alert(1)</script>"
    assert page.locator("script").count() == 1


def test_dark_mode_follows_the_system(opened: Callable[..., Any]) -> None:
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


def test_without_scripts_no_filters_are_shown(opened: Callable[..., Any]) -> None:
    page = opened()
    assert page.locator("form.filters").is_visible()
    page.evaluate("document.documentElement.classList.remove('js')")  # set by the script
    assert page.locator("form.filters").is_hidden()
    assert page.locator("#main-table tbody tr:visible").count() >= len(METHODS)


def test_print_shows_every_part(opened: Callable[..., Any], tmp_path: Path) -> None:
    page = opened()
    page.emulate_media(media="print")
    assert page.locator("form.filters").is_hidden()
    page.pdf(path=tmp_path / "report.pdf")
    assert page.evaluate("[...document.querySelectorAll('details')].every(el => el.open)")
    assert (tmp_path / "report.pdf").stat().st_size > 50_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 320])
def test_page_of_one_method_has_visible_charts_and_fits(
    opened: Callable[..., Any], single: str, width: int, scheme: str
) -> None:
    page = opened(single, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = page.evaluate(
        "[...document.querySelectorAll('figure svg')].map(el => {const b = el.getBoundingClientRect();"
        "return [b.width, b.height, el.getAttribute('aria-label')]})"
    )
    assert len(boxes) >= 15
    assert all(chart_width > 80 and height > 30 for chart_width, height, _ in boxes)
    for words in ("Accuracy on MUTAG", "training loss", "accuracy by epoch", "Test accuracy of 10", "Reliability of"):
        assert any(words in label for _, _, label in boxes), words
    assert page.locator("form.filters").count() == 0
    page.click("nav a[href='#mistakes']")
    assert page.locator("#mistakes").is_visible()
