"""How good a method is, honestly: folds, protocols, the runner and its result, comparisons of many methods.

As in :mod:`gcaps`, each name loads what it needs on first use: a process that only watches others needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.evaluation.cells import Cell as Cell
    from gcaps.evaluation.cells import Outcome as Outcome
    from gcaps.evaluation.comparing import compare as compare
    from gcaps.evaluation.comparison import Comparison as Comparison
    from gcaps.evaluation.folds import Fold as Fold
    from gcaps.evaluation.folds import read_splits as read_splits
    from gcaps.evaluation.folds import stratified_folds as stratified_folds
    from gcaps.evaluation.methods import METHODS as METHODS
    from gcaps.evaluation.plan import Plan as Plan
    from gcaps.evaluation.result import FoldResult as FoldResult
    from gcaps.evaluation.result import Result as Result
    from gcaps.evaluation.result import Summary as Summary
    from gcaps.evaluation.runner import evaluate as evaluate

_HOMES = {
    "METHODS": "methods",
    "Cell": "cells",
    "Comparison": "comparison",
    "Fold": "folds",
    "FoldResult": "result",
    "Outcome": "cells",
    "Plan": "plan",
    "Result": "result",
    "Summary": "result",
    "compare": "comparing",
    "evaluate": "runner",
    "read_splits": "folds",
    "stratified_folds": "folds",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.evaluation", _HOMES)
