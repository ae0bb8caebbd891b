"""Assertions that any function of graphs should pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.testing.graphs import permute_nodes

OfGraphs = Callable[[GraphSet], Array]
"""A function from G graphs to an array [G, …]."""


def assert_permutation_invariant(
    function: OfGraphs, graphs: GraphSet, *, atol: float, rtol: float = 0.0, permutations: int = 2
) -> float:
    """``function`` gives every graph the same value under any order of its nodes; returns the largest deviation."""
    expected = function(graphs)
    worst = 0.0
    for seed in range(permutations):
        moved, _ = permute_nodes(graphs, seed)
        worst = max(worst, _require_close(function(moved), expected, atol, rtol, "another node order changes"))
    return worst


def assert_batch_equals_singles(function: OfGraphs, graphs: GraphSet, *, atol: float, rtol: float = 0.0) -> float:
    """``function`` gives every graph the same value alone and among others; returns the largest deviation."""
    together = function(graphs)
    alone = np.concatenate([function(graphs.subset([number])) for number in range(len(graphs))])
    return _require_close(alone, together, atol, rtol, "being alone changes")


def _require_close(found: Array, expected: Array, atol: float, rtol: float, what: str) -> float:
    if found.shape != expected.shape:
        raise AssertionError(f"{what} the shape: {found.shape} in the place of {expected.shape}")
    if not np.isfinite(expected).all() or not np.isfinite(found).all():
        raise AssertionError("not every value is finite")
    deviation = np.abs(found - expected)
    excess = (deviation - atol - rtol * np.abs(expected)).reshape(len(expected), -1).max(axis=1, initial=-np.inf)
    if (excess > 0).any():
        worst = int(excess.argmax())
        raise AssertionError(
            f"{what} {int((excess > 0).sum())} of {len(expected)} graphs, most of all graph {worst}, by "
            f"{deviation[worst].max():.3g}"
        )
    return float(deviation.max(initial=0.0))
