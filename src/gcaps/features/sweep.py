"""Distances within components, exactly: one pass over all components of a set, in parallel, within a memory limit.

The wider family of distances is S_f(x, y) = Σ_n f(λ_n) (φ_n(x) − φ_n(y))², with the eigenvalues λ_n and eigenvectors
φ_n of the Laplacian; f = 1/λ gives harmonic distances (Eq. 9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numba import get_num_threads
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import splu
from threadpoolctl import threadpool_limits

from gcaps.data.arrays import Floats, Ints, Ints32, pointer, ranges
from gcaps.errors import ConfigError, MemoryLimitError
from gcaps.features.binning import Piece
from gcaps.features.elimination import CORE, eliminate, quotient_network, resistances, substitute
from gcaps.features.quotient import Network, Quotient, compiled

MEMORY = 2 << 30
"""Bytes that matrices of distances may take at a time."""
_TOGETHER = 1 << 20
"""Entries of the small components that are solved in one call."""
_BYTES_PER_ENTRY = 48
"""Bytes for each of the k × k entries of k classes: W, the shares, and a core with its inverse."""

T = TypeVar("T")
Progress = Callable[[int], None]
"""Called with the number of nodes that were completed."""
Solve = Callable[[Network, Quotient, int], Piece]
"""Function from a component to its distances."""
Family = str | Sequence[float]
"""``"harmonic"`` f = 1/λ, ``"biharmonic"`` f = 1/λ², or the coefficients (c₀, c₁, …) of f = Σ_k c_k λ^k."""


def dense_bytes(classes: Ints) -> Ints:
    """Bytes that solving so many classes at once takes."""
    return _BYTES_PER_ENTRY * classes**2


def sweep(
    network: Network,
    q: Quotient,
    consume: Callable[[Piece, Ints], T],
    *,
    solve: Solve | None = None,
    which: Ints | None = None,
    memory: int = MEMORY,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Iterator[T]:
    """Yield ``consume(piece, components)`` for every piece of the components ``which``, in any order.

    Args:
        network: all graphs.
        q: their components and twins.
        consume: called by several threads at a time.
        solve: computes the distances of one component; by default harmonic distances.
        which: components, by default all.
        memory: bytes; a component whose matrix would take more is divided into pieces of some rows each.
        n_jobs: threads; by default numba's number.
        progress: called with the number of nodes of each completed piece.
    """
    n_jobs = n_jobs or get_num_threads()
    width = np.diff(q.component_ptr)
    which = np.arange(len(width)) if which is None else which
    need = dense_bytes(width[which])
    beyond = which[need > memory]
    if solve is not None and len(beyond):
        raise MemoryLimitError(
            f"the distances of a component of {width[beyond].max():,} nodes need {need.max() >> 20:,} MiB, more than "
            f"the limit of {memory >> 20:,} MiB; raise memory or use harmonic distances"
        )
    alone = which[(need <= memory) & (need > memory // n_jobs)]
    small = which[(width[which] < CORE) & (need <= memory // n_jobs)] if solve is None else which[:0]
    single = np.setdiff1d(which, np.concatenate([beyond, alone, small]))
    single = single[np.argsort(-width[single], kind="stable")]
    together = max(1, min(_TOGETHER, memory // n_jobs // _BYTES_PER_ENTRY))
    batch = np.cumsum(width[small] ** 2) // together
    batches = [small[batch == b] for b in np.unique(batch)]

    def done(some: Ints, result: T) -> T:
        if progress is not None:
            progress(int(q.nodes_in_component[some].sum()))
        return result

    def one(p: int) -> T:
        some = np.array([p])
        return done(some, consume((solve or harmonic)(network, q, p), some))

    def several(some: Ints) -> T:
        return done(some, consume(_solved_together(network, q, some), some))

    dense = bool(len(beyond) or len(alone) or len(single))
    with threadpool_limits(1, user_api="blas") if dense else nullcontext():
        for p in beyond:
            for piece in _rows(network, q, int(p), memory):
                yield consume(piece, np.array([p]))
            done(np.array([p]), None)  # type: ignore[arg-type]
        yield from map(one, alone.tolist())
        if n_jobs == 1 or len(single) + len(batches) == 1:
            yield from map(one, single.tolist())
            yield from map(several, batches)
        else:
            with ThreadPoolExecutor(n_jobs) as pool:
                waiting = [pool.submit(one, p) for p in single.tolist()]
                waiting += [pool.submit(several, some) for some in batches]
                try:
                    for future in waiting:
                        yield future.result()
                finally:
                    for future in waiting:
                        future.cancel()


def harmonic(network: Network, q: Quotient, p: int) -> Piece:
    """Harmonic distances of one component."""
    first, last = q.component_ptr[p], q.component_ptr[p + 1]
    W = quotient_network(*network, q.class_of, q.head, q.size, first, last)
    R, rows = resistances(W)
    ends = np.array([0, last - first])
    return Piece(R.reshape(-1), np.zeros(1, dtype=np.int64), ends, rows + first, ends, rows + first)


def _solved_together(network: Network, q: Quotient, some: Ints) -> Piece:
    """Harmonic distances of several small components in one call."""
    width = np.diff(q.component_ptr)[some]
    ptr, start = pointer(width), pointer(width**2)
    R, rows = np.zeros(start[-1]), ranges(q.component_ptr[some], width)
    _solve_small(*network, q.class_of, q.head, q.size, q.component_ptr, some, start, ptr, R, rows)
    return Piece(R, start[:-1], ptr, rows, ptr, rows)


@compiled
def _solve_small(
    rowptr: Ints,
    first: Ints,
    col: Ints32,
    weight: Floats,
    class_of: Ints,
    head: Ints,
    size: Ints,
    component_ptr: Ints,
    some: Ints,
    start: Ints,
    ptr: Ints,
    R: Floats,
    rows: Ints,
) -> None:
    last_one = np.zeros((1, 1))
    for number in range(len(some)):
        begin, end = component_ptr[some[number]], component_ptr[some[number] + 1]
        k = end - begin
        if k == 1:
            continue
        W = quotient_network(rowptr, first, col, weight, class_of, head, size, begin, end)
        order, owned, onto, share, inverse_strength = eliminate(W, k + 1, 1)
        goal = R[start[number] : start[number + 1]].reshape((k, k))
        substitute(order, owned, onto, share, inverse_strength, last_one, goal)
        for i in range(k):
            rows[ptr[number] + i] = begin + order[k - 1 - i]


def _rows(network: Network, q: Quotient, p: int, memory: int) -> Iterator[Piece]:
    """Yield one component in blocks of rows: R_xy = G_xx + G_yy − 2 G_xy, G the inverse of the grounded Laplacian.

    The sparse LU factors are used twice, first for the diagonal of G.
    """
    W = sparse_quotient(network, q, p)
    strength = W.sum(axis=0)
    k = len(strength)
    ground = int(np.argmax(strength))
    rest = np.delete(np.arange(k), ground)
    L = csc_array(diags_array(strength) - W)[rest][:, rest]
    options = {"SymmetricMode": True}
    factors = splu(csc_array(L), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    if 16 * factors.nnz > memory:
        raise MemoryLimitError(
            f"exact distances of a component of {k:,} nodes need factors of {16 * factors.nnz >> 20:,} MiB, more than "
            f"the limit of {memory >> 20:,} MiB; raise memory or use method='sketch'"
        )
    step = max(1, memory // (6 * 8 * k))
    blocks = np.split(np.arange(k), range(step, k, step))
    diagonal = np.zeros(k)
    for block in blocks:
        diagonal[block] = _columns(factors, rest, block, k)[np.arange(len(block)), block]
    classes = np.arange(k) + q.component_ptr[p]
    for block in blocks:
        R = _columns(factors, rest, block, k)
        R *= -2
        R += diagonal[block][:, None]
        R += diagonal
        ends, across = np.array([0, len(block)]), np.array([0, k])
        yield Piece(np.maximum(R, 0).reshape(-1), np.zeros(1, dtype=np.int64), ends, classes[block], across, classes)


def _columns(factors: Any, rest: Ints, block: Ints, k: int) -> Floats:
    """[b, k] rows of G; those of the grounded node are 0."""
    unit = np.zeros((k, len(block)))
    unit[block, np.arange(len(block))] = 1
    G = np.zeros((len(block), k))
    G[:, rest] = factors.solve(unit[rest]).T
    return G


def sparse_quotient(network: Network, q: Quotient, p: int) -> csc_array:
    """[k, k] conductances between the classes of one component."""
    first, last = int(q.component_ptr[p]), int(q.component_ptr[p + 1])
    heads = q.head[first:last]
    degree = network.rowptr[heads + 1] - network.rowptr[heads]
    arcs = ranges(network.rowptr[heads], degree)
    source = np.repeat(np.arange(first, last), degree)
    node = np.repeat(network.first[heads], degree) + network.col[arcs]
    target = q.class_of[node]
    kept = (target != source) & (q.head[target] == node)
    source, target = source[kept], target[kept]
    weight = network.weight[arcs[kept]] if len(network.weight) else 1.0
    value = weight * q.size[source] * q.size[target]
    return csc_array((value, (source - first, target - first)), shape=(last - first, last - first))


def family_solver(f: Family) -> Solve | None:
    """Return the function that solves one component for ``f``; None for harmonic distances."""
    if isinstance(f, str):
        if f not in ("harmonic", "biharmonic"):
            raise ConfigError(f"f must be harmonic, biharmonic or a list of polynomial coefficients; given {f!r}")
        return None if f == "harmonic" else biharmonic
    coefficients = np.asarray(f, dtype=np.float64)
    if coefficients.ndim != 1 or not len(coefficients) or not np.isfinite(coefficients).all():
        raise ConfigError(f"polynomial coefficients must be a list of finite numbers c₀, c₁, …; given {f!r}")
    return partial(polynomial, coefficients)


def biharmonic(network: Network, q: Quotient, p: int) -> Piece:
    """Distances for f = 1/λ²: S = M_xx + M_yy − 2 M_xy with M = L⁺ L⁺, and L⁺ = −½ (I − J/n) R (I − J/n)."""
    piece = harmonic(network, q, p)
    n = len(piece.rows)
    pinv = piece.R.reshape(n, n) / -2
    pinv -= pinv.mean(axis=0)
    pinv -= pinv.mean(axis=1, keepdims=True)
    return piece._replace(R=_distances(pinv @ pinv.T))


def polynomial(coefficients: Floats, network: Network, q: Quotient, p: int) -> Piece:
    """Distances for f = Σ_k c_k λ^k: S = M_xx + M_yy − 2 M_xy with M = f(L), by Horner's rule."""
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
    """Flat M_xx + M_yy − 2 M_xy, with M symmetrised so that both directions have the same bits."""
    diagonal = np.diagonal(M).copy()
    S = diagonal[:, None] + diagonal - (M + M.T)
    np.fill_diagonal(S, 0)
    return S.reshape(-1)
