"""Solving L x = b in time near-linear in the edges: conjugate gradients, preconditioned by an approximate Cholesky.

The factorisation (Kyng and Sachdeva 2016, in the form of Gao, Kyng and Spielman 2023) eliminates nodes by least degree
as :mod:`gcaps.features.elimination` does, but puts a random path in the place of the clique among a node's neighbors.
Its expectation is the clique, so edges never grow in number and conjugate gradients need few rounds.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.sparse import csr_array

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.errors import GcapsError
from gcaps.features.quotient import compiled

TOLERANCE = 1e-7
_ROUNDS = 1000
_LINE = 64
"""Bytes of right-hand sides that are solved together: one row of them is one line of cache."""


_SCATTERED = 8
"""Nodes are renumbered where neighbors are farther apart, on average, than one in so many of all nodes."""


class LaplacianSolver:
    """x = L⁺ b for the Laplacian of a connected network.

    Args:
        W: [n, n] symmetric conductances without a diagonal.
        seed: of the factorisation.
    """

    def __init__(self, W: csr_array, seed: int = 0) -> None:
        matrix = csr_array(W, dtype=np.float64)
        matrix.sort_indices()
        order, ptr, onto, share, weight = approximate_cholesky(*_arrays(matrix), matrix.data, seed)
        self.order = np.arange(matrix.shape[0])
        apart = np.abs(np.repeat(self.order, np.diff(matrix.indptr)) - matrix.indices)
        if apart.mean() > len(self.order) / _SCATTERED:
            # in the order of elimination, the nodes that many others are eliminated onto stand together, in the cache
            self.order = np.concatenate([order, np.setdiff1d(self.order, order)])
            matrix = csr_array(matrix[self.order][:, self.order])
            matrix.sort_indices()
        number = np.empty_like(self.order)
        number[self.order] = np.arange(len(number))
        self.factor: tuple[Array, ...] = (number[order], ptr, number[onto], share, weight)
        self.network: tuple[Array, ...] = (*_arrays(matrix), matrix.data, matrix.sum(axis=1))

    def solve(self, b: Floats, tolerance: float = TOLERANCE, jobs: int = 1) -> Floats:
        """[n, s] for [n, s], in the precision of b; columns of b sum to 0, those of the result too."""
        columns, step = b.shape[1], _LINE // b.itemsize
        blocks = [slice(i, min(i + step, columns)) for i in range(0, columns, step)]
        out = np.empty_like(b)
        known = [a.astype(b.dtype) if a.dtype.kind == "f" else a for a in (*self.network, *self.factor)]

        def one(block: slice) -> None:
            r = b[self.order, block]
            x, left = conjugate_gradients(*known, r, tolerance, _ROUNDS)  # type: ignore[call-arg, arg-type]
            if not left <= tolerance:
                raise GcapsError(f"a Laplacian system stays at an error of {left:.1e}; its weights are too far apart")
            out[self.order, block] = x

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, blocks))
        return out


def _arrays(matrix: csr_array) -> tuple[Ints, Ints]:
    """indptr, indices"""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)


@compiled
def approximate_cholesky(
    indptr: Ints, indices: Ints, data: Floats, seed: int
) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """order [n−1], ptr [n], onto, share, weight [n−1]: the i-th eliminated node's entries and its last conductance."""
    n = len(indptr) - 1
    np.random.seed(seed)  # noqa: NPY002  # numba's own generator, of this thread
    # half-edges in linked lists, one a node; a list may still hold nodes that are gone
    room = 2 * len(indices) + 16
    other, value, following = np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64)
    begin = np.full(n, -1)
    used = 0
    degree = np.zeros(n, np.int64)
    for v in range(n):
        for arc in range(indptr[v], indptr[v + 1]):
            other[used], value[used], following[used], begin[v] = indices[arc], data[arc], begin[v], used
            used += 1
        degree[v] = indptr[v + 1] - indptr[v]
    # nodes by degree, in doubly linked lists
    bucket, after, before = np.full(n + 1, -1), np.full(n, -1), np.full(n, -1)
    for v in range(n):
        _enter(v, min(degree[v], n), bucket, after, before)
    least = 0
    alive = np.ones(n, np.bool_)
    order, ptr, weight = np.empty(n, np.int64), np.zeros(n, np.int64), np.empty(n)
    onto, share = np.empty(room, np.int64), np.empty(room)
    at = np.full(n, -1)
    near, sums = np.empty(64, np.int64), np.empty(64)
    for done in range(n - 1):
        while bucket[least] < 0:
            least += 1
        v = bucket[least]
        _leave(v, min(degree[v], n), bucket, after, before)
        alive[v] = False
        count = 0
        edge = begin[v]
        while edge >= 0:
            u = other[edge]
            if alive[u]:
                if at[u] < 0:
                    if count == len(near):
                        near, sums = np.concatenate((near, near)), np.concatenate((sums, sums))
                    at[u], near[count], sums[count] = count, u, value[edge]
                    count += 1
                else:  # several edges become one
                    sums[at[u]] += value[edge]
                    _move(u, degree[u], degree[u] - 1, n, bucket, after, before)
                    degree[u] -= 1
                    least = min(least, degree[u])
            edge = following[edge]
        for i in range(count):
            at[near[i]] = -1
        rank = np.argsort(sums[:count])
        total = np.cumsum(sums[:count][rank])
        if used + 2 * count > len(other):
            other, following = np.concatenate((other, other)), np.concatenate((following, following))
            value = np.concatenate((value, value))
        if ptr[done] + count > len(onto):
            onto, share = np.concatenate((onto, onto)), np.concatenate((share, share))
        end = ptr[done]
        scale, strength = 1.0, total[count - 1]
        for i in range(count - 1):
            j = near[rank[i]]
            f = sums[rank[i]] * scale / strength
            goal = total[i] + np.random.random() * (total[count - 1] - total[i])  # noqa: NPY002
            other_one = near[rank[min(max(np.searchsorted(total, goal), i + 1), count - 1)]]
            fresh = f * (1 - f) * strength
            onto[end], share[end] = j, f
            end += 1
            # j loses its edge to v and wins this one; the other end wins one
            other[used], value[used], following[used], begin[j] = other_one, fresh, begin[j], used
            other[used + 1], value[used + 1], following[used + 1], begin[other_one] = (
                j,
                fresh,
                begin[other_one],
                used + 1,
            )
            used += 2
            _move(other_one, degree[other_one], degree[other_one] + 1, n, bucket, after, before)
            degree[other_one] += 1
            scale *= 1 - f
            strength *= (1 - f) ** 2
        last = near[rank[count - 1]]
        onto[end], share[end] = last, 1.0
        end += 1
        _move(last, degree[last], degree[last] - 1, n, bucket, after, before)
        degree[last] -= 1
        least = max(min(least, degree[last]), 0)
        order[done], weight[done], ptr[done + 1] = v, sums[rank[count - 1]] * scale, end
    return order[: n - 1], ptr, onto[: ptr[n - 1]], share[: ptr[n - 1]], weight[: n - 1]


