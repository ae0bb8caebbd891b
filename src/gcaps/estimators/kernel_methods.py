"""The graph kernels of the paper's tables, each with its SVM and the parameters it chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np

from gcaps import kernels as graph_kernels
from gcaps.config import ClassWeight
from gcaps.data.arrays import Floats
from gcaps.data.graphset import GraphSet
from gcaps.estimators.kernel_svm import PENALTIES, KernelClassifier, KernelEstimator
from gcaps.kernels.base import GraphKernel, inverse_root, scaled


class RandomWalkSVC(KernelClassifier):
    """SVM on the geometric random-walk kernel; a decay too large for a graph is lowered for that graph alone.

    Args:
        decays: decays λ to choose from.
        labels: match node labels where the set has them.
        edge_labels: match edge labels; ``"auto"``: where the set has them.
        tol: relative size of the terms that a series leaves out.
        C: penalties to choose from.
        inner_folds: folds of the training graphs that choose kernel and C.
        normalize: Gram matrices with ones on the diagonal.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the inner folds.
    """

    method: ClassVar[str] = "rw"

    decays: tuple[float, ...]
    labels: bool
    edge_labels: bool | Literal["auto"]
    tol: float
    normalize: bool

    def __init__(
        self,
        *,
        decays: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
        labels: bool = True,
        edge_labels: bool | Literal["auto"] = "auto",
        tol: float = 1e-6,
        C: tuple[float, ...] = PENALTIES,
        inner_folds: int = 5,
        normalize: bool = True,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())

    def kernels(self) -> list[GraphKernel]:
        """Return one kernel for each decay."""
        return [
            graph_kernels.RandomWalk(
                decay,
                labels=self.labels,
                edge_labels=self.edge_labels,
                diverging="damp",
                tol=self.tol,
                normalize=self.normalize,
            )
            for decay in self.decays
        ]

    def grams(self, graphs: GraphSet, kernels: Sequence[GraphKernel]) -> list[Floats | None]:
        """Return the Gram matrices; with labels, all decays are computed in one pass over the walks."""
        by_node = self.labels and graphs.node_labels is not None
        kernel = kernels[0]
        assert isinstance(kernel, graph_kernels.RandomWalk)
        if not by_node and not kernel.compares_edge_labels(graphs):
            return KernelEstimator.grams(self, graphs, kernels)  # also called on the regressor, no subclass
        from gcaps.kernels.random_walk import labelled_grams

        found = labelled_grams(graphs, self.decays, kernel)
        if self.normalize:
            for K in found:
                scale = inverse_root(K.diagonal().copy())
                scaled(K, scale, scale)
        return list(found)


class ShortestPathSVC(KernelClassifier):
    """SVM on the shortest-path kernel.

    Args:
        C: penalties to choose from.
        inner_folds: folds of the training graphs that choose C.
        normalize: Gram matrices with ones on the diagonal.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the inner folds.
    """

    method: ClassVar[str] = "sp"

    normalize: bool

    def __init__(
        self,
        *,
        C: tuple[float, ...] = PENALTIES,
        inner_folds: int = 5,
        normalize: bool = True,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())

    def kernels(self) -> list[GraphKernel]:
        """Return the one kernel."""
        return [graph_kernels.ShortestPath(normalize=self.normalize)]


class GraphletSVC(KernelClassifier):
    """SVM on the graphlet kernel.

    Args:
        sizes: graphlet sizes to choose from.
        samples: graphlets drawn from each graph for sizes 5 and more.
        C: penalties to choose from.
        inner_folds: folds of the training graphs that choose kernel and C.
        normalize: Gram matrices with ones on the diagonal.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the inner folds.
    """

    method: ClassVar[str] = "gk"

    sizes: tuple[int, ...]
    samples: int
    normalize: bool

    def __init__(
        self,
        *,
        sizes: tuple[int, ...] = (3, 4, 5, 7),
        samples: int = 2000,
        C: tuple[float, ...] = PENALTIES,
        inner_folds: int = 5,
        normalize: bool = True,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())

    def kernels(self) -> list[GraphKernel]:
        """Return one kernel for each size."""
        return [graph_kernels.Graphlet(size, samples=self.samples, normalize=self.normalize) for size in self.sizes]


class WeisfeilerLehmanSVC(KernelClassifier):
    """SVM on the Weisfeiler-Lehman subtree kernel.

    Args:
        n_iter: numbers of refinements h to choose from.
        edge_labels: include edge labels in the refinement; ``"auto"``: where the set has them.
        C: penalties to choose from.
        inner_folds: folds of the training graphs that choose kernel and C.
        normalize: Gram matrices with ones on the diagonal.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the inner folds.
    """

    method: ClassVar[str] = "wl"

    n_iter: tuple[int, ...]
    edge_labels: bool | Literal["auto"]
    normalize: bool

    def __init__(
        self,
        *,
        n_iter: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
        edge_labels: bool | Literal["auto"] = "auto",
        C: tuple[float, ...] = PENALTIES,
        inner_folds: int = 5,
        normalize: bool = True,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())

    def kernels(self) -> list[GraphKernel]:
        """Return one kernel for each number of refinements."""
        options: dict[str, Any] = {"edge_labels": self.edge_labels, "normalize": self.normalize}
        return [graph_kernels.WeisfeilerLehman(h, **options) for h in self.n_iter]

    def grams(self, graphs: GraphSet, kernels: Sequence[GraphKernel]) -> list[Floats | None]:
        """Return the Gram matrices for all numbers of refinements, from one pass."""
        kernel = kernels[0]
        assert isinstance(kernel, graph_kernels.WeisfeilerLehman)
        return [*kernel.grams(graphs, self.n_iter)]


class OptimalAssignmentSVC(WeisfeilerLehmanSVC):
    """SVM on the Weisfeiler-Lehman optimal assignment kernel; settings as :class:`WeisfeilerLehmanSVC`."""

    method: ClassVar[str] = "wloa"

    def kernels(self) -> list[GraphKernel]:
        """Return one kernel for each number of refinements."""
        options: dict[str, Any] = {"edge_labels": self.edge_labels, "normalize": self.normalize}
        return [graph_kernels.WLOptimalAssignment(h, **options) for h in self.n_iter]


class DeepGraphKernelSVC(KernelClassifier):
    """SVM on the best of the deep graph kernels: deep graphlets, shortest paths and Weisfeiler-Lehman.

    Args:
        n_iter: numbers of refinements of deep Weisfeiler-Lehman.
        edge_labels: include edge labels in its refinement; ``"auto"``: where the set has them.
        sizes: sizes of deep graphlets.
        dimension: length of a substructure's vector.
        share: weight of the vectors' similarity against identity.
        C: penalties to choose from.
        inner_folds: folds of the training graphs that choose kernel and C.
        normalize: Gram matrices with ones on the diagonal.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the inner folds.
    """

    method: ClassVar[str] = "dgk"

    n_iter: tuple[int, ...]
    edge_labels: bool | Literal["auto"]
    sizes: tuple[int, ...]
    dimension: int
    share: float
    normalize: bool

    def __init__(
        self,
        *,
        n_iter: tuple[int, ...] = (2, 3, 4),
        edge_labels: bool | Literal["auto"] = "auto",
        sizes: tuple[int, ...] = (5,),
        dimension: int = 64,
        share: float = 0.1,
        C: tuple[float, ...] = PENALTIES,
        inner_folds: int = 5,
        normalize: bool = True,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())

    def kernels(self) -> list[GraphKernel]:
        """Return deep graphlets, deep shortest paths and deep Weisfeiler-Lehman."""
        make = graph_kernels.DeepGraphKernel
        options: dict[str, Any] = {"dimension": self.dimension, "share": self.share, "normalize": self.normalize}
        graphlets: list[GraphKernel] = [make("graphlet", size=size, **options) for size in self.sizes]
        subtrees: list[GraphKernel] = [
            make("wl", n_iter=h, edge_labels=self.edge_labels, **options) for h in self.n_iter
        ]
        return [*graphlets, make("sp", **options), *subtrees]


class MultiscaleLaplacianSVC(KernelClassifier):
    """SVM on the multiscale Laplacian graph kernel.

    Args:
        levels: levels to choose from.
        radius: growths of the neighborhoods to choose from.
        eta: η to choose from.
        gamma: γ to choose from.
        rank: dimension P of the shared basis.
        samples: reference nodes of the shared basis.
        C: penalties to choose from.
        inner_folds: folds of the training graphs that choose kernel and C.
        normalize: Gram matrices with ones on the diagonal.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the inner folds.
    """

    method: ClassVar[str] = "mlg"

    levels: tuple[int, ...]
    radius: tuple[int, ...]
    eta: tuple[float, ...]
    gamma: tuple[float, ...]
    rank: int
    samples: int
    normalize: bool

    def __init__(
        self,
        *,
        levels: tuple[int, ...] = (1, 2, 3),
        radius: tuple[int, ...] = (1,),
        eta: tuple[float, ...] = (0.1, 1.0),
        gamma: tuple[float, ...] = (0.01, 0.1),
        rank: int = 10,
        samples: int = 100,
        C: tuple[float, ...] = PENALTIES,
        inner_folds: int = 5,
        normalize: bool = True,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())

    def kernels(self) -> list[GraphKernel]:
        """Return one kernel for each combination."""
        return [
            graph_kernels.MultiscaleLaplacian(
                level,
                radius=radius,
                eta=eta,
                gamma=gamma,
                rank=self.rank,
                samples=self.samples,
                normalize=self.normalize,
            )
            for level, radius, eta, gamma in product(self.levels, self.radius, self.eta, self.gamma)
        ]
