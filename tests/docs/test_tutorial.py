"""The tutorial runs: its Python blocks in order, its ``gcaps`` commands, and their output up to numbers."""

import os
import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(
    r"^(?P<note><!-- not run: [^\n]+ -->\n)?```(?P<language>\w+)(?: title=\"(?P<file>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"-?\d+(\.\d+)?")

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="this copy has no docs")


def blocks():
    return [match.groupdict() for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]


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


def test_every_block_runs_and_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    # everything in this process: children would have to import torch again
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
    names: dict[str, object] = {}
    printed = ""
    for block in blocks():
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
            exec(compile(text, str(PAGE), "exec"), names)
            printed = capsys.readouterr().out
        else:
            assert language == "text"
            assert shape(printed) == shape(text), printed
    assert all(Path(name).is_file() for name in ("report.html", "mine.html", "predictions.csv"))


def test_blocks_that_are_not_run_say_why():
    kinds = [block["language"] for block in blocks()]
    assert kinds.count("python") > 5
    assert kinds.count("bash") > 5
    assert sum(bool(block["note"]) for block in blocks()) == 1
    assert PAGE.read_text(encoding="utf-8").count("```") == 2 * len(kinds)