@compiled
def _enter(v: int, level: int, bucket: Ints, after: Ints, before: Ints) -> None:
    after[v], before[v] = bucket[level], -1
    if bucket[level] >= 0:
        before[bucket[level]] = v
    bucket[level] = v


@compiled
def _leave(v: int, level: int, bucket: Ints, after: Ints, before: Ints) -> None:
    if before[v] >= 0:
        after[before[v]] = after[v]
    else:
        bucket[level] = after[v]
    if after[v] >= 0:
        before[after[v]] = before[v]


@compiled
def _move(v: int, old: int, new: int, most: int, bucket: Ints, after: Ints, before: Ints) -> None:
    if min(old, most) != min(new, most):
        _leave(v, min(old, most), bucket, after, before)
        _enter(v, min(new, most), bucket, after, before)


@compiled
def apply_inverse(order: Ints, ptr: Ints, onto: Ints, share: Floats, weight: Floats, y: Floats) -> None:
    """y [n, s] becomes what the factors make of it."""
    s = y.shape[1]
    for e in range(len(order)):
        own = y[order[e]]
        last = ptr[e + 1] - 1
        for a in range(ptr[e], last):
            f, goal = share[a], y[onto[a]]
            for c in range(s):
                part = f * own[c]
                goal[c] += part
                own[c] -= part
        goal, w = y[onto[last]], weight[e]
        for c in range(s):
            goal[c] += own[c]
            own[c] /= w
    for e in range(len(order) - 1, -1, -1):
        own = y[order[e]]
        last = ptr[e + 1] - 1
        source = y[onto[last]]
        for c in range(s):
            own[c] += source[c]
        for a in range(last - 1, ptr[e] - 1, -1):
            f, source = share[a], y[onto[a]]
            for c in range(s):
                own[c] += f * (source[c] - own[c])
    _centre(y)


@compiled
def conjugate_gradients(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    strength: Floats,
    order: Ints,
    ptr: Ints,
    onto: Ints,
    share: Floats,
    weight: Floats,
    r: Floats,
    tolerance: float,
    rounds: int,
) -> tuple[Floats, float]:
    """x [n, s] and the largest relative residual of its columns; r is the right-hand side and is overwritten."""
    n, s = r.shape
    x, product = np.zeros_like(r), np.zeros_like(r)
    norm = _dots(r, r) + 1e-300
    z = r.copy()
    apply_inverse(order, ptr, onto, share, weight, z)
    p = z.copy()
    rho = _dots(r, z)
    left = 1.0
    for _ in range(rounds):
        for v in range(n):
            goal, own, d = product[v], p[v], strength[v]
            for c in range(s):
                goal[c] = d * own[c]
            for arc in range(indptr[v], indptr[v + 1]):
                w, source = data[arc], p[indices[arc]]
                for c in range(s):
                    goal[c] -= w * source[c]
        alpha = (rho / (_dots(p, product) + 1e-300)).astype(r.dtype)
        for v in range(n):
            for c in range(s):
                x[v, c] += alpha[c] * p[v, c]
                r[v, c] -= alpha[c] * product[v, c]
        left = np.sqrt((_dots(r, r) / norm).max())
        if left <= tolerance:
            break
        z[:] = r
        apply_inverse(order, ptr, onto, share, weight, z)
        fresh = _dots(r, z)
        beta = (fresh / (rho + 1e-300)).astype(r.dtype)
        rho = fresh
        for v in range(n):
            for c in range(s):
                p[v, c] = z[v, c] + beta[c] * p[v, c]
    _centre(x)
    return x, left


@compiled
def _dots(a: Floats, b: Floats) -> Floats:
    """[s] the inner product of each column, in float64."""
    out = np.zeros(a.shape[1])
    for v in range(len(a)):
        for c in range(len(out)):
            out[c] += np.float64(a[v, c]) * b[v, c]
    return out


@compiled
def _centre(y: Floats) -> None:
    """Every column sums to 0."""
    total = np.zeros(y.shape[1])
    for v in range(len(y)):
        for c in range(len(total)):
            total[c] += y[v, c]
    mean = (total / len(y)).astype(y.dtype)
    for v in range(len(y)):
        for c in range(len(mean)):
            y[v, c] -= mean[c]
