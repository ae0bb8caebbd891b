"""FGSD features: histograms of harmonic distances, of each node or of each graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from gcaps.data.arrays import Floats
from gcaps.data.catalog import cache_folder
from gcaps.data.graphset import GraphSet
from gcaps.features.cache import ArrayCache

if TYPE_CHECKING:
    from gcaps.features.binning import Bins
    from gcaps.features.histograms import Distances, Rows

_WORTHWHILE = 4 * 10**9
"""Pairs of nodes from which on ``cache="auto"`` writes to disk: less is computed again as fast as it is read."""


_REACH = ("method", "memory", "partners", "projections", "seed")


class _Histograms(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """What histograms of nodes and of graphs have in common: how bins are fitted."""

    bins: int
    spacing: str
    soft: bool
    f: Any
    method: str
    memory: int
    partners: int
    projections: int
    seed: int
    jobs: int | None
    verbose: bool

    def fit(self, graphs: GraphSet, y: object = None) -> Self:
        """Take the bins from these graphs, the training graphs."""
        if self.bins < 1 or self.spacing not in ("uniform", "quantile"):
            raise ValueError(
                f"bins starts at 1 and spacing is uniform or quantile; given {self.bins}, {self.spacing!r}"
            )
        if self.method not in ("auto", "exact", "sketch") or self.partners < 1 or self.projections < 1:
            raise ValueError(f"method is auto, exact or sketch, with partners and projections; given {self.method!r}")
        distances = self._distances(graphs)
        largest = float(distances.maxima().max(initial=0.0))
        self.range_ = largest if largest > 0 else 1.0
        self.edges_: Floats = np.zeros(0)
        if self.spacing == "quantile" and largest > 0:
            from gcaps.features.binning import quantile_bins

            self.edges_ = quantile_bins(distances.grid(), largest, self.bins, self.soft).edges
        return self

    @property
    def num_features(self) -> int:
        """Columns of :meth:`transform`: the bins, overflow, unreachable."""
        return self.bins + 2

    def fit_transform(self, graphs: GraphSet, y: object = None) -> Floats:
        """:meth:`fit`, then :meth:`transform`, on the same graphs."""
        transformed: Floats = self.fit(graphs).transform(graphs)
        return transformed

    def _distances(self, graphs: GraphSet) -> Distances:
        from gcaps.features.histograms import Distances, Reach

        reach = Reach(self.method, self.memory, self.partners, self.projections, self.seed, self.jobs)
        distances = Distances(graphs, self.f, reach, self.verbose)
        self.taken_ = distances.taken()
        return distances

    def _fitted_bins(self) -> Bins:
        from gcaps.features.binning import Bins

        return Bins(self.range_, self.bins, self.edges_, self.soft)


class FGSD(_Histograms):
    """Histograms of {S(x, y) : y ≠ x} for every node x (Eq. 9), S the harmonic distance.

    Bins from 0 to the largest distance in the graphs given to :meth:`fit`; beyond it one overflow bin, and one bin for
    the nodes of other components, which S does not reach. Nothing of the graphs given to :meth:`transform` moves a
    bin. The result is bit for bit the same for any order of the nodes.

    Args:
        bins: how many.
        scale: ``"log"`` gives log(1 + count), ``"count"`` the counts themselves.
        spacing: ``"uniform"`` bins, or ``"quantile"`` ones, which hold equal shares of the training graphs' pairs.
        soft: split each count linearly between the two nearest bin centres.
        f: ``"harmonic"`` (1/λ), ``"biharmonic"`` (1/λ²) or the coefficients (c₀, c₁, …) of a polynomial f(λ).
        method: ``"exact"``; ``"sketch"``, to sampled partners with a known error (:mod:`gcaps.features.sketch`); or
            ``"auto"``, exact wherever a component's matrix fits into the memory, some 6,700 nodes by default.
        memory: bytes that matrices of distances may take at a time; exact distances of more nodes are computed some
            rows at a time.
        partners: sampled partners of each node in a sketch.
        projections: random projections of a sketch.
        seed: of a sketch.
        jobs: threads; by default as many as numba has.
        cache: keep histograms on disk: in this folder, or with True in gcaps' cache folder; ``"auto"`` does the latter
            where there is so much to compute that reading is faster.
        verbose: show a progress bar.

    Attributes:
        range_: the largest distance seen in fit.
        edges_: [bins + 1] of quantile bins; empty where they are uniform.
        taken_: how many graphs of the last call were exact, and how many sketched.
    """

    def __init__(
        self,
        bins: int = 32,
        scale: str = "log",
        *,
        spacing: str = "uniform",
        soft: bool = False,
        f: Any = "harmonic",
        method: str = "auto",
        memory: int = 2 << 30,
        partners: int = 128,
        projections: int = 32,
        seed: int = 0,
        jobs: int | None = None,
        cache: bool | str | Path = "auto",
        verbose: bool = False,
    ) -> None:
        self.bins, self.scale, self.spacing, self.soft, self.f = bins, scale, spacing, soft, f
        self.method, self.memory, self.jobs, self.cache, self.verbose = method, memory, jobs, cache, verbose
        self.partners, self.projections, self.seed = partners, projections, seed

    def fit(self, graphs: GraphSet, y: object = None) -> Self:
        """Take the bins from these graphs, the training graphs."""
        if self.scale not in ("log", "count"):
            raise ValueError(f"scale is log or count; given {self.scale!r}")
        return super().fit(graphs)

    def transform(self, graphs: GraphSet) -> Floats:
        """[N, bins + 2] float32: one row for each node of the set."""
        counts, class_of = self._rows(graphs)
        if self.scale == "log":
            np.log1p(counts, out=counts)
        return counts[class_of]

    def _rows(self, graphs: GraphSet) -> Rows:
        from gcaps.features.histograms import Rows

        distances, bins = self._distances(graphs), self._fitted_bins()
        work = int((graphs.sizes**2).sum())
        if self.cache is False or (self.cache == "auto" and work < _WORTHWHILE):
            return distances.of_nodes(bins)
        own = self.cache in (True, "auto")
        cache = ArrayCache(cache_folder() / "fgsd" if own else Path(str(self.cache)))
        about = {"format": 1, "f": repr(self.f), "range": bins.range.hex(), "bins": bins.bins, "soft": bins.soft}
        about |= {"reach": repr(distances.reach._replace(jobs=None))}
        key = cache.key(distances.keys, about | {"edges": [edge.hex() for edge in bins.edges.tolist()]})
        found = cache.load(key)
        if found is None:
            rows = distances.of_nodes(bins)
            cache.store(key, [*rows])
            return rows
        return Rows(*found)

    def state(self) -> dict[str, Any]:
        """What :meth:`from_state` needs, as JSON values."""
        state = {"bins": self.bins, "scale": self.scale, "range": self.range_}
        chosen = {"spacing": self.spacing, "soft": self.soft, "f": self.f if isinstance(self.f, str) else list(self.f)}
        return state | chosen | {"edges": self.edges_.tolist()} | {key: getattr(self, key) for key in _REACH}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The fitted transformer again."""
        options = {key: state[key] for key in ("spacing", "soft", "f", *_REACH) if key in state}
        made = cls(int(state["bins"]), str(state["scale"]), **options)
        made.range_ = float(state["range"])
        made.edges_ = np.asarray(state.get("edges", ()), dtype=np.float64)
        return made


