"""Geometric random-walk kernel (Gärtner et al., 2003; Vishwanathan et al., 2010)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import neighbors_of_set
from gcaps.data.structure import check_structure
from gcaps.errors import ConfigError, ModelError
from gcaps.kernels.base import DAMAGED, GraphKernel, State, inverse_root, map_threads, require_array, split_work

DAMPED = 0.7
"""√λ times the spectral radius of a damped graph."""
_NODES = 1024
"""Nodes of the graphs (columns) that one graph is compared with at once."""
_ROWS = 20_000
"""Nodes and arcs of the graphs (rows) of one task."""
_ARRAYS = ("ptr", "rowptr", "col", "node_labels", "edge_labels", "edge_weight")
"""Arrays of a GraphSet that the kernel uses."""


class RandomWalk(GraphKernel):
    """Random-walk kernel: k(G, H) = Σ_k λ^k · number of common walks of length k = 1ᵀ (I − λ A_×)⁻¹ 1.

    A_× is the adjacency matrix of the product graph. Without labels A_× = A_G ⊗ A_H and φ is explicit:
    φ_k(G) = λ^{k/2} 1ᵀA_G^k 1, with as many terms as the tolerance requires, for all graphs at once; no matrix is
    inverted or decomposed. With labels, a walk is common if the labels of its nodes (and with ``edge_labels`` of its
    edges, in the direction of the walk) agree; power iteration runs on matched node pairs, of one graph and many others
    at once. Both series converge if λ μ(G) μ(H) < 1, where μ is the spectral radius of the adjacency matrix.

    Args:
        decay: λ.
        labels: match node labels if there are any.
        edge_labels: match edge labels as well; ``"auto"``: if the training graphs have them.
        diverging: treatment of graphs with λ μ² ≥ 1: ``raise`` an error that gives the largest possible decay, or
            ``damp`` each of these graphs alone, to √λ = 0.7/μ(G).
        tol: relative size of the truncated rest of a series.
        normalize: divide by √(k(G, G) k(H, H)).
        n_jobs: number of threads of the labelled kernel.
        verbose: show a progress bar.
    """

    _train_: GraphSet | None

    def __init__(
        self,
        decay: float = 1e-3,
        *,
        labels: bool = True,
        edge_labels: bool | Literal["auto"] = "auto",
        diverging: Literal["raise", "damp"] = "raise",
        tol: float = 1e-10,
        normalize: bool = True,
        n_jobs: int | None = 2,
        verbose: bool = False,
    ) -> None:
        self.decay, self.labels, self.edge_labels, self.diverging = decay, labels, edge_labels, diverging
        self.tol, self.normalize, self.n_jobs, self.verbose = tol, normalize, n_jobs, verbose

    def features(self, X: Any) -> Floats:
        """Return φ of the kernel without labels, [m, K+1]."""
        check_is_fitted(self, "_scale_")
        if self._train_ is not None:
            raise ConfigError(
                "the random-walk kernel with labels has no explicit features; set labels=False, edge_labels=False"
            )
        graphs = self._graphs(X, fitting=False)
        return walk_sums(graphs, self._root(graphs), self.tol)

    def state(self) -> State:
        """Training graphs of the kernel with labels; features of the training graphs of the kernel without."""
        arrays, values = super().state()
        if self._train_ is None:
            return {**arrays, "walks": self._walks_}, values
        graphs = {f"graphs.{key}": array for key, array in self._train_.arrays().items() if key in _ARRAYS}
        return {**arrays, **graphs}, {**values, "name": self._train_.name}

    def restore(self, arrays: Mapping[str, Array], values: Mapping[str, Any]) -> Self:
        """See :meth:`GraphKernel.restore`."""
        super().restore(arrays, values)
        graphs: dict[str, Any] = {key: arrays[f"graphs.{key}"] for key in _ARRAYS if f"graphs.{key}" in arrays}
        count = len(self._scale_)
        self._train_ = None
        if not graphs:
            self._walks_ = require_array(arrays, "walks", "f", (count, None))
            return self
        if not {"ptr", "rowptr", "col"} <= graphs.keys() or len(graphs["ptr"]) != count + 1:
            raise ModelError(f"{DAMAGED} (it lacks support graphs)")
        self._train_ = GraphSet(name=str(values.get("name")), **graphs)
        check_structure(self._train_, lambda problem, key: ModelError(f"{DAMAGED} ({key or 'graphs'}: {problem})"))
        return self

    def _fit(self, graphs: GraphSet) -> None:
        if self.diverging not in ("raise", "damp"):
            raise ConfigError(f"diverging must be raise or damp, not {self.diverging!r}")
        root = self._root(graphs)
        self._train_ = None
        if self.compares_edge_labels(graphs) or (self.labels and graphs.node_labels is not None):
            self._train_ = GraphSet(name=graphs.name, **{key: getattr(graphs, key) for key in _ARRAYS})
            self._scale_ = inverse_root(self._diagonal(graphs))
        else:
            self._walks_ = walk_sums(graphs, root, self.tol)
            self._scale_ = inverse_root((self._walks_**2).sum(axis=1))

    def _root(self, graphs: GraphSet) -> Floats:
        root: Floats = roots(graphs, [self.decay], self.diverging)[0][0]
        return root

    def _train_gram(self) -> Floats:
        if self._train_ is None:
            K: Floats = self._walks_ @ self._walks_.T
            return K
        labelled: Floats = labelled_grams(self._train_, [self.decay], self)[0]
        return labelled

    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        if self._train_ is None:
            found = walk_sums(graphs, self._root(graphs), self.tol)
            terms = min(found.shape[1], self._walks_.shape[1])
            return found[:, :terms] @ self._walks_[:, :terms].T, (found**2).sum(axis=1)
        return _labelled_cross(graphs, self._train_, [self.decay], self)[0], self._diagonal(graphs)

    def _restrict(self, positions: Ints) -> None:
        super()._restrict(positions)
        if self._train_ is None:
            self._walks_ = self._walks_[positions]
        else:
            self._train_ = self._train_.subset(positions)

    def _diagonal(self, graphs: GraphSet) -> Floats:
        """Return k(G, G) with labels, [m]."""
        return _labelled_cross(graphs, graphs, [self.decay], self, diagonal=True)[0, :, 0]


def labelled_grams(graphs: GraphSet, decays: Sequence[float], kernel: RandomWalk) -> Floats:
    """Return the Gram matrices of several decays, [D, n, n], from one pass over the walks.

    ``kernel`` gives all other parameters.
    """
    K = _labelled_cross(graphs, graphs, decays, kernel, symmetric=True)
    i, j = np.tril_indices(len(graphs), -1)
    K[:, i, j] = K[:, j, i]
    return K


def _labelled_cross(
    left: GraphSet,
    right: GraphSet,
    decays: Sequence[float],
    kernel: RandomWalk,
    *,
    symmetric: bool = False,
    diagonal: bool = False,
) -> Floats:
    """Compare graphs with graphs, [D, m, n].

    With ``symmetric`` both sets are the same and only the upper triangle is complete; with ``diagonal`` each graph of
    the set is compared with itself only, [D, m, 1].
    """
    from gcaps.kernels.walks import matched_walks, number_labels, unite

    sets = [left] if symmetric or diagonal else [left, right]
    by_node = kernel.labels and left.node_labels is not None
    labels, mirrored = number_labels(sets, by_node, kernel.compares_edge_labels(left))
    found = [roots(s, decays, kernel.diverging) for s in sets]
    root, bound = (found[0][0], found[-1][0]), (found[0][1], found[-1][1])
    G = unite(left, np.arange(len(left) + 1), *labels[0])
    columns = split_work(right.sizes, 1 if diagonal else _NODES)
    H = unite(right, np.array([0, *(last for _, last in columns)]), *labels[-1])
    K = np.zeros((len(decays), len(left), 1 if diagonal else len(right)))

    def run(task: tuple[int, tuple[int, int]]) -> None:
        union, (first, last) = task
        K[:, first:last, slice(None) if diagonal else slice(*columns[union])] = matched_walks(
            G, H, (first, last), union, root, bound, mirrored, kernel.tol
        )

    tasks = list(enumerate(columns)) if diagonal else []
    for union, (_, last) in enumerate([] if diagonal else columns):
        work = (left.sizes + left.arc_counts)[: last if symmetric else None]
        tasks += [(union, rows) for rows in split_work(work, _ROWS)]
    map_threads(run, tasks, "random walks", kernel.n_jobs, kernel.verbose)
    return K


def walk_sums(graphs: GraphSet, root: Floats, tol: float) -> Floats:
    """Return 1ᵀ(s A)^k 1 of every graph with its own s, [G, K+1]; terms beyond the tolerance are zero.

    For even k the next two terms are at most s²μ² times the last two, where μ ≥ the spectral radius: a graph is done
    when the rest of Σ φ_k² is at most tol² of the sum.
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
        term = np.where(active, np.add.reduceat(x, graphs.ptr[:-1]), 0.0)
        terms.append(term)
        total = total + term**2
        if len(terms) % 2:
            active &= 2 * term**2 * ratio**2 > tol**2 * (1 - ratio**2) * total
    return np.stack(terms, axis=1)


