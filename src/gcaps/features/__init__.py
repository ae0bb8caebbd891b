"""Node features from labels, attributes and structure, fitted to training graphs only."""

from gcaps.features.fgsd import FGSD, GraphFGSD
from gcaps.features.nodes import NodeFeatures
from gcaps.features.resistance import component_distances, harmonic_distances
from gcaps.features.structural import NodeMatrix

__all__ = [
    "FGSD",
    "GraphFGSD",
    "NodeFeatures",
    "NodeMatrix",
    "component_distances",
    "harmonic_distances",
]
