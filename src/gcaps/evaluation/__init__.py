"""How good a method is, honestly: folds, protocols, the runner and its result."""

from gcaps.evaluation.folds import Fold, read_splits, stratified_folds
from gcaps.evaluation.methods import METHODS
from gcaps.evaluation.result import FoldResult, Result, Summary
from gcaps.evaluation.runner import evaluate

__all__ = ["METHODS", "Fold", "FoldResult", "Result", "Summary", "evaluate", "read_splits", "stratified_folds"]
