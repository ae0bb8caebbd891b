"""Graph classification with graph capsules (GCAPS-CNN).

The public names; importing this package is cheap, each name loads what it needs on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gcaps.version import __version__

if TYPE_CHECKING:
    from gcaps.config import Config as Config
    from gcaps.data.catalog import load as load
    from gcaps.data.graphset import GraphSet as GraphSet
    from gcaps.estimator import GraphCapsuleClassifier as GraphCapsuleClassifier
    from gcaps.estimator import load_model as load_model
    from gcaps.evaluation import Comparison as Comparison
    from gcaps.evaluation import Result as Result
    from gcaps.evaluation import compare as compare
    from gcaps.evaluation import evaluate as evaluate

_HOMES = {
    "Comparison": "gcaps.evaluation",
    "Config": "gcaps.config",
    "GraphCapsuleClassifier": "gcaps.estimator",
    "GraphSet": "gcaps.data.graphset",
    "Result": "gcaps.evaluation",
    "compare": "gcaps.evaluation",
    "evaluate": "gcaps.evaluation",
    "load": "gcaps.data.catalog",
    "load_model": "gcaps.estimator",
}
_PACKAGES = (
    *("data", "features", "batching", "nn", "models", "kernels", "training", "evaluation", "report"),
    *("pyg", "testing", "theory"),
)

__all__ = [*_HOMES, *_PACKAGES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"gcaps.{name}")
    raise AttributeError(f"module 'gcaps' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
