"""FGSD features: histograms of harmonic distances, of each node or of each graph."""

from __future__ import annotations

import hashlib
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from gcaps.config import check_parameters
from gcaps.data.arrays import Array, Floats
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.npy import read_npz
from gcaps.data.prepared import PreparedSet
from gcaps.documents import Name, Number, Page, Seed, validated
from gcaps.errors import DataError, ModelError
from gcaps.files import cache_folder, read_bytes, replacing

if TYPE_CHECKING:
    from gcaps.features.binning import Bins
    from gcaps.features.histograms import Distances, Rows

MIN_CACHED_PAIRS = 4 * 10**9
"""Pairs of nodes above which ``cache="auto"`` writes to disk; fewer are recomputed as fast as they are read."""
CACHE_LIMIT = 4 << 30
"""Bytes of all cached files together."""
_OPTIONS = ("method", "memory", "partners", "projections", "random_state")
_DIGEST = 32


class BinState(Page):
    """Fitted bins: the largest value and, for quantiles, the edges between bins."""

    range: Annotated[Number, Field(gt=0)]
    edges: list[Number] = Field([])

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if any(a > b for a, b in pairwise(self.edges)):
            raise ValueError("edges should ascend")
        return self

    def edges_of(self, bins: int) -> Floats:
        """Return the edges of a number of bins: none, or one more than bins, from 0 to the largest value.

        Raises:
            ModelError: they are not those of so many bins.
        """
        if self.edges and (len(self.edges) != bins + 1 or self.edges[0] != 0 or self.edges[-1] != self.range):
            raise ModelError(f"the bins of the histogram are damaged ({len(self.edges)} edges for {bins} bins)")
        return np.asarray(self.edges, dtype=np.float64)


class FGSDState(BinState):
    """Fitted :class:`FGSD`: its parameters and bins."""

    bins: Annotated[int, Field(ge=1, le=65536)]
    scale: Name
    spacing: Literal["uniform", "quantile"]
    soft: bool
    f: Name | list[Number]
    method: Literal["auto", "exact", "sketch"]
    memory: Annotated[int, Field(ge=0, le=2**62)]
    partners: Annotated[int, Field(ge=1, le=2**31)]
    projections: Annotated[int, Field(ge=1, le=2**31)]
    random_state: Seed


