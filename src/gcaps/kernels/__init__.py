"""Graph kernels: scikit-learn transformers from graphs to a Gram matrix. Each module loads on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.kernels.base import GraphKernel as GraphKernel
    from gcaps.kernels.deep import DeepGraphKernel as DeepGraphKernel
    from gcaps.kernels.graphlet import Graphlet as Graphlet
    from gcaps.kernels.multiscale import MultiscaleLaplacian as MultiscaleLaplacian
    from gcaps.kernels.random_walk import RandomWalk as RandomWalk
    from gcaps.kernels.return_probability import ReturnProbability as ReturnProbability
    from gcaps.kernels.shortest_path import ShortestPath as ShortestPath
    from gcaps.kernels.tanimoto import Tanimoto as Tanimoto
    from gcaps.kernels.wasserstein import ContinuousWassersteinWL as ContinuousWassersteinWL
    from gcaps.kernels.wasserstein import WassersteinWL as WassersteinWL
    from gcaps.kernels.weisfeiler_lehman import WeisfeilerLehman as WeisfeilerLehman
    from gcaps.kernels.weisfeiler_lehman import WLOptimalAssignment as WLOptimalAssignment

_HOMES = {
    "GraphKernel": "base",
    "ContinuousWassersteinWL": "wasserstein",
    "DeepGraphKernel": "deep",
    "Graphlet": "graphlet",
    "MultiscaleLaplacian": "multiscale",
    "RandomWalk": "random_walk",
    "ReturnProbability": "return_probability",
    "ShortestPath": "shortest_path",
    "Tanimoto": "tanimoto",
    "WassersteinWL": "wasserstein",
    "WLOptimalAssignment": "weisfeiler_lehman",
    "WeisfeilerLehman": "weisfeiler_lehman",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.kernels", _HOMES)
