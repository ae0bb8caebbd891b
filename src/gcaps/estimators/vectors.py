"""Vectors of graphs from fitted estimators, and nearest neighbors among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.estimators.base import GraphEstimator
from gcaps.estimators.kernel_svm import KernelEstimator

SMALLEST = 1e-10
"""Eigenvalues below this share of the largest are treated as zero."""
VALUES = 1 << 24
"""Most distances that are computed at a time."""
Distance = Literal["euclidean", "cosine"]


class GraphVectors:
    """Computes the vectors of graphs.

    - Networks and SVMs on random capsules: the vector before the fully connected layers (readout).
    - Trees: the histogram, fingerprint or descriptors that they are fitted to.
    - Kernels: Nyström features on the support graphs S of the SVM, φ(G) = Λ^(−1/2) Vᵀ k(S, G) with
      k(S, S) = V Λ Vᵀ. Their inner products are the kernel's values where G or H is a support graph, and the best
      approximation by S elsewhere; columns are ordered by their eigenvalue.

    Args:
        estimator: fitted.

    Raises:
        ConfigError: the method has no vectors.
    """

    def __init__(self, estimator: GraphEstimator) -> None:
        if not hasattr(estimator, "transform"):
            kind = type(estimator).__name__
            raise ConfigError(
                f"{kind} has no vectors of graphs: it averages the predictions of several methods; train one of them, "
                "such as gcaps train --method gcaps"
            )
        self._estimator: Any = estimator
        self._features: Floats | None = None
        if isinstance(estimator, KernelEstimator):
            self._features = nystrom_features(estimator._fitted_kernel().training_gram())

    @property
    def describes(self) -> str:
        """Description of the vectors."""
        if self._features is not None:
            support, kept = self._features.shape
            return f"Nyström features of {type(self._estimator.kernel_).__name__}, {kept} on {support} support graphs"
        return f"vectors of {self._estimator.describes}"

    def __call__(self, graphs: GraphSet) -> Floats:
        """Return the vectors [G, d] of graphs."""
        found: Floats = np.asarray(self._estimator.transform(graphs))
        return found if self._features is None else found @ self._features


def nystrom_features(gram: Floats) -> Floats:
    """Return V Λ^(−1/2) [n, d] of a Gram matrix V Λ Vᵀ [n, n], the largest eigenvalues first, zero ones left out."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > SMALLEST * max(float(values[0]), np.finfo(float).tiny) if len(values) else values > 0
    vectors = vectors[:, kept]
    signs = np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    found: Floats = vectors * signs / np.sqrt(values[kept])
    return found


class Nearest(NamedTuple):
    """The nearest neighbors of some vectors."""

    first: int
    """Position of the first of them."""
    places: Ints
    """[n, k] positions of their neighbors, the nearest first."""
    distances: Floats
    """[n, k]"""


def nearest(
    vectors: Floats, others: Floats, k: int, distance: Distance = "euclidean", *, same: bool = False
) -> Iterator[Nearest]:
    """Yield the nearest neighbors of vectors, in pieces; equal distances are in the order of the positions.

    Args:
        vectors: [n, d]
        others: [m, d] the neighbors to choose from.
        k: number of neighbors of each, at most as many as there are.
        distance: euclidean; or cosine, 1 − cos of the angle, 1 for the zero vector.
        same: ``others`` are ``vectors``; none is its own neighbor.
    """
    k = min(k, len(others) - same)
    if k < 1:
        raise ConfigError("there are too few graphs for neighbors")
    rows = max(1, VALUES // len(others))
    base: Any = _unit(others) if distance == "cosine" else np.asarray(others, np.float64)
    norms = np.einsum("ij,ij->i", base, base)
    for first in range(0, len(vectors), rows):
        part = np.asarray(vectors[first : first + rows], np.float64)
        if distance == "cosine":
            gaps: Any = 1 - _unit(part) @ base.T
        else:
            squared = norms[None] + np.einsum("ij,ij->i", part, part)[:, None] - 2 * part @ base.T
            gaps = np.sqrt(np.maximum(squared, 0))
        if same:
            gaps[np.arange(len(part)), np.arange(first, first + len(part))] = np.inf
        if distance == "euclidean":  # cancellation: compute those of the candidates again
            places = np.argpartition(gaps, min(k + 8, gaps.shape[1] - 1), axis=1)[:, : k + 8]
            places = np.sort(places, axis=1)
            exact = np.sqrt(((part[:, None] - base[places]) ** 2).sum(axis=2))
            exact[np.isinf(np.take_along_axis(gaps, places, axis=1))] = np.inf
            order = np.argsort(exact, axis=1, kind="stable")[:, :k]
            yield Nearest(first, np.take_along_axis(places, order, 1), np.take_along_axis(exact, order, 1))
        else:
            gaps = np.maximum(gaps, 0).round(12)
            order = np.argsort(gaps, axis=1, kind="stable")[:, :k]
            yield Nearest(first, order, np.take_along_axis(gaps, order, axis=1))


def _unit(vectors: Floats) -> Any:
    """Scale vectors to length 1, except zero vectors."""
    found = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return found / np.where(lengths > 0, lengths, 1.0)
