"""FGSD node features: the histogram of a node's harmonic distances to all others."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gcaps.data.arrays import Floats
from gcaps.data.graphset import GraphSet
from gcaps.features.resistance import component_distances


class FGSD:
    """Histograms of {S(x, y) : y ≠ x} for every node x (Eq. 9), S the harmonic distance.

    Uniform bins from 0 to the largest distance in the graphs given to :meth:`fit`; beyond it one overflow bin, and one
    bin for the nodes of other components, which S does not reach. Nothing of the graphs given to :meth:`transform`
    moves a bin. The result is bit for bit the same for any order of the nodes.

    Args:
        bins: how many uniform bins.
        scale: ``"log"`` gives log(1 + count), ``"count"`` the counts themselves.

    Attributes:
        range_: the largest distance seen in fit.
    """

    def __init__(self, bins: int = 32, scale: str = "log") -> None:
        self.bins, self.scale = bins, scale

    @property
    def num_features(self) -> int:
        """Columns of :meth:`transform`: the bins, overflow, unreachable."""
        return self.bins + 2

    def fit(self, graphs: GraphSet, y: object = None) -> Self:
        """Take the range of the bins from these graphs, the training graphs."""
        if self.bins < 1 or self.scale not in ("log", "count"):
            raise ValueError(f"bins starts at 1 and scale is log or count; given {self.bins} and {self.scale!r}")
        largest = max((float(block.distance.max()) for block in component_distances(graphs)), default=0.0)
        self.range_ = largest if largest > 0 else 1.0
        return self

    def transform(self, graphs: GraphSet) -> Floats:
        """[N, bins + 2] float32: one row for each node of the set."""
        width = self.range_ / self.bins
        counts = np.zeros((graphs.num_nodes, self.num_features), dtype=np.float32)
        for nodes, distance in component_distances(graphs):
            b, n = nodes.shape
            # the largest distance itself belongs to the last bin, not to the overflow
            column = np.minimum(distance / width, self.bins).astype(np.int64)
            column[distance == self.range_] = self.bins - 1
            row = np.arange(b * n)[:, None] * self.num_features
            found = np.bincount((row + column.reshape(b * n, n)).ravel(), minlength=b * n * self.num_features)
            found = found.reshape(b * n, self.num_features)
            found[:, 0] -= 1  # the node itself, at distance 0
            counts[nodes.ravel()] = found
        counts[:, -1] = np.repeat(graphs.sizes, graphs.sizes) - 1 - counts.sum(axis=1)
        return np.log1p(counts) if self.scale == "log" else counts

    def fit_transform(self, graphs: GraphSet, y: object = None) -> Floats:
        """:meth:`fit`, then :meth:`transform`, on the same graphs."""
        return self.fit(graphs).transform(graphs)

    def state(self) -> dict[str, Any]:
        """What :meth:`from_state` needs, as JSON values."""
        return {"bins": self.bins, "scale": self.scale, "range": self.range_}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The fitted transformer again."""
        made = cls(int(state["bins"]), str(state["scale"]))
        made.range_ = float(state["range"])
        return made
