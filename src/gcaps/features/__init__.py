"""Node features computed from structure and labels, fitted on training graphs only."""

from gcaps.features.fgsd import FGSD, GraphFGSD
from gcaps.features.matrix import NodeMatrix
from gcaps.features.nodes import NodeFeatures, resolve
from gcaps.features.resistance import component_distances, harmonic_distances

__all__ = [
    "FGSD",
    "GraphFGSD",
    "NodeFeatures",
    "NodeMatrix",
    "component_distances",
    "harmonic_distances",
    "resolve",
]
