"""Slow, dense, obvious versions of the paper's formulas, in float64. Nothing here shares code with gcaps."""

from __future__ import annotations

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


def equation_5(X: np.ndarray, M: np.ndarray, W: np.ndarray, b: np.ndarray, bound: float | None = None) -> np.ndarray:
    """[n, h, P]: σ(Σ_k M^k X^p W_pk + b_p), powers of M and of X written out; W is [P, c, K+1, h], b [P, h]."""
    P, _, orders, h = W.shape
    out = np.zeros((len(X), h, P))
    for p in range(1, P + 1):
        base = X if bound is None or p == 1 else X / np.sqrt(1 + (X / bound) ** 2)
        total = np.zeros((len(X), h))
        for k in range(orders):
            total += np.linalg.matrix_power(M, k) @ base**p @ W[p - 1, :, k]
        out[:, :, p - 1] = np.maximum(total + b[p - 1], 0)
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
