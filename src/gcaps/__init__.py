"""Graph classification with graph capsules (GCAPS-CNN).

The public names; importing this package is cheap, each name loads what it needs on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names
from gcaps.version import __version__

if TYPE_CHECKING:
    from gcaps.config import Config as Config
    from gcaps.data.catalog import load as load
    from gcaps.data.graphset import GraphSet as GraphSet
    from gcaps.estimators import GraphCapsuleClassifier as GraphCapsuleClassifier
    from gcaps.estimators import GraphCapsuleRegressor as GraphCapsuleRegressor
    from gcaps.estimators import GraphEnsemble as GraphEnsemble
    from gcaps.estimators import KernelSVC as KernelSVC
    from gcaps.estimators import KernelSVR as KernelSVR
    from gcaps.estimators import RandomCapsuleSVC as RandomCapsuleSVC
    from gcaps.evaluation import Comparison as Comparison
    from gcaps.evaluation import Result as Result
    from gcaps.evaluation import TunedClassifier as TunedClassifier
    from gcaps.evaluation import TunedRegressor as TunedRegressor
    from gcaps.evaluation import compare as compare
    from gcaps.evaluation import evaluate as evaluate
    from gcaps.evaluation import tune as tune
    from gcaps.exporting import export as export
    from gcaps.persistence import load_model as load_model

_HOMES = {
    "Comparison": "evaluation",
    "Config": "config",
    **dict.fromkeys(
        (
            "GraphCapsuleClassifier",
            "GraphCapsuleRegressor",
            "GraphEnsemble",
            "KernelSVC",
            "KernelSVR",
            "RandomCapsuleSVC",
        ),
        "estimators",
    ),
    "GraphSet": "data.graphset",
    **dict.fromkeys(("Result", "TunedClassifier", "TunedRegressor", "compare", "evaluate", "tune"), "evaluation"),
    "export": "exporting",
    "load": "data.catalog",
    "load_model": "persistence",
    **dict.fromkeys(
        ("data", "features", "batching", "nn", "models", "kernels", "training", "estimators", "evaluation", "report"),
        "",
    ),
    **dict.fromkeys(("explain", "exporting", "pyg", "tasks", "testing", "theory", "tuning"), ""),
}

__all__ = [*_HOMES, "__version__"]

__getattr__, __dir__ = lazy_names("gcaps", _HOMES)
