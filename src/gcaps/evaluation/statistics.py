"""Statistical comparison of methods.

On one data set: the corrected resampled t-test, which allows for folds that share training graphs (Nadeau and Bengio,
2003), with Holm's correction. Over several: average ranks, Friedman's test and Nemenyi's critical difference (Demšar,
2006).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, rankdata, studentized_range
from scipy.stats import t as student

from gcaps.data.arrays import Floats


@dataclass(frozen=True)
class PairedTest:
    """The corrected resampled t-test of one method against another, fold by fold."""

    difference: float
    """Mean of first − second over the folds."""
    t: float
    """Infinite where every fold has the same difference and it is not zero."""
    p: float
    """Two-sided, of this comparison alone."""
    holm: float
    """The same, corrected by Holm for all comparisons of its family."""


def corrected_t_test(differences: Sequence[float] | Floats, test_to_train: float) -> tuple[float, float]:
    """t and two-sided p of the corrected resampled t-test (Nadeau and Bengio, 2003, section 4).

    t = d̄ / √((1/n + n_test/n_train) s²), with n − 1 degrees of freedom; s² is the unbiased variance of the differences.
    The plain paired test has 1/n alone: it assumes that folds are independent, although they share training graphs,
    and finds too many differences significant.

    Args:
        differences: [n] of the two methods on the same fold (and seed), n ≥ 2.
        test_to_train: n_test / n_train, 1/(k−1) for k folds.
    """
    d = np.asarray(differences, dtype=np.float64)
    n = len(d)
    if n < 2:
        raise ValueError("a paired test needs two folds or more")
    mean, variance = float(d.mean()), float(d.var(ddof=1))
    # differences that are equal but for rounding have no variance
    if variance <= (1e-12 * max(1.0, abs(mean))) ** 2:
        if abs(mean) <= 1e-12:
            return 0.0, 1.0
        return float(np.copysign(np.inf, mean)), 0.0
    t = mean / np.sqrt((1 / n + test_to_train) * variance)
    return float(t), float(2 * student.sf(abs(t), n - 1))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down correction: with p(1) ≤ … ≤ p(m), p̃(i) = max over j ≤ i of min(1, (m − j + 1) p(j))."""
    order = np.argsort(p, kind="stable")
    ascending = np.asarray(p, dtype=np.float64)[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(ascending), 1.0) if len(p) else ascending
    return [float(value) for value in corrected]


def all_pairs(accuracies: Mapping[str, Mapping[Any, float]], test_to_train: float) -> dict[tuple[str, str], PairedTest]:
    """Every method against every other on one data set, as one family for Holm's correction.

    With all pairs in the family, the corrected p holds for any pair, also for one that was picked because of these
    numbers, such as the best method and the second best.

    Args:
        accuracies: for each method the accuracy by fold, under any key that is the same for all methods; what is
            compared are the folds that both have. Methods that share fewer than two folds are not compared.
        test_to_train: n_test / n_train.

    Returns:
        The test of (a, b) for every a ≠ b; (b, a) is (a, b) with the signs turned.
    """
    found: dict[tuple[str, str], tuple[float, float, float]] = {}
    for a, b in combinations(accuracies, 2):
        shared = [key for key in accuracies[a] if key in accuracies[b]]
        if len(shared) > 1:
            d = np.array([accuracies[a][key] - accuracies[b][key] for key in shared], dtype=np.float64)
            found[a, b] = (float(d.mean()), *corrected_t_test(d, test_to_train))
    tests: dict[tuple[str, str], PairedTest] = {}
    for (a, b), corrected in zip(found, holm([p for _, _, p in found.values()]), strict=True):
        difference, t, p = found[a, b]
        tests[a, b] = PairedTest(difference, t, p, corrected)
        tests[b, a] = PairedTest(-difference, -t, p, corrected)
    return tests


