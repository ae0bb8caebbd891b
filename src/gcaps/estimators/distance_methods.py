"""SVMs on kernels exp(−λ d): the Wasserstein Weisfeiler-Lehman kernel and return probabilities."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import product
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from sklearn.base import clone

from gcaps import kernels as graph_kernels
from gcaps.config import ClassWeight
from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.estimators.kernel_svm import PENALTIES, KernelClassifier, KernelEstimator
from gcaps.kernels.base import GraphKernel
from gcaps.kernels.distance import DistanceKernel, median_distance

Distances: TypeAlias = dict[Hashable, Floats]
"""Matrices [n, n] of distances by what they depend on besides the graphs."""


class DistanceEstimator(KernelEstimator):
    """Base class of the SVMs on kernels of a distance.

    Distances between the graphs of a prepared set are computed once, one matrix for all kernels that differ in λ alone.
    Where they depend on the training graphs, they are computed once for each fold. Gram matrices are never kept.
    """

    def prepare(self, prepared: PreparedSet) -> None:
        """Compute the distances that depend on two graphs alone."""
        self._distances(prepared, self._distance_kernels())

    def _distance_kernels(self) -> list[DistanceKernel]:
        found = self.kernels()
        assert all(isinstance(kernel, DistanceKernel) for kernel in found)
        return found

    def _distances(self, prepared: PreparedSet, kernels: Sequence[DistanceKernel]) -> Distances | None:
        """Return the distances over a prepared set, computed once; None if they depend on the training graphs."""
        if not all(kernel.distance_is_pairwise(prepared.graphs) for kernel in kernels):
            return None
        key = ("distances", *dict.fromkeys(kernel.distance_params() for kernel in kernels))
        return prepared.get(key, lambda: _train_distances(kernels, prepared.graphs))

    def _training_grams(
        self, prepared: PreparedSet, kernels: Sequence[GraphKernel], train: Ints
    ) -> Callable[[int], Floats]:
        """Return a function from the number of a kernel to its Gram matrix; it sets the kernel's unit of distance."""
        own: Any = kernels
        whole = self._distances(prepared, own)
        found = _train_distances(own, prepared.graphs.subset(train)) if whole is None else whole

        def training_gram(k: int) -> Floats:
            D = found[own[k].distance_params()]
            D = D if whole is None else D[np.ix_(train, train)]
            if own[k].unit is None:
                own[k].set_params(unit=median_distance(D))
            K: Floats = own[k].similarities(D)
            return K

        return training_gram

    def _fit_chosen(self, graphs: GraphSet) -> GraphKernel:
        fitted: GraphKernel = self.kernel_.fit(graphs)
        return fitted

    def _prepared_gram(self, prepared: PreparedSet, rows: Ints, columns: Ints) -> Floats | None:
        whole = self._distances(prepared, self._distance_kernels())
        if whole is None:
            return None
        kernel = self.kernel_
        assert isinstance(kernel, DistanceKernel)
        return kernel.similarities(whole[kernel.distance_params()][np.ix_(rows, columns)])


def _train_distances(kernels: Sequence[DistanceKernel], graphs: GraphSet) -> Distances:
    """Return the distances [n, n] of graphs for each :meth:`DistanceKernel.distance_params` among kernels."""
    different = {kernel.distance_params(): clone(kernel) for kernel in kernels}
    kind = type(next(iter(different.values())))
    return dict(zip(different, kind.train_distances([*different.values()], graphs), strict=True))


class WassersteinSVC(KernelClassifier, DistanceEstimator):
    """SVM on the Wasserstein Weisfeiler-Lehman kernel exp(−λ D), of node labels or of node attributes.

    λ below 0.1 is left out by default where distances are at most 1, as those of labels are: exp(−λ D) is 1 − λ D up to
    λ²/2 there, and an SVM on 1 − λ D with the penalty C is one on 1 − 0.1 D with the penalty 10 λ C.

    Args:
        n_iter: numbers of refinements h to choose from.
        rates: λ to choose from.
        attributes: compare propagated node attributes instead of labels; exact optimal transport for every pair of
            graphs, anew in every fold, since attributes are standardised over the training graphs.
        C: penalties to choose from.
        inner_folds: folds of the training graphs that choose kernel and C.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the inner folds.
    """

    method: ClassVar[str] = "wwl"

    n_iter: tuple[int, ...]
    rates: tuple[float, ...]
    attributes: bool

    def __init__(
        self,
        *,
        n_iter: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 7),
        rates: tuple[float, ...] = (0.1, 1.0, 10.0),
        attributes: bool = False,
        C: tuple[float, ...] = PENALTIES,
        inner_folds: int = 5,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())

    def kernels(self) -> list[GraphKernel]:
        """Return one kernel for each combination of n_iter and rate."""
        make = graph_kernels.ContinuousWassersteinWL if self.attributes else graph_kernels.WassersteinWL
        return [make(h, rate=rate) for h, rate in product(self.n_iter, self.rates)]


class ReturnProbabilitySVC(KernelClassifier, DistanceEstimator):
    """SVM on RetGK, the kernel of mean embeddings of nodes by return probabilities of random walks.

    Args:
        C: penalties to choose from.
        gamma: widths γ of the kernel of return probabilities to choose from.
        steps: steps of the walks.
        labels: compare node labels where the set has them.
        attributes: compare node attributes, standardised over the training graphs.
        attribute_gamma: widths γ of the kernel of attributes to choose from.
        base: kernel of two nodes.
        exact: compare all pairs of nodes (RetGK_I) instead of random features (RetGK_II).
        n_features: random features.
        inner_folds: folds of the training graphs that choose kernel and C.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the inner folds.
    """

    method: ClassVar[str] = "retgk"

    gamma: tuple[float, ...]
    steps: int
    labels: bool
    attributes: bool
    attribute_gamma: tuple[float, ...]
    base: Literal["gaussian", "laplacian"]
    exact: bool
    n_features: int

    def __init__(
        self,
        *,
        C: tuple[float, ...] = (1.0, 1e1, 1e2, 1e3),
        gamma: tuple[float, ...] = (1.0, 10.0, 100.0),
        steps: int = 50,
        labels: bool = True,
        attributes: bool = False,
        attribute_gamma: tuple[float, ...] = (0.1, 0.3, 1.0),
        base: Literal["gaussian", "laplacian"] = "laplacian",
        exact: bool = False,
        n_features: int = 200,
        inner_folds: int = 5,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())

    def kernels(self) -> list[GraphKernel]:
        """Return one kernel for each γ, and for each γ of the attributes where they are compared."""
        widths = self.attribute_gamma if self.attributes else self.attribute_gamma[:1]
        return [
            graph_kernels.ReturnProbability(
                gamma,
                steps=self.steps,
                labels=self.labels,
                attributes=self.attributes,
                attribute_gamma=width,
                base=self.base,
                exact=self.exact,
                n_features=self.n_features,
            )
            for gamma, width in product(self.gamma, widths)
        ]
