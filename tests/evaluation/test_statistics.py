from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gcaps.evaluation.statistics import (
    all_pairs,
    average_ranks,
    cliques,
    corrected_t_test,
    critical_difference,
    friedman_test,
    holm,
    rank_methods,
)
from gcaps.report.study import Study
from gcaps.report.summary import paired_words
from tests.fake_runs import fake_comparison


def test_nadeau_bengio_formula_written_out() -> None:
    d = [0.02, -0.01, 0.05, 0.03, 0.0]
    mean = sum(d) / 5
    variance = sum((x - mean) ** 2 for x in d) / 4
    t, p = corrected_t_test(d, 1 / 4)
    assert t == pytest.approx(mean / math.sqrt((1 / 5 + 1 / 4) * variance))
    assert p == pytest.approx(2 * (1 - stats.t.cdf(t, 4)))


def test_without_the_correction_it_is_the_plain_paired_test() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=10), rng.normal(0.4, size=10)
    plain = stats.ttest_rel(a, b)
    t, p = corrected_t_test(a - b, 0.0)
    assert (t, p) == (pytest.approx(plain.statistic), pytest.approx(plain.pvalue))
    assert corrected_t_test(a - b, 1 / 9)[1] > p


def test_equal_differences_have_no_variance_to_divide_by() -> None:
    assert corrected_t_test([0.0, 0.0, 0.0], 0.5) == (0.0, 1.0)
    assert corrected_t_test([0.1, 0.1, 0.1], 0.5) == (math.inf, 0.0)
    assert corrected_t_test([-0.1, -0.1, -0.1], 0.5) == (-math.inf, 0.0)


def test_one_fold_cannot_be_tested() -> None:
    with pytest.raises(ValueError, match="two folds"):
        corrected_t_test([0.1], 0.1)


def test_repetitions_of_one_division_are_paired_with_the_ratio_of_their_test_and_training_graphs() -> None:
    comparison = fake_comparison(methods=("gcaps", "wl"), folds=1, seeds=range(5))
    train, test = 90, 10
    outcomes = []
    for outcome in comparison.outcomes:
        assert outcome.result is not None
        fold = replace(
            outcome.result,
            **{name: getattr(outcome.result, name)[:test] for name in ("test", "y", "predictions", "scores")},
            train_size=train,
        )
        outcomes.append(replace(outcome, result=fold))
    study = Study.of(replace(comparison, outcomes=outcomes))
    a, b = ([fold.accuracy for fold in study.entries["MUTAG", label].folds] for label in ("gcaps", "wl"))
    d = np.subtract(a, b)
    t = d.mean() / math.sqrt((1 / 5 + test / train) * d.var(ddof=1))
    found = study.tests["MUTAG"]["gcaps", "wl"]
    assert len(d) == 5
    assert (found.t, found.p) == (pytest.approx(t), pytest.approx(2 * stats.t.sf(abs(t), 4)))
    assert paired_words(study, "MUTAG") == "5 repetitions, n_test / n_train = 0.11"


def test_repetitions_with_the_same_folds_count_once() -> None:
    comparison = fake_comparison(methods=("gcaps", "wl"), folds=3, seeds=(0, 1))
    planned = comparison.plan.data[0]
    shared = replace(planned, folds=dict.fromkeys(planned.folds, planned.folds["0"]))
    study = Study.of(replace(comparison, plan=replace(comparison.plan, data=[shared])))
    values = {label: study.entries["MUTAG", label].values for label in ("gcaps", "wl")}
    means = {
        label: {fold: np.mean([found[seed, fold] for seed in (0, 1)]) for fold in range(3)}
        for label, found in values.items()
    }
    expected = all_pairs(means, study.test_to_train("MUTAG"))["gcaps", "wl"]
    assert study.tests["MUTAG"]["gcaps", "wl"].p == pytest.approx(expected.p)
    assert paired_words(study, "MUTAG").startswith("3 folds of 2 repetitions")
    assert Study.of(comparison).divisions("MUTAG") == 6
    single = fake_comparison(methods=("gcaps", "wl"), folds=1, seeds=(0, 1))
    planned = single.plan.data[0]
    shared = replace(planned, folds=dict.fromkeys(planned.folds, planned.folds["0"]))
    study = Study.of(replace(single, plan=replace(single.plan, data=[shared])))
    assert study.tests["MUTAG"] == {}, "one division cannot be tested"
    assert "too few for a test" in paired_words(study, "MUTAG")


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_what_its_step_down_procedure_rejects(p: list[float]) -> None:
    corrected = holm(p)
    for alpha in (0.01, 0.05, 0.3):
        rejected: set[int] = set()
        for step, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
            # the same product as the correction, so that rounding cannot part them
            if p[index] * (len(p) - step) > alpha:
                break
            rejected.add(index)
        assert {i for i, value in enumerate(corrected) if value <= alpha} == rejected


def test_all_pairs_are_one_family_and_turn_their_signs() -> None:
    rng = np.random.default_rng(1)
    table = {name: {fold: float(x) for fold, x in enumerate(rng.normal(mean, 0.05, 10))} for name, mean in _MEANS}
    tests = all_pairs(table, 1 / 9)
    assert len(tests) == 6
    raw = [tests[pair].p for pair in (("a", "b"), ("a", "c"), ("b", "c"))]
    assert [tests[pair].holm for pair in (("a", "b"), ("a", "c"), ("b", "c"))] == holm(raw)
    for a, b in tests:
        there, back = tests[a, b], tests[b, a]
        assert (back.difference, back.t, back.p, back.holm) == (-there.difference, -there.t, there.p, there.holm)
    assert tests["a", "c"].difference == pytest.approx(
        np.mean(list(table["a"].values())) - np.mean(list(table["c"].values()))
    )