@dataclass(frozen=True)
class Ranks:
    """Average ranks of methods over the data sets on which all of them have a number."""

    methods: list[str]
    """From the best average rank to the worst."""
    data: list[str]
    average: list[float]
    """Rank 1 is the best; methods that are equal share the mean of their ranks."""
    friedman: float
    p: float
    """Of Friedman's test: the probability of ranks at least as uneven if all methods were equally good."""
    critical_difference: float
    """Average ranks that differ by less are not significantly different by Nemenyi's test."""
    cliques: list[tuple[int, int]]
    """Groups (first, last) in the order of ``methods`` without a significant difference, none within another."""
    left_out: list[str]
    """Methods and data sets that were left out because some of their numbers are missing."""


def average_ranks(scores: ArrayLike) -> Floats:
    """[k] mean over the data sets of each method's rank, from scores [data set, method]; larger is better."""
    ranks: Floats = rankdata(-np.asarray(scores, dtype=np.float64), axis=1).mean(axis=0)
    return ranks


def friedman_test(scores: ArrayLike) -> tuple[float, float]:
    """Friedman's χ² with its correction for ties, and p, from scores [n data sets, k methods].

    χ² = [12/(n k (k+1)) Σ R_j² − 3 n (k+1)] / [1 − Σ(t³ − t)/(n (k³ − k))], R_j the sum of ranks of method j and t the
    sizes of the groups that tie on a data set; k − 1 degrees of freedom. Where everything ties, χ² = 0.
    """
    table = np.asarray(scores, dtype=np.float64)
    n, k = table.shape
    ranks = rankdata(-table, axis=1)
    ties = sum(float((counts**3 - counts).sum()) for counts in (np.unique(row, return_counts=True)[1] for row in table))
    spread = 1 - ties / (n * (k**3 - k))
    if spread <= 1e-12:
        return 0.0, 1.0
    statistic = (12 / (n * k * (k + 1)) * float((ranks.sum(axis=0) ** 2).sum()) - 3 * n * (k + 1)) / spread
    statistic = max(statistic, 0.0)
    return statistic, float(chi2.sf(statistic, k - 1))


def critical_difference(methods: int, data_sets: int, alpha: float = 0.05) -> float:
    """Nemenyi's CD = q_α √(k(k+1) / (6n)), q_α the studentized range's quantile at k and ∞ degrees over √2."""
    q = float(studentized_range.ppf(1 - alpha, methods, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * data_sets)))


def cliques(average: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Maximal runs (first, last) of two or more, in ascending averages, whose ends lie within ``difference``."""
    found: list[tuple[int, int]] = []
    for first in range(len(average)):
        last = max(j for j in range(first, len(average)) if average[j] - average[first] <= difference)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def rank_methods(scores: Mapping[str, Mapping[str, float]], alpha: float = 0.05) -> Ranks | None:
    """Ranks from scores[data set][method]; None unless two methods or more share two data sets or more.

    Ranks need a number for each method on each data set: as long as some are missing, the data set or the method with
    the largest share of holes is left out.
    """
    data, methods = list(scores), list(dict.fromkeys(method for row in scores.values() for method in row))
    left_out: list[str] = []
    while data and methods:
        holes = np.array([[method not in scores[name] for method in methods] for name in data])
        if not holes.any():
            break
        by_data, by_method = holes.mean(axis=1), holes.mean(axis=0)
        # drop a method rather than a data set: the test's power grows with data sets
        if by_method.max() >= by_data.max():
            left_out.append(methods.pop(int(by_method.argmax())))
        else:
            left_out.append(data.pop(int(by_data.argmax())))
    if len(data) < 2 or len(methods) < 2:
        return None
    table = np.array([[scores[name][method] for method in methods] for name in data], dtype=np.float64)
    average = average_ranks(table)
    order = np.argsort(average, kind="stable")
    statistic, p = friedman_test(table)
    difference = critical_difference(len(methods), len(data), alpha)
    ascending = [float(average[place]) for place in order]
    return Ranks(
        methods=[methods[place] for place in order],
        data=data,
        average=ascending,
        friedman=statistic,
        p=p,
        critical_difference=difference,
        cliques=cliques(ascending, difference),
        left_out=left_out,
    )
