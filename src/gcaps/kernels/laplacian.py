"""Feature-space Laplacian (FLG) states of neighborhoods and graphs, and their similarity (Kondor and Pan, 2016)."""

from __future__ import annotations

import numpy as np
from numba import njit

_DENSE = 48
"""Nodes up to which a neighborhood's matrix is factorised; beyond, conjugate gradients."""
_KNOWN = 4096
"""Neighborhoods that are remembered."""


@njit(cache=True, nogil=True)
def flg_states(graph, root, radius, ptr, rowptr, col, weight, U, eta, gamma):  # type: ignore[no-untyped-def]
    """For each (graph, root) the inverse of S = Uᵀ(L + ηI)⁻¹U + γI and log|S|.

    L is the Laplacian of the subgraph within ``radius`` hops of the root, U [·, P] its rows of the features; a negative
    radius takes the whole graph. ``weight`` is empty where all weights are one. Roots with the same neighborhood, as in
    cliques and around hubs, share its state: sets of nodes are known by a 64-bit sum of their nodes' names.

    Returns:
        [m, P, P] and [m].
    """
    P = U.shape[1]
    largest = 1
    for g in graph:
        largest = max(largest, ptr[g + 1] - ptr[g])
    place = np.full(largest, -1, dtype=np.int64)
    members = np.empty(largest, dtype=np.int64)
    hops = np.empty(largest, dtype=np.int64)
    inverse = np.empty((len(graph), P, P))
    logdet = np.empty(len(graph))
    M = np.empty((_DENSE, _DENSE))
    rows = np.empty((_DENSE, P))
    S = np.empty((P, P))
    z, r, p, q = np.empty(largest), np.empty(largest), np.empty(largest), np.empty(largest)
    diagonal = np.empty(largest)
    known, where = np.zeros(_KNOWN, dtype=np.uint64), np.zeros(_KNOWN, dtype=np.int64)
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
        name = np.uint64(size)
        for i in range(size):
            name += _mixed(np.uint64(base + members[i]))
        slot = np.int64(name % np.uint64(_KNOWN))
        if known[slot] == name:
            inverse[m] = inverse[where[slot]]
            logdet[m] = logdet[where[slot]]
            for i in range(size):
                place[members[i]] = -1
            continue
        known[slot], where[slot] = name, m
        for i in range(size):
            u = base + members[i]
            diagonal[i] = eta
            for a in range(rowptr[u], rowptr[u + 1]):
                if place[col[a]] >= 0:
                    diagonal[i] += weight[a] if len(weight) else 1.0
        S[:] = 0.0
        if size <= _DENSE:
            M[:size, :size] = 0.0
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
            for i in range(size):  # rows = C⁻¹U, so that S = rowsᵀ rows
                for j in range(i):
                    for c in range(P):
                        rows[i, c] -= M[i, j] * rows[j, c]
                for c in range(P):
                    rows[i, c] /= M[i, i]
                for c in range(P):
                    for d in range(c + 1):
                        S[c, d] += rows[i, c] * rows[i, d]
        else:
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
def _mixed(x):  # type: ignore[no-untyped-def]
    """The finaliser of SplitMix64, as in :func:`gcaps.data.hashing.mix`."""
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def flg_kernel(inverse, logdet, other_inverse, other_logdet, symmetric):  # type: ignore[no-untyped-def]
    """[m, n] |½S⁻¹ + ½S'⁻¹|^(−1/2) / (|S| |S'|)^(1/4) of all pairs; ``symmetric``: of the upper triangle only."""
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
def _cholesky(M, n):  # type: ignore[no-untyped-def]
    """The lower factor in the place of M's lower triangle."""
    for j in range(n):
        for k in range(j):
            x = M[j, k]
            for i in range(j, n):
                M[i, j] -= x * M[i, k]
        x = 1.0 / np.sqrt(M[j, j])
        for i in range(j, n):
            M[i, j] *= x


@njit(cache=True, nogil=True)
def _invert(C, out):  # type: ignore[no-untyped-def]
    """out = (CCᵀ)⁻¹ from a lower factor."""
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
