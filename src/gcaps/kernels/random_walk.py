"""The geometric random-walk kernel (Gärtner et al., 2003; Vishwanathan et al., 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError, DataError
from gcaps.kernels.base import GraphKernel, inverse_root
from gcaps.kernels.hashing import neighbors_of_set
from gcaps.kernels.progress import steps
from gcaps.kernels.shortest_path import balanced

DAMPED = 0.7
"""√decay times spectral radius of a damped graph."""
_NODES = 1024
"""Nodes of graphs that are compared with another one at once."""
_ROWS = 20_000
"""Nodes and arcs of graphs that these are compared with in one portion."""


class RandomWalk(GraphKernel):
    """k(G, H) = Σ_k λ^k · number of common walks of length k = 1ᵀ (I − λ A_×)⁻¹ 1, A_× the product graph.

    Without labels A_× = A_G ⊗ A_H and φ is explicit: φ_k(G) = λ^{k/2} 1ᵀA_G^k 1, as many terms as the tolerance asks
    for, all graphs at once; no matrix is inverted or decomposed. With labels a walk is common where the labels of its
    nodes (and with ``edge_labels`` of its edges, in the direction of the walk) agree; power iteration runs on matched
    node pairs, of one graph and many others at once. Both series converge where λ μ(G) μ(H) < 1, μ the spectral radius
    of the adjacency matrix.

    Args:
        decay: λ.
        labels: match node labels where the set has them.
        edge_labels: match edge labels, too.
        diverging: what to do with graphs with λ μ² ≥ 1: ``raise`` an error that names the largest decay, or ``damp``
            each of them on its own, to √λ = 0.7/μ(G).
        tol: relative size of what is left out of a series.
        normalize: divide by √(k(G, G) k(H, H)).
        threads: threads of the labelled kernel.
        verbose: show a progress bar.
    """

    def __init__(
        self,
        decay: float = 1e-3,
        *,
        labels: bool = True,
        edge_labels: bool = False,
        diverging: Literal["raise", "damp"] = "raise",
        tol: float = 1e-10,
        normalize: bool = False,
        threads: int = 2,
        verbose: bool = False,
    ) -> None:
        self.decay, self.labels, self.edge_labels, self.diverging = decay, labels, edge_labels, diverging
        self.tol, self.normalize, self.threads, self.verbose = tol, normalize, threads, verbose

    def features(self, X: Any) -> Floats:
        """[m, K+1] φ of the kernel without labels."""
        check_is_fitted(self, "_scale_")
        if self._labelled_:
            raise ConfigError("the random-walk kernel with labels has no explicit features; pass labels=False")
        graphs = self._graphs(X, fitting=False)
        return walk_sums(graphs, self._root(graphs), self.tol)

    def _fit(self, graphs: GraphSet) -> None:
        if self.edge_labels and graphs.edge_labels is None:
            raise DataError(f"{graphs.name} has no edge labels; leave edge_labels off")
        self._labelled_ = self.edge_labels or (self.labels and graphs.node_labels is not None)
        self._train_ = graphs
        root = self._root(graphs)
        if self._labelled_:
            self._scale_ = inverse_root(self._own(graphs))
        else:
            self._walks_ = walk_sums(graphs, root, self.tol)
            self._scale_ = inverse_root((self._walks_**2).sum(axis=1))

    def _root(self, graphs: GraphSet) -> Floats:
        root: Floats = roots(graphs, [self.decay], self.diverging)[0][0]
        return root

    def _train_gram(self) -> Floats:
        if not self._labelled_:
            K: Floats = self._walks_ @ self._walks_.T
            return K
        labelled: Floats = labelled_grams(self._train_, [self.decay], self)[0]
        return labelled

    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        if not self._labelled_:
            found = walk_sums(graphs, self._root(graphs), self.tol)
            terms = min(found.shape[1], self._walks_.shape[1])
            return found[:, :terms] @ self._walks_[:, :terms].T, (found**2).sum(axis=1)
        return _matched(graphs, self._train_, [self.decay], self)[0], self._own(graphs)

    def _own(self, graphs: GraphSet) -> Floats:
        """[m] k(G, G) with labels."""
        return _matched(graphs, graphs, [self.decay], self, alone=True)[0, :, 0]


def labelled_grams(graphs: GraphSet, decays: Sequence[float], kernel: RandomWalk) -> Floats:
    """[D, n, n] the Gram matrices of several decays from one pass over the walks; ``kernel`` has all other options."""
    K = _matched(graphs, graphs, decays, kernel)
    i, j = np.tril_indices(len(graphs), -1)
    K[:, i, j] = K[:, j, i]
    return K


def _matched(
    left: GraphSet, right: GraphSet, decays: Sequence[float], kernel: RandomWalk, alone: bool = False
) -> Floats:
    """[D, m, n] graphs against graphs; of a set against itself the upper triangle, parts of the lower one are zero.

    ``alone``: [D, m, 1] each graph of a set against itself only.
    """
    from gcaps.kernels.walks import matched_walks, numbered, unite

    symmetric = left is right
    sets = [left] if symmetric else [left, right]
    labels, mirrored = numbered(sets, kernel.labels and left.node_labels is not None, kernel.edge_labels)
    found = [roots(s, decays, kernel.diverging) for s in sets]
    root, bound = (found[0][0], found[-1][0]), (found[0][1], found[-1][1])
    G = unite(left, np.arange(len(left) + 1), *labels[0])
    columns = balanced(right.sizes, 1 if alone else _NODES)
    H = unite(right, np.array([0, *(last for _, last in columns)]), *labels[-1])
    K = np.zeros((len(decays), len(left), 1 if alone else len(right)))

    def run(task: tuple[int, tuple[int, int]]) -> None:
        union, (first, last) = task
        K[:, first:last, slice(None) if alone else slice(*columns[union])] = matched_walks(
            G, H, (first, last), union, root, bound, mirrored, kernel.tol
        )

    tasks = list(enumerate(columns)) if alone else []
    for union, (_, last) in enumerate([] if alone else columns):
        work = (left.sizes + left.arc_counts)[: last if symmetric else None]
        tasks += [(union, rows) for rows in balanced(work, _ROWS)]
    with ThreadPoolExecutor(kernel.threads) as pool:
        for _ in steps(pool.map(run, tasks), len(tasks), "random walks", kernel.verbose):
            pass
    return K


def walk_sums(graphs: GraphSet, root: Floats, tol: float) -> Floats:
    """[G, K+1] 1ᵀ(s A)^k 1 for every graph with its own s, zero behind the terms that the tolerance asks for.

    For even k the next two terms are at most s²μ² times the last two, μ ≥ the spectral radius: a graph is done when
    what is left of Σ φ_k² is at most tol² of it.
    """
    ratio = (root * spectral_bounds(graphs)) ** 2
    A = adjacency(graphs)
    scale = np.repeat(root, graphs.sizes)
    x = np.ones(graphs.num_nodes)
    terms = [graphs.sizes.astype(np.float64)]
    active = np.ones(len(graphs), dtype=bool)
    total = terms[0] ** 2
    while active.any():
        x = scale * (A @ x)
        term = np.where(active, segment_sums(x, graphs.ptr), 0.0)
        terms.append(term)
        total = total + term**2
        if len(terms) % 2:
            active &= 2 * term**2 * ratio**2 > tol**2 * (1 - ratio**2) * total
    return np.stack(terms, axis=1)


def roots(graphs: GraphSet, decays: Sequence[float], diverging: str) -> tuple[Floats, Floats]:
    """[D, G] √λ of each graph, damped where it is to be; and [G] bounds on the spectral radii.

    Raises:
        ConfigError: where a graph's series diverges and is not to be damped.
    """
    if min(decays) <= 0:
        raise ConfigError(f"decay must be positive, not {min(decays)}")
    bound = spectral_bounds(graphs)
    root = np.sqrt(np.array(decays, dtype=np.float64))[:, None] * np.ones(len(graphs))
    worst = float(bound.max(initial=0.0))
    if diverging == "raise" and max(decays) * worst**2 >= 1:
        raise ConfigError(
            f"decay {max(decays):g}: the walks of {graphs.name} need a decay below {1 / worst**2:.4g} "
            f"(spectral radius {worst:.4g}); take a smaller one or diverging='damp'"
        )
    limit = np.divide(DAMPED, bound, out=np.full_like(bound, np.inf), where=bound > 0)
    return (np.minimum(root, limit) if diverging == "damp" else root), bound


def spectral_bounds(graphs: GraphSet, tol: float = 1e-4, limit: int = 200) -> Floats:
    """[G] upper bounds on the spectral radii of the adjacency matrices, nearly always tight to ``tol``.

    Collatz and Wielandt: μ ≤ max_i (Ax)_i/x_i for any x > 0; x comes from power iteration with A + I.
    """
    A = adjacency(graphs)
    x = np.ones(graphs.num_nodes)
    best = np.full(len(graphs), np.inf)
    for _ in range(limit):
        y = A @ x
        upper = segment_max(y / x, graphs.ptr)
        gain = best - upper
        best = np.minimum(best, upper)
        if not (gain > 0.01 * tol * best).any():
            break
        x += y
        x /= np.repeat(segment_max(x, graphs.ptr), graphs.sizes)
        np.maximum(x, 1e-200, out=x)
    return best


def adjacency(graphs: GraphSet) -> csr_array:
    """[N, N] of all graphs, block diagonal."""
    weight = np.ones(len(graphs.col)) if graphs.edge_weight is None else graphs.edge_weight.astype(np.float64)
    n = graphs.num_nodes
    return csr_array((weight, neighbors_of_set(graphs), graphs.rowptr), shape=(n, n))


def segment_sums(values: Array, ptr: Ints) -> Floats:
    """[G] sums over each graph's nodes; no graph is empty."""
    return np.add.reduceat(values, ptr[:-1])


def segment_max(values: Array, ptr: Ints) -> Floats:
    """[G] maxima over each graph's nodes; no graph is empty."""
    return np.maximum.reduceat(values, ptr[:-1])
