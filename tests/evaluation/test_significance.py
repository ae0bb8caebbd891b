from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gcaps.evaluation.significance import all_pairs, corrected_t_test, holm


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
