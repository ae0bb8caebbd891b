"""Exact optimal transport between uniform measures on the nodes of two graphs (Wasserstein distance)."""

from __future__ import annotations

from math import gcd

import numpy as np
from numba import njit

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.kernels.base import map_threads, split_work

_WORK = 50_000_000
"""Entries of cost matrices of one task."""
_FAR = np.inf


def wasserstein_distances(
    points: Floats,
    ptr: Ints,
    others: Floats | None = None,
    others_ptr: Ints | None = None,
    n_jobs: int | None = 2,
    verbose: bool = False,
) -> Floats:
    """1-Wasserstein distances with Euclidean ground distance between sets of points, each point of equal mass.

    A set without points is at distance 0 from another such set and at distance 1 from any other.

    Args:
        points: [N, d] points of all sets.
        ptr: [m+1] set i has the points ptr[i] … ptr[i+1]−1.
        others: [M, d] points of the sets to compare with; by default the same sets.
        others_ptr: [n+1] as ``ptr``.
        n_jobs: number of threads.
        verbose: show a progress bar.

    Returns:
        [m, n]; symmetric, with zeros on the diagonal, without ``others``.
    """
    symmetric = others is None or others_ptr is None
    y, y_ptr = (points, ptr) if others is None or others_ptr is None else (others, others_ptr)
    D = np.zeros((len(ptr) - 1, len(y_ptr) - 1))
    points, y = (np.ascontiguousarray(a, dtype=np.float64) for a in (points, y))

    def rows(part: tuple[int, int]) -> None:
        _fill_rows(*part, points, ptr, y, y_ptr, symmetric, D)

    map_threads(rows, split_work(np.diff(ptr) * max(int(y_ptr[-1]), 1), _WORK), "transport", n_jobs, verbose)
    return D + D.T if symmetric else D


def transport_cost(cost: Floats) -> float:
    """Return min Σ F_ij c_ij over F ≥ 0 with row sums 1/n and column sums 1/m, for costs c [n, m] ≥ 0."""
    n, m = cost.shape
    shared = gcd(n, m)
    supply, demand = np.full(n, m // shared), np.full(m, n // shared)
    total = transport(np.ascontiguousarray(cost, dtype=np.float64), supply, demand)
    return float(total * shared / (n * m))


@njit(cache=True, nogil=True)
def _fill_rows(
    first: int, last: int, x: Array, x_ptr: Array, y: Array, y_ptr: Array, symmetric: bool, D: Array
) -> None:
    """Fill the rows first..last−1 of D; of a symmetric matrix only what is above the diagonal."""
    for i in range(first, last):
        n = x_ptr[i + 1] - x_ptr[i]
        for j in range(i + 1 if symmetric else 0, len(y_ptr) - 1):
            m = y_ptr[j + 1] - y_ptr[j]
            if n == 0 or m == 0:
                D[i, j] = 0.0 if n == m else 1.0
                continue
            cost = np.empty((n, m))
            for a in range(n):
                for b in range(m):
                    square = 0.0
                    for k in range(x.shape[1]):
                        gap = x[x_ptr[i] + a, k] - y[y_ptr[j] + b, k]
                        square += gap * gap
                    cost[a, b] = np.sqrt(square)
            s, r = n, m
            while r:
                s, r = r, s % r
            D[i, j] = transport(cost, np.full(n, m // s), np.full(m, n // s)) * s / (n * m)


@njit(cache=True, nogil=True)
def transport(cost: Array, supply: Array, demand: Array) -> float:
    """Return the least cost of a flow with integer supplies and demands of equal total.

    Successive shortest paths with potentials, as in the algorithm of Jonker and Volgenant for assignments, but with
    more than one unit. Every path carries at least one unit, so that the number of paths is bounded by
    the total, and in practice is about n + m; a path costs at most n · m steps. Memory is n · m integers.

    Args:
        cost: [n, m]
        supply: [n] positive integers.
        demand: [m] positive integers; both are overwritten.
    """
    n, m = cost.shape
    flow = np.zeros((n, m), dtype=np.int64)
    u, v = np.empty(n), np.empty(m)  # potentials: cost − u − v ≥ 0, and = 0 where there is flow
    for j in range(m):
        v[j] = cost[0, j]
        for i in range(1, n):
            v[j] = min(v[j], cost[i, j])
    for i in range(n):
        u[i] = cost[i, 0] - v[0]
        for j in range(1, m):
            u[i] = min(u[i], cost[i, j] - v[j])
        for j in range(m):
            if supply[i] > 0 and demand[j] > 0 and cost[i, j] - v[j] == u[i]:
                sent = min(supply[i], demand[j])
                flow[i, j] += sent
                supply[i] -= sent
                demand[j] -= sent
    distance, reached = np.empty(m), np.empty(n)
    done, inside = np.empty(m, dtype=np.bool_), np.empty(n, dtype=np.bool_)
    came, back = np.empty(m, dtype=np.int64), np.empty(n, dtype=np.int64)  # row before a column, column before a row
    queue = np.empty(n, dtype=np.int64)
    for start in range(n):
        while supply[start] > 0:
            for j in range(m):
                distance[j] = _FAR
                done[j] = False
            inside[:] = False
            inside[start] = True
            reached[start] = 0.0
            queue[0] = start
            head, tail, end, least = 0, 1, -1, 0.0
            while end < 0:
                while head < tail:  # rows that are new in the tree
                    i = queue[head]
                    head += 1
                    base = least - u[i]
                    for j in range(m):
                        if not done[j]:
                            length = base + cost[i, j] - v[j]
                            if length < distance[j]:
                                distance[j] = length
                                came[j] = i
                least, best = _FAR, -1
                for j in range(m):
                    if not done[j] and (
                        distance[j] < least or (distance[j] == least and demand[j] > 0 and demand[best] == 0)
                    ):
                        least, best = distance[j], j
                done[best] = True
                if demand[best] > 0:
                    end = best
                    break
                for i in range(n):
                    if not inside[i] and flow[i, best] > 0:
                        inside[i] = True
                        reached[i] = least
                        back[i] = best
                        queue[tail] = i
                        tail += 1
            sent = min(supply[start], demand[end])
            j = end
            while True:
                i = came[j]
                if i == start:
                    break
                j = back[i]
                sent = min(sent, flow[i, j])
            supply[start] -= sent
            demand[end] -= sent
            j = end
            while True:
                i = came[j]
                flow[i, j] += sent
                if i == start:
                    break
                j = back[i]
                flow[i, j] -= sent
            for i in range(n):
                if inside[i]:
                    u[i] += least - reached[i]
            for j in range(m):
                if done[j]:
                    v[j] -= least - distance[j]
    total = 0.0
    for i in range(n):
        for j in range(m):
            if flow[i, j]:
                total += flow[i, j] * cost[i, j]
    return total
