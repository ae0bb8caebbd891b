"""Slow, dense, obvious versions of the paper's formulas, in float64. Nothing here shares code with gcaps."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def adjacency(graph) -> np.ndarray:
    """A of one graph of a GraphSet, entry by entry."""
    A = np.zeros((graph.num_nodes, graph.num_nodes))
    for e in range(graph.edge_index.shape[1]):
        i, j = graph.edge_index[:, e]
        A[i, j] = 1.0 if graph.edge_weight is None else graph.edge_weight[e]
    return A


def filter_matrix(name: str, A: np.ndarray) -> np.ndarray:
    n = len(A)
    degree = A.sum(axis=1)
    D, identity = np.diag(degree), np.eye(n)
    inverse = np.diag([1 / d if d > 0 else 0.0 for d in degree])
    connected = np.diag([1.0 if d > 0 else 0.0 for d in degree])
    looped = A + identity
    looped_inverse = np.diag(1 / looped.sum(axis=1))
    return {
        "laplacian": D - A,
        "symmetric": connected - np.sqrt(inverse) @ A @ np.sqrt(inverse),
        "random_walk": connected - inverse @ A,
        "adjacency": A,
        "kipf": np.sqrt(looped_inverse) @ looped @ np.sqrt(looped_inverse),
        "mean": looped_inverse @ looped,
    }[name]


def relation_filter(name: str, A: np.ndarray, A_r: np.ndarray, relations: int) -> np.ndarray:
    """M_r for the edges A_r of one of several relations, normalised by the degrees of the whole graph A."""
    degree = A.sum(axis=1)
    identity, L_r = np.eye(len(A)), np.diag(A_r.sum(axis=1)) - A_r
    inverse = np.diag([1 / d if d > 0 else 0.0 for d in degree])
    looped_inverse = np.diag(1 / (degree + 1))
    looped = A_r + identity / relations
    if name == "chebyshev":
        both = degree[:, None] + degree[None, :]
        bound = both[A > 0].max() if (A > 0).any() else np.inf
        return 2 * L_r / bound - identity
    return {
        "laplacian": L_r,
        "symmetric": np.sqrt(inverse) @ L_r @ np.sqrt(inverse),
        "random_walk": inverse @ L_r,
        "adjacency": A_r,
        "kipf": np.sqrt(looped_inverse) @ looped @ np.sqrt(looped_inverse),
        "mean": looped_inverse @ looped,
        "cayley": np.sqrt(inverse) @ L_r @ np.sqrt(inverse),
    }[name]


def polynomial_basis(name: str, M: np.ndarray, degree: int) -> list[np.ndarray]:
    """B_0(M), B_1(M), … of a matrix in the basis of a filter."""
    identity = np.eye(len(M))
    if name == "chebyshev":
        T = [identity, M]
        while len(T) <= degree:
            T.append(2 * M @ T[-1] - T[-2])
        return T[: degree + 1]
    if name == "cayley":
        C = (M - 1j * identity) @ np.linalg.inv(M + 1j * identity)
        powers = [np.linalg.matrix_power(C, k) for k in range(1, degree + 1)]
        return [identity] + [part for power in powers for part in (power.real, power.imag)]
    return [np.linalg.matrix_power(M, k) for k in range(degree + 1)]


def gate(attributes: np.ndarray, u: np.ndarray, c: float) -> np.ndarray:
    """[e] ln(1 + exp(u·a + c)) / ln 2 for each row of the attributes."""
    return np.log1p(np.exp(attributes @ u + c)) / np.log(2)


def basis_matrices(name: str, A: np.ndarray, degree: int) -> list[np.ndarray]:
    """B_0(M), B_1(M), …: powers, Chebyshev polynomials by their recurrence, or Re and Im of Cayley powers."""
    n = len(A)
    identity = np.eye(n)
    if name == "chebyshev":
        d = A.sum(axis=1)
        bound = max((d[i] + d[j] for i in range(n) for j in range(n) if A[i, j] > 0), default=np.inf)
        M = 2 * (np.diag(d) - A) / bound - identity
        T = [identity, M]
        while len(T) <= degree:
            T.append(2 * M @ T[-1] - T[-2])
        return T[: degree + 1]
    if name == "cayley":
        L = filter_matrix("symmetric", A)
        C = (L - 1j * identity) @ np.linalg.inv(L + 1j * identity)
        powers = [np.linalg.matrix_power(C, k) for k in range(1, degree + 1)]
        return [identity] + [part for power in powers for part in (power.real, power.imag)]
    M = filter_matrix(name, A)
    return [np.linalg.matrix_power(M, k) for k in range(degree + 1)]


def capsule_statistics(name: str, X: np.ndarray, A: np.ndarray, P: int, **parameters) -> np.ndarray:
    """[P, n, c] of each closed neighborhood, value by value."""
    n, c = X.shape
    out = np.zeros((P, n, c))
    for i in range(n):
        members = [i] + [k for k in range(n) if A[i, k] > 0]
        weights = np.array([1.0 if k == i else A[i, k] for k in members])
        for channel in range(c):
            values = X[members, channel]
            for p in range(1, P + 1):
                if name == "central":
                    value = central_moment(values, weights, p)
                elif name == "polynomial":
                    products = [np.prod(some) for some in combinations(values, p)]
                    value = sum(products) / len(products) if products else 0.0
                else:
                    centre, width = parameters["center"][p - 1, channel], parameters["width"][p - 1, channel]
                    value = (weights * np.exp(-0.5 * ((values - centre) / width) ** 2)).sum() / weights.sum()
                out[p - 1, i, channel] = value
    return out


def central_moment(values: np.ndarray, weights: np.ndarray, p: int) -> float:
    mean = (weights * values).sum() / weights.sum()
    variance = (weights * (values - mean) ** 2).sum() / weights.sum()
    if p == 1:
        return mean
    if p == 2:
        return variance
    guard = 1e-6 * (weights * values**2).sum() / weights.sum() + 1e-20
    return (weights * ((values - mean) / np.sqrt(variance + guard)) ** p).sum() / weights.sum()


def equation_5(X: np.ndarray, bases: list[np.ndarray], W: np.ndarray, b: np.ndarray, bound: float | None = None):
    """[n, h, P]: σ(Σ_k B_k(M) X^p W_pk + b_p), all matrices written out; W is [P, c, orders, h], b [P, h]."""
    P, _, orders, h = W.shape
    out = np.zeros((len(X), h, P))
    for p in range(1, P + 1):
        base = X if bound is None or p == 1 else X / np.sqrt(1 + (X / bound) ** 2)
        total = sum(bases[k] @ base**p @ W[p - 1, :, k] for k in range(orders))
        out[:, :, p - 1] = np.maximum(total + b[p - 1], 0)
    return out


def statistic_layer(X: np.ndarray, S: np.ndarray, bases: list[np.ndarray], W: np.ndarray, b: np.ndarray):
    """[n, h, P]: σ(X W_p0 + Σ_{k≥1} B_{k−1}(M) S_p W_pk + b_p)."""
    P, _, orders, h = W.shape
    out = np.zeros((len(X), h, P))
    for p in range(P):
        total = X @ W[p, :, 0] + sum(
            (bases[k - 1] @ S[p] @ W[p, :, k] for k in range(1, orders)), np.zeros((len(X), h))
        )
        out[:, :, p] = np.maximum(total + b[p], 0)
    return out


def mean_covariance(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """μ and C = (1/N) Σ_i (z_i − μ)(z_i − μ)ᵀ, node by node."""
    mu = sum(Z) / len(Z)
    C = sum(np.outer(z - mu, z - mu) for z in Z) / len(Z)
    return mu, C


def harmonic_distances(A: np.ndarray) -> np.ndarray:
    """Σ_{λ_n > 0} (φ_n(x) − φ_n(y))² / λ_n by eigendecomposition of each component, ∞ between components."""
    n = len(A)
    S = np.full((n, n), np.inf)
    left = set(range(n))
    while left:
        component = {min(left)}
        while True:
            grown = component | {int(j) for i in component for j in np.flatnonzero(A[i])}
            if grown == component:
                break
            component = grown
        left -= component
        nodes = np.array(sorted(component))
        part = A[np.ix_(nodes, nodes)]
        values, vectors = np.linalg.eigh(np.diag(part.sum(axis=1)) - part)
        for x in range(len(nodes)):
            for y in range(len(nodes)):
                S[nodes[x], nodes[y]] = sum(
                    (vectors[x, m] - vectors[y, m]) ** 2 / values[m] for m in range(1, len(nodes))
                )
    return S


def spectral_distances(A: np.ndarray, f) -> np.ndarray:
    """Σ_{λ_n > 0} f(λ_n) (φ_n(x) − φ_n(y))² of a connected graph, eigenvalue by eigenvalue."""
    values, vectors = np.linalg.eigh(np.diag(A.sum(axis=1)) - A)
    S = np.zeros_like(A)
    for value, vector in zip(values[1:], vectors.T[1:], strict=True):
        S += f(value) * np.subtract.outer(vector, vector) ** 2
    return S


def resistances_by_pinv(A: np.ndarray) -> np.ndarray:
    """L⁺_xx + L⁺_yy − 2 L⁺_xy of a connected graph."""
    P = np.linalg.pinv(np.diag(A.sum(axis=1)) - A, hermitian=True, rtol=len(A) * 1e-15)
    return np.diag(P)[:, None] + np.diag(P)[None, :] - 2 * P