_MEANS = (("a", 0.8), ("b", 0.75), ("c", 0.5))


def test_only_folds_that_both_have_are_compared() -> None:
    a = {("s", fold): 0.5 + 0.1 * fold for fold in range(4)}
    b = {("s", fold): 0.4 + 0.13 * fold for fold in range(1, 6)}
    tests = all_pairs({"a": a, "b": b, "c": {("s", 0): 0.5}}, 1 / 3)
    assert set(tests) == {("a", "b"), ("b", "a")}
    assert tests["a", "b"].difference == pytest.approx(np.mean([a["s", f] - b["s", f] for f in (1, 2, 3)]))


DEMSAR_Q = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}
"""q at 0.05 for Nemenyi's test as Demšar's table 5 (2006) prints it."""


def slow_rank(row: list[float], place: int) -> float:
    """1 + how many are better + half of how many others are equal."""
    return 1 + sum(x > row[place] for x in row) + sum(x == row[place] for i, x in enumerate(row) if i != place) / 2


def test_average_ranks_share_ties() -> None:
    scores = [[0.9, 0.9, 0.5, 0.1], [0.3, 0.4, 0.4, 0.4], [1.0, 0.0, 0.5, 0.5]]
    slow = [np.mean([slow_rank(row, j) for row in scores]) for j in range(4)]
    assert average_ranks(scores).tolist() == pytest.approx(slow)


@pytest.mark.parametrize("decimals", [1, 8], ids=["ties", "no ties"])
def test_friedman_is_scipys(decimals: int) -> None:
    table = np.round(np.random.default_rng(3).random((7, 5)), decimals)
    known = stats.friedmanchisquare(*table.T)
    assert friedman_test(table) == (pytest.approx(known.statistic), pytest.approx(known.pvalue))


def test_friedman_of_methods_that_always_tie_finds_nothing() -> None:
    assert friedman_test(np.ones((4, 3))) == (0.0, 1.0)


@pytest.mark.parametrize(("methods", "q"), DEMSAR_Q.items())
def test_nemenyi_quantiles_are_demsars(methods: int, q: float) -> None:
    assert critical_difference(methods, 14) == pytest.approx(q * np.sqrt(methods * (methods + 1) / (6 * 14)), abs=2e-3)


def test_cliques_are_the_longest_runs_within_the_difference() -> None:
    assert cliques([1.0, 1.5, 2.4, 4.0, 4.2], 1.0) == [(0, 1), (1, 2), (3, 4)]
    assert cliques([1.0, 2.0, 3.0], 5.0) == [(0, 2)]
    assert cliques([1.0, 3.0], 1.0) == []


def test_demsars_own_example() -> None:
    """AUC of four C4.5 variants on 14 data sets (Demšar 2006, table 6): ranks 3.143, 2.000, 2.893, 1.964; CD 1.25."""
    # of the two .975 of one row the first is ranked higher there: it was rounded for print
    rows = """.763 .768 .771 .798 | .599 .591 .590 .569 | .954 .971 .968 .967 | .628 .661 .654 .657
    .882 .888 .886 .898 | .936 .931 .916 .931 | .661 .668 .609 .685 | .583 .583 .563 .625
    .775 .838 .866 .875 | 1.000 1.000 1.000 1.000 | .940 .962 .965 .962 | .619 .666 .614 .669
    .972 .981 .9751 .975 | .957 .978 .946 .970"""
    table = np.array(rows.replace("|", " ").split(), dtype=float).reshape(14, 4)
    names = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
    ranks = rank_methods({str(i): dict(zip(names, row, strict=True)) for i, row in enumerate(table.tolist())})
    assert ranks is not None
    assert ranks.methods == ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]
    assert ranks.average == pytest.approx([1.964, 2.0, 2.893, 3.143], abs=5e-4)
    # the paper's 9.28 is without the correction for ties
    assert ranks.friedman == pytest.approx(stats.friedmanchisquare(*table.T).statistic)
    assert ranks.critical_difference == pytest.approx(1.25, abs=5e-3)
    assert ranks.cliques == [(0, 3)]


def test_what_has_holes_is_left_out() -> None:
    full = {"a": 0.9, "b": 0.8, "c": 0.7}
    scores = {"X": full, "Y": full, "Z": {**full, "d": 0.95}, "W": {"a": 0.5}}
    ranks = rank_methods(scores)
    assert ranks is not None
    assert (ranks.methods, ranks.data, ranks.left_out) == (["a", "b", "c"], ["X", "Y", "Z"], ["d", "W"])


def test_ranks_need_several_data_sets_and_methods() -> None:
    assert rank_methods({"X": {"a": 0.9, "b": 0.8}}) is None
    assert rank_methods({"X": {"a": 0.9}, "Y": {"a": 0.8}}) is None
    assert rank_methods({"X": {"a": 0.9}, "Y": {"b": 0.8}}) is None
    assert rank_methods({}) is None
