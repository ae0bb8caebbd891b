"""Harmonic distances of graphs too large for exact ones: to sampled partners, with a known error.

R(x, y) = ℓ_x + ℓ_y − 2 L⁺_xy, ℓ the diagonal of L⁺. For s sampled partners Y the columns C of L⁺ are solved for, which
gives L⁺_xy and ℓ_y. What is missing is ℓ_x. By L L⁺ = I − J/n it is, with p_x the shares of x's neighbors in d_x,

    ℓ_x = (1 − 2/n) / d_x + p_xᵀ L⁺ p_x,    L⁺ = C C_Y⁻¹ Cᵀ + E,

where E is what is left of L⁺ when the partners are grounded: small where a partner is near. Only p_xᵀ E p_x = e_x is
estimated, by a random projection: for z = L⁺ Bᵀ W^½ ξ with random signs ξ, z − C C_Y⁻¹ z_Y has the covariance E, so the
mean of q squares of p_xᵀ(z − C C_Y⁻¹ z_Y) has the expectation e_x and a standard error of e_x √(2/q) at most (the signs
are a little better than Gaussian numbers, whose error this is). Every distance of x carries that same error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.sparse import csr_array, diags_array, triu

from gcaps.data.arrays import Floats, Ints
from gcaps.features.binning import Piece
from gcaps.features.laplacian import LaplacianSolver
from gcaps.features.quotient import Network, Quotient
from gcaps.features.sweep import sparse_quotient

PARTNERS = 128
PROJECTIONS = 32
_TOLERANCE = 1e-3
"""Relative residual of the solver: its part in the error of a distance is below a thousandth of the largest one."""
_ROWS = 1 << 16


class Sketch(NamedTuple):
    """What is known of the distances of n nodes to s partners."""

    partners: Ints
    """[s]"""
    columns: Floats
    """[n, s] float32, of L⁺"""
    diagonal: Floats
    """[n] of L⁺"""
    error: Floats
    """[n] the standard error of the diagonal, and so of every distance of the node; 0 for partners."""

    def distances(self, rows: slice) -> Floats:
        """[r, s] from some nodes to the partners."""
        R: Floats = self.diagonal[rows, None] + self.diagonal[self.partners] - 2.0 * self.columns[rows]
        return np.maximum(R, 0.0)


def sketch(W: csr_array, partners: Ints, projections: int = PROJECTIONS, seed: int = 0, jobs: int = 1) -> Sketch:
    """The sketch of a connected network.

    Args:
        W: [n, n] symmetric conductances without a diagonal.
        partners: [s] nodes, each once, s < n.
        projections: q
        seed: decides the random signs and the solver's factorisation.
        jobs: threads.
    """
    n = W.shape[0]
    rng = np.random.default_rng(seed)
    solver = LaplacianSolver(W, seed)
    unit = np.full((n, len(partners)), -1.0 / n, dtype=np.float32)
    unit[partners, np.arange(len(partners))] += 1
    columns = solver.solve(unit, _TOLERANCE, jobs)
    Z = solver.solve(_signed_currents(W, projections, rng), _TOLERANCE, jobs)
    inner = columns[partners].astype(np.float64)
    factor = cho_factor((inner + inner.T) / 2, lower=True)
    Z -= columns @ cho_solve(factor, Z[partners].astype(np.float64)).astype(np.float32)
    strength = W.sum(axis=0)
    P = csr_array(diags_array(1 / strength) @ W)
    known, left = np.empty(n), np.empty(n)
    for begin in range(0, n, _ROWS):
        rows = slice(begin, begin + _ROWS)
        near = (P[rows] @ columns).astype(np.float64)
        known[rows] = np.square(solve_triangular(factor[0], near.T, lower=True)).sum(axis=0)
        left[rows] = np.square(P[rows] @ Z).mean(axis=1)
    diagonal = (1 - 2 / n) / strength + known + left
    error = np.sqrt(2 / projections) * left
    diagonal[partners], error[partners] = np.diagonal(inner), 0
    return Sketch(partners, columns, diagonal, error)


def _signed_currents(W: csr_array, count: int, rng: np.random.Generator) -> Floats:
    """[n, q] float32 Bᵀ W^½ ξ: every edge carries a current of ± the root of its weight."""
    edges = triu(W, format="coo")
    root = np.sqrt(edges.data)
    out = np.empty((W.shape[0], count), dtype=np.float32)
    for c in range(count):
        current = root * (2.0 * rng.integers(0, 2, len(root)) - 1)
        out[:, c] = np.bincount(edges.row, current, len(out)) - np.bincount(edges.col, current, len(out))
    return out


def sketched(
    network: Network, q: Quotient, p: int, partners: int, projections: int, seed: int, jobs: int
) -> Iterator[tuple[Piece, Ints]]:
    """Component p some rows at a time, and how often each class [K] was drawn as a partner."""
    first, last = int(q.component_ptr[p]), int(q.component_ptr[p + 1])
    rng = np.random.default_rng(seed)
    share = q.size[first:last] / q.nodes_in_component[p]
    drawn = rng.multinomial(partners, share)
    chosen = np.flatnonzero(drawn)
    found = sketch(csr_array(sparse_quotient(network, q, p)), chosen, projections, seed, jobs)
    multiplicity = np.zeros(len(q.head), dtype=np.int64)
    multiplicity[first:last] = drawn
    for begin in range(0, last - first, _ROWS):
        R = found.distances(slice(begin, begin + _ROWS))
        rows = np.arange(len(R)) + begin + first
        ends, across = np.array([0, len(R)]), np.array([0, len(chosen)])
        yield Piece(R.reshape(-1), np.zeros(1, dtype=np.int64), ends, rows, across, chosen + first), multiplicity
