"""Which kernels an SVM chooses from on the training folds: one frozen, validated grid a method."""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar

from pydantic import Field

from gcaps.config import Section
from gcaps.data.arrays import Floats
from gcaps.data.graphset import GraphSet
from gcaps.kernels.base import GraphKernel, inverse_root, scaled
from gcaps.kernels.deep import DeepGraphKernel
from gcaps.kernels.graphlet import Graphlet
from gcaps.kernels.multiscale import MultiscaleLaplacian
from gcaps.kernels.random_walk import RandomWalk, labelled_grams
from gcaps.kernels.shortest_path import ShortestPath
from gcaps.kernels.weisfeiler_lehman import WeisfeilerLehman, WLOptimalAssignment


class KernelConfig(Section):
    """What all kernel methods share; the subclasses add the grid of the kernel's own parameters."""

    selection: ClassVar[str] = "inner"

    C: tuple[float, ...] = Field(
        (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3), min_length=1, description="the SVM's penalties to choose from"
    )
    inner_folds: int = Field(5, ge=2, description="folds of the training graphs that choose kernel and C")
    normalize: bool = Field(True, description="Gram matrices with ones on the diagonal")

    def kernels(self, graphs: GraphSet) -> list[GraphKernel]:
        """The kernels to choose from on this set, the simplest first: ties go to the first."""
        raise NotImplementedError

    def grams(self, graphs: GraphSet) -> list[Floats | None]:
        """For each kernel its Gram matrix over the whole set, None for one that must be fitted on training graphs."""
        return [k.fit_transform(graphs) if k.pairwise(graphs) else None for k in self.kernels(graphs)]


class RWConfig(KernelConfig):
    """Random walks. A decay too large for a graph is lowered for that graph alone."""

    method: ClassVar[str] = "rw"

    decays: tuple[float, ...] = Field(
        (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1), min_length=1, description="decays λ to choose from"
    )
    labels: bool = Field(True, description="match node labels where the set has them")
    tol: float = Field(1e-6, gt=0, lt=1, description="relative size of what is left out of a series")

    def kernels(self, graphs: GraphSet) -> list[GraphKernel]:
        """One for each decay."""
        return [self._kernel(decay) for decay in self.decays]

    def grams(self, graphs: GraphSet) -> list[Floats | None]:
        """With labels, all decays in one pass over the walks."""
        if not self.labels or graphs.node_labels is None:
            return super().grams(graphs)
        found = labelled_grams(graphs, self.decays, self._kernel(self.decays[0]))
        if self.normalize:
            for K in found:
                scale = inverse_root(K.diagonal().copy())
                scaled(K, scale, scale)
        return list(found)

    def _kernel(self, decay: float) -> RandomWalk:
        return RandomWalk(decay, labels=self.labels, diverging="damp", tol=self.tol, normalize=self.normalize)


class SPConfig(KernelConfig):
    """Shortest paths."""

    method: ClassVar[str] = "sp"

    def kernels(self, graphs: GraphSet) -> list[GraphKernel]:
        """The one kernel."""
        return [ShortestPath(normalize=self.normalize)]


class GKConfig(KernelConfig):
    """Graphlets."""

    method: ClassVar[str] = "gk"

    sizes: tuple[int, ...] = Field((3, 4, 5, 7), min_length=1, description="sizes of graphlets to choose from")
    samples: int = Field(2000, ge=1, description="graphlets drawn from each graph for sizes 5 and more")

    def kernels(self, graphs: GraphSet) -> list[GraphKernel]:
        """One for each size."""
        return [Graphlet(size, samples=self.samples, normalize=self.normalize) for size in self.sizes]


class WLConfig(KernelConfig):
    """Weisfeiler-Lehman subtrees."""

    method: ClassVar[str] = "wl"

    heights: tuple[int, ...] = Field((0, 1, 2, 3, 4, 5), min_length=1, description="refinements h to choose from")

    def kernels(self, graphs: GraphSet) -> list[GraphKernel]:
        """One for each height."""
        return [WeisfeilerLehman(h, normalize=self.normalize) for h in self.heights]


class WLOAConfig(WLConfig):
    """Weisfeiler-Lehman optimal assignment."""

    method: ClassVar[str] = "wloa"

    def kernels(self, graphs: GraphSet) -> list[GraphKernel]:
        """One for each height."""
        return [WLOptimalAssignment(h, normalize=self.normalize) for h in self.heights]


class DGKConfig(KernelConfig):
    """Deep graph kernels: the best of deep graphlets, deep shortest paths and deep Weisfeiler-Lehman."""

    method: ClassVar[str] = "dgk"

    heights: tuple[int, ...] = Field((2, 3, 4), description="refinements of deep Weisfeiler-Lehman")
    sizes: tuple[int, ...] = Field((5,), description="sizes of deep graphlets")
    dimension: int = Field(64, ge=1, description="length of a substructure's vector")
    share: float = Field(0.1, ge=0, le=1, description="weight of the vectors' similarity against identity")

    def kernels(self, graphs: GraphSet) -> list[GraphKernel]:
        """Deep graphlets, deep shortest paths, deep Weisfeiler-Lehman."""
        options: dict[str, Any] = {"dimension": self.dimension, "share": self.share, "normalize": self.normalize}
        graphlets: list[GraphKernel] = [DeepGraphKernel("graphlet", size=size, **options) for size in self.sizes]
        subtrees: list[GraphKernel] = [DeepGraphKernel("wl", n_iter=h, **options) for h in self.heights]
        return [*graphlets, DeepGraphKernel("sp", **options), *subtrees]


class MLGConfig(KernelConfig):
    """Multiscale Laplacians."""

    method: ClassVar[str] = "mlg"

    levels: tuple[int, ...] = Field((1, 2, 3), min_length=1, description="levels to choose from")
    radius: tuple[int, ...] = Field((1,), min_length=1, description="growths of the neighborhoods to choose from")
    eta: tuple[float, ...] = Field((0.1, 1.0), min_length=1, description="η to choose from")
    gamma: tuple[float, ...] = Field((0.01, 0.1), min_length=1, description="γ to choose from")
    rank: int = Field(10, ge=1, description="dimension P of the shared basis")
    samples: int = Field(100, ge=1, description="reference nodes of the shared basis")

    def kernels(self, graphs: GraphSet) -> list[GraphKernel]:
        """One for each combination."""
        return [
            MultiscaleLaplacian(level, radius=radius, eta=eta, gamma=gamma, rank=self.rank, samples=self.samples)
            for level, radius, eta, gamma in product(self.levels, self.radius, self.eta, self.gamma)
        ]


CONFIGS: dict[str, type[KernelConfig]] = {
    kind.method: kind for kind in (RWConfig, SPConfig, GKConfig, WLConfig, WLOAConfig, DGKConfig, MLGConfig)
}
"""The configuration of every kernel method, by the method's name."""
