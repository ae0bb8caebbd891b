"""Results of single evaluations joined into a comparison."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gcaps.errors import GcapsError
from gcaps.evaluation.gather import gather
from gcaps.evaluation.result import Result
from gcaps.report import report_text
from gcaps.report.study import Study
from tests.fake_runs import fake_comparison, fake_result


def results_of(folds: int) -> list[Result]:
    comparison = fake_comparison(data=("PROTEINS",), methods=("gcaps", "gin"), folds=folds, seeds=(3,))
    return [fake_result(comparison, label) for label in ("gcaps", "gin")]


def test_results_of_single_evaluations_make_a_comparison() -> None:
    first, second = results_of(4)
    comparison = gather([first, second])
    assert comparison.missing() == []
    entry = Study.of(comparison).entries["PROTEINS", "gcaps"]
    assert entry.honest is not None
    assert entry.protocols["best"].mean == pytest.approx(first.protocols["best"].mean)
    assert first.command in report_text(comparison, "html")


def test_results_that_cannot_be_compared_are_refused() -> None:
    first, second = results_of(4)
    with pytest.raises(GcapsError, match="two results are about gcaps on PROTEINS with seed 3"):
        gather([first, first])
    with pytest.raises(GcapsError, match="different graphs"):
        gather([first, replace(second, data={**second.data, "fingerprint": "other"})])
    with pytest.raises(GcapsError, match="different folds"):
        gather([first, results_of(5)[1]])
    with pytest.raises(GcapsError, match="no results"):
        gather([])


def test_a_method_that_lacks_a_seed_is_unfinished() -> None:
    first, second = results_of(4)
    study = Study.of(gather([first, second, replace(first, seed=4)]))
    assert study.entries["PROTEINS", "gcaps"].complete
    assert study.entries["PROTEINS", "gin"].status == "4 of 8 folds"
