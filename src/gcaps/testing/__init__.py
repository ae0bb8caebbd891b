"""Assertions, checks and test graphs for authors of layers, features, models and estimators on graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.testing.estimator_checks import CHECKS as CHECKS
    from gcaps.testing.estimator_checks import NOT_APPLICABLE as NOT_APPLICABLE
    from gcaps.testing.estimator_checks import CheckResult as CheckResult
    from gcaps.testing.estimator_checks import check_graph_estimator as check_graph_estimator
    from gcaps.testing.graphs import assert_batch_equals_singles as assert_batch_equals_singles
    from gcaps.testing.graphs import assert_permutation_invariant as assert_permutation_invariant
    from gcaps.testing.graphs import example_graphs as example_graphs
    from gcaps.testing.graphs import example_molecules as example_molecules
    from gcaps.testing.graphs import hostile_graphs as hostile_graphs
    from gcaps.testing.graphs import permute_nodes as permute_nodes

_HOMES = {
    **dict.fromkeys(("CHECKS", "NOT_APPLICABLE", "CheckResult", "check_graph_estimator"), "estimator_checks"),
    **dict.fromkeys(
        (
            "assert_batch_equals_singles",
            "assert_permutation_invariant",
            "example_graphs",
            "example_molecules",
            "hostile_graphs",
            "permute_nodes",
        ),
        "graphs",
    ),
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.testing", _HOMES)
