"""Which graphs hardly any method gets right: hard ones, or labels that are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gcaps.evaluation.result import FoldResult


class Hard(NamedTuple):
    """A graph and how the methods fared with it."""

    graph: int
    label: int
    wrong: float
    """Mean over the methods of the share of its tests in which the method was wrong."""
    methods: int
    """Methods that tested it."""
    missed: list[str]
    """Those that were wrong more often than right."""


def hardest_graphs(folds: Mapping[str, Sequence[FoldResult]]) -> list[Hard]:
    """Graphs by how many methods get them wrong, the hardest first; those that no method misses are left out.

    Args:
        folds: what each method predicted, in any number of folds and seeds.
    """
    tests: dict[int, dict[str, list[bool]]] = {}
    labels: dict[int, int] = {}
    for method, parts in folds.items():
        for fold in parts:
            for graph, label, prediction in zip(fold.test, fold.y, fold.predictions, strict=True):
                tests.setdefault(graph, {}).setdefault(method, []).append(label != prediction)
                labels[graph] = label
    found = []
    for graph, by_method in tests.items():
        shares = np.array([np.mean(wrong) for wrong in by_method.values()], dtype=np.float64)
        missed = [method for method, share in zip(by_method, shares, strict=True) if share > 0.5]
        if missed:
            found.append(Hard(graph, labels[graph], float(shares.mean()), len(by_method), missed))
    return sorted(found, key=lambda hard: (-len(hard.missed) / hard.methods, -hard.wrong, hard.graph))
