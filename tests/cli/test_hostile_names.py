"""Names from outside in every verb: markup, escape codes, HTML and formulas are shown as text, or refused in a line."""

import csv
import re

import pytest

from gcaps.cli.app import main

MARKUP = "[/b][red]"
CODES = "\x1b[31mred\x1b[0m\u202e"
HTML = "<script>alert(1)</script>"
NAMES = [MARKUP, CODES, HTML, "=1+1"]
SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "C1CCCCC1", "CCN", "c1ccncc1", "CC(C)O", "CCCl", "CC#N", "CCBr", "CCS", "CCF"]
QUICK = ["--method", "deepsets", "--epochs", "1"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of molecules whose name, columns, ids and classes are hostile."""
    file = tmp_path_factory.mktemp("names") / f"{MARKUP.replace('/', '')}.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["id", "smiles", f"{MARKUP}{HTML}"])
        rows.writerows([f"{NAMES[i % 4]}{i}", text, NAMES[i % 2 * 2]] for i, text in enumerate(SMILES))
    return file


@pytest.fixture(scope="module")
def model(table):
    with pytest.raises(SystemExit) as stop:
        main(["train", str(table), "-o", str(table.parent / "m[/b]".replace("/", "")), *QUICK])
    assert stop.value.code == 0
    return table.parent / "m[b]"


def run(capsys, *arguments):
    """Run a verb, which must succeed and print nothing that a terminal obeys; return what it printed."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert stop.value.code == 0, err
    shown = re.sub(r"\x1b\[\?25[lh]|\r", "", err)  # the cursor of a progress bar
    assert "\x1b" not in out + shown
    assert "\u202e" not in out + shown
    return out + err


def test_check_convert_and_train(table, model, tmp_path, capsys):
    assert MARKUP in run(capsys, "data", "check", table)
    run(capsys, "data", "convert", table, tmp_path / "[b].gset")
    assert MARKUP in run(capsys, "data", "check", tmp_path / "[b].gset")
    run(capsys, "train", tmp_path / "[b].gset", "-o", tmp_path / "m", *QUICK)


def test_predictions_are_shown_on_terminals_and_written_as_they_are(table, model, tmp_path, capsys, monkeypatch):
    run(capsys, "predict", model, table, "-o", tmp_path / "p.csv")
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout.isatty", lambda: True, raising=False)
        assert "\\x1b[31mred" in run(capsys, "predict", model, table)
    with pytest.raises(SystemExit):
        main(["predict", str(model), str(table)])
    assert capsys.readouterr().out == (tmp_path / "p.csv").read_bytes().decode().replace("\r\n", "\n")
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as stream:
        cells = [cell for row in csv.reader(stream) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "@", "\t"))]
    assert any(cell.startswith("'=1+1") for cell in cells)


def test_pages_hold_names_as_text(table, model, tmp_path, capsys):
    run(capsys, "compare", table, "--methods", "deepsets", "--folds", 2, "--jobs", 1, "-o", tmp_path / "run")
    run(capsys, "report", tmp_path / "run", "-o", tmp_path / "report.html")
    run(capsys, "explain", model, table, "-o", tmp_path / "explained.html")
    for name in ("report.html", "explained.html"):
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert HTML not in page
        assert "\x1b" not in page
        assert "\u202e" not in page


@pytest.mark.parametrize("name", ["[/b]", "\x1b[31m", "a\nb"])
@pytest.mark.parametrize("verb", [["train", "-o", "x"], ["evaluate"], ["data", "check"], ["predict", "m"], ["report"]])
def test_paths_that_do_not_exist_are_named_in_one_line(verb, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main([*verb[:1], *(["check"] if "check" in verb else []), name, *[a for a in verb[1:] if a != "check"]])
    err = capsys.readouterr().err
    assert stop.value.code not in (0, 70)
    assert "\x1b" not in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) <= 4
