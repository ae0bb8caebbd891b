"""Filter matrices M of Eq. 5.

Every filter has the form  M = diag(d) + diag(l) A diag(r)  with vectors d, l and r that are functions of the degrees,
so one sparse product with A serves all of them, and one with Aᵀ their gradients. D is the diagonal matrix of weighted
degrees, and L = D − A.

Where edges are of R relations, A = Σ_r A_r, and every relation has a filter

    M_r = diag(d_r) + diag(l) A_r diag(r)

with the vectors l and r of the whole graph, so that a neighbor counts the same in every relation. An edge of an unknown
relation (−1) is divided among all relations, 1/R of its weight to each. The diagonal of the
Laplacians is divided among relations by their degrees D_r, self-loops (kipf, mean) in equal parts, so that Σ_r M_r = M;
for the Chebyshev filter, each M_r = 2 L_r / λ − I has its spectrum within ±1. :func:`stack_relations` makes them one
matrix diag(M_1, …, M_R) on R copies of every node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from gcaps.batching.batch import Batch
from gcaps.nn.sparse import CSR, from_edge_index, pointer

BASES = ("powers", "chebyshev", "cayley")
"""Bases of polynomials in M: powers M^k, Chebyshev polynomials T_k(M), or powers of the Cayley transform of M."""


class Filter(NamedTuple):
    """A filter matrix M and the adjacency matrix A that it was made from."""

    diagonal: Tensor | None
    """[n, 1] diagonal of M, or None if it is zero."""
    off: CSR
    """M without its diagonal."""
    off_t: CSR
    """Mᵀ without its diagonal."""
    A: CSR
    A_t: CSR
    basis: str = "powers"
    """One of :data:`BASES`."""
    relation: Tensor | None = None
    """[e] relation of each entry of A, from 0 to R − 1, or −1 if it is not known; None if there is only one."""
    relations: int = 1
    """R."""
    shares: Tensor | None = None
    """[n, R] diagonals of M_1 … M_R; None if they are zero."""
    edge_attr: Tensor | None = None
    """[e, ·] attributes of the entries of A."""
    copies: int = 1
    """R after :func:`stack_relations`: copy r of node i is row i·R + r."""

    def matmul(self, x: Tensor) -> Tensor:
        """M x for x [n, c]."""
        return _plus_diagonal(self.off.matmul(x), self.diagonal, x)

    def t_matmul(self, x: Tensor) -> Tensor:
        """Mᵀ x for x [n, c]."""
        return _plus_diagonal(self.off_t.matmul(x), self.diagonal, x)

    def transposed_order(self) -> Tensor:
        """[e] position in A of each entry of Aᵀ, row by row."""
        return torch.argsort(self.A.col * self.A.rowptr.size(0) + self.A.rows(), stable=True)

    @property
    def requires_grad(self) -> bool:
        """Whether edge weights require a gradient."""
        return self.off.value is not None and self.off.value.requires_grad


def _plus_diagonal(product: Tensor, diagonal: Tensor | None, x: Tensor) -> Tensor:
    return product if diagonal is None else torch.addcmul(product, diagonal, x)


class Structure(NamedTuple):
    """Input of a filter's formula."""

    A: CSR
    like: Tensor
    """Its type and device are those of the filter."""
    graph: Tensor | None
    """[n] the graph of each node, or None if there is only one."""
    share: Tensor | None = None
    """[n, R] weighted degrees within each relation, or None if there is only one."""

    def degree(self) -> Tensor:
        """[n] weighted degrees."""
        return self.A.row_sums(self.like)

    def diagonals(self, whole: Tensor, degree: Tensor | None = None) -> Tensor | None:
        """[n, R] diagonal of every M_r: ``whole`` [n] by degrees, or in equal parts without ``degree`` [n]."""
        if self.share is None:
            return None
        if degree is None:
            return (whole / self.share.size(1)).unsqueeze(1).expand_as(self.share)
        return (whole * _inverse(degree)).unsqueeze(1) * self.share


