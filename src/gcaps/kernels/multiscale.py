"""The multiscale Laplacian graph kernel (Kondor and Pan, 2016)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.kernels.base import GraphKernel
from gcaps.kernels.hashing import Names, node_names
from gcaps.kernels.progress import steps
from gcaps.kernels.shortest_path import balanced

T = TypeVar("T")

_NODES = 4096
"""Nodes of one portion."""

States = tuple[Floats, Floats]
"""S⁻¹ [m, P, P] and log|S| [m]."""


class Level(NamedTuple):
    """The shared basis of one level: reference neighborhoods, and what turns similarities to them into features."""

    states: States
    basis: Floats
    """[references, P]"""


class MultiscaleLaplacian(GraphKernel):
    """The feature-space Laplacian kernel of whole graphs, its node features again such kernels of neighborhoods.

    k(G, H) = |½S_G⁻¹ + ½S_H⁻¹|^(−1/2) / (|S_G| |S_H|)^(1/4),  S_G = Uᵀ(L_G + ηI)⁻¹U + γI,

    with the node features U [n, P]. At level 0 they are the node labels (degrees where there are none). At level
    ℓ = 1..levels two nodes are as similar as the subgraphs within ``radius``·ℓ hops of them, by the same formula with
    the features of level ℓ−1; features come from ``samples`` reference nodes of the training graphs and the ``rank``
    leading eigenvectors of their Gram matrix (Nyström), one basis for all graphs. A pair of graphs then costs one
    Cholesky factorisation of P × P. Where samples and rank suffice, the kernel is exact.

    Args:
        levels: 0 compares graphs by their labels' smoothness alone.
        radius: growth of the neighborhoods from level to level.
        eta: η.
        gamma: γ.
        rank: P.
        samples: reference nodes.
        seed: decides the reference nodes.
        normalize: k(G, G) is 1 already; kept for the common interface.
        threads: threads.
        verbose: show a progress bar.
    """

    def __init__(
        self,
        levels: int = 2,
        *,
        radius: int = 1,
        eta: float = 0.1,
        gamma: float = 0.1,
        rank: int = 10,
        samples: int = 100,
        seed: int = 0,
        normalize: bool = False,
        threads: int = 2,
        verbose: bool = False,
    ) -> None:
        self.levels, self.radius, self.eta, self.gamma, self.rank = levels, radius, eta, gamma, rank
        self.samples, self.seed, self.normalize, self.threads, self.verbose = samples, seed, normalize, threads, verbose

    def pairwise(self, graphs: GraphSet) -> bool:
        """The basis comes from the training graphs."""
        return False

    def _fit(self, graphs: GraphSet) -> None:
        for name, lowest in (("levels", 0), ("radius", 1), ("rank", 1), ("samples", 1)):
            if getattr(self, name) < lowest:
                raise ConfigError(f"{name} must be at least {lowest}, not {getattr(self, name)}")
        if not (self.eta > 0 and self.gamma > 0):
            raise ConfigError(f"eta and gamma must be positive, not {self.eta} and {self.gamma}")
        names = node_names(graphs, True)
        labels, count = np.unique(names, return_counts=True)
        self.labels_: Names = np.sort(labels[np.argsort(-count, kind="stable")[: self.rank]])
        rng = np.random.default_rng(self.seed)
        self.levels_: list[Level] = []
        U = self._base(names)
        for level in range(1, self.levels + 1):
            chosen = np.sort(rng.permutation(graphs.num_nodes)[: self.samples])
            states = self._states(graphs, U, chosen, self.radius * level)
            K = self._kernel(states, states)
            value, vector = np.linalg.eigh((K + K.T) / 2)
            value, vector = value[::-1][: self.rank], vector[:, ::-1][:, : self.rank]
            keep = value > 1e-10 * value[0]
            basis = np.zeros((len(chosen), self.rank))
            basis[:, : keep.sum()] = vector[:, keep] / np.sqrt(value[keep])
            self.levels_.append(Level(states, basis))
            U = self._features(graphs, U, level)
        self._states_ = self._graph_states(graphs, U)
        self._scale_ = np.ones(len(graphs))

    def _train_gram(self) -> Floats:
        K = self._kernel(self._states_, self._states_, symmetric=True)
        K += np.triu(K, 1).T
        return K

    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        U = self._base(node_names(graphs, True))
        for level in range(1, self.levels + 1):
            U = self._features(graphs, U, level)
        return self._kernel(self._graph_states(graphs, U), self._states_), np.ones(len(graphs))

    def _base(self, names: Names) -> Floats:
        """[N, P] one-hot labels; those beyond the ``rank`` most frequent, or never seen in training, are zero."""
        at = np.minimum(np.searchsorted(self.labels_, names), len(self.labels_) - 1)
        U = np.zeros((len(names), self.rank))
        known = np.flatnonzero(self.labels_[at] == names)
        U[known, at[known]] = 1.0
        return U

    def _features(self, graphs: GraphSet, U: Floats, level: int) -> Floats:
        """[N, P] a level's features from those of the level before."""
        reference, basis = self.levels_[level - 1]

        def describe(part: tuple[int, int]) -> Floats:
            found = self._states(graphs, U, np.arange(*part), self.radius * level)
            return np.asarray(_kernel(found, reference, False) @ basis)

        parts = balanced(np.ones(graphs.num_nodes, dtype=np.int64), _NODES)
        return np.concatenate(self._map(describe, parts, f"level {level}"))

    def _states(self, graphs: GraphSet, U: Floats, nodes: Ints, radius: int) -> States:
        graph = np.searchsorted(graphs.ptr, nodes, side="right") - 1
        return self._flg(graphs, U, graph, nodes - graphs.ptr[graph], radius)

    def _graph_states(self, graphs: GraphSet, U: Floats) -> States:
        def describe(part: tuple[int, int]) -> States:
            which = np.arange(*part)
            return self._flg(graphs, U, which, np.zeros_like(which), -1)

        parts = self._map(describe, balanced(graphs.sizes + graphs.arc_counts, 50_000), "graphs")
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _flg(self, graphs: GraphSet, U: Floats, graph: Ints, root: Ints, radius: int) -> States:
        from gcaps.kernels.laplacian import flg_states

        weight = np.zeros(0) if graphs.edge_weight is None else graphs.edge_weight.astype(np.float64)
        found: States = flg_states(
            graph,
            root,
            radius,
            graphs.ptr,
            graphs.rowptr,
            graphs.col,
            weight,
            U,
            float(self.eta),
            float(self.gamma),
        )
        return found

    def _kernel(self, left: States, right: States, symmetric: bool = False) -> Floats:
        """[m, n]; rows are shared out among the threads."""
        if symmetric:  # row i begins at column i: cut off what lies before the portion
            parts = balanced(np.arange(len(left[0]), 0, -1), 200_000)
        else:
            parts = balanced(np.full(len(left[0]), len(right[0])), 200_000)

        def compare(part: tuple[int, int]) -> Array:
            rows = slice(*part)
            first = part[0] if symmetric else 0
            found = _kernel((left[0][rows], left[1][rows]), (right[0][first:], right[1][first:]), symmetric)
            return np.pad(found, ((0, 0), (first, 0))) if first else found

        return np.concatenate(self._map(compare, parts, "pairs"))

    def _map(self, function: Callable[[tuple[int, int]], T], parts: list[tuple[int, int]], title: str) -> list[T]:
        with ThreadPoolExecutor(self.threads) as pool:
            return list(steps(pool.map(function, parts), len(parts), title, self.verbose))


def _kernel(left: States, right: States, symmetric: bool) -> Floats:
    from gcaps.kernels.laplacian import flg_kernel

    found: Floats = flg_kernel(*left, *right, symmetric)
    return found
