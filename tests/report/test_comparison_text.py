from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gcaps.errors import GcapsError
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.gather import gather
from gcaps.evaluation.result import Result
from gcaps.report import write_comparison
from gcaps.report.comparison_page import comparison_text
from gcaps.report.study import Study
from tests.fake_runs import fake_comparison


@pytest.fixture(scope="module")
def pair() -> Comparison:
    return fake_comparison(
        data=("PROTEINS", "A_b<c>&|"), methods=("gcaps", "gin", "wl", "rw"), broken={("PROTEINS", "rw"): "time"}
    )


def test_csv_holds_every_protocol_in_full_precision(pair: Comparison, tmp_path: Path) -> None:
    write_comparison(pair, tmp_path / "table.csv", format="csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text(encoding="utf-8"))))
    study = Study.of(pair)
    ours = {(row["data"], row["method"], row["protocol"]): row for row in rows if row["source"] == "ours"}
    for (data, method), entry in study.entries.items():
        for rule, summary in entry.protocols.items():
            row = ours[data, method, rule]
            assert (float(row["mean"]), float(row["std"])) == (summary.mean, summary.std)
        if not entry.complete:
            assert ours[data, method, ""]["status"] == "over time"
    best = study.best("PROTEINS")
    assert best is not None
    other = next(method for method in study.methods if method != best)
    test = study.tests("PROTEINS")[other, best]
    row = ours["PROTEINS", other, "honest"]
    assert (float(row["p"]), float(row["p_holm"])) == (test.p, test.holm)
    published = [row for row in rows if row["source"] != "ours"]
    assert {"paper", "svm", "fair"} <= {row["protocol"] for row in published}


def test_markdown_is_one_table_with_the_best_in_bold(pair: Comparison) -> None:
    text = comparison_text(pair, "markdown")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert sum(line.count("**") for line in lines) == 2 * 2
    assert "A\\_b&lt;c&gt;&amp;\\|" in lines[0]
    assert "[paper: 76.40 ± 4.17]" in text
    assert "over time" in text
    assert "paper: GCAPS-CNN paper, hyper-parameters tuned on the training loss" in text


def test_latex_escapes_names_and_has_one_cell_a_column(pair: Comparison) -> None:
    text = comparison_text(pair, "latex")
    body = text[text.index(r"\begin{tabular}") :]
    assert r"A\_b\textless{}c\textgreater{}\&|" in body
    assert body.count(r"\textbf{") == 2
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body.splitlines() if line.endswith(r"\\")} == {2}
    assert r"\pm" in body


@pytest.fixture
def results(make_result: Callable[..., Result]) -> list[Result]:
    return [make_result(method=method, folds=4) for method in ("gcaps", "gin")]


def test_results_of_single_evaluations_make_a_comparison(results: list[Result]) -> None:
    first, second = results
    comparison = gather([first, second])
    assert comparison.missing() == []
    study = Study.of(comparison)
    assert study.entry("PROTEINS", "gcaps").honest is not None
    assert study.entry("PROTEINS", "gcaps").protocols["best"].mean == pytest.approx(first.protocols["best"].mean)
    assert first.command in comparison_text(comparison, "html")


def test_results_that_cannot_be_compared_are_refused(results: list[Result], make_result: Callable[..., Result]) -> None:
    first, second = results
    with pytest.raises(GcapsError, match="two results are about gcaps on PROTEINS with seed 3"):
        gather([first, first])
    with pytest.raises(GcapsError, match="different graphs"):
        gather([first, replace(second, data={**second.data, "fingerprint": "other"})])
    with pytest.raises(GcapsError, match="different folds"):
        gather([first, make_result(method="gin", folds=5)])
    with pytest.raises(GcapsError, match="no results"):
        gather([])


def test_a_method_that_lacks_a_seed_is_unfinished(results: list[Result]) -> None:
    first, second = results
    study = Study.of(gather([first, second, replace(first, seed=4)]))
    assert study.entry("PROTEINS", "gcaps").complete
    assert study.entry("PROTEINS", "gin").status == "4 of 8 folds"