class Scaling(NamedTuple):
    """Vectors of M = diag(diagonal) + diag(left) A diag(right); None is zeros for ``diagonal``, ones for the others."""

    diagonal: Tensor | None
    left: Tensor | None
    right: Tensor | None
    symmetric: bool = True
    """Whether M is symmetric if A is."""
    basis: str = "powers"
    shares: Tensor | None = None
    """[n, R] diagonals of the M_r, which are zero where it is None."""


def _inverse(degree: Tensor) -> Tensor:
    """1/d, and 0 where d = 0 (isolated nodes)."""
    return torch.where(degree > 0, 1 / degree.clamp_min(torch.finfo(degree.dtype).tiny), torch.zeros_like(degree))


def _laplacian(of: Structure) -> Scaling:
    """L = D − A, the filter of the paper."""
    degree = of.degree()
    return Scaling(degree, -torch.ones_like(degree), None, shares=of.share)


def _symmetric_laplacian(of: Structure) -> Scaling:
    """I − D^−½ A D^−½, 0 on isolated nodes."""
    degree = of.degree()
    root = _inverse(degree).sqrt()
    linked = (degree > 0).to(root.dtype)
    return Scaling(linked, -root, root, shares=of.diagonals(linked, degree))


def _random_walk_laplacian(of: Structure) -> Scaling:
    """I − D⁻¹ A, 0 on isolated nodes."""
    degree = of.degree()
    linked = (degree > 0).to(degree.dtype)
    return Scaling(linked, -_inverse(degree), None, symmetric=False, shares=of.diagonals(linked, degree))


def _adjacency(of: Structure) -> Scaling:
    """A: the sum over the neighbors; the node itself enters through W_p0."""
    return Scaling(None, None, None)


def _kipf(of: Structure) -> Scaling:
    """(D+I)^−½ (A+I) (D+I)^−½, the self-looped symmetric adjacency of Kipf and Welling."""
    root = (of.degree() + 1).rsqrt()
    return Scaling(root * root, root, root, shares=of.diagonals(root * root))


def _mean(of: Structure) -> Scaling:
    """(D+I)⁻¹ (A+I): the mean over the closed neighborhood with a_ii = 1 (Eqs. 3 and 4)."""
    inverse = 1 / (of.degree() + 1)
    return Scaling(inverse, inverse, None, symmetric=False, shares=of.diagonals(inverse))


def _chebyshev(of: Structure) -> Scaling:
    """2 L / λ − I for Chebyshev polynomials, which need a spectrum within ±1 (Defferrard et al., 2016).

    λ is an upper bound of the largest eigenvalue of L: the largest d_i + d_j over the edges of a graph (Anderson and
    Morley). It is taken for each graph, so that a filter does not depend on the other graphs of the batch.
    """
    degree, A = of.degree(), of.A
    rows = A.rows()
    graph = torch.zeros_like(A.rowptr[1:]) if of.graph is None else of.graph
    both = degree[rows] + degree[A.col]
    if A.loops:  # stored with weight zero, not edges
        both = both * (rows != A.col)
    # n ≥ number of graphs, and unlike that number it is known from the shape
    bound = torch.zeros_like(degree).scatter_reduce(0, graph[rows], both, "amax")
    step = 2 * _inverse(bound)[graph]  # a graph without edges has L = 0 and M = −I
    shares = None if of.share is None else step.unsqueeze(1) * of.share - 1
    return Scaling(step * degree - 1, -step, None, basis="chebyshev", shares=shares)


def _cayley(of: Structure) -> Scaling:
    """The symmetric normalised Laplacian, for polynomials of its Cayley transform (Levie et al., 2017)."""
    return _symmetric_laplacian(of)._replace(basis="cayley")


FILTERS: dict[str, Callable[[Structure], Scaling]] = {
    "laplacian": _laplacian,
    "symmetric": _symmetric_laplacian,
    "random_walk": _random_walk_laplacian,
    "adjacency": _adjacency,
    "kipf": _kipf,
    "mean": _mean,
    "chebyshev": _chebyshev,
    "cayley": _cayley,
}
"""Filters by name: functions from a graph's structure to the vectors of M."""


