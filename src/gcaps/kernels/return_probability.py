"""Graph kernels of return probabilities of random walks: RetGK (Zhang et al., 2018)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numba import njit

from gcaps.data.arrays import Array, Floats, Ints, ranges, strides
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, rows
from gcaps.errors import ConfigError
from gcaps.features.return_probabilities import STEPS, return_probabilities
from gcaps.features.structural import AttributeFeatures
from gcaps.kernels.base import State, map_threads, split_work
from gcaps.kernels.distance import DistanceKernel

_NODES = 1 << 15
"""Nodes whose random features are in memory together."""
_WORK = 20_000_000
"""Pairs of nodes of one task."""


class Points(NamedTuple):
    """Points with a weight each, several for every graph: its nodes, or the mean feature of each of its labels."""

    x: Floats
    """[R, ·]"""
    word: Hashes
    """[R] label; points of different labels are orthogonal."""
    graph: Ints
    """[R] ascending."""

    def take(self, positions: Ints, graphs: int) -> Points:
        """Return the points of the graphs at ``positions``, of ``graphs`` in all."""
        start = np.searchsorted(self.graph, np.arange(graphs + 1))
        sizes = np.diff(start)[positions]
        which = ranges(start[:-1][positions], sizes)
        return Points(self.x[which], self.word[which], np.repeat(np.arange(len(positions)), sizes))


class ReturnProbability(DistanceKernel):
    """RetGK: the distance of two graphs' mean node embeddings, as k(G, H) = exp(−λ ‖m_G − m_H‖ / s).

    A node v is described by r_v, the probabilities that a random walk returns to it after 1, 2, … steps, by its label
    and by its attributes. Nodes are compared by the product of κ(γ‖r_u − r_v‖), of whether their labels are equal, and
    of κ(γ_a‖a_u − a_v‖); m_G is the mean of G's nodes in the feature space of this product, and the norm is the maximum
    mean discrepancy (MMD). As in the authors' code, walks have a self-loop at every node and s is the median distance,
    here of two training graphs.

    With ``exact=False`` (RetGK_II) κ is approximated by random Fourier features: a vector of length ``n_features`` for
    each label of a graph, in time linear in the nodes. With ``exact=True`` (RetGK_I) all pairs of nodes are compared.

    Args:
        gamma: γ.
        rate: λ.
        steps: number of steps.
        labels: compare the node labels where there are any.
        attributes: compare node attributes, standardised over the training graphs.
        attribute_gamma: γ_a.
        base: κ(z) is ``"gaussian"``, exp(−z²/2), or ``"laplacian"``, exp(−z).
        exact: compare all pairs of nodes.
        n_features: number of random features.
        unit: s; None: the median distance of two training graphs.
        random_state: decides the random features.
        n_jobs: number of threads of the exact kernel.
        verbose: show its progress bar.
    """

    def __init__(
        self,
        gamma: float = 10.0,
        *,
        rate: float = 1.0,
        steps: int = STEPS,
        labels: bool = True,
        attributes: bool = False,
        attribute_gamma: float = 0.1,
        base: Literal["gaussian", "laplacian"] = "laplacian",
        exact: bool = False,
        n_features: int = 200,
        unit: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = 2,
        verbose: bool = False,
    ) -> None:
        self.gamma, self.rate, self.steps, self.labels, self.attributes = gamma, rate, steps, labels, attributes
        self.attribute_gamma, self.base, self.exact, self.n_features = attribute_gamma, base, exact, n_features
        self.unit, self.random_state, self.n_jobs, self.verbose = unit, random_state, n_jobs, verbose

    attributes_: AttributeFeatures | None

    def distance_is_pairwise(self, graphs: GraphSet) -> bool:
        """Return whether attributes, which are standardised over the training graphs, are left out."""
        return not self.attributes

    @classmethod
    def train_distances(cls, kernels: Sequence[Any], graphs: GraphSet) -> list[Floats]:
        """Return the distances of several kernels, walking once."""
        walks = {steps: return_probabilities(graphs, steps, loops=True) for steps in {k.steps for k in kernels}}
        found = []
        for kernel in kernels:
            kernel._embed(graphs, walks[kernel.steps])
            found.append(kernel._train_distances())
        return found

    def state(self) -> State:
        """Return the embedded training graphs, the random features, and how attributes are standardised."""
        arrays, values = super().state()
        own = {"points": self._points_.x, "word": self._points_.word, "graph": self._points_.graph}
        attributes = None if self.attributes_ is None else self.attributes_.state()
        return {**arrays, **own, "frequency": self._frequency_, "phase": self._phase_}, {
            **values,
            "attributes": attributes,
        }

    def restore(self, arrays: Mapping[str, Array], values: Mapping[str, Any]) -> Self:
        """See :meth:`GraphKernel.restore`."""
        self._points_ = Points(arrays["points"], arrays["word"], arrays["graph"])
        self._frequency_, self._phase_ = arrays["frequency"], arrays["phase"]
        given = values["attributes"]
        self.attributes_ = None if given is None else AttributeFeatures.from_state(given)
        return super().restore(arrays, values)

    def _embed(self, graphs: GraphSet, walks: Floats | None = None) -> None:
        if min(self.gamma, self.attribute_gamma) <= 0 or self.n_features < 1:
            raise ConfigError(
                f"gamma, attribute_gamma and n_features must be positive, not {self.gamma}, {self.attribute_gamma} "
                f"and {self.n_features}"
            )
        self.attributes_ = AttributeFeatures().fit(graphs) if self.attributes else None
        own = 0 if self.attributes_ is None else self.attributes_.num_features
        rng = np.random.default_rng(self.random_state)
        width = 0 if self.exact else self.n_features
        parts = [rng.standard_normal((size, width)) for size in (self.steps, own)]
        if self.base == "laplacian":  # whose spectral measure is a multivariate Cauchy distribution
            parts = [part / np.abs(rng.standard_normal(width)) for part in parts]
        self._frequency_, self._phase_ = np.concatenate(parts), rng.uniform(0, 2 * np.pi, width)
        self._points_ = self._embedded(graphs, walks)

    def _embedded(self, graphs: GraphSet, walks: Floats | None = None) -> Points:
        """Return the nodes of graphs, or the mean features of each label of each graph times its share of the nodes."""
        walks = return_probabilities(graphs, self.steps, loops=True) if walks is None else walks
        z = self.gamma * walks
        if self.attributes_ is not None:
            own = self.attributes_.transform(graphs).astype(np.float64)
            z = np.concatenate([z, self.attribute_gamma * own], axis=1)
        word = np.zeros(len(z), dtype=np.uint64)
        if self.labels and graphs.node_labels is not None:
            word = rows(graphs.node_labels)
        graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
        order = np.lexsort([word, graph])
        if self.exact:
            return Points(z[order], word[order], graph[order])
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(graph[order]) > 0) | (word[order][1:] != word[order][:-1])
        first = np.flatnonzero(new)
        x = np.empty((len(first), self.n_features))
        done = 0
        for a, b in strides(graphs.sizes, _NODES):
            low, high = graphs.ptr[a], graphs.ptr[b]
            starts = first[done : np.searchsorted(first, high)]
            if len(starts):
                phi = np.cos(z[order[low:high]] @ self._frequency_ + self._phase_)
                x[done : done + len(starts)] = np.add.reduceat(phi, starts - low, axis=0)
                done += len(starts)
        owner = graph[order][first]
        x *= np.sqrt(2.0 / self.n_features) / graphs.sizes[owner][:, None]
        return Points(x, word[order][first], owner)

    def _train_distances(self) -> Floats:
        n = int(self._points_.graph[-1]) + 1 if len(self._points_.graph) else 0
        n = max(n, len(getattr(self, "_scale_", ())))
        inner = self._products(self._points_, n)
        own = inner.diagonal().copy()
        D = _mmd(inner, own, own)
        np.fill_diagonal(D, 0)
        return (D + D.T) / 2

    def _cross_distances(self, graphs: GraphSet) -> Floats:
        points = self._embedded(graphs)
        own = self._squares(points, len(graphs))
        inner = self._products(points, len(graphs), self._points_, len(self._scale_))
        return _mmd(inner, own, self._squares(self._points_, len(self._scale_)))

    def _products(self, a: Points, m: int, b: Points | None = None, n: int | None = None) -> Floats:
        """Return ⟨m_G, m_H⟩ of graphs [m] and others [n], by default themselves, [m, n]."""
        b, n = (a, m) if b is None or n is None else (b, n)
        K = np.zeros((m, n))
        if self.exact:
            a_ptr, b_ptr = (np.searchsorted(p.graph, np.arange(k + 1)) for p, k in ((a, m), (b, n)))

            def fill(part: tuple[int, int]) -> None:
                _fill_exact(
                    *part, a.x, a.word, a_ptr, b.x, b.word, b_ptr, self.steps, self.base == "laplacian", b is a, K
                )

            parts = split_work(np.diff(a_ptr) * max(len(b.x), 1), _WORK)
            map_threads(fill, parts, "return probabilities", self.n_jobs, self.verbose)
            return K if b is not a else np.maximum(K, K.T)
        left, right = _by_word(a.word), _by_word(b.word)
        for word in left.keys() & right.keys():
            i, j = left[word], right[word]
            K[np.ix_(a.graph[i], b.graph[j])] += a.x[i] @ b.x[j].T
        return K

    def _squares(self, points: Points, graphs: int) -> Floats:
        """Return ‖m_G‖², [graphs]."""
        if not self.exact:
            found: Floats = np.bincount(points.graph, (points.x**2).sum(axis=1), minlength=graphs).astype(np.float64)
            return found
        ptr = np.searchsorted(points.graph, np.arange(graphs + 1))
        out: Floats = np.empty(graphs)
        _fill_squares(points.x, points.word, ptr, self.steps, self.base == "laplacian", out)
        return out

    def _restrict(self, positions: Ints) -> None:
        self._points_ = self._points_.take(positions, len(self._scale_))
        super()._restrict(positions)


def _by_word(word: Hashes) -> dict[int, Ints]:
    """Return the positions of each word."""
    order = np.argsort(word, kind="stable")
    values, first = np.unique(word[order], return_index=True)
    return dict(zip(values.tolist(), np.split(order, first[1:]), strict=True)) if len(word) else {}


def _mmd(inner: Floats, left: Floats, right: Floats) -> Floats:
    """Return √(l + r − 2⟨·,·⟩) [m, n]; squares that are rounding errors are 0."""
    square = left[:, None] + right - 2 * inner
    square[square < 1e-13 * (left[:, None] + right)] = 0.0
    found: Floats = np.sqrt(square)
    return found


@njit(cache=True, nogil=True)
def _similarity(x: Array, y: Array, steps: int, laplacian: bool) -> float:
    """Return the product of κ over return probabilities and attributes."""
    walk, rest = 0.0, 0.0
    for k in range(steps):
        walk += (x[k] - y[k]) ** 2
    for k in range(steps, len(x)):
        rest += (x[k] - y[k]) ** 2
    value: float = np.exp(-np.sqrt(walk) - np.sqrt(rest)) if laplacian else np.exp(-(walk + rest) / 2)
    return value


@njit(cache=True, nogil=True)
def _mean(
    x: Array, x_word: Array, a: int, b: int, y: Array, y_word: Array, c: int, d: int, steps: int, laplacian: bool
) -> float:
    """Return the mean over nodes a..b−1 and c..d−1, each in ascending order of labels; 0 for different labels."""
    total = 0.0
    begin = c
    for i in range(a, b):
        while begin < d and y_word[begin] < x_word[i]:
            begin += 1
        j = begin
        while j < d and y_word[j] == x_word[i]:
            total += _similarity(x[i], y[j], steps, laplacian)
            j += 1
    return total / max((b - a) * (d - c), 1)


@njit(cache=True, nogil=True)
def _fill_exact(
    first: int,
    last: int,
    x: Array,
    x_word: Array,
    x_ptr: Array,
    y: Array,
    y_word: Array,
    y_ptr: Array,
    steps: int,
    laplacian: bool,
    symmetric: bool,
    K: Array,
) -> None:
    """Fill the rows first..last−1 of K; of a symmetric matrix only j ≥ i."""
    for i in range(first, last):
        for j in range(i if symmetric else 0, len(y_ptr) - 1):
            K[i, j] = _mean(x, x_word, x_ptr[i], x_ptr[i + 1], y, y_word, y_ptr[j], y_ptr[j + 1], steps, laplacian)


@njit(cache=True, nogil=True)
def _fill_squares(x: Array, word: Array, ptr: Array, steps: int, laplacian: bool, out: Array) -> None:
    """Fill ‖m_G‖² of every graph."""
    for g in range(len(out)):
        out[g] = _mean(x, word, ptr[g], ptr[g + 1], x, word, ptr[g], ptr[g + 1], steps, laplacian)
