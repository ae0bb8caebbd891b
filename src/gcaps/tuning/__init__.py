"""Search over the settings of a method with Optuna: trials, their journal on disk, pruning, and several processes.

Trials are scored by a function of settings and the number of an inner fold, which :mod:`gcaps.evaluation.inner` makes
from training graphs.
"""

from __future__ import annotations

from gcaps.tuning.search import Search, Trial, Tuning, require_optuna
from gcaps.tuning.workers import fold_workers

__all__ = ["Search", "Trial", "Tuning", "fold_workers", "require_optuna"]
