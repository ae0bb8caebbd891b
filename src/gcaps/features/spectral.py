"""The wider family of distances S_f(x, y) = Σ_n f(λ_n) (φ_n(x) − φ_n(y))² of a graph's Laplacian."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.sparse import csr_array, diags_array

from gcaps.data.arrays import Floats, Ints
from gcaps.errors import ConfigError
from gcaps.features.binning import Piece
from gcaps.features.quotient import Network, Quotient
from gcaps.features.sweep import Solve, harmonic, sparse_quotient

Family = str | Sequence[float]
"""``"harmonic"`` f = 1/λ, ``"biharmonic"`` f = 1/λ², or the coefficients (c₀, c₁, …) of f = Σ_k c_k λ^k."""


def solver(f: Family) -> Solve | None:
    """What solves one component for ``f``; None for harmonic distances, which have ways of their own."""
    if isinstance(f, str):
        if f not in ("harmonic", "biharmonic"):
            raise ConfigError(f"f is harmonic, biharmonic or a row of polynomial coefficients; given {f!r}")
        return None if f == "harmonic" else biharmonic
    coefficients = np.asarray(f, dtype=np.float64)
    if coefficients.ndim != 1 or not len(coefficients) or not np.isfinite(coefficients).all():
        raise ConfigError(f"polynomial coefficients are a row of finite numbers c₀, c₁, …; given {f!r}")
    return partial(polynomial, coefficients)


def biharmonic(network: Network, q: Quotient, p: int) -> Piece:
    """f = 1/λ²: S = M_xx + M_yy − 2 M_xy with M = L⁺ L⁺, and L⁺ = −½ (I − J/n) R (I − J/n)."""
    piece = harmonic(network, q, p)
    n = len(piece.rows)
    pinv = piece.R.reshape(n, n) / -2
    pinv -= pinv.mean(axis=0)
    pinv -= pinv.mean(axis=1, keepdims=True)
    return piece._replace(R=_distances(pinv @ pinv.T))


def polynomial(coefficients: Floats, network: Network, q: Quotient, p: int) -> Piece:
    """f = Σ_k c_k λ^k: S = M_xx + M_yy − 2 M_xy with M = f(L), by Horner's rule."""
    W = sparse_quotient(network, q, p)
    L = csr_array(diags_array(W.sum(axis=0)) - W)
    n = L.shape[0]
    M = coefficients[-1] * np.eye(n)
    for c in coefficients[-2::-1]:
        M = L @ M
        M[np.arange(n), np.arange(n)] += c
    ends = np.array([0, n])
    classes: Ints = np.arange(n) + q.component_ptr[p]
    return Piece(_distances(M), np.zeros(1, dtype=np.int64), ends, classes, ends, classes)


def _distances(M: Floats) -> Floats:
    """Flat M_xx + M_yy − 2 M_xy, M symmetrised so that both directions have the same bits."""
    diagonal = np.diagonal(M).copy()
    S = diagonal[:, None] + diagonal - (M + M.T)
    np.fill_diagonal(S, 0)
    return S.reshape(-1)
