"""Elementary symmetric polynomials of the values of a neighborhood (Eq. 6).

They are the coefficients of the polynomial whose roots are the values. The paper leaves them "for our future work"
because of O(k²) cost and numerical instability. Here they cost O(edges · P) for all nodes together, positive values are
never subtracted, and nodes of high degree do not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcaps.nn.filters import Filter

CHUNK = 8
"""Number of values that are multiplied in sequence; longer segments are products of such chunks, merged in pairs."""


def symmetric_means(values: Tensor, ptr: Tensor, capsule_size: int) -> Tensor:
    """E_j = e_j / C(m, j), j = 1..P, of the rows of each segment: [P, B, c] from values [n, c] and ptr [B+1].

    e_j is the j-th elementary symmetric polynomial of the m values of a segment; E_j is 0 for j > m. Segments are split
    into chunks of :data:`CHUNK` values, whose polynomials Π (1 + x t) are expanded factor by factor, for all chunks in
    parallel:

        e_j ← e_j + x e_{j−1}

    Chunks of one segment are then merged in pairs. Each merge is a weighted mean of products with hypergeometric
    weights, so |E_j| never exceeds the j-th power of the largest value, even for nodes of high degree. Positive values
    are never subtracted, and their E_j are exact to a few units in the last place. Newton's identities, the usual
    method from power sums, subtract nearly equal numbers if a few values are much larger than the others.
    """
    start = ptr[:-1]
    rows = torch.arange(len(values), device=ptr.device)
    return torch.stack(_means(values, Segments(start, rows, start + 1, ptr.diff()), capsule_size))


def closed_symmetric_means(x: Tensor, capsule_size: int, M: Filter) -> tuple[Tensor, ...]:
    """E_1..E_P, each [n, c], of each closed neighborhood N(i) ∪ {i}; edge weights are ignored (section 3.1)."""
    return _eager_means(x, capsule_size, M)


def _closed_means(x: Tensor, capsule_size: int, M: Filter) -> tuple[Tensor, ...]:
    A = M.A.without_loops()
    nodes = torch.arange(len(x), device=x.device)
    return _means(x, Segments(nodes, A.col, A.rowptr[:-1], A.rowptr.diff() + 1), capsule_size)


_eager_means: Callable[[Tensor, int, Filter], tuple[Tensor, ...]] = _closed_means


def disable_compilation() -> None:
    """Exclude :func:`closed_symmetric_means` from torch.compile, since its steps depend on the degrees of the nodes.

    Called by modules that use it, not when this file is imported: it imports torch's compiler, which takes seconds.
    """
    global _eager_means
    if _eager_means is _closed_means:
        _eager_means = torch.compiler.disable(_closed_means)  # type: ignore[no-untyped-call]


class Segments(NamedTuple):
    """Lists of rows, each with one first row and a run of others, like a node and its neighbors in a CSR matrix."""

    head: Tensor
    """[B] first row of each segment."""
    rest: Tensor
    """Other rows of all segments."""
    start: Tensor
    """[B] offset in ``rest`` of the other rows of each segment."""
    size: Tensor
    """[B] number of rows of each segment, including the first; 0 for an empty segment."""


def _means(x: Tensor, segments: Segments, capsule_size: int) -> tuple[Tensor, ...]:
    """E_1..E_P, each [B, c], of the rows of x in each segment."""
    head, rest, start, size = segments
    longest = max(CHUNK, capsule_size)  # merging costs P² per pair, so O(P) per value
    if not len(size) or int(size.max()) <= longest:
        return _products(x, segments, capsule_size)
    chunks = torch.div(size + longest - 1, longest, rounding_mode="floor")
    segment, place = _positions(chunks)
    start = start[segment] + place * longest
    head = torch.where(place == 0, head[segment], rest[(start - 1).clamp_min(0)])
    count = (size[segment] - place * longest).clamp_max(longest)
    E = torch.stack(_products(x, Segments(head, rest, start, count), capsule_size))
    while bool((chunks > 1).any()):
        E, count, chunks = _merged(E, count, chunks)
    if len(chunks) == len(count):
        return E.unbind(0)
    # empty segments have no chunk
    out = E.new_zeros(capsule_size, len(chunks), E.size(2))
    return out.index_copy(1, torch.nonzero(chunks).squeeze(1), E).unbind(0)


def _positions(chunks: Tensor) -> tuple[Tensor, Tensor]:
    """Segment of each chunk and its position there, from the number of chunks of each segment."""
    segment = torch.repeat_interleave(torch.arange(len(chunks), device=chunks.device), chunks)
    first = chunks.cumsum(0) - chunks
    return segment, torch.arange(len(segment), device=chunks.device) - first[segment]


def _products(x: Tensor, segments: Segments, capsule_size: int) -> tuple[Tensor, ...]:
    """E_1..E_P, each [q, c], of q short segments, factor by factor."""
    out: tuple[Tensor, ...] = _Products.apply(x, *segments, capsule_size)  # type: ignore[no-untyped-call]
    return out


class _Products(torch.autograd.Function):
    """Segments are sorted by size, largest first, so that step m works on a prefix: the segments with an m-th row.

    Written by hand so that every step of the forward and the backward pass works in place.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, head: Tensor, rest: Tensor, start: Tensor, size: Tensor, capsule_size: int
    ) -> tuple[Tensor, ...]:
        order = torch.argsort(size, descending=True, stable=True)
        tally = torch.bincount(size).tolist() if len(size) else [0]
        alive = [len(size) - fewer for fewer in accumulate(tally)][
            :-1
        ]  # number of segments with a first row, a second, …
        start, filled = start.index_select(0, order), order[: alive[0] if alive else 0]
        places = torch.cat([start[:0], *(start[:active] + m for m, active in enumerate(alive[1:]))])
        rows = torch.cat(
            [head.index_select(0, filled), rest.index_select(0, places)]
        )  # first rows of all segments, second rows, …
        values = x.index_select(0, rows)
        e = x.new_zeros(capsule_size, len(size), x.size(1))
        before = []
        for m, value in enumerate(torch.split(values, alive)):
            known = min(m, capsule_size - 1)
            lowest, *higher = e[: known + 1, : len(value)]
            before.append(e[:known, : len(value)].clone())
            for lower, e_j in zip(before[-1], higher, strict=True):
                e_j.addcmul_(value, lower)
            lowest.add_(value)
        scale = _inverse_binomials(size, len(tally), capsule_size, x.dtype)
        ctx.alive, ctx.order, ctx.rows, ctx.scale, ctx.shape = alive, order, rows, scale, x.shape
        ctx.save_for_backward(values, *before)
        rank = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        return e.index_select(1, rank).mul_(scale).unbind(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        values, *before = ctx.saved_tensors
        g = values.new_empty(len(grads), len(ctx.order), values.size(1))
        for grad, scale, g_j in zip(grads, ctx.scale, g, strict=True):
            torch.index_select(grad * scale, 0, ctx.order, out=g_j)
        at_values = torch.empty_like(values)
        steps = zip(torch.split(values, ctx.alive), torch.split(at_values, ctx.alive), before, strict=True)
        for value, at_value, e in reversed(list(steps)):
            # e_j ← e_j + x e_{j−1}: the gradient at x is Σ e_{j−1} g_j, that at e_{j−1} gains x g_j
            lower, *higher = g[: len(e) + 1, : len(value)]
            at_value.copy_(lower)
            for e_j, g_j in zip(e, higher, strict=True):
                at_value.addcmul_(e_j, g_j)
                lower.addcmul_(value, g_j)
                lower = g_j
        return values.new_zeros(ctx.shape).index_add_(0, ctx.rows, at_values), None, None, None, None, None


def _inverse_binomials(size: Tensor, bound: int, capsule_size: int, dtype: torch.dtype) -> Tensor:
    """[P, q, 1] 1 / C(size, j), 0 for j > size; sizes are below ``bound``."""
    table = [[1 / (math.comb(m, j) or math.inf) for m in range(bound)] for j in range(1, capsule_size + 1)]
    return torch.tensor(table, dtype=dtype, device=size.device).index_select(1, size).unsqueeze(2)


def _merged(E: Tensor, count: Tensor, chunks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Merge adjacent chunks of each segment in pairs, once."""
    segment, place = _positions(chunks)
    even = torch.nonzero(place % 2 == 0).squeeze(1)
    paired = torch.nonzero((place + 1 < chunks[segment])[even]).squeeze(1)
    left = even[paired]
    m1, m2 = count[left], count[left + 1]
    A, B = E.index_select(1, left), E.index_select(1, left + 1)
    one = E.new_ones(1, 1, 1).expand(1, len(left), E.size(2))
    A, B = torch.cat([one, A]), torch.cat([one, B])
    parts = []
    for j in range(1, E.size(0) + 1):
        total = _falling(m1 + m2, j)
        part = torch.zeros_like(A[0])
        for i in range(j + 1):
            # hypergeometric: probability that i of j values drawn from both chunks come from the left one
            weight = math.comb(j, i) * _falling(m1, i) * _falling(m2, j - i) / total.clamp_min(1)
            part = torch.addcmul(part, weight.to(E.dtype).unsqueeze(1) * A[i], B[j - i])
        parts.append(part)
    out = E.index_select(1, even).index_copy(1, paired, torch.stack(parts))
    return out, count[even].index_add(0, paired, m2), torch.div(chunks + 1, 2, rounding_mode="floor")


def _falling(n: Tensor, k: int) -> Tensor:
    """n (n − 1) … (n − k + 1) in float64, exactly 0 for k > n."""
    out = torch.ones_like(n, dtype=torch.float64)
    for i in range(k):
        out = out * (n - i)
    return out
