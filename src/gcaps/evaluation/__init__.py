"""Cross-validation and comparison of methods: splits, protocols, plans, executors, results and statistics.

As in :mod:`gcaps`, each name loads what it needs on first use: a process that only watches others needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.evaluation.comparison import Comparison as Comparison
    from gcaps.evaluation.metrics import METRICS as METRICS
    from gcaps.evaluation.metrics import compute_metrics as compute_metrics
    from gcaps.evaluation.metrics import target_metrics as target_metrics
    from gcaps.evaluation.outcome import Cell as Cell
    from gcaps.evaluation.outcome import Outcome as Outcome
    from gcaps.evaluation.plan import Limits as Limits
    from gcaps.evaluation.plan import Plan as Plan
    from gcaps.evaluation.plan import PlannedData as PlannedData
    from gcaps.evaluation.plan import PlannedEntry as PlannedEntry
    from gcaps.evaluation.result import FoldResult as FoldResult
    from gcaps.evaluation.result import Result as Result
    from gcaps.evaluation.result import Summary as Summary
    from gcaps.evaluation.run import compare as compare
    from gcaps.evaluation.run import evaluate as evaluate
    from gcaps.evaluation.splits import Fold as Fold
    from gcaps.evaluation.splits import GraphKFold as GraphKFold
    from gcaps.evaluation.splits import folds_of as folds_of
    from gcaps.evaluation.splits import read_splits as read_splits
    from gcaps.evaluation.splits import stratified_folds as stratified_folds
    from gcaps.evaluation.tuned import TunedClassifier as TunedClassifier
    from gcaps.evaluation.tuned import TunedRegressor as TunedRegressor
    from gcaps.evaluation.tuning_run import tune as tune
    from gcaps.evaluation.tuning_study import TuningStudy as TuningStudy

_HOMES = {
    "Comparison": "comparison",
    **dict.fromkeys(("compare", "evaluate"), "run"),
    **dict.fromkeys(("Cell", "Outcome"), "outcome"),
    **dict.fromkeys(("Limits", "Plan", "PlannedData", "PlannedEntry"), "plan"),
    **dict.fromkeys(("FoldResult", "Result", "Summary"), "result"),
    **dict.fromkeys(("METRICS", "compute_metrics", "target_metrics"), "metrics"),
    **dict.fromkeys(("Fold", "GraphKFold", "folds_of", "read_splits", "stratified_folds"), "splits"),
    **dict.fromkeys(("TunedClassifier", "TunedRegressor"), "tuned"),
    "TuningStudy": "tuning_study",
    "tune": "tuning_run",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.evaluation", _HOMES)
