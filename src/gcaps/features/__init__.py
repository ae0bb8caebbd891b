"""Node features computed from structure and labels, fitted on training graphs only."""

from gcaps.features.fgsd import FGSD
from gcaps.features.nodes import NodeFeatures, resolve
from gcaps.features.resistance import component_distances, harmonic_distances

__all__ = ["FGSD", "NodeFeatures", "component_distances", "harmonic_distances", "resolve"]
