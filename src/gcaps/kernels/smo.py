"""The dual of a support vector machine, solved two coordinates at a time on a Gram matrix.

LIBSVM's method (Fan, Chen and Lin, 2005: second-order choice of the pair, the same stopping rule), compiled, on a
matrix that is there already. LIBSVM copies it and asks for every entry by a function call; on thousands of graphs that
takes most of its time. And a solution for one C is where the next larger C begins.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gcaps.data.arrays import Array


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz", "contract"})
def solve(K: Array, sign: Array, C: float, tolerance: float, most: int, beta: Array, g: Array) -> int:
    """Minimise ½ βᵀKβ − βᵀy subject to Σ β = 0 and 0 ≤ y_i β_i ≤ C.

    Args:
        K: [n, n] float32.
        sign: [n] float64, y: +1 or −1.
        C: penalty.
        tolerance: how far the conditions of optimality may be violated.
        most: steps after which the solution found so far counts.
        beta: [n] float64, a feasible point to begin with; becomes the solution.
        g: [n] float64, Kβ − y at that point; kept up to date.

    Returns:
        How many steps it took.
    """
    n, none = len(K), 1e300
    diagonal = np.empty(n)
    grow, shrink = np.empty(n), np.empty(n)  # 0 where β may grow or shrink, else so much that it is never chosen
    for k in range(n):
        diagonal[k] = K[k, k]
        grow[k] = 0.0 if beta[k] < (C if sign[k] > 0 else 0.0) else none
        shrink[k] = 0.0 if beta[k] > (0.0 if sign[k] > 0 else -C) else none
    for step in range(most):
        least, low = none, -none
        for k in range(n):
            least = min(least, g[k] + grow[k])
            low = max(low, g[k] - shrink[k])
        if least == none or low - least < tolerance:
            return step
        i = 0
        while g[i] + grow[i] != least:
            i += 1
        row, own, best = K[i], diagonal[i], 0.0
        for k in range(n):
            gap = max(g[k] - shrink[k] - least, 0.0)
            best = max(best, gap * gap / max(own + diagonal[k] - 2 * row[k], 1e-12))
        j = 0
        while True:
            gap = max(g[j] - shrink[j] - least, 0.0)
            if gap * gap / max(own + diagonal[j] - 2 * row[j], 1e-12) >= best:
                break
            j += 1
        upper, lower = (C if sign[i] > 0 else 0.0), (0.0 if sign[j] > 0 else -C)
        room_i, room_j = upper - beta[i], beta[j] - lower
        t = min((g[j] - least) / max(own + diagonal[j] - 2 * row[j], 1e-12), room_i, room_j)
        beta[i] = upper if t == room_i else beta[i] + t
        beta[j] = lower if t == room_j else beta[j] - t
        grow[i], shrink[i] = none if t == room_i else 0.0, 0.0
        grow[j], shrink[j] = 0.0, none if t == room_j else 0.0
        other = K[j]
        for k in range(n):
            g[k] += t * (row[k] - other[k])
    return most


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
