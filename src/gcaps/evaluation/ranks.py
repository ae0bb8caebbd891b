"""Methods over several data sets: average ranks, Friedman's test and Nemenyi's critical difference (Demšar, 2006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, rankdata, studentized_range

from gcaps.data.arrays import Floats


@dataclass(frozen=True)
class Ranks:
    """How methods stand over data sets on which all of them have a number."""

    methods: list[str]
    """From the best average rank to the worst."""
    data: list[str]
    average: list[float]
    """Rank 1 is the best; methods that are equal share the mean of their ranks."""
    friedman: float
    p: float
    """Of Friedman's test: how likely ranks as uneven as these are if all methods are equally good."""
    critical_difference: float
    """Two methods whose average ranks are closer are not told apart, by Nemenyi's test."""
    cliques: list[tuple[int, int]]
    """Groups (first, last) in the order of ``methods`` that are not told apart, none within another."""
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
        # a method goes rather than a data set: ranks live on data sets
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
