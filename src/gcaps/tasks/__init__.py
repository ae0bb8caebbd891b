"""Graph capsules beyond whole graphs: classes of nodes, links, sequences of graphs and generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.tasks.generation import CapsuleGraphGenerator as CapsuleGraphGenerator
    from gcaps.tasks.graph import NodeGraph as NodeGraph
    from gcaps.tasks.link_scores import LINK_SCORES as LINK_SCORES
    from gcaps.tasks.link_split import LinkSplit as LinkSplit
    from gcaps.tasks.link_split import Pairs as Pairs
    from gcaps.tasks.link_split import split_links as split_links
    from gcaps.tasks.links import CapsuleLinkPredictor as CapsuleLinkPredictor
    from gcaps.tasks.nodes import CapsuleNodeClassifier as CapsuleNodeClassifier
    from gcaps.tasks.sequences import CapsuleForecaster as CapsuleForecaster

_HOMES = {
    "CapsuleForecaster": "sequences",
    "CapsuleGraphGenerator": "generation",
    "CapsuleLinkPredictor": "links",
    "CapsuleNodeClassifier": "nodes",
    "LINK_SCORES": "link_scores",
    "LinkSplit": "link_split",
    "NodeGraph": "graph",
    "Pairs": "link_split",
    "split_links": "link_split",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.tasks", _HOMES)
