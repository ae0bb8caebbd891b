"""Is one method better than another on these folds? Tests that know that folds share their training graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
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
    The plain paired test has 1/n alone: it takes folds for independent, which they are not as they share training
    graphs, and calls too much significant.

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

    With all pairs in the family, the corrected p may be read for any pair, also one that was picked because of these
    very numbers, such as the best method and the next.

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
