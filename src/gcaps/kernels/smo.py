"""The dual of a support vector machine, solved two coordinates at a time on a Gram matrix.

LIBSVM's method (Fan, Chen and Lin, 2005: second-order choice of the pair, the same stopping rule), compiled, on a
matrix that is there already. LIBSVM copies it and asks for every entry by a function call; on thousands of graphs that
takes most of its time. And a solution for one C is where the next larger C begins.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gcaps.data.arrays import Array

PERIOD = 1000
"""Steps after which graphs that will stay where they are, at 0 or at C, are left out."""
NONE = 1e30
"""Larger than any slope."""


@njit(cache=True, nogil=True, error_model="numpy")
def solve(K: Array, sign: Array, C: float, tolerance: float, most: int, beta: Array, g: Array) -> int:
    """Minimise ½ βᵀKβ − βᵀy subject to Σ β = 0 and 0 ≤ y_i β_i ≤ C.

    Args:
        K: [n, n] float32.
        sign: [n] float64, y: +1 or −1.
        C: penalty.
        tolerance: how far the conditions of optimality may be violated.
        most: steps after which the solution found so far counts.
        beta: [n] float64, a feasible point to begin with; becomes the solution.
        g: [n] float64, Kβ − y at that point; becomes that of the solution.

    Returns:
        How many steps it took.
    """
    steps, active, part = 0, np.arange(len(K)), K
    while True:
        b, slope, own = beta[active], g[active], sign[active]
        taken, least, low = _descend(part, own, C, tolerance, min(most - steps, PERIOD), b, slope)
        beta[active], g[active] = b, slope
        steps += taken
        over = low - least < tolerance
        if over or steps >= most:
            if len(active) == len(K):
                return steps
            _slopes(K, sign, beta, active, g)
            active, part = np.arange(len(K)), K
            if steps >= most:
                return steps
            continue  # ends at once if those that were left out agree
        kept = np.empty(len(active), np.bool_)
        for k in range(len(active)):
            upper = C if own[k] > 0 else 0.0
            grows, shrinks = b[k] < upper, b[k] > upper - C
            kept[k] = (grows and slope[k] < low) or (shrinks and slope[k] > least)
        if kept.sum() < 0.8 * len(active):
            active = active[kept]
            part = cut(K, active, active)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz", "contract"})
def _descend(
    K: Array, sign: Array, C: float, tolerance: float, most: int, beta: Array, g: Array
) -> tuple[int, float, float]:
    """At most so many steps; how many, and the smallest slope that may grow and the largest that may shrink."""
    n = len(K)
    diagonal, gains = np.empty(n, np.float32), np.empty(n, np.float32)
    grow, shrink = np.empty(n), np.empty(n)  # 0 where β may grow or shrink, else so much that it is never chosen
    for k in range(n):
        upper = C if sign[k] > 0 else 0.0
        diagonal[k] = K[k, k]
        grow[k] = 0.0 if beta[k] < upper else NONE
        shrink[k] = 0.0 if beta[k] > upper - C else NONE
    tiny, nothing = np.float32(1e-12), np.float32(0)
    step = 0
    while True:
        least, low = NONE, -NONE
        for k in range(n):
            least = min(least, g[k] + grow[k])
            low = max(low, g[k] - shrink[k])
        if step == most or low - least < tolerance:
            return step, least, low
        step += 1
        i = 0
        while g[i] + grow[i] != least:
            i += 1
        row, own, best = K[i], diagonal[i], nothing
        for k in range(n):
            gap = max(np.float32(g[k] - shrink[k] - least), nothing)
            gains[k] = gap * gap / max(own + diagonal[k] - row[k] - row[k], tiny)
            best = max(best, gains[k])
        j = 0
        while gains[j] != best:
            j += 1
        upper, lower = (C if sign[i] > 0 else 0.0), (0.0 if sign[j] > 0 else -C)
        room_i, room_j = upper - beta[i], beta[j] - lower
        curve = max(np.float64(own) + diagonal[j] - 2 * np.float64(row[j]), 1e-12)
        t = min((g[j] - least) / curve, room_i, room_j)
        beta[i] = upper if t == room_i else beta[i] + t
        beta[j] = lower if t == room_j else beta[j] - t
        grow[i], shrink[i] = NONE if t == room_i else 0.0, 0.0
        grow[j], shrink[j] = 0.0, NONE if t == room_j else 0.0
        other = K[j]
        for k in range(n):
            g[k] += t * (row[k] - other[k])


@njit(cache=True, nogil=True)
def _slopes(K: Array, sign: Array, beta: Array, known: Array, g: Array) -> None:
    """g = Kβ − y but for those that are known."""
    missing = np.ones(len(K), np.bool_)
    missing[known] = False
    support = np.flatnonzero(beta)
    for k in np.flatnonzero(missing):
        row, total = K[k], 0.0
        for j in support:
            total += row[j] * beta[j]
        g[k] = total - sign[k]


@njit(cache=True, nogil=True)
def cut(K: Array, rows: Array, columns: Array) -> Array:
    """The rows and columns of a matrix."""
    out = np.empty((len(rows), len(columns)), K.dtype)
    for a in range(len(rows)):
        row, to = K[rows[a]], out[a]
        for b in range(len(columns)):
            to[b] = row[columns[b]]
    return out


@njit(cache=True, nogil=True)
def intercept(sign: Array, C: float, beta: Array, g: Array) -> float:
    """b of f(x) = Σ_j β_j k(x, x_j) + b: −g on average over 0 < y_i β_i < C, or the middle of what is possible."""
    total, free, least, most = 0.0, 0, -np.inf, np.inf
    for k in range(len(g)):
        upper = C if sign[k] > 0 else 0.0
        if upper - C < beta[k] < upper:
            total += g[k]
            free += 1
        elif beta[k] < upper:
            most = min(most, g[k])
        else:
            least = max(least, g[k])
    return -total / free if free else -(most + least) / 2
