"""Return probabilities of random walks, a description of a node's place in its graph (Zhang et al., 2018)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numba import njit

from gcaps.data.arrays import Array, Floats, Ints, ranges
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError
from gcaps.features.structural import Standardized

STEPS = 50
"""Steps of the node feature and of the kernel by default."""
_TOGETHER = 16
"""Walks, from different nodes, that are computed side by side."""


def return_probabilities(graphs: GraphSet, steps: int = STEPS, *, loops: bool = False) -> Floats:
    """Return the probability that a random walk is back at its first node after 1, 2, …, ``steps`` steps, [N, steps].

    Exact up to rounding. A walk chooses an arc in proportion to its weight: P = D⁻¹A. As P is similar to the symmetric
    S = D^-½ A D^-½, P^{2t} has the diagonal ‖S^t e_v‖² and P^{2t+1} has ⟨S^t e_v, S^{t+1} e_v⟩, so that half as many
    steps suffice: steps/2 · nodes · arcs operations for a graph, and no matrix of nodes × nodes. The walk from a node
    without edges never returns.

    Args:
        graphs: the graphs.
        steps: number of steps.
        loops: add a self-loop of weight 1 to every node, so that walks may stay where they are.
    """
    if not 1 <= steps <= 10_000:
        raise ConfigError(f"steps must be from 1 to 10000, not {steps}")
    weight = np.ones(len(graphs.col)) if graphs.edge_weight is None else graphs.edge_weight.astype(np.float64)
    out = np.empty((graphs.num_nodes, steps))
    _fill(graphs.ptr, graphs.rowptr, graphs.col, weight, 1.0 if loops else 0.0, out)
    return out


@njit(cache=True, nogil=True)
def _fill(ptr: Array, rowptr: Array, col: Array, weight: Array, loop: float, out: Array) -> None:
    """Fill the rows of all nodes."""
    steps = out.shape[1]
    for g in range(len(ptr) - 1):
        base = ptr[g]
        n = ptr[g + 1] - base
        root = np.zeros(n)  # 1/√degree
        for v in range(n):
            degree = loop
            for arc in range(rowptr[base + v], rowptr[base + v + 1]):
                degree += weight[arc]
            if degree > 0:
                root[v] = 1.0 / np.sqrt(degree)
        now, after = np.empty((n, _TOGETHER)), np.empty((n, _TOGETHER))
        for first in range(0, n, _TOGETHER):
            width = min(_TOGETHER, n - first)
            now[:] = 0.0
            for k in range(width):
                now[first + k, k] = 1.0
            step = 0
            while step < steps:
                for v in range(n):
                    for k in range(_TOGETHER):
                        after[v, k] = loop * root[v] * root[v] * now[v, k]
                    for arc in range(rowptr[base + v], rowptr[base + v + 1]):
                        u = col[arc]
                        value = weight[arc] * root[v] * root[u]
                        for k in range(_TOGETHER):
                            after[v, k] += value * now[u, k]
                for k in range(width):
                    odd, even = 0.0, 0.0
                    for v in range(n):
                        odd += now[v, k] * after[v, k]
                        even += after[v, k] * after[v, k]
                    out[base + first + k, step] = odd
                    if step + 1 < steps:
                        out[base + first + k, step + 1] = even
                step += 2
                now, after = after, now


class ReturnProbabilityFeatures(Standardized):
    """Return probabilities of 1 to 50 steps of every node, standardised over the training graphs."""

    what: ClassVar[str] = "return probabilities"

    @staticmethod
    def values(graphs: GraphSet) -> Array:
        """[N, 50]"""
        return return_probabilities(graphs)

    def fit_prepared(self, prepared: PreparedSet, chosen: Ints) -> Self:
        """Fit to some graphs of a prepared set, for all of which the probabilities are computed once."""
        ptr = prepared.graphs.ptr
        return self.fit_values([_of(prepared)[ranges(ptr[chosen], ptr[chosen + 1] - ptr[chosen])]])

    def transform(self, graphs: GraphSet | PreparedSet) -> Floats:
        """[N, 50] float32."""
        if isinstance(graphs, PreparedSet) and not graphs.graphs.mapped:
            return self.scaled(_of(graphs))
        return super().transform(graphs.graphs if isinstance(graphs, PreparedSet) else graphs)


def _of(prepared: PreparedSet) -> Floats:
    return prepared.get(("return probabilities", STEPS), lambda: return_probabilities(prepared.graphs))
