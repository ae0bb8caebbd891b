"""Wasserstein Weisfeiler-Lehman kernels (Togninalli et al., 2019), of node labels and of node attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from gcaps.data.arrays import Array, Floats, Ints, pointer, ranges
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import neighbors_of_set
from gcaps.errors import ConfigError
from gcaps.features.structural import AttributeFeatures, Standardized
from gcaps.kernels.base import FeatureKernel, State, SubstructureCounts, count_matrix
from gcaps.kernels.distance import DistanceKernel
from gcaps.kernels.gram import intersections
from gcaps.kernels.transport import wasserstein_distances
from gcaps.kernels.weisfeiler_lehman import color_counts, refine, refinements


class WassersteinWL(DistanceKernel, FeatureKernel):
    """Wasserstein Weisfeiler-Lehman kernel of labelled graphs, k(G, H) = exp(−λ D(G, H)).

    D is the 1-Wasserstein distance between the nodes of G and of H, each node of a graph with equal mass, where two
    nodes are at distance (number of refinements 0..h in which their colors differ) / (h + 1). As the colors form a
    hierarchy, this ground distance is that of leaves of a tree, for which the transport problem has a closed form:

    D(G, H) = 1/(h+1) Σ_{i=0..h} ½ Σ_c |p_i,c(G) − p_i,c(H)| = 1 − 1/(h+1) Σ_i Σ_c min(p_i,c(G), p_i,c(H))

    with the share p_i,c of nodes that have color c after i refinements. No transport problem is solved. A graph without
    nodes is at distance 1 from any that has some.

    Args:
        n_iter: number of refinements h.
        rate: λ.
        labels: start from the node labels; if False, or without labels, from the degrees.
    """

    def __init__(self, n_iter: int = 4, *, rate: float = 1.0, labels: bool = True) -> None:
        self.n_iter, self.rate, self.labels = n_iter, rate, labels

    def count_substructures(self, graphs: GraphSet) -> SubstructureCounts:
        """Return the share of the nodes of each color, for all refinements."""
        colors = color_counts(graphs, refine(graphs, self.n_iter, labels=self.labels))
        return _shares(colors, self.n_iter + 1)

    @classmethod
    def train_distances(cls, kernels: Sequence[Any], graphs: GraphSet) -> list[Floats]:
        """Return the distances for several numbers of refinements, from one pass over the refinements."""
        if len({kernel.labels for kernel in kernels}) > 1:
            return super().train_distances(kernels, graphs)
        heights = [kernel.n_iter for kernel in kernels]
        total: Floats = np.zeros((len(graphs), len(graphs)))
        level, colors, found = total, -1, {}
        for i, color in enumerate(refinements(graphs, max(heights), labels=kernels[0].labels)):
            if (distinct := len(np.unique(color))) > colors:  # else the partition is stable
                counts = _shares(SubstructureCounts(graphs.ptr, color, np.ones(len(color))), 1)
                words, column = np.unique(counts.hashes, return_inverse=True)
                level, colors = intersections(count_matrix(counts, column, len(words))), distinct
            total = total + level
            if i in heights:
                found[i] = _distances(total, i)
                np.fill_diagonal(found[i], 0)
        return [found[height] for height in heights]

    def _embed(self, graphs: GraphSet) -> None:
        FeatureKernel._fit(self, graphs)

    def _train_distances(self) -> Floats:
        D = _distances(intersections(self._train_), self.n_iter)
        np.fill_diagonal(D, 0)
        return D

    def _cross_distances(self, graphs: GraphSet) -> Floats:
        found = self._columns(self.count_substructures(graphs))[:, : len(self.vocabulary_)]
        return _distances(intersections(found, self._train_), self.n_iter)


class ContinuousWassersteinWL(DistanceKernel):
    """Wasserstein Weisfeiler-Lehman kernel of graphs with node attributes, k(G, H) = exp(−λ D(G, H)).

    The attributes a_v, standardised over the training graphs, are propagated h times along the edges:

    a_v ← ½ (a_v + 1/deg(v) Σ_u w_uv a_u)

    Without attributes, a_v is the degree. deg(v) is the sum of the weights w_uv; without edges, the sum is 0. A node's
    vector is all of them side by side, and D is the 1-Wasserstein distance between the vectors of two graphs with
    Euclidean ground distance, each node of a graph with equal mass. The transport problems are solved exactly
    (:mod:`gcaps.kernels.transport`).

    The kernel is not positive semi-definite in general. The SVM is fitted to the matrix as it is: like LIBSVM, the
    solver takes a positive number for a negative curvature and stops at a stationary point.

    Args:
        n_iter: number of propagations h.
        rate: λ.
        n_jobs: number of threads.
        verbose: show a progress bar.
    """

    def __init__(self, n_iter: int = 2, *, rate: float = 1.0, n_jobs: int | None = 2, verbose: bool = False) -> None:
        self.n_iter, self.rate, self.n_jobs, self.verbose = n_iter, rate, n_jobs, verbose

    attributes_: Standardized

    def distance_is_pairwise(self, graphs: GraphSet) -> bool:
        """Return False: attributes are standardised over the training graphs."""
        return False

    def vectors(self, graphs: GraphSet) -> Floats:
        """Return the vector of every node, [N, (h+1) · attributes]."""
        values = self.attributes_.transform(graphs).astype(np.float64)
        weight = np.ones(len(graphs.col)) if graphs.edge_weight is None else graphs.edge_weight
        P = csr_array((weight, neighbors_of_set(graphs), graphs.rowptr), shape=(len(values), len(values)))
        degree = P.sum(axis=1)
        share = np.divide(1.0, degree, out=np.zeros(len(values)), where=degree > 0)
        found = [values]
        for _ in range(self.n_iter):
            found.append(0.5 * (found[-1] + share[:, None] * (P @ found[-1])))
        return np.concatenate(found, axis=1)

    def state(self) -> State:
        """Return the nodes' vectors of the training graphs, and how attributes are standardised."""
        arrays, values = super().state()
        own = {"attributes": self.attributes_.state(), "degrees": isinstance(self.attributes_, _Degrees)}
        return {**arrays, "points": self._points_, "ptr": self._ptr_}, {**values, **own}

    def restore(self, arrays: Mapping[str, Array], values: Mapping[str, Any]) -> Self:
        """See :meth:`GraphKernel.restore`."""
        self._points_, self._ptr_ = arrays["points"], arrays["ptr"]
        kind = _Degrees if values["degrees"] else AttributeFeatures
        self.attributes_ = kind.from_state(values["attributes"])
        return super().restore(arrays, values)

    def _embed(self, graphs: GraphSet) -> None:
        if not 0 <= self.n_iter <= 100:
            raise ConfigError(f"n_iter must be from 0 to 100, not {self.n_iter}")
        self.attributes_ = (_Degrees if graphs.x is None else AttributeFeatures)().fit(graphs)
        self._points_, self._ptr_ = self.vectors(graphs), graphs.ptr

    def _train_distances(self) -> Floats:
        return wasserstein_distances(self._points_, self._ptr_, n_jobs=self.n_jobs, verbose=self.verbose)

    def _cross_distances(self, graphs: GraphSet) -> Floats:
        return wasserstein_distances(
            self.vectors(graphs), graphs.ptr, self._points_, self._ptr_, self.n_jobs, self.verbose
        )

    def _restrict(self, positions: Ints) -> None:
        super()._restrict(positions)
        sizes = np.diff(self._ptr_)[positions]
        self._points_, self._ptr_ = self._points_[ranges(self._ptr_[positions], sizes)], pointer(sizes)


class _Degrees(Standardized):
    """The degree as an attribute, for graphs without attributes."""

    what: ClassVar[str] = "degrees"

    @staticmethod
    def values(graphs: GraphSet) -> Array:
        """[N, 1]"""
        return graphs.degrees[:, None]


def _shares(colors: SubstructureCounts, levels: int) -> SubstructureCounts:
    """Divide counts by the number of nodes; a graph without nodes has a color of its own, once for each level."""
    sizes = np.diff(colors.ptr) // levels
    share = np.repeat(1.0 / np.maximum(sizes, 1), sizes * levels)
    empty = np.flatnonzero(sizes == 0)
    lengths = np.diff(colors.ptr)
    lengths[empty] = 1
    place = colors.ptr[empty]
    hashes = np.insert(colors.hashes, place, np.uint64(0))
    return SubstructureCounts(pointer(lengths), hashes, np.insert(share, place, float(levels)))


def _distances(total: Floats, height: int) -> Floats:
    found: Floats = np.maximum(1.0 - total / (height + 1), 0.0)
    return found
