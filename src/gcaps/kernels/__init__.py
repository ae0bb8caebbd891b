"""Graph kernels: scikit-learn transformers from graphs to a Gram matrix. Each module loads on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.kernels.base import GraphKernel as GraphKernel
    from gcaps.kernels.config import CONFIGS as CONFIGS
    from gcaps.kernels.config import DGKConfig as DGKConfig
    from gcaps.kernels.config import GKConfig as GKConfig
    from gcaps.kernels.config import KernelConfig as KernelConfig
    from gcaps.kernels.config import MLGConfig as MLGConfig
    from gcaps.kernels.config import RWConfig as RWConfig
    from gcaps.kernels.config import SPConfig as SPConfig
    from gcaps.kernels.config import WLConfig as WLConfig
    from gcaps.kernels.config import WLOAConfig as WLOAConfig
    from gcaps.kernels.deep import DeepGraphKernel as DeepGraphKernel
    from gcaps.kernels.graphlet import Graphlet as Graphlet
    from gcaps.kernels.multiscale import MultiscaleLaplacian as MultiscaleLaplacian
    from gcaps.kernels.random_walk import RandomWalk as RandomWalk
    from gcaps.kernels.shortest_path import ShortestPath as ShortestPath
    from gcaps.kernels.weisfeiler_lehman import WeisfeilerLehman as WeisfeilerLehman
    from gcaps.kernels.weisfeiler_lehman import WLOptimalAssignment as WLOptimalAssignment

_HOMES = {
    "GraphKernel": "base",
    "DeepGraphKernel": "deep",
    "Graphlet": "graphlet",
    "MultiscaleLaplacian": "multiscale",
    "RandomWalk": "random_walk",
    "ShortestPath": "shortest_path",
    "WLOptimalAssignment": "weisfeiler_lehman",
    "WeisfeilerLehman": "weisfeiler_lehman",
    **dict.fromkeys(("CONFIGS", "KernelConfig", "DGKConfig", "GKConfig", "MLGConfig"), "config"),
    **dict.fromkeys(("RWConfig", "SPConfig", "WLConfig", "WLOAConfig"), "config"),
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.kernels", _HOMES)
