"""The page of ``gcaps serve`` in a real browser, served by real processes."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gcaps
from gcaps.data.catalog import find
from gcaps.data.io.export import export
from tests.servers import Server, save_alcohols, save_mutag

pytest.importorskip("fastapi")
pytest.importorskip("rdkit")
pytest.importorskip("grakel")

DROP = """([name, text, kind]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name, {type: kind}));
  for (const event of ["dragenter", "dragover", "drop"])
    document.getElementById("drop").dispatchEvent(new DragEvent(event, {dataTransfer: data, bubbles: true}));
}"""
"""Drop a file on the page as a person would."""


@pytest.fixture(scope="module")
def molecules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a calibrated classifier of molecules."""
    with Server(save_alcohols(tmp_path_factory.mktemp("browser") / "alcohols"), "--workers", "1") as running:
        yield running


@pytest.fixture(scope="module")
def mutag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a network on other graphs, with a token and a small limit."""
    model = save_mutag(tmp_path_factory.mktemp("browser") / "mutag")
    with Server(model, "--workers", "1", "--max-graphs", "300", token="a token") as running:
        yield running


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a server's page; at the end, assert that nothing was logged and no other server was asked."""
    messages: list[str] = []
    requests: list[str] = []
    contexts, servers = [], []

    def open_page(server: Server, **options: Any) -> Any:
        context = browser.new_context(**options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        servers.append(server.url)
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("dialog", lambda dialog: messages.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(server.url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [text for text in messages if not text.startswith("Failed to load resource")] == []
    assert [url for url in requests if not url.startswith((*servers, "data:", "blob:"))] == []


def predict(page: Any, text: str) -> None:
    """Type graphs and press Ctrl + Enter."""
    page.fill("#text", text)
    page.press("#text", "Control+Enter")


def signed_in(page: Any) -> Any:
    """Enter the token."""
    page.fill("#token", "a token")
    page.press("#token", "Enter")
    page.wait_for_selector("#form", state="visible")
    return page


def column(page: Any, number: int, rows: int | None = None) -> list[str]:
    """Return the texts of a column of the table, from top to bottom, of the first rows."""
    return [row.locator("th, td").nth(number).inner_text() for row in page.locator("#table tbody tr").all()[:rows]]


def drop(page: Any, path: Path) -> None:
    """Drop a file on the page."""
    import base64

    page.evaluate(DROP, [path.name, base64.b64encode(path.read_bytes()).decode(), ""])


def test_a_molecule_is_predicted_with_its_uncertainty_explained_and_compared(opened, molecules):
    page = opened(molecules)
    page.locator("h1", has_text="alcohols").wait_for()
    predict(page, "CCCCO butanol")
    page.wait_for_selector("#explanation svg")
    assert page.inner_text("#detail-title") == "butanol"
    assert page.locator(".answer").inner_text().splitlines()[-1] == "yes"
    shares = [float(text.removesuffix("%")) for text in page.locator(".bars .share").all_inner_texts()]
    assert sum(shares) == pytest.approx(100, abs=0.2)
    assert shares == sorted(shares, reverse=True)
    assert "The set that holds the truth in 90 % of cases:" in page.inner_text("#detail")
    assert "like the training graphs" in page.inner_text(".facts")
    assert len(page.locator(".near li").all()) == 3
    assert page.locator("#batch").is_hidden(), "one molecule needs no table"
    drawing = page.locator("#explanation svg")
    box = drawing.bounding_box()
    assert box["width"] > 150
    assert box["height"] > 20
    assert drawing.get_attribute("aria-label") or drawing.locator("title").count()
    page.click("#explanation summary")
    assert sorted(page.locator("#explanation tbody td:nth-child(2)").all_inner_texts()) == ["C", "C", "C", "C", "O"]


def test_what_is_unlike_anything_seen_is_flagged(opened, molecules):
    page = opened(molecules)
    predict(page, "c1ccc2c(c1)sc1ccccc12")
    page.wait_for_selector("#detail .badge.warn")
    assert page.inner_text("#detail .badge") == "unlike anything seen"
    assert "unlike anything seen in training" in page.inner_text("#status")


def test_several_molecules_are_a_table_that_sorts_filters_and_downloads(opened, molecules):
    page = opened(molecules)
    predict(page, "CCO =SUM(A1)\nCCCC <b>bold</b>\nnonsense! wrong\nCCCCCCO\nc1ccsc1 thiophene")
    page.wait_for_selector("#table tbody tr")
    assert "4 predictions, 1 row could not be read" in page.inner_text("#status")
    assert column(page, 0) == ["=SUM(A1)", "<b>bold</b>", "wrong", "4", "thiophene"]
    assert "is not a SMILES" in column(page, 1)[2]
    heads = page.locator("#table thead th")
    number = heads.all_inner_texts().index("calibrated(yes)")
    for order in ("descending", "ascending"):
        heads.nth(number).locator("button").click()
        assert heads.nth(number).get_attribute("aria-sort") == order
        found = [float(row[0].strip("%")) for text in column(page, 0) if (row := cells(page, text, number))]
        assert found == sorted(found, reverse=order == "descending")
    assert column(page, 0)[-1] == "wrong", "rows without a value come last"
    page.fill("#find", "thio")
    assert column(page, 0) == ["thiophene"]
    assert page.inner_text("#count") == "1 of 5 rows"
    page.fill("#find", "")
    page.select_option("#show", "error")
    assert column(page, 0) == ["wrong"]
    page.select_option("#show", "")
    with page.expect_download() as event:
        page.click("#download")
    assert event.value.suggested_filename == "alcohols-predictions.csv"
    rows = list(csv.DictReader(io.StringIO(Path(event.value.path()).read_text(encoding="utf-8"))))
    assert {row["graph"] for row in rows} == {"'=SUM(A1)", "<b>bold</b>", "wrong", "4", "thiophene"}
    one = next(row for row in rows if row["graph"] == "4")
    assert one["SMILES"] == "CCCCCCO"
    assert float(one["p(yes)"]) + float(one["p(no)"]) == pytest.approx(1, abs=1e-5)
    assert one["set"].startswith("{")
    page.click("#table tbody button:has-text('thiophene')")
    page.locator("#detail-title", has_text="thiophene").wait_for()
    assert page.locator("#table tr.chosen th").inner_text() == "thiophene"


def cells(page: Any, name: str, number: int) -> list[str]:
    """Return the cell of a row that has a value in a column."""
    row = page.locator("#table tbody tr", has=page.locator("th", has_text=name)).first
    found = row.locator("td").all()
    return [found[number - 1].inner_text()] if len(found) >= number else []


def test_a_file_dropped_before_the_page_knows_the_model_is_predicted(opened, molecules, tmp_path):
    (tmp_path / "a.smi").write_text("CCO x\n")
    page = opened(molecules)
    held: list[Any] = []
    page.route("**/model", lambda route: held.append(route))
    page.reload(wait_until="domcontentloaded")
    drop(page, tmp_path / "a.smi")
    assert page.locator("#explanation").count() == 0
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    page.wait_for_selector("#explanation svg")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.smi"])
def test_a_dropped_file_of_molecules(opened, molecules, tmp_path, name):
    mark = {"a.csv": ",", "a.tsv": "\t", "a.smi": " "}[name]
    rows = [("CCO", "x"), ("CCC", "y"), ("bad!", "z")]
    head = "" if name == "a.smi" else f"smiles{mark}name\n"
    (tmp_path / name).write_text(head + "".join(f"{mark.join(row)}\n" for row in rows))
    page = opened(molecules)
    page.wait_for_selector("#form", state="visible")
    drop(page, tmp_path / name)
    page.wait_for_selector("#explanation svg")
    assert "2 predictions, 1 row could not be read" in page.inner_text("#status")
    assert name in page.inner_text("#chosen-name")
    smiles = page.locator("#table thead th").all_inner_texts().index("SMILES")
    assert column(page, smiles, 2) == ["CCO", "CCC"]
    page.click("#forget")
    assert page.locator("#chosen").is_hidden()


@pytest.mark.parametrize("name", ["g.graphml", "g.json", "g.zip"])
def test_a_chosen_file_of_graphs(opened, mutag, tmp_path, name):
    if name == "g.zip":
        shutil.make_archive(str(tmp_path / "g"), "zip", find("MUTAG"))
    else:
        export(gcaps.load("MUTAG")[60:64], tmp_path / name)
    page = signed_in(opened(mutag))
    page.set_input_files("#file", tmp_path / name)
    page.wait_for_selector("#explanation svg")
    assert len(column(page, 0)) == (188 if name == "g.zip" else 4)
    assert "not calibrated" in page.inner_text("#about")


def test_a_graph_as_json_and_what_is_wrong_with_it(opened, mutag):
    page = signed_in(opened(mutag))
    page.click("#example")
    page.wait_for_selector("#explanation svg")
    graphs = json.loads(page.input_value("#text"))
    assert all(graph["links"] for graph in graphs), "an example has edges"
    predict(page, "{]")
    assert "This is no JSON" in page.inner_text("#message")
    predict(page, '{"nodes": [{"id": 0}], "links": [{"source": 0, "target": 9}]}')
    page.locator("#message", has_text="not among its nodes").wait_for()
    assert page.get_attribute("#message", "role") == "alert"
    predict(page, json.dumps(graphs[:1] * 301))
    page.locator("#message", has_text="--max-graphs").wait_for()
    page.click("#clear")
    assert page.inner_text("#message") == ""


def test_a_message_about_a_file_names_it_as_it_is_called(opened, molecules, tmp_path):
    page = opened(molecules)
    (tmp_path / "empty.csv").write_text("")
    page.set_input_files("#file", tmp_path / "empty.csv")
    page.locator("#message", has_text="empty.csv: is empty").wait_for()


def test_a_token_is_asked_for_once_in_a_tab(opened, mutag):
    page = opened(mutag)
    page.wait_for_selector("#token", state="visible")
    assert page.locator("#form").is_hidden()
    page.fill("#token", "wrong")
    page.press("#token", "Enter")
    page.locator("#about", has_text="That is not the token.").wait_for()
    signed_in(page)
    page.reload()
    page.wait_for_selector("#form", state="visible")
    assert page.locator("#login").is_hidden()


def test_the_keyboard_reaches_everything_and_focus_is_seen(opened, molecules):
    page = opened(molecules)
    predict(page, "CCO a\nCCC b")
    page.wait_for_selector("#table tbody tr")
    page.evaluate("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
    reached: list[str] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        found = page.evaluate(
            "() => {const el = document.activeElement; if (!el || el === document.body) return null;"
            "const own = el.id === 'file' ? document.getElementById('drop') : el; const style = getComputedStyle(own);"
            "return [el.id || el.textContent.trim().slice(0, 30),"
            "style.outlineStyle !== 'none' || style.boxShadow !== 'none']}"
        )
        if found is None:
            break
        assert found[1], f"no focus ring on {found[0]}"
        reached.append(found[0])
    assert reached[0] == "Skip to the results"
    for name in ("text", "file", "predict", "example", "clear", "coverage", "find", "show", "download", "Class", "a"):
        assert name in reached, (name, reached)
    page.focus("#table tbody tr:nth-child(2) button")
    page.keyboard.press("Enter")
    page.locator("#detail-title", has_text=re.compile("^b$")).wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_fits_and_can_be_read(opened, molecules, width, scheme):
    page = opened(molecules, viewport={"width": width, "height": 800}, color_scheme=scheme)
    predict(page, "CCO a-long-name-without-any-place-to-break-it-" * 3 + "\nCCC b\nnonsense! c")
    page.wait_for_selector("#explanation svg")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    small = page.evaluate(SMALL)
    assert small == [], "large enough for a finger"
    assert faint(page) == []


SMALL = """() => [...document.querySelectorAll("main :is(button, select, input, textarea, summary)")].filter((el) => {
  const {width, height} = el.getBoundingClientRect();
  return width && height < 24 && !el.closest("table") && !el.classList.contains("unseen");
}).map((el) => el.id || el.textContent)"""
"""Controls that are lower than WCAG's AA asks for."""
CONTRAST = """() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (el) => {
    for (; el; el = el.parentElement) {
      const found = rgb(getComputedStyle(el).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
  };
  const hasText = (el) => [...el.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  return [...document.querySelectorAll("body *")]
    .filter((el) => !el.closest("svg, option, noscript, :disabled") && el.checkVisibility() && hasText(el))
    .map((el) => {
      const [a, b] = [light(rgb(getComputedStyle(el).color)), light(behind(el))].sort((x, y) => y - x);
      return [(a + 0.05) / (b + 0.05), el.textContent.trim().slice(0, 40)];
    })
    .filter(([ratio]) => ratio < 4.5);
}"""
"""Texts with less contrast than WCAG's AA asks for."""


def faint(page: Any) -> list[Any]:
    """Return texts that are hard to read."""
    found: list[Any] = page.evaluate(CONTRAST)
    return found


def test_names_from_outside_are_text(opened, molecules):
    page = opened(molecules)
    predict(page, "CCO <img src=x onerror=alert(1)>\nCC <script>alert(2)</script>")
    page.wait_for_selector("#explanation svg")
    assert column(page, 0) == ["<img src=x onerror=alert(1)>", "<script>alert(2)</script>"]
    assert page.locator("main img, main script").count() == 0


def test_a_server_that_is_gone_is_told(opened, molecules):
    page = opened(molecules)
    page.wait_for_selector("#form", state="visible")
    page.context.set_offline(True)
    try:
        predict(page, "CCO")
        page.locator("#message", has_text="does not answer").wait_for()
    finally:
        page.context.set_offline(False)
    predict(page, "CCO")
    page.wait_for_selector("#explanation svg")
    assert page.inner_text("#message") == ""