def roots(graphs: GraphSet, decays: Sequence[float], diverging: str) -> tuple[Floats, Floats]:
    """Return √λ of each graph, [D, G], damped if required, and bounds on the spectral radii, [G].

    Raises:
        ConfigError: if the series of a graph diverges and is not to be damped.
    """
    if min(decays) <= 0:
        raise ConfigError(f"decay must be positive, not {min(decays)}")
    bound = spectral_bounds(graphs)
    root = np.sqrt(np.array(decays, dtype=np.float64))[:, None] * np.ones(len(graphs))
    worst = float(bound.max(initial=0.0))
    if diverging == "raise" and max(decays) * worst**2 >= 1:
        raise ConfigError(
            f"decay {max(decays):g}: the walks of {graphs.name} need a decay below {1 / worst**2:.4g} "
            f"(spectral radius {worst:.4g}); use a smaller one or diverging='damp'"
        )
    limit = np.divide(DAMPED, bound, out=np.full_like(bound, np.inf), where=bound > 0)
    return (np.minimum(root, limit) if diverging == "damp" else root), bound


def spectral_bounds(graphs: GraphSet, tol: float = 1e-4, limit: int = 200) -> Floats:
    """Return upper bounds on the spectral radii of the adjacency matrices, [G], nearly always tight to ``tol``.

    Collatz and Wielandt: μ ≤ max_i (Ax)_i/x_i for any x > 0; x comes from power iteration with A + I.
    """
    A = adjacency(graphs)
    x = np.ones(graphs.num_nodes)
    best = np.full(len(graphs), np.inf)
    for _ in range(limit):
        y = A @ x
        upper = _maxima(y / x, graphs.ptr)
        gain = best - upper
        best = np.minimum(best, upper)
        if not (gain > 0.01 * tol * best).any():
            break
        x += y
        x /= np.repeat(_maxima(x, graphs.ptr), graphs.sizes)
        np.maximum(x, 1e-200, out=x)
    return best


def adjacency(graphs: GraphSet) -> csr_array:
    """Return the block-diagonal adjacency matrix of all graphs, [N, N]."""
    weight = np.ones(len(graphs.col)) if graphs.edge_weight is None else graphs.edge_weight.astype(np.float64)
    n = graphs.num_nodes
    return csr_array((weight, neighbors_of_set(graphs), graphs.rowptr), shape=(n, n))


def _maxima(values: Array, ptr: Ints) -> Floats:
    """Return the maximum over the nodes of each graph, [G]; no graph is empty."""
    return np.maximum.reduceat(values, ptr[:-1])
