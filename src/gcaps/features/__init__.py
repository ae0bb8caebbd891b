"""Features of nodes, edges and graphs, fitted to training graphs only. Each module loads on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.features.return_probabilities import return_probabilities
from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.features.edges import EdgeFeatures as EdgeFeatures
    from gcaps.features.edges import EdgeMatrix as EdgeMatrix
    from gcaps.features.fgsd import FGSD as FGSD
    from gcaps.features.fgsd import GraphFGSD as GraphFGSD
    from gcaps.features.graph_features import GraphFeatures as GraphFeatures
    from gcaps.features.nodes import NodeFeatures as NodeFeatures
    from gcaps.features.resistance import component_distances as component_distances
    from gcaps.features.resistance import harmonic_distances as harmonic_distances
    from gcaps.features.structural import NodeMatrix as NodeMatrix
    from gcaps.features.structural import Unseen as Unseen
    from gcaps.features.topological_profile import LocalTopologicalProfile as LocalTopologicalProfile

_HOMES = {
    "EdgeFeatures": "edges",
    "EdgeMatrix": "edges",
    "FGSD": "fgsd",
    "GraphFGSD": "fgsd",
    "GraphFeatures": "graph_features",
    "LocalTopologicalProfile": "topological_profile",
    "NodeFeatures": "nodes",
    "NodeMatrix": "structural",
    "Unseen": "structural",
    "component_distances": "resistance",
    "harmonic_distances": "resistance",
}

__all__ = [*_HOMES, "return_probabilities"]

__getattr__, __dir__ = lazy_names("gcaps.features", _HOMES)
