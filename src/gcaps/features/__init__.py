"""Features of nodes, edges and graphs, fitted to training graphs only."""

from gcaps.features.edges import EdgeFeatures, EdgeMatrix
from gcaps.features.fgsd import FGSD, GraphFGSD
from gcaps.features.graph_features import GraphFeatures
from gcaps.features.nodes import NodeFeatures
from gcaps.features.resistance import component_distances, harmonic_distances
from gcaps.features.return_probabilities import return_probabilities
from gcaps.features.structural import NodeMatrix, Unseen
from gcaps.features.topological_profile import LocalTopologicalProfile

__all__ = [
    "FGSD",
    "EdgeFeatures",
    "EdgeMatrix",
    "GraphFGSD",
    "GraphFeatures",
    "LocalTopologicalProfile",
    "NodeFeatures",
    "NodeMatrix",
    "Unseen",
    "component_distances",
    "harmonic_distances",
    "return_probabilities",
]
