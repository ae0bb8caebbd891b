"""Multiscale Laplacian graph kernel (Kondor and Pan, 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numba import njit

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes
from gcaps.errors import ConfigError, ModelError
from gcaps.kernels.base import DAMAGED, GraphKernel, State, map_threads, mix64, node_hashes, require_array, split_work

_NODES = 4096
"""Nodes of one task."""
_PAIRS = 200_000
"""Pairs of graphs of one task."""
_DENSE = 48
"""Neighborhoods of at most this many nodes are solved by Cholesky factorisation, larger ones by conjugate gradients."""
_CACHE = 4096
"""Slots of the cache of neighborhoods."""

FLG = tuple[Floats, Floats]
"""S⁻¹ [m, P, P] and log|S| [m] of m graphs or neighborhoods; see :class:`MultiscaleLaplacian`."""


class Level(NamedTuple):
    """Basis of the node features of one level, shared by all graphs."""

    references: FLG
    """Neighborhoods of the reference nodes."""
    basis: Floats
    """[references, P] converts similarities to the references to features."""


class MultiscaleLaplacian(GraphKernel):
    """Multiscale Laplacian graph kernel: the feature-space Laplacian graph (FLG) kernel, applied recursively.

    k(G, H) = |½S_G⁻¹ + ½S_H⁻¹|^(−1/2) / (|S_G| |S_H|)^(1/4),  S_G = Uᵀ(L_G + ηI)⁻¹U + γI,

    with the node features U [n, P]. At level 0 they are the one-hot node labels (degrees if there are none). At level
    ℓ = 1..levels the similarity of two nodes is that of the subgraphs within ``radius``·ℓ hops of them, by the same
    formula with the features of level ℓ−1; the features are the Nyström approximation from ``samples`` reference nodes
    of the training graphs and the ``rank`` leading eigenvectors of their Gram matrix. A pair of graphs then costs one
    Cholesky factorisation of P × P. With enough samples and rank, the kernel is exact.

    Args:
        levels: number of levels; 0 compares graphs by the smoothness of their labels alone.
        radius: growth of the neighborhoods from level to level.
        eta: η.
        gamma: γ.
        rank: P.
        samples: number of reference nodes.
        random_state: seed of the choice of reference nodes.
        normalize: has no effect, as k(G, G) = 1; kept for the common interface.
        n_jobs: number of threads.
        verbose: show a progress bar.

    Attributes:
        labels_: hashes of the ``rank`` most frequent node labels of the training graphs.
        levels_: basis of each level.
    """

    labels_: Hashes
    levels_: list[Level]

    def __init__(
        self,
        levels: int = 2,
        *,
        radius: int = 1,
        eta: float = 0.1,
        gamma: float = 0.1,
        rank: int = 10,
        samples: int = 100,
        random_state: int = 0,
        normalize: bool = True,
        n_jobs: int | None = 2,
        verbose: bool = False,
    ) -> None:
        self.levels, self.radius, self.eta, self.gamma, self.rank = levels, radius, eta, gamma, rank
        self.samples, self.random_state, self.normalize = samples, random_state, normalize
        self.n_jobs, self.verbose = n_jobs, verbose

    def pairwise(self, graphs: GraphSet) -> bool:
        """Return False: the basis depends on the training graphs."""
        return False

    def state(self) -> State:
        """Node labels, the basis of each level and the states of the training graphs."""
        arrays, values = super().state()
        arrays |= {"labels": self.labels_, "train.inverse": self._train_[0], "train.logdet": self._train_[1]}
        for number, ((inverse, logdet), basis) in enumerate(self.levels_):
            arrays |= {f"{number}.inverse": inverse, f"{number}.logdet": logdet, f"{number}.basis": basis}
        return arrays, values

    def restore(self, arrays: Mapping[str, Array], values: Mapping[str, Any]) -> Self:
        """See :meth:`GraphKernel.restore`."""
        super().restore(arrays, values)
        self.labels_ = require_array(arrays, "labels", "u", (None,))
        if (self.labels_[1:] <= self.labels_[:-1]).any():
            raise ModelError(f"{DAMAGED} (the labels do not ascend)")

        def states(prefix: str, count: int | None) -> tuple[Floats, Floats]:
            inverse = require_array(arrays, f"{prefix}.inverse", "f", (count, None, None))
            if inverse.shape[1] != inverse.shape[2]:
                raise ModelError(f"{DAMAGED} (a matrix is not square)")
            return inverse, require_array(arrays, f"{prefix}.logdet", "f", (len(inverse),))

        self._train_ = states("train", len(self._scale_))
        self.levels_ = []
        for number in range(self.levels):
            references = states(str(number), None)
            basis = require_array(arrays, f"{number}.basis", "f", (len(references[0]), None))
            self.levels_.append(Level(references, basis))
        return self

    def _fit(self, graphs: GraphSet) -> None:
        for name, lowest in (("levels", 0), ("radius", 1), ("rank", 1), ("samples", 1)):
            if getattr(self, name) < lowest:
                raise ConfigError(f"{name} must be at least {lowest}, not {getattr(self, name)}")
        if not (self.eta > 0 and self.gamma > 0):
            raise ConfigError(f"eta and gamma must be positive, not {self.eta} and {self.gamma}")
        hashes = node_hashes(graphs, True)
        labels, count = np.unique(hashes, return_counts=True)
        self.labels_ = np.sort(labels[np.argsort(-count, kind="stable")[: self.rank]])
        rng = np.random.default_rng(self.random_state)
        self.levels_ = []
        U = self._one_hot(hashes)
        for level in range(1, self.levels + 1):
            chosen = np.sort(rng.permutation(graphs.num_nodes)[: self.samples])
            references = self._of_nodes(graphs, U, chosen, self.radius * level)
            K = self._kernel(references, references)
            value, vector = np.linalg.eigh((K + K.T) / 2)
            value, vector = value[::-1][: self.rank], vector[:, ::-1][:, : self.rank]
            keep = value > 1e-10 * value[0]
            basis = np.zeros((len(chosen), self.rank))
            basis[:, : keep.sum()] = vector[:, keep] / np.sqrt(value[keep])
            self.levels_.append(Level(references, basis))
            U = self._features(graphs, U, level)
        self._train_ = self._of_graphs(graphs, U)
        self._scale_ = np.ones(len(graphs))

    def _train_gram(self) -> Floats:
        K = self._kernel(self._train_, self._train_, symmetric=True)
        K += np.triu(K, 1).T
        return K

    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        U = self._one_hot(node_hashes(graphs, True))
        for level in range(1, self.levels + 1):
            U = self._features(graphs, U, level)
        return self._kernel(self._of_graphs(graphs, U), self._train_), np.ones(len(graphs))

    def _restrict(self, positions: Ints) -> None:
        super()._restrict(positions)
        self._train_ = self._train_[0][positions], self._train_[1][positions]

    def _one_hot(self, hashes: Hashes) -> Floats:
        """Return one-hot labels, [N, P]; labels that are not among ``labels_`` are zero."""
        at = np.minimum(np.searchsorted(self.labels_, hashes), len(self.labels_) - 1)
        U = np.zeros((len(hashes), self.rank))
        known = np.flatnonzero(self.labels_[at] == hashes)
        U[known, at[known]] = 1.0
        return U

    def _features(self, graphs: GraphSet, U: Floats, level: int) -> Floats:
        """Return the features of a level, [N, P], from those of the level before."""
        references, basis = self.levels_[level - 1]

        def describe(part: tuple[int, int]) -> Floats:
            found = self._of_nodes(graphs, U, np.arange(*part), self.radius * level)
            return np.asarray(flg_kernel(*found, *references, False) @ basis)

        parts = split_work(np.ones(graphs.num_nodes, dtype=np.int64), _NODES)
        return np.concatenate(map_threads(describe, parts, f"level {level}", self.n_jobs, self.verbose))

    def _of_nodes(self, graphs: GraphSet, U: Floats, nodes: Ints, radius: int) -> FLG:
        graph = np.searchsorted(graphs.ptr, nodes, side="right") - 1
        return self._flg(graphs, U, graph, nodes - graphs.ptr[graph], radius)

    def _of_graphs(self, graphs: GraphSet, U: Floats) -> FLG:
        def describe(part: tuple[int, int]) -> FLG:
            which = np.arange(*part)
            return self._flg(graphs, U, which, np.zeros_like(which), -1)

        parts = split_work(graphs.sizes + graphs.arc_counts, 50_000)
        found = map_threads(describe, parts, "graphs", self.n_jobs, self.verbose)
        return np.concatenate([part[0] for part in found]), np.concatenate([part[1] for part in found])

    def _flg(self, graphs: GraphSet, U: Floats, graph: Ints, root: Ints, radius: int) -> FLG:
        weight = np.zeros(0) if graphs.edge_weight is None else graphs.edge_weight.astype(np.float64)
        arrays = graphs.ptr, graphs.rowptr, graphs.col, weight
        found: FLG = flg_states(graph, root, radius, *arrays, U, float(self.eta), float(self.gamma))
        return found

    def _kernel(self, left: FLG, right: FLG, symmetric: bool = False) -> Floats:
        """Return the FLG kernel, [m, n]; with ``symmetric`` its upper triangle only."""
        columns = np.arange(len(left[0]), 0, -1) if symmetric else np.full(len(left[0]), len(right[0]))

        def compare(part: tuple[int, int]) -> Array:
            rows, first = slice(*part), part[0] if symmetric else 0
            found = flg_kernel(left[0][rows], left[1][rows], right[0][first:], right[1][first:], symmetric)
            return np.pad(found, ((0, 0), (first, 0))) if first else found

        parts = split_work(columns, _PAIRS)
        return np.concatenate(map_threads(compare, parts, "pairs", self.n_jobs, self.verbose))


@njit(cache=True, nogil=True)
def flg_states(
    graph: Array,
    root: Array,
    radius: int,
    ptr: Array,
    rowptr: Array,
    col: Array,
    weight: Array,
    U: Array,
    eta: float,
    gamma: float,
) -> FLG:
    """Compute S⁻¹ and log|S|, S = Uᵀ(L + ηI)⁻¹U + γI, of m neighborhoods.

    Roots with the same neighborhood, as in cliques and around hubs, share its state: sets of nodes are identified by
    the 64-bit sum of their nodes' hashes.

    Args:
        graph, root: [m] graph and root, counted within the graph, of each neighborhood.
        radius: hops from the root; negative: the whole graph.
        ptr, rowptr, col: arrays of the GraphSet.
        weight: [E] edge weights, or [0] where all are one.
        U: [N, P] node features.
        eta, gamma: η, γ.

    Returns:
        [m, P, P] and [m].
    """
    P = U.shape[1]
    largest = 1
    for g in graph:
        largest = max(largest, ptr[g + 1] - ptr[g])
    place = np.full(largest, -1, dtype=np.int64)  # position of a node in members, or -1
    members = np.empty(largest, dtype=np.int64)
    hops = np.empty(largest, dtype=np.int64)
    inverse = np.empty((len(graph), P, P))
    logdet = np.empty(len(graph))
    S = np.empty((P, P))
    diagonal = np.empty(largest)
    cached, where = np.zeros(_CACHE, dtype=np.uint64), np.zeros(_CACHE, dtype=np.int64)
    for m in range(len(graph)):
        base = ptr[graph[m]]
        n = ptr[graph[m] + 1] - base
        size = 0
        if radius < 0:
            for v in range(n):
                members[v] = v
                place[v] = v
            size = n
        else:
            members[0] = root[m]
            place[root[m]] = 0
            hops[0] = 0
            size, head = 1, 0
            while head < size and hops[head] < radius and size < n:
                u = members[head]
                for a in range(rowptr[base + u], rowptr[base + u + 1]):
                    v = col[a]
                    if place[v] < 0:
                        place[v] = size
                        members[size] = v
                        hops[size] = hops[head] + 1
                        size += 1
                head += 1
        key = np.uint64(size)
        for i in range(size):
            key += mix64(np.uint64(base + members[i]))
        slot = np.int64(key % np.uint64(_CACHE))
        if cached[slot] == key:
            inverse[m] = inverse[where[slot]]
            logdet[m] = logdet[where[slot]]
            for i in range(size):
                place[members[i]] = -1
            continue
        cached[slot], where[slot] = key, m
        for i in range(size):
            u = base + members[i]
            diagonal[i] = eta
            for a in range(rowptr[u], rowptr[u + 1]):
                if place[col[a]] >= 0:
                    diagonal[i] += weight[a] if len(weight) else 1.0
        if size <= _DENSE:
            _solve_dense(S, base, members[:size], place, diagonal, rowptr, col, weight, U)
        else:
            _solve_iteratively(S, base, members[:size], place, diagonal, rowptr, col, weight, U)
        for c in range(P):
            S[c, c] += gamma
        _cholesky(S, P)
        total = 0.0
        for c in range(P):
            total += 2.0 * np.log(S[c, c])
        logdet[m] = total
        _invert(S, inverse[m])
        for i in range(size):
            place[members[i]] = -1
    return inverse, logdet


@njit(cache=True, nogil=True)
def _solve_dense(
    S: Array,
    base: int,
    members: Array,
    place: Array,
    diagonal: Array,
    rowptr: Array,
    col: Array,
    weight: Array,
    U: Array,
) -> None:
    """Compute the lower triangle of S = Uᵀ(L + ηI)⁻¹U by Cholesky factorisation; ``diagonal`` is that of L + ηI."""
    size, P = len(members), U.shape[1]
    M, rows = np.zeros((size, size)), np.empty((size, P))
    for i in range(size):
        u = base + members[i]
        M[i, i] = diagonal[i]
        for a in range(rowptr[u], rowptr[u + 1]):
            j = place[col[a]]
            if j >= 0:
                M[i, j] = -(weight[a] if len(weight) else 1.0)
        for c in range(P):
            rows[i, c] = U[u, c]
    _cholesky(M, size)
    S[:] = 0.0
    for i in range(size):  # rows = C⁻¹U, so that S = rowsᵀ rows
        for j in range(i):
            for c in range(P):
                rows[i, c] -= M[i, j] * rows[j, c]
        for c in range(P):
            rows[i, c] /= M[i, i]
        for c in range(P):
            for d in range(c + 1):
                S[c, d] += rows[i, c] * rows[i, d]


@njit(cache=True, nogil=True)
def _solve_iteratively(
    S: Array,
    base: int,
    members: Array,
    place: Array,
    diagonal: Array,
    rowptr: Array,
    col: Array,
    weight: Array,
    U: Array,
) -> None:
    """Compute the same as :func:`_solve_dense` by conjugate gradients, preconditioned with the diagonal."""
    size, P = len(members), U.shape[1]
    z, r, p, q = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    S[:] = 0.0
    for c in range(P):
        start = 0.0
        for i in range(size):
            z[i] = 0.0
            r[i] = U[base + members[i], c]
            p[i] = r[i] / diagonal[i]
            start += r[i] * p[i]
        rho = start
        step = 0
        while rho > 1e-22 * start and step < 10 * size:
            step += 1
            along = 0.0
            for i in range(size):
                u = base + members[i]
                q[i] = diagonal[i] * p[i]
                for a in range(rowptr[u], rowptr[u + 1]):
                    j = place[col[a]]
                    if j >= 0:
                        q[i] -= (weight[a] if len(weight) else 1.0) * p[j]
                along += p[i] * q[i]
            alpha = rho / along
            after = 0.0
            for i in range(size):
                z[i] += alpha * p[i]
                r[i] -= alpha * q[i]
                after += r[i] * r[i] / diagonal[i]
            for i in range(size):
                p[i] = r[i] / diagonal[i] + after / rho * p[i]
            rho = after
        for i in range(size):
            for d in range(c + 1):
                S[c, d] += z[i] * U[base + members[i], d]


@njit(cache=True, nogil=True)
def flg_kernel(inverse: Array, logdet: Array, other_inverse: Array, other_logdet: Array, symmetric: bool) -> Floats:
    """Compute |½S⁻¹ + ½S'⁻¹|^(−1/2) / (|S| |S'|)^(1/4), [m, n], of all pairs or of the upper triangle."""
    m, n, P = len(inverse), len(other_inverse), inverse.shape[1]
    K = np.zeros((m, n))
    M = np.empty((P, P))
    for i in range(m):
        for j in range(i if symmetric else 0, n):
            for c in range(P):
                for d in range(c + 1):
                    M[c, d] = 0.5 * (inverse[i, c, d] + other_inverse[j, c, d])
            _cholesky(M, P)
            half = 0.0
            for c in range(P):
                half += np.log(M[c, c])
            K[i, j] = np.exp(-half - 0.25 * (logdet[i] + other_logdet[j]))
    return K


@njit(cache=True, nogil=True)
def _cholesky(M: Array, n: int) -> None:
    """Replace the lower triangle of M by its Cholesky factor."""
    for j in range(n):
        for k in range(j):
            x = M[j, k]
            for i in range(j, n):
                M[i, j] -= x * M[i, k]
        x = 1.0 / np.sqrt(M[j, j])
        for i in range(j, n):
            M[i, j] *= x


@njit(cache=True, nogil=True)
def _invert(C: Array, out: Array) -> None:
    """Compute out = (CCᵀ)⁻¹ from a lower triangular C."""
    n = len(C)
    T = np.zeros((n, n))
    for j in range(n):
        T[j, j] = 1.0 / C[j, j]
        for i in range(j + 1, n):
            x = 0.0
            for k in range(j, i):
                x -= C[i, k] * T[k, j]
            T[i, j] = x / C[i, i]
    for i in range(n):
        for j in range(n):
            x = 0.0
            for k in range(max(i, j), n):
                x += T[k, i] * T[k, j]
            out[i, j] = x
