"""Elementary symmetric polynomials of the neighborhood: the coefficients of the polynomial whose roots are its values.

The paper leaves this "for our future work" because of O(k²) cost and numerical instability. Here it costs O(edges · P)
for all nodes at once and every step is a weighted mean, so nothing cancels and nothing overflows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gcaps.nn.capsules.function import CapsuleFunction
from gcaps.nn.capsules.moments import bounded
from gcaps.nn.filters import Filter

CHUNK = 8
"""Values that are multiplied in one after the other; beyond it, partial products are merged in pairs."""


def symmetric_means(values: Tensor, ptr: Tensor, capsule_size: int) -> Tensor:
    """E_j = e_j / C(m, j), j = 1..P, of the rows of each segment: [P, B, c] from values [n, c] and ptr [B+1].

    e_j is the j-th elementary symmetric polynomial of the m values of a segment; E_j is 0 where j > m. Multiplying one
    more factor (1 + x t) into a product of m−1 is

        E_j ← ((m − j) E_j + j x E_{j−1}) / m,

    a weighted mean. Segments are cut into chunks of :data:`CHUNK` values that run side by side; chunks of one segment
    are then merged in pairs, which is a weighted mean again (with hypergeometric weights). Newton's identities, the
    usual way from power sums, subtract nearly equal numbers instead.
    """
    sizes = ptr.diff()
    chunk = max(1, min(CHUNK, int(sizes.max()) if len(sizes) else 1))
    chunks = torch.div(sizes + chunk - 1, chunk, rounding_mode="floor")
    segment = torch.repeat_interleave(torch.arange(len(sizes), device=ptr.device), chunks)
    first = torch.cat([chunks.new_zeros(1), chunks.cumsum(0)])
    place = torch.arange(len(segment), device=ptr.device) - first[:-1][segment]
    start = ptr[:-1][segment] + place * chunk
    count = torch.minimum(ptr[1:][segment] - start, torch.full_like(start, chunk))
    E = _products(values, start, count, chunk, capsule_size)
    while bool((chunks > 1).any()):
        E, count, chunks = _merged(E, count, chunks)
    if len(chunks) == len(count):  # every segment has one chunk
        return E
    out = E.new_zeros(capsule_size, len(chunks), E.size(2))
    return out.index_copy(1, torch.nonzero(chunks).squeeze(1), E)


def _products(values: Tensor, start: Tensor, count: Tensor, chunk: int, capsule_size: int) -> Tensor:
    """[P, q, c] of q chunks, factor by factor."""
    order = torch.arange(1, capsule_size + 1, device=values.device, dtype=torch.float64)[:, None]
    E = values.new_zeros(capsule_size, len(start), values.size(1))
    one = values.new_ones(1, len(start), values.size(1))
    last = len(values) - 1
    for m in range(1, chunk + 1):
        present = (count >= m) & (order <= m)
        gain = torch.where(present, order / m, 0.0).to(values.dtype).unsqueeze(2)
        keep = torch.where(count >= m, torch.where(order <= m, (m - order) / m, 0.0), 1.0).to(values.dtype).unsqueeze(2)
        x = values.index_select(0, (start + m - 1).clamp_max(last))
        E = keep * E + gain * x * torch.cat([one, E[:-1]])
    return E


def _merged(E: Tensor, count: Tensor, chunks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One round of merging neighbouring chunks of the same segment in pairs."""
    P = E.size(0)
    segment = torch.repeat_interleave(torch.arange(len(chunks), device=E.device), chunks)
    first = torch.cat([chunks.new_zeros(1), chunks.cumsum(0)])
    place = torch.arange(len(segment), device=E.device) - first[:-1][segment]
    even = torch.nonzero(place % 2 == 0).squeeze(1)
    paired = (place[even] + 1) < chunks[segment[even]]
    left, right = even[paired], even[paired] + 1
    m1, m2 = count[left].double(), count[right].double()
    one = E.new_ones(1, len(left), E.size(2))
    A, B = torch.cat([one, E[:, left]]), torch.cat([one, E[:, right]])
    parts = []
    for j in range(1, P + 1):
        total = _log_choose(m1 + m2, j)
        terms = [
            torch.exp(_log_choose(m1, i) + _log_choose(m2, j - i) - total).to(E.dtype)[:, None] * (A[i] * B[j - i])
            for i in range(j + 1)
        ]
        parts.append(torch.stack(terms).sum(0))
    merged = torch.stack(parts)
    out = E[:, even].index_copy(1, torch.nonzero(paired).squeeze(1), merged)
    both = count[even].index_add(0, torch.nonzero(paired).squeeze(1), count[right])
    return out, both, torch.div(chunks + 1, 2, rounding_mode="floor")


def _log_choose(n: Tensor, k: int) -> Tensor:
    """log C(n, k), −∞ where k > n."""
    value = torch.lgamma(n + 1) - torch.lgamma(n - k + 1) - torch.lgamma(torch.tensor(k + 1.0, dtype=n.dtype))
    return torch.where(n >= k, value, -torch.inf)


def closed_symmetric_means(x: Tensor, capsule_size: int, M: Filter) -> Tensor:
    """[P, n, c] E_1..E_P of each closed neighborhood N(i) ∪ {i}; edge weights do not enter (paper, section 3.1)."""
    n, A = len(x), M.A
    nodes = torch.arange(n, device=x.device)
    ptr = A.rowptr + torch.arange(n + 1, device=x.device)
    column = x.new_empty(n + len(A.col), dtype=torch.long)
    column[A.rowptr[:-1] + nodes] = nodes
    column[torch.arange(len(A.col), device=x.device) + A.rows() + 1] = A.col
    return symmetric_means(x.index_select(0, column), ptr, capsule_size)


class Polynomial(CapsuleFunction):
    """See :func:`closed_symmetric_means`; the values are bounded first, like those that `moments` raises to powers."""

    def forward(self, x: Tensor, M: Filter) -> list[Tensor]:
        """P statistics [n, c]."""
        return list(closed_symmetric_means(bounded(x, self.bound), self.capsule_size, M).unbind(0))
