from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from gcaps.evaluation.result import Result
from gcaps.report import print_result


def printed(result: Result, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_result(result, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_headline_is_the_honest_number_against_the_majority_class(make_result: Callable[..., Result]) -> None:
    result = make_result()
    honest = result.protocols["honest"]
    labels = [label for fold in result.folds for label in fold.labels]
    text = printed(result)
    assert f"honest accuracy  {100 * honest.mean:.1f} ± {100 * honest.std:.1f} %" in text
    share = max(labels.count(0), labels.count(1)) / len(labels)
    assert f"majority class   {100 * share:.1f} %" in text


def test_every_protocol_stands_in_the_table(make_result: Callable[..., Result]) -> None:
    result = make_result()
    text = printed(result)
    for name, summary in result.protocols.items():
        assert f"{name} " in text
        assert f"{100 * summary.mean:.2f} ± {100 * summary.std:.2f}" in text


def test_published_rows_come_with_source_and_a_warning(make_result: Callable[..., Result]) -> None:
    text = printed(make_result("PROTEINS"))
    assert "76.40 ± 4.17" in text
    assert "Errica et al., 2020" in text
    assert "not comparable one to one" in text


def test_nothing_is_said_of_others_where_nothing_was_published(make_result: Callable[..., Result]) -> None:
    assert "Published" not in printed(make_result("mine"))


@pytest.mark.parametrize("width", [80, 100])
def test_fits_the_terminal(make_result: Callable[..., Result], width: int) -> None:
    lines = printed(make_result("PROTEINS"), width).splitlines()
    assert max(map(len, lines)) <= width
    assert any("structure-blind-baseline   75.80 ± 3.70" in line for line in lines)


def test_a_single_fold_has_no_deviation(make_result: Callable[..., Result]) -> None:
    text = printed(make_result("mine", folds=1))
    assert "over 1 fold," in text
    assert "±" not in text


def test_brackets_in_names_are_no_markup(make_result: Callable[..., Result]) -> None:
    assert "[bold]set[/] · gcaps" in printed(make_result("[bold]set[/]"))
