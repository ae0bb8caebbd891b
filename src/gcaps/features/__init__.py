"""Node features from labels, attributes and structure, fitted to training graphs only."""

from gcaps.features.edges import EdgeFeatures, EdgeMatrix
from gcaps.features.fgsd import FGSD, GraphFGSD
from gcaps.features.nodes import NodeFeatures
from gcaps.features.resistance import component_distances, harmonic_distances
from gcaps.features.structural import NodeMatrix, Unseen

__all__ = [
    "FGSD",
    "EdgeFeatures",
    "EdgeMatrix",
    "GraphFGSD",
    "NodeFeatures",
    "NodeMatrix",
    "Unseen",
    "component_distances",
    "harmonic_distances",
]
