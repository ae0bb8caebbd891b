"""The tutorial and the quickstarts run: Python blocks in order, ``gcaps`` commands, and their output up to numbers."""

import os
import re
import shlex
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL = DOCS / "tutorial.md"
QUICKSTARTS = sorted((DOCS / "quickstarts").glob("*.md"))
PAGES = [TUTORIAL, *QUICKSTARTS]
WRITTEN = {
    "tutorial": ("report.html", "mine.html", "predictions.csv"),
    "command-line": ("wl.html", "report.html", "predictions.csv", "why.html"),
    "molecules": ("predictions.csv", "atoms.html"),
}
"""Files that the commands of a page write."""
BLOCK = re.compile(
    r"^(?P<note><!-- not run: [^\n]+ -->\n)?```(?P<language>\w+)(?: title=\"(?P<file>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"-?\d+(\.\d+)?")

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="this copy has no docs")


def blocks(page):
    return [match.groupdict() for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def run_command(line):
    from gcaps.cli.app import main

    words = shlex.split(line)
    assert words[0] == "gcaps", f"mark a block that is not run: {line}"
    code = 0
    try:
        main(words[1:])
    except SystemExit as ended:
        code = ended.code or 0
    assert code == 0, line


def shape(text):
    """A text without its numbers, spaces and bars, whose widths follow from them."""
    return [re.sub(r"[\s█]+", "", NUMBER.sub("#", line)) for line in text.strip().splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    # everything in this process: children would have to import torch again
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
    names: dict[str, object] = {"__name__": page.stem}
    printed = None
    for block in blocks(page):
        language, text = block["language"], block["text"]
        if block["note"]:
            continue
        if block["file"]:
            Path(block["file"]).write_text(text, encoding="utf-8")
        elif language == "bash":
            for line in text.splitlines():
                run_command(line)
            printed = capsys.readouterr().out
        elif language == "python":
            exec(compile(text, str(page), "exec"), names)
            printed = capsys.readouterr().out
        else:
            assert language == "text"
            assert shape(printed) == shape(text), printed
    assert all(Path(name).is_file() for name in WRITTEN.get(page.stem, ()))


def test_there_is_a_quickstart_for_every_kind_of_user():
    assert {page.stem for page in QUICKSTARTS} == {"command-line", "molecules", "networkx", "pyg", "scikit-learn"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_that_are_not_run_say_why(page):
    kinds = [block["language"] for block in blocks(page)]
    assert kinds.count("python") + kinds.count("bash") >= 4
    assert sum(bool(block["note"]) for block in blocks(page)) == (page.stem in ("tutorial", "command-line"))
    assert page.read_text(encoding="utf-8").count("```") == 2 * len(kinds)
