"""Effective resistances by eliminating nodes (star-mesh transforms), those of least degree first.

A node v with conductances w_j to its neighbors, d = Σ w_j and p_j = w_j / d is eliminated by adding w_j w_k / d to the
conductance between every two of its neighbors; resistances between the remaining nodes do not change. Those of v are

    R(v, u) = Σ_j p_j R(j, u) + c_v,    c_v = 1/d − Σ_{j<k} p_j p_k R(j, k)    for every remaining node u.

Trees, bridges, chains and blocks attached by cut nodes are eliminated without new edges. Elimination stops when the
remaining nodes form a dense core, which LAPACK solves. All sums are of positive numbers, except in c_v.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from gcaps.data.arrays import Array, Floats, Ints, Ints32
from gcaps.errors import DataError
from gcaps.features.quotient import compiled, weight_at

CORE = 64
"""Smallest core; below it, calling LAPACK costs more than eliminating the nodes."""
DENSE = 6
"""A core is dense if its least degree is at least 1/DENSE of its nodes."""


class Elimination(NamedTuple):
    """Eliminated nodes in their order, with their neighbors at that time."""

    order: Ints
    """[k] eliminated nodes, then those of the core."""
    ptr: Ints
    """[e+1] the i-th eliminated node owns the entries ptr[i] … ptr[i+1]−1."""
    onto: Ints
    """Neighbors j."""
    share: Floats
    """p_j."""
    inverse_strength: Floats
    """[e] 1/d."""


@compiled
def quotient_network(
    rowptr: Ints,
    first: Ints,
    col: Ints32,
    weight: Floats,
    class_of: Ints,
    head: Ints,
    size: Ints,
    begin: int,
    end: int,
) -> Floats:
    """[k, k] conductances m m' w between the classes begin … end−1 of one component."""
    W = np.zeros((end - begin, end - begin))
    for c in range(begin, end):
        x = head[c]
        for arc in range(rowptr[x], rowptr[x + 1]):
            y = first[x] + col[arc]
            other = class_of[y]
            if other != c and head[other] == y:
                W[c - begin, other - begin] = weight_at(weight, arc) * size[c] * size[other]
    return W


@compiled
def eliminate(W: Floats, core: int, dense: int) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Eliminate nodes of the connected network W [k, k] until one or a dense core of at least ``core`` nodes is left.

    W is overwritten; afterwards it contains the conductances within the core.
    """
    k = len(W)
    order, place = np.arange(k), np.arange(k)
    degree = np.zeros(k, dtype=np.int64)
    for v in range(k):
        degree[v] = (W[v] > 0).sum()
    ptr = np.zeros(k + 1, dtype=np.int64)
    inverse_strength = np.empty(k)
    onto, share = np.empty(4 * k, dtype=np.int64), np.empty(4 * k)
    done = 0
    while done < k - 1:
        v = order[done]
        for i in range(done + 1, k):
            if degree[v] <= 1:
                break
            if degree[order[i]] < degree[v]:
                v = order[i]
        left = k - done
        if left >= core and degree[v] * dense >= left:
            break
        order[place[v]], place[order[done]] = order[done], place[v]
        order[done], place[v] = v, done
        begin = end = ptr[done]
        if begin + left > len(onto):
            onto = np.concatenate((onto, np.empty(len(onto) + left, dtype=np.int64)))
            share = np.concatenate((share, np.empty(len(share) + left)))
        row = W[v]
        strength = 0.0
        for u in range(k):
            if row[u] > 0:
                onto[end] = u
                strength += row[u]
                end += 1
        for a in range(begin, end):
            share[a] = row[onto[a]] / strength
        for a in range(begin, end):
            j = onto[a]
            W[j, v] = 0
            degree[j] -= 1
            for b in range(a + 1, end):
                i = onto[b]
                if W[j, i] == 0:
                    degree[j] += 1
                    degree[i] += 1
                W[j, i] += share[a] * row[i]
                W[i, j] = W[j, i]
        inverse_strength[done] = 1 / strength
        done += 1
        ptr[done] = end
    return order, ptr[: done + 1], onto[: ptr[done]], share[: ptr[done]], inverse_strength[:done]


@compiled
def substitute(
    order: Ints, ptr: Ints, onto: Ints, share: Floats, inverse_strength: Floats, core: Floats, R: Floats
) -> None:
    """Compute R [k, k] from that of the core [c, c]; row i of R is node order[k−1−i], so the core comes first.

    R may share memory with W.
    """
    k, c = len(order), len(core)
    row_of = np.empty(k, dtype=np.int64)
    for i in range(k):
        row_of[order[k - 1 - i]] = i
    R[:c, :c] = core
    for i in range(c, k):
        e = k - 1 - i
        begin, end = ptr[e], ptr[e + 1]
        excess = inverse_strength[e]
        row = R[i]
        for a in range(begin, end):
            j = row_of[onto[a]]
            for b in range(a + 1, end):
                excess -= share[a] * share[b] * R[j, row_of[onto[b]]]
        row[:i] = excess
        for a in range(begin, end):
            p, source = share[a], R[row_of[onto[a]]]
            for u in range(i):
                row[u] += p * source[u]
        row[i] = 0.0
        for u in range(i):
            R[u, i] = row[u]


def core_resistances(W: Floats, order: Ints, eliminated: int) -> Floats:
    """[c, c] resistances of the core, in reverse order, by Cholesky inversion of the grounded Laplacian."""
    left = order[: eliminated - 1 : -1] if eliminated else order[::-1]
    if len(left) == 1:
        return np.zeros((1, 1))
    L = -W[np.ix_(left, left)]
    np.fill_diagonal(L, 0)
    np.fill_diagonal(L, -L.sum(axis=1))
    # the node of largest strength is grounded; it is swapped with the first, so that the others form one block
    ground = int(np.argmax(np.diagonal(L)))
    swapped = np.arange(len(left))
    swapped[[0, ground]] = ground, 0
    factor, failed = dpotrf(L[np.ix_(swapped[1:], swapped[1:])].T, lower=1, clean=0, overwrite_a=1)
    if not failed:
        inverse, failed = dpotri(factor, lower=1, overwrite_c=1)
    if failed:
        raise DataError(
            "a Laplacian is singular in float64: edge weights of a component differ by too many orders of magnitude"
        )
    L[:] = 0
    joined_distances(inverse.T, L)
    L[:, [0, ground]] = L[:, [ground, 0]]
    L[[0, ground]] = L[[ground, 0]]
    return L


@compiled
def joined_distances(G: Floats, R: Floats) -> None:
    """Write R_xy = G_xx + G_yy − 2 G_xy from the upper triangle of G [c, c]; node 0 of R [c+1, c+1] is grounded."""
    for x in range(len(G)):
        R[0, x + 1] = R[x + 1, 0] = G[x, x]
        for y in range(x + 1, len(G)):
            R[x + 1, y + 1] = R[y + 1, x + 1] = max(G[x, x] + G[y, y] - 2 * G[x, y], 0.0)


def resistances(W: Floats, core: int = CORE, dense: int = DENSE) -> tuple[Array, Ints]:
    """Return R [k, k] of a connected network W and the nodes of its rows; W is overwritten."""
    found = Elimination(*eliminate(W, core, dense))
    inner = core_resistances(W, found.order, len(found.ptr) - 1)
    substitute(*found, inner, W)
    return W, found.order[::-1]