class _Histograms(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Fitting of the bins, the same for histograms of nodes and of graphs."""

    _scales: ClassVar[tuple[str, ...]]
    bins: int
    scale: str
    spacing: str
    soft: bool
    f: Any
    method: str
    memory: int
    partners: int
    projections: int
    random_state: int
    n_jobs: int | None
    verbose: bool

    def fit(self, X: Any, y: object = None, *, indices: Array | None = None) -> Self:
        """Fit the bins to training graphs.

        Args:
            X: graphs in any form that :func:`gcaps.load` takes; a PreparedSet keeps its distances for the next fold.
            y: ignored.
            indices: positions of the training graphs in the set; by default all.
        """
        check_parameters(self)
        if self.scale not in self._scales:
            raise ValueError(
                f"scale must be {', '.join(self._scales[:-1])} or {self._scales[-1]}; given {self.scale!r}"
            )
        if self.bins < 1 or self.spacing not in ("uniform", "quantile"):
            raise ValueError(
                f"bins must be at least 1 and spacing uniform or quantile; given {self.bins}, {self.spacing!r}"
            )
        if self.method not in ("auto", "exact", "sketch") or self.partners < 1 or self.projections < 1:
            given = f"{self.method!r}, {self.partners}, {self.projections}"
            raise ValueError(
                f"method must be auto, exact or sketch, partners and projections at least 1; given {given}"
            )
        graphs = _graphs(X)
        if isinstance(graphs, GraphSet) and indices is not None:
            graphs, indices = graphs.subset(indices), None
        distances = self._distances(graphs)
        chosen = None if indices is None else distances.graphs.positions(indices)
        maxima = distances.maxima()
        largest = float((maxima if chosen is None else maxima[chosen]).max(initial=0.0))
        self.range_ = largest if largest > 0 else 1.0
        self.edges_: Floats = np.zeros(0)
        if self.spacing == "quantile" and largest > 0:
            from gcaps.features.binning import quantile_bins

            self.edges_ = quantile_bins(distances.grid(chosen), largest, self.bins, self.soft).edges
        return self

    @property
    def num_features(self) -> int:
        """Columns of :meth:`transform`: the bins, overflow, unreachable."""
        return self.bins + 2

    @property
    def _n_features_out(self) -> int:
        check_is_fitted(self)
        return self.num_features

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "range_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit_transform(self, X: Any, y: object = None) -> Floats:
        """Fit to graphs, then transform them."""
        prepared = PreparedSet.of(_graphs(X))
        transformed: Floats = self.fit(prepared).transform(prepared)
        return transformed

    def _distances(self, graphs: GraphSet | PreparedSet) -> Distances:
        from gcaps.features.histograms import Distances, Options

        options = Options(self.method, self.memory, self.partners, self.projections, self.random_state, self.n_jobs)
        distances = Distances(graphs, self.f, options, self.verbose)
        self.methods_ = distances.methods()
        return distances

    def _fitted_bins(self) -> Bins:
        from gcaps.features.binning import Bins

        return Bins(self.range_, self.bins, self.edges_, self.soft)


def _graphs(X: Any) -> GraphSet | PreparedSet:
    return X if isinstance(X, GraphSet | PreparedSet) else load(X, labelled=False)


class FGSD(_Histograms):
    """Histogram of {S(x, y) : y ≠ x} for every node x (Eq. 9), where S is the harmonic distance.

    Bins cover 0 to the largest distance in the graphs given to :meth:`fit`; one more column counts larger distances,
    and one the nodes in other components. Features are bit for bit the same for any order of the nodes.

    Args:
        bins: number of bins.
        scale: ``"log"`` for log(1 + count), ``"count"`` for counts.
        spacing: ``"uniform"`` bins, or ``"quantile"`` bins with equal shares of the pairs of the training graphs.
        soft: split each count linearly between the two nearest bin centres.
        f: ``"harmonic"`` (1/λ), ``"biharmonic"`` (1/λ²) or the coefficients (c₀, c₁, …) of a polynomial f(λ).
        method: ``"exact"``; ``"sketch"``, distances to sampled partners with a known error
            (:mod:`gcaps.features.sketch`); or ``"auto"``, exact if the matrix of a component fits into the memory,
            which is up to about 6,700 nodes by default.
        memory: bytes that matrices of distances may take at a time; exact distances of larger components are computed
            in blocks of rows.
        partners: sampled partners of each node in a sketch.
        projections: random projections of a sketch.
        random_state: seed of a sketch.
        n_jobs: threads; by default numba's number.
        cache: keep histograms on disk: in this folder, or with True in gcaps' cache folder; ``"auto"`` does the latter
            if computing them takes longer than reading.
        verbose: show a progress bar.

    Attributes:
        range_: largest distance in the training graphs.
        edges_: [bins + 1] of quantile bins; empty if they are uniform.
        methods_: number of graphs of the last call that were computed exactly, and number that were sketched.
    """

    _scales = ("log", "count")

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
        random_state: int = 0,
        n_jobs: int | None = None,
        cache: bool | str | Path = "auto",
        verbose: bool = False,
    ) -> None:
        self.bins, self.scale, self.spacing, self.soft, self.f = bins, scale, spacing, soft, f
        self.method, self.memory, self.partners, self.projections = method, memory, partners, projections
        self.random_state, self.n_jobs, self.cache, self.verbose = random_state, n_jobs, cache, verbose

    def transform(self, X: Any) -> Floats:
        """[N, bins + 2] float32 features of every node of the graphs."""
        check_is_fitted(self)
        counts, class_of = self._rows(_graphs(X))
        if self.scale == "log":
            np.log1p(counts, out=counts)
        return counts[class_of]

    def _rows(self, graphs: GraphSet | PreparedSet) -> Rows:
        from gcaps.features.histograms import Rows

        distances, bins = self._distances(graphs), self._fitted_bins()
        pairs = int((distances.graphs.sizes**2).sum())
        if self.cache is False or (self.cache == "auto" and pairs < MIN_CACHED_PAIRS):
            return distances.of_nodes(bins)
        own = self.cache in (True, "auto")
        cache = ArrayCache(cache_folder() / "fgsd" if own else Path(str(self.cache)))
        parameters = {"format": 1, "f": repr(self.f), "range": bins.range.hex(), "bins": bins.bins, "soft": bins.soft}
        parameters |= {"options": repr(distances.options._replace(n_jobs=None))}
        key = cache.key(distances.keys, parameters | {"edges": [edge.hex() for edge in bins.edges.tolist()]})
        found = cache.load(key)
        if found is None:
            rows = distances.of_nodes(bins)
            cache.store(key, [*rows])
            return rows
        return Rows(*found)

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs, as JSON values."""
        state = {"bins": self.bins, "scale": self.scale, "range": self.range_}
        chosen = {"spacing": self.spacing, "soft": self.soft, "f": self.f if isinstance(self.f, str) else list(self.f)}
        return state | chosen | {"edges": self.edges_.tolist()} | {key: getattr(self, key) for key in _OPTIONS}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the fitted transformer."""
        found = validated(FGSDState, state, "the state of the harmonic distances is damaged", ModelError)
        made = cls(found.bins, found.scale, **{key: getattr(found, key) for key in ("spacing", "soft", "f", *_OPTIONS)})
        made.range_, made.edges_ = found.range, found.edges_of(found.bins)
        return made


class GraphFGSD(_Histograms):
    """Histogram of S over all pairs of nodes of each graph, a vector for any classifier.

    Parameters and attributes are those of :class:`FGSD`, except for ``cache`` and

    Args:
        bins: number of bins.
        scale: ``"share"`` of all pairs, ``"count"``, or ``"log"`` for log(1 + count).
    """

    _scales = ("share", "count", "log")

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
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.bins, self.scale, self.spacing, self.soft, self.f = bins, scale, spacing, soft, f
        self.method, self.memory, self.partners, self.projections = method, memory, partners, projections
        self.random_state, self.n_jobs, self.verbose = random_state, n_jobs, verbose

    def transform(self, X: Any) -> Floats:
        """[G, bins + 2] float64 features of every graph."""
        check_is_fitted(self)
        counts = self._distances(_graphs(X)).of_graphs(self._fitted_bins())
        if self.scale == "share":
            counts /= np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return np.log1p(counts) if self.scale == "log" else counts


class ArrayCache:
    """Lists of arrays on disk under a key, one checked file each; the least recently used are removed first.

    Args:
        folder: of the files; created with the first one.
        limit: bytes of all files together.
    """

    def __init__(self, folder: Path, limit: int = CACHE_LIMIT) -> None:
        self.folder, self.limit = folder, limit

    @staticmethod
    def key(structure: Array, parameters: dict[str, Any]) -> str:
        """SHA-256 of an array and of JSON values."""
        digest = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode())
        digest.update(np.ascontiguousarray(structure).data)
        return digest.hexdigest()

    def load(self, key: str) -> list[Array] | None:
        """Return the arrays; None if there are none or the file is damaged."""
        file = self.folder / f"{key}.fgsd"
        try:
            content = read_bytes(file)
            if _digest(key, content[:-_DIGEST]) != content[-_DIGEST:]:
                return None
            arrays = read_npz(content[:-_DIGEST], str(file))
            file.touch()
        except (DataError, OSError):
            return None
        return list(arrays.values())

    def store(self, key: str, arrays: list[Array]) -> None:
        """Write the arrays atomically, unless they exceed the limit."""
        stream = io.BytesIO()
        np.savez(stream, *arrays)
        content = stream.getvalue()
        if len(content) > self.limit:
            return
        with replacing(self.folder / f"{key}.fgsd") as draft:
            draft.write_bytes(content + _digest(key, content))
        self._trim()

    def _trim(self) -> None:
        """Remove the least recently used files until the rest fits."""
        found = []
        for file in self.folder.glob("*.fgsd"):
            try:
                facts = file.stat()
            except FileNotFoundError:  # removed by another process
                continue
            found.append((facts.st_mtime_ns, facts.st_size, file))
        total = sum(size for _, size, _ in found)
        for _, size, file in sorted(found):
            if total <= self.limit:
                break
            file.unlink(missing_ok=True)
            total -= size


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST, key=key.encode()[:64]).digest()
