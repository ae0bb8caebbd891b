from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from gcaps.evaluation.comparison import Comparison
from gcaps.report import print_comparison, report_text, write_report
from gcaps.report.study import Study
from tests.fake_runs import fake_comparison


@pytest.fixture(scope="module")
def pair() -> Comparison:
    return fake_comparison(
        data=("PROTEINS", "A_b<c>&|"), methods=("gcaps", "gin", "wl", "rw"), broken={("PROTEINS", "rw"): "time"}
    )


def test_csv_holds_every_protocol_in_full_precision(pair: Comparison, tmp_path: Path) -> None:
    write_report(pair, tmp_path / "table.csv", format="csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text(encoding="utf-8"))))
    study = Study.of(pair)
    others = [row for row in rows if row["headline"] == "false"]
    ours = {
        (row["data"], row["method"], row["protocol"]): row
        for row in rows
        if row["source"] == "ours" and row not in others
    }
    for (data, label), entry in study.entries.items():
        for rule, summary in entry.protocols.items():
            row = ours[data, label, rule]
            assert (float(row["mean"]), float(row["std"])) == (summary.mean, summary.std)
        if not entry.complete:
            assert ours[data, label, ""]["status"] == "over time"
    best = study.best("PROTEINS")
    assert best is not None
    other = next(label for label in study.names if label != best)
    test = study.tests["PROTEINS"][other, best]
    row = ours["PROTEINS", other, "honest"]
    assert (float(row["p"]), float(row["p_holm"])) == (test.p, test.holm)
    gin = {row["metric"]: float(row["mean"]) for row in others if (row["data"], row["method"]) == ("PROTEINS", "gin")}
    assert gin == {
        name: summary.mean for name, summary in study.entries["PROTEINS", "gin"].metrics.items() if name != "accuracy"
    }
    published = [row for row in rows if row["source"] != "ours"]
    assert {"paper", "svm", "fair"} <= {row["protocol"] for row in published}


def test_markdown_is_one_table_with_the_best_in_bold(pair: Comparison) -> None:
    text = report_text(pair, "markdown")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert sum(line.count("**") for line in lines) == 2 * 2
    assert "A\\_b&lt;c&gt;&amp;\\|" in lines[0]
    assert "[paper: 76.40 ± 4.17]" in text
    assert "over time" in text
    assert "paper: GCAPS-CNN paper, hyper-parameters tuned on the training loss" in text


def test_latex_escapes_names_and_has_one_cell_a_column(pair: Comparison) -> None:
    text = report_text(pair, "latex")
    body = text[text.index(r"\begin{tabular}") :]
    assert r"A\_b\textless{}c\textgreater{}\&|" in body
    assert body.count(r"\textbf{") == 2
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body.splitlines() if line.endswith(r"\\")} == {2}
    assert r"\pm" in body


def test_tables_of_one_method_mark_no_winner() -> None:
    comparison = fake_comparison(data=("PROTEINS", "MUTAG"), methods=("gcaps",))
    for kind, mark in (("markdown", "**"), ("latex", r"\textbf{")):
        text = report_text(comparison, kind)
        assert mark not in text
        assert "Bold" not in text


def printed(comparison: Comparison, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_comparison(comparison, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_terminal_headline_is_the_honest_accuracy_against_the_majority_class() -> None:
    comparison = fake_comparison(data=("PROTEINS",), methods=("gcaps",))
    honest = Study.of(comparison).entries["PROTEINS", "gcaps"].protocols["honest"]
    y = [label for outcome in comparison.outcomes if outcome.result for label in outcome.result.y]
    text = printed(comparison)
    assert f"honest accuracy  {100 * honest.mean:.1f} ± {100 * honest.std:.1f} %" in text
    share = max(y.count(0), y.count(1)) / len(y)
    assert f"majority class   {100 * share:.1f} %" in text


@pytest.mark.parametrize("data", [("mine",), ("mine", "yours")])
def test_terminal_shows_every_protocol_of_one_method(data: tuple[str, ...]) -> None:
    comparison = fake_comparison(data=data, methods=("gcaps",))
    text, digits = printed(comparison), 2 if len(data) == 1 else 1
    for entry in Study.of(comparison).entries.values():
        for rule, summary in entry.protocols.items():
            assert f"{rule}" in text
            assert f"{100 * summary.mean:.{digits}f} ± {100 * summary.std:.{digits}f}" in text


def test_terminal_table_of_several_methods_shows_results_and_failures() -> None:
    broken = {("B", "rw"): "time"}
    text = printed(fake_comparison(data=("A", "B"), methods=("gcaps", "rw"), folds=3, broken=broken))
    lines = text.splitlines()
    assert lines[0].split() == ["honest,", "%", "A", "B"]
    assert lines[1].startswith("gcaps")
    assert lines[1].count("±") == 2
    assert lines[2].endswith("over time")
    assert lines[3] == "9 cells done, 3 over time"


def test_terminal_counts_cells_that_were_not_run() -> None:
    text = printed(fake_comparison(methods=("gcaps",), missing=[("MUTAG", "gcaps")]))
    assert "5 of 10 folds" in text
    assert "5 cells done, 5 not run" in text


def test_terminal_lists_published_results_with_source_and_a_warning() -> None:
    text = printed(fake_comparison(data=("PROTEINS",), methods=("gcaps",)))
    assert "76.40 ± 4.17" in text
    assert "Errica et al., 2020" in text
    assert "not directly comparable" in text
    assert "Published" not in printed(fake_comparison(data=("mine",), methods=("gcaps",)))


@pytest.mark.parametrize("width", [80, 100])
def test_terminal_output_fits_the_terminal(width: int) -> None:
    lines = printed(fake_comparison(data=("PROTEINS",), methods=("gcaps",)), width).splitlines()
    assert max(map(len, lines)) <= width
    assert any("structure-blind-baseline   75.80 ± 3.70" in line for line in lines)


def test_a_single_fold_has_no_deviation() -> None:
    text = printed(fake_comparison(data=("mine",), methods=("gcaps",), folds=1))
    assert "over 1 fold," in text
    assert "±" not in text


def test_brackets_in_names_are_not_markup() -> None:
    assert "[bold]set[/] · gcaps" in printed(fake_comparison(data=("[bold]set[/]",), methods=("gcaps",)))
    assert "[bold]set[/]" in printed(fake_comparison(data=("[bold]set[/]",), methods=("gcaps", "[red]x[/]")))