class GraphFGSD(_Histograms):
    """FGSD's graph vector: the histogram of S over all pairs of nodes of a graph, for any classifier of vectors.

    Bins are fitted as in :class:`FGSD`, overflow and unreachable pairs counted likewise.

    Args:
        bins: how many.
        scale: ``"share"`` of all pairs, ``"count"`` or ``"log"``, log(1 + count).
        spacing: see :class:`FGSD`, as for the rest.
        soft: see there.
        f: see there.
        method: see there.
        memory: see there.
        partners: see there.
        projections: see there.
        seed: see there.
        jobs: see there.
        verbose: see there.

    Attributes:
        range_: the largest distance seen in fit.
        edges_: [bins + 1] of quantile bins; empty where they are uniform.
        taken_: how many graphs of the last call were exact, and how many sketched.
    """

    def __init__(
        self,
        bins: int = 200,
        scale: str = "count",
        *,
        spacing: str = "uniform",
        soft: bool = False,
        f: Any = "harmonic",
        method: str = "auto",
        memory: int = 2 << 30,
        partners: int = 128,
        projections: int = 32,
        seed: int = 0,
        jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.bins, self.scale, self.spacing, self.soft, self.f = bins, scale, spacing, soft, f
        self.method, self.memory, self.jobs, self.verbose = method, memory, jobs, verbose
        self.partners, self.projections, self.seed = partners, projections, seed

    def fit(self, graphs: GraphSet, y: object = None) -> Self:
        """Take the bins from these graphs, the training graphs."""
        if self.scale not in ("share", "count", "log"):
            raise ValueError(f"scale is share, count or log; given {self.scale!r}")
        return super().fit(graphs)

    def transform(self, graphs: GraphSet) -> Floats:
        """[G, bins + 2] float64: one row for each graph."""
        counts = self._distances(graphs).of_graphs(self._fitted_bins())
        if self.scale == "share":
            counts /= np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return np.log1p(counts) if self.scale == "log" else counts