def orders(name: str, degree: int) -> int:
    """Number of weight matrices W_pk for a filter of that degree: K + 1, or 2K + 1 for complex Cayley powers."""
    return 2 * degree + 1 if name == "cayley" else degree + 1


def batch_filter(name: str, batch: Batch, num_relations: int = 1) -> Filter:
    """Filter of a batch. A is symmetric; if nodes are merged with multiplicities m, m_a A_ab = m_b A_ba.

    Args:
        name: a name in :data:`FILTERS`.
        batch: the batch.
        num_relations: number of relations of the layers; with 1, ``batch.edge_type`` is ignored.
    """
    A = CSR(batch.rowptr, batch.col, batch.weight, loops=batch.row is not None, row=batch.row)
    relation = batch.edge_type if num_relations > 1 else None
    if batch.multiplicity is None or batch.weight is None:
        M = _filter(name, A, A, batch.dense, batch.batch, relation, num_relations)
    else:
        A_t = CSR(batch.rowptr, batch.col, batch.weight * batch.multiplicity[A.rows()] / batch.multiplicity[batch.col])
        M = _filter(name, A, A_t, batch.dense, batch.batch)
    return M._replace(edge_attr=batch.edge_attr)


def edge_filter(
    name: str,
    edge_index: Tensor,
    edge_weight: Tensor | None,
    x: Tensor,
    batch: Tensor | None = None,
    edge_type: Tensor | None = None,
    edge_attr: Tensor | None = None,
    num_relations: int = 1,
) -> Filter:
    """Filter of a graph in PyG's format; degrees count incoming edges. Self-loops are left out.

    See :func:`batch_filter` for ``num_relations``, and :class:`Filter` for ``edge_type`` and ``edge_attr``.
    """
    if edge_type is not None and num_relations > 1 and not torch.compiler.is_compiling():
        largest = int(edge_type.max()) if edge_type.numel() else 0
        if largest >= num_relations:
            raise ValueError(f"edge_type is from 0 to {num_relations - 1}, or −1 for other edges; found {largest}")
    weight = None if edge_weight is None else edge_weight.to(x.dtype)
    A, A_t, order = from_edge_index(edge_index, weight, x.size(0))
    relation = None if edge_type is None or num_relations == 1 else edge_type.index_select(0, order)
    M = _filter(name, A, A_t, x, batch, relation, num_relations)
    return M if edge_attr is None else M._replace(edge_attr=edge_attr.index_select(0, order).to(x.dtype))


def _filter(
    name: str,
    A: CSR,
    A_t: CSR,
    like: Tensor,
    graph: Tensor | None,
    relation: Tensor | None = None,
    relations: int = 1,
) -> Filter:
    share = None
    if relation is not None:
        relation, rows = relation.long(), A.rows()
        value = torch.ones_like(A.col, dtype=like.dtype) if A.value is None else A.value.to(like.dtype)
        known = torch.where(relation < 0, 0, value)
        share = torch.zeros((A.rowptr.size(0) - 1) * relations, dtype=like.dtype, device=like.device)
        share = share.index_add(0, rows * relations + relation.clamp(min=0), known).view(-1, relations)
        share = share.index_add(0, rows, ((value - known) / relations).unsqueeze(1).expand(-1, relations))
    diagonal, left, right, symmetric, basis, shares = FILTERS[name](Structure(A, like, graph, share))
    off = _scaled(A, left, right)
    off_t = off if symmetric and A_t is A else _scaled(A_t, right, left)
    made = Filter(None if diagonal is None else diagonal.unsqueeze(1), off, off_t, A, A_t, basis)
    return made if relation is None else made._replace(relation=relation, relations=relations, shares=shares)


def _scaled(A: CSR, left: Tensor | None, right: Tensor | None) -> CSR:
    """diag(left) A diag(right)."""
    value = A.value
    for vector, at in ((left, A.rows), (right, lambda: A.col)):
        if vector is not None:
            factor = vector[at()]
            value = factor if value is None else value * factor
    return A._replace(value=value)


