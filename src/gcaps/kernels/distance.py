"""Base class of kernels exp(−λ d) of a distance d between graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from gcaps.data.arrays import Array, Floats
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.kernels.base import GraphKernel, State


class DistanceKernel(GraphKernel):
    """k(G, H) = exp(−λ d(G, H) / s) with a distance d, a rate λ and a unit of distance s; k(G, G) = 1.

    Attributes:
        unit_: the unit s: ``unit``, or the median distance of two training graphs where ``unit`` is None.
    """

    normalize = False  # the diagonal is 1 as it is
    rate: float
    unit: float | None = 1.0

    def pairwise(self, graphs: GraphSet) -> bool:
        """Return whether neither distances nor their unit depend on the training graphs."""
        return self.unit is not None and self.distance_is_pairwise(graphs)

    def distance_is_pairwise(self, graphs: GraphSet) -> bool:
        """Whether d(G, H) depends on G and H alone."""
        return True

    def distance_params(self) -> Hashable:
        """Return what d depends on besides the graphs: kernels that agree in it differ in λ and s alone."""
        params = {name: value for name, value in self.get_params().items() if name not in ("rate", "unit")}
        return type(self).__name__, repr(sorted(params.items()))

    @classmethod
    def train_distances(cls, kernels: Sequence[Any], graphs: GraphSet) -> list[Floats]:
        """Fit kernels with different :meth:`distance_params` to graphs; return the distances [n, n] of each."""
        return [kernel._fit_points(graphs)._train_distances() for kernel in kernels]

    def similarities(self, D: Floats) -> Floats:
        """Return exp(−λ d / s)."""
        if not self.rate > 0 or (self.unit is not None and not self.unit > 0):
            raise ConfigError(f"rate and unit must be positive, not {self.rate} and {self.unit}")
        found: Floats = np.exp(D * (-self.rate / (self.unit_ if self.unit is None else self.unit)))
        return found

    def state(self) -> State:
        """See :meth:`GraphKernel.state`."""
        arrays, values = super().state()
        return arrays, {**values, "unit": self.unit_}

    def restore(self, arrays: Mapping[str, Array], values: Mapping[str, Any]) -> Self:
        """See :meth:`GraphKernel.restore`."""
        self.unit_ = values["unit"]
        return super().restore(arrays, values)

    def _fit(self, graphs: GraphSet) -> None:
        self._fit_points(graphs)
        self.unit_ = median_distance(self._train_distances()) if self.unit is None else float(self.unit)

    def _fit_points(self, graphs: GraphSet) -> Self:
        """Store what distances to the training graphs need."""
        self._embed(graphs)
        self._scale_ = np.ones(len(graphs))
        return self

    def _train_gram(self) -> Floats:
        return self.similarities(self._train_distances())

    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        return self.similarities(self._cross_distances(graphs)), np.ones(len(graphs))

    @abstractmethod
    def _embed(self, graphs: GraphSet) -> None:
        """Store what distances to the training graphs need."""

    @abstractmethod
    def _train_distances(self) -> Floats:
        """Return the distances between training graphs, [n, n], with zeros on the diagonal."""

    @abstractmethod
    def _cross_distances(self, graphs: GraphSet) -> Floats:
        """Return the distances to the training graphs, [m, n]."""


def median_distance(D: Floats) -> float:
    """Return the median distance of two different graphs, 1 if it is 0 or there are no two graphs."""
    pairs = D[np.triu_indices(len(D), 1)]
    middle = float(np.median(pairs)) if len(pairs) else 0.0
    return middle if middle > 0 else 1.0
