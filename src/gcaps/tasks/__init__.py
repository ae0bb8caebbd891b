"""Graph capsules beyond whole graphs: classes of nodes, links, sequences of graphs and generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.tasks.generation import CapsuleGraphGenerator as CapsuleGraphGenerator
    from gcaps.tasks.sequences import CapsuleForecaster as CapsuleForecaster
    from gcaps.tasks.nodes import CapsuleNodeClassifier as CapsuleNodeClassifier

_HOMES = {
    "CapsuleForecaster": "sequences",
    "CapsuleGraphGenerator": "generation",
    "CapsuleNodeClassifier": "nodes",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.tasks", _HOMES)
