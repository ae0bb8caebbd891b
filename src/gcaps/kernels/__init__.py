"""Graph kernels: scikit-learn transformers from graphs to a Gram matrix."""

from gcaps.kernels.config import (
    CONFIGS,
    DGKConfig,
    GKConfig,
    KernelConfig,
    MLGConfig,
    RWConfig,
    SPConfig,
    WLConfig,
    WLOAConfig,
)
from gcaps.kernels.deep import DeepGraphKernel
from gcaps.kernels.graphlet import Graphlet
from gcaps.kernels.multiscale import MultiscaleLaplacian
from gcaps.kernels.optimal_assignment import WLOptimalAssignment
from gcaps.kernels.random_walk import RandomWalk
from gcaps.kernels.shortest_path import ShortestPath
from gcaps.kernels.weisfeiler_lehman import WeisfeilerLehman

__all__ = [
    "CONFIGS",
    "DGKConfig",
    "DeepGraphKernel",
    "GKConfig",
    "Graphlet",
    "KernelConfig",
    "MLGConfig",
    "MultiscaleLaplacian",
    "RWConfig",
    "RandomWalk",
    "SPConfig",
    "ShortestPath",
    "WLConfig",
    "WLOAConfig",
    "WLOptimalAssignment",
    "WeisfeilerLehman",
]
