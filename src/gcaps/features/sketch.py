"""Harmonic distances of graphs that are too large for exact ones: to sampled partners, with a known error.

R(x, y) = ℓ_x + ℓ_y − 2 L⁺_xy, where ℓ is the diagonal of L⁺. Solving for the columns C of L⁺ of s sampled partners Y
gives L⁺_xy and ℓ_y, but not ℓ_x. By L L⁺ = I − J/n, with p_x the shares of x's neighbors in its strength d_x,

    ℓ_x = (1 − 2/n) / d_x + p_xᵀ L⁺ p_x,    L⁺ = C C_Y⁻¹ Cᵀ + E,

where E is L⁺ with the partners grounded, which is small near a partner. Only e_x = p_xᵀ E p_x is estimated, by random
projections: for z = L⁺ Bᵀ W^½ ξ with random signs ξ, z − C C_Y⁻¹ z_Y has covariance E, so the mean of q squares of
p_xᵀ(z − C C_Y⁻¹ z_Y) has expectation e_x and a standard error of at most e_x √(2/q), which is that of Gaussian ξ. All
distances of x have this same error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.sparse import csc_array, csr_array, diags_array, triu
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from gcaps.data.arrays import Floats, Ints
from gcaps.errors import GcapsError
from gcaps.features.binning import Piece
from gcaps.features.quotient import Network, Quotient
from gcaps.features.sweep import sparse_quotient

PARTNERS = 128
PROJECTIONS = 32
_TOLERANCE = 1e-3
"""Relative residual of the solver, which adds less than 0.1 % of the largest distance to the error of a distance."""
_ROWS = 1 << 16
_COLUMNS = 16
"""Right-hand sides that are solved together."""
_FEW_ITERATIONS, _MAX_ITERATIONS = 60, 10_000
_PLANAR = 4.0
"""Mean bandwidth after reordering, in units of √n, up to which a graph has separators like a planar one."""


class LaplacianSolver:
    """Solve L x = b for the Laplacian L of a connected network.

    Conjugate gradients with a diagonal preconditioner if they converge in few iterations, as on power-law graphs;
    otherwise sparse LU factors if the graph has small separators, as grids and road networks do; otherwise conjugate
    gradients again. Compared with an approximate Cholesky preconditioner (Gao, Kyng and Spielman 2023) compiled with
    numba, this takes 0.5 times as long on grids and 0.6 to 1.1 times as long on power-law graphs of 10⁴ to 10⁵ nodes,
    and up to 4 times as long on graphs that are neither, such as small worlds.

    Args:
        W: [n, n] symmetric conductances without a diagonal.
    """

    def __init__(self, W: csr_array) -> None:
        self.strength = W.sum(axis=0)
        self.L = csr_array(diags_array(self.strength) - W)

    def solve(self, b: Floats, tolerance: float = 1e-7, n_jobs: int = 1) -> Floats:
        """Return L⁺ b [n, s] in the precision of b [n, s], whose columns sum to 0.

        Raises:
            GcapsError: the relative residual stays above ``tolerance``.
        """
        L = csr_array(self.L, dtype=b.dtype)
        solve = self._method(L, b[:, :1], tolerance)
        out = np.empty_like(b)

        def one(first: int) -> None:
            columns = slice(first, first + _COLUMNS)
            right = np.ascontiguousarray(b[:, columns])
            x = solve(right)
            x -= x.mean(axis=0)
            residual = float(np.sqrt(_dots(right - L @ x) / np.maximum(_dots(right), 1e-300)).max())
            if not residual <= 2 * tolerance:  # conjugate gradients update their residual, which drifts a little
                raise GcapsError(
                    f"a Laplacian system is solved with a relative residual of {residual:.1e} only; its weights differ "
                    "by too many orders of magnitude"
                )
            out[:, columns] = x

        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(one, range(0, b.shape[1], _COLUMNS)))
        return out

    def _method(self, L: csr_array, b: Floats, tolerance: float) -> Callable[[Floats], Floats]:
        """Choose how to solve, by a trial with one right-hand side."""
        diagonal = self.strength.astype(b.dtype)[:, None]
        _, converged = conjugate_gradients(L, diagonal, b, tolerance, _FEW_ITERATIONS)
        if not converged and self._bandwidth() <= _PLANAR * np.sqrt(len(b)):
            return self._factorised()
        iterate = partial(conjugate_gradients, L, diagonal, tolerance=tolerance, iterations=_MAX_ITERATIONS)
        return lambda right: iterate(right)[0]

    def _bandwidth(self) -> float:
        """Mean bandwidth of L after Cuthill-McKee reordering."""
        order = reverse_cuthill_mckee(self.L, symmetric_mode=True)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        lowest = np.minimum.reduceat(rank[self.L.indices], self.L.indptr[:-1])
        return float((rank - lowest).mean())

    def _factorised(self) -> Callable[[Floats], Floats]:
        """Solve with LU factors of L without the node of largest strength, which is grounded."""
        rest = np.delete(np.arange(len(self.strength)), int(np.argmax(self.strength)))
        factors = splu(
            csc_array(self.L[rest][:, rest]),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )

        def solve(right: Floats) -> Floats:
            x = np.zeros_like(right)
            x[rest] = factors.solve(right[rest].astype(np.float64))
            return x

        return solve


@np.errstate(over="ignore", invalid="ignore")  # of systems without a solution, which the caller notices
def conjugate_gradients(
    L: csr_array, diagonal: Floats, b: Floats, tolerance: float, iterations: int
) -> tuple[Floats, bool]:
    """Solve L x = b [n, s] with the preconditioner ``diagonal`` [n, 1]; return x and whether it has converged."""
    x, residual = np.zeros_like(b), b.copy()
    z = residual / diagonal
    direction = z.copy()
    rho, norm = _dots(residual, z), np.maximum(_dots(b), 1e-300)
    for _ in range(iterations):
        product = L @ direction
        step = (rho / np.maximum(_dots(direction, product), 1e-300)).astype(b.dtype)
        x += step * direction
        residual -= step * product
        if np.sqrt((_dots(residual) / norm).max()) <= tolerance:
            return x, True
        z = residual / diagonal
        before, rho = rho, _dots(residual, z)
        direction *= (rho / np.maximum(before, 1e-300)).astype(b.dtype)
        direction += z
    return x, False


def _dots(a: Floats, b: Floats | None = None) -> Floats:
    """[s] inner products of the columns in float64."""
    products: Floats = np.einsum("ij,ij->j", a, a if b is None else b, dtype=np.float64)
    return products


class Sketch(NamedTuple):
    """Approximate distances of n nodes to s partners."""

    partners: Ints
    """[s]"""
    columns: Floats
    """[n, s] float32 columns of L⁺."""
    diagonal: Floats
    """[n] diagonal of L⁺."""
    error: Floats
    """[n] standard error of the diagonal, and so of every distance of the node; 0 for partners."""

    def distances(self, rows: slice) -> Floats:
        """[r, s] distances of some nodes to the partners."""
        R: Floats = self.diagonal[rows, None] + self.diagonal[self.partners] - 2.0 * self.columns[rows]
        return np.maximum(R, 0.0)


def sketch(
    W: csr_array, partners: Ints, projections: int = PROJECTIONS, random_state: int = 0, n_jobs: int = 1
) -> Sketch:
    """Compute the sketch of a connected network.

    Args:
        W: [n, n] symmetric conductances without a diagonal.
        partners: [s] distinct nodes, s < n.
        projections: number q of random projections.
        random_state: seed of the random signs.
        n_jobs: threads.
    """
    n = W.shape[0]
    rng = np.random.default_rng(random_state)
    solver = LaplacianSolver(W)
    unit = np.full((n, len(partners)), -1.0 / n, dtype=np.float32)
    unit[partners, np.arange(len(partners))] += 1
    columns = solver.solve(unit, _TOLERANCE, n_jobs)
    Z = solver.solve(_signed_currents(W, projections, rng), _TOLERANCE, n_jobs)
    inner = columns[partners].astype(np.float64)
    factor = cho_factor((inner + inner.T) / 2, lower=True)
    Z -= columns @ cho_solve(factor, Z[partners].astype(np.float64)).astype(np.float32)
    P = csr_array(diags_array(1 / solver.strength) @ W)
    known, left = np.empty(n), np.empty(n)
    for begin in range(0, n, _ROWS):
        rows = slice(begin, begin + _ROWS)
        near = (P[rows] @ columns).astype(np.float64)
        known[rows] = np.square(solve_triangular(factor[0], near.T, lower=True)).sum(axis=0)
        left[rows] = np.square(P[rows] @ Z).mean(axis=1)
    diagonal = (1 - 2 / n) / solver.strength + known + left
    error = np.sqrt(2 / projections) * left
    diagonal[partners], error[partners] = np.diagonal(inner), 0
    return Sketch(partners, columns, diagonal, error)


def _signed_currents(W: csr_array, count: int, rng: np.random.Generator) -> Floats:
    """[n, q] float32 Bᵀ W^½ ξ: every edge carries a current of ± the square root of its weight."""
    edges = triu(W, format="coo")
    root = np.sqrt(edges.data)
    out = np.empty((W.shape[0], count), dtype=np.float32)
    for c in range(count):
        current = root * (2.0 * rng.integers(0, 2, len(root)) - 1)
        out[:, c] = np.bincount(edges.row, current, len(out)) - np.bincount(edges.col, current, len(out))
    return out


def sketched(
    network: Network, q: Quotient, p: int, partners: int, projections: int, random_state: int, n_jobs: int
) -> Iterator[tuple[Piece, Ints]]:
    """Yield component p in blocks of rows, and how often each class [K] was drawn as a partner."""
    first, last = int(q.component_ptr[p]), int(q.component_ptr[p + 1])
    rng = np.random.default_rng(random_state)
    share = q.size[first:last] / q.nodes_in_component[p]
    drawn = rng.multinomial(partners, share)
    chosen = np.flatnonzero(drawn)
    found = sketch(csr_array(sparse_quotient(network, q, p)), chosen, projections, random_state, n_jobs)
    multiplicity = np.zeros(len(q.head), dtype=np.int64)
    multiplicity[first:last] = drawn
    for begin in range(0, last - first, _ROWS):
        R = found.distances(slice(begin, begin + _ROWS))
        rows = np.arange(len(R)) + begin + first
        ends, across = np.array([0, len(R)]), np.array([0, len(chosen)])
        yield Piece(R.reshape(-1), np.zeros(1, dtype=np.int64), ends, rows, across, chosen + first), multiplicity