def stack_relations(M: Filter, dtype: torch.dtype) -> Filter:
    """diag(M_1, …, M_R), and likewise diag(A_1, …, A_R), on R copies of every node, in this type; M itself if R = 1."""
    if M.relation is None:
        return M
    R, relation, entry, factor = M.relations, M.relation, None, None
    if M.A.row is not None:
        entry, relation, factor = _with_divided(relation, R)
    elif torch.compiler.is_compiling() or bool((relation < 0).any()):
        entry, relation, factor = _divided(relation, R)
    rows, col = (at if entry is None else at[entry] for at in (M.A.rows(), M.A.col))
    row, col = rows * R + relation, col * R + relation
    count = (M.A.rowptr.size(0) - 1) * R
    as_given = M.A.row is not None  # entries in any order stay in theirs
    # entries are in the order of rows and columns, so a stable sort by one end keeps the other in order
    order, order_t = torch.argsort(row, stable=True), torch.argsort(col, stable=True)
    ptr, ptr_t = pointer(row, count), pointer(col, count)

    def pair(of: CSR) -> tuple[CSR, CSR]:
        value = of.value if of.value is None or entry is None else of.value[entry]
        if factor is not None:
            share = factor.to(dtype) / R
            value = share if value is None else value * share
        if as_given:
            return CSR(ptr, col, value, of.loops, row), CSR(ptr_t, row, value, of.loops, col)
        values = (None, None) if value is None else (value[order], value[order_t])
        return CSR(ptr, col[order], values[0], of.loops), CSR(ptr_t, row[order_t], values[1], of.loops)

    at = order if entry is None else entry if as_given else entry[order]
    return Filter(
        None if M.shares is None else M.shares.reshape(-1, 1),
        *pair(M.off),
        *pair(M.A),
        M.basis,
        edge_attr=None if M.edge_attr is None else M.edge_attr.index_select(0, at),
        copies=R,
    )


def _divided(relation: Tensor, R: int) -> tuple[Tensor, Tensor, Tensor]:
    """Divide entries of unknown relations among all: the original entry, the relation, and R times its share, R or 1.

    While compiling, where the number of entries must not depend on values, every entry is divided, into shares that may
    be 0.
    """
    if torch.compiler.is_compiling():
        entry = torch.arange(relation.size(0), device=relation.device).repeat_interleave(R)
        divided = torch.arange(R, device=relation.device).repeat(relation.size(0))
        own = relation[entry]
        return entry, divided, torch.where(own < 0, 1, R * (own == divided))
    times = torch.where(relation < 0, R, 1)
    entry = torch.repeat_interleave(torch.arange(relation.size(0), device=relation.device), times)
    position = torch.arange(entry.size(0), device=relation.device) - (times.cumsum(0) - times)[entry]
    own = relation[entry]
    unknown = own < 0
    return entry, torch.where(unknown, position, own), torch.where(unknown, 1, R)


def _with_divided(relation: Tensor, R: int) -> tuple[Tensor, Tensor, Tensor]:
    """As :func:`_divided`, in another order: all entries, of which unknown ones count nothing, then the divided ones.

    For exported programs, in which a number of entries may depend on values.
    """
    every = torch.arange(relation.size(0), device=relation.device)
    unknown = torch.nonzero(relation < 0).squeeze(1)
    entry = torch.cat([every, unknown.unsqueeze(1).expand(-1, R).flatten()])
    divided = torch.arange(R, device=relation.device).expand(unknown.size(0), R).flatten()
    factor = torch.cat([torch.where(relation < 0, 0, R), torch.ones_like(divided)])
    return entry, torch.cat([relation.clamp_min(0), divided]), factor


def gated(M: Filter, gate: Tensor) -> Filter:
    """M with the entries of A, and those off its own diagonal, times ``gate`` [e]; its diagonal does not change."""
    order = M.transposed_order()

    def times(of: CSR, factor: Tensor) -> CSR:
        return of._replace(value=factor if of.value is None else of.value * factor)

    turned = gate.index_select(0, order)
    A_t = times(M.A_t, turned)
    return M._replace(off=times(M.off, gate), off_t=times(M.off_t, turned), A=times(M.A, gate), A_t=A_t)
