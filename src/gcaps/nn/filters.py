"""Filter matrices M of Eq. 5.

Every filter has the form  M = diag(d) + diag(l) A diag(r)  with vectors d, l and r that are functions of the degrees,
so one sparse product with A serves all of them, and one with Aᵀ their gradients. D is the diagonal matrix of weighted
degrees, and L = D − A.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from gcaps.batching.batch import Batch
from gcaps.nn.sparse import CSR, from_edge_index

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

    def matmul(self, x: Tensor) -> Tensor:
        """M x for x [n, c]."""
        return _plus_diagonal(self.off.matmul(x), self.diagonal, x)

    def t_matmul(self, x: Tensor) -> Tensor:
        """Mᵀ x for x [n, c]."""
        return _plus_diagonal(self.off_t.matmul(x), self.diagonal, x)

    def transposed_order(self) -> Tensor:
        """[e] position in A of each entry of Aᵀ, row by row."""
        return torch.argsort(self.A.col * len(self.A.rowptr) + self.A.rows(), stable=True)

    @property
    def requires_grad(self) -> bool:
        """Whether edge weights require a gradient."""
        return self.off.value is not None and self.off.value.requires_grad


def _plus_diagonal(product: Tensor, diagonal: Tensor | None, x: Tensor) -> Tensor:
    return product if diagonal is None else torch.addcmul(product, diagonal, x)


class Structure(NamedTuple):
    """Input of a filter's formula."""

    A: CSR
    degree: Tensor
    """[n] weighted degrees."""
    graph: Tensor | None
    """[n] the graph of each node, or None if there is only one."""


class Scaling(NamedTuple):
    """Vectors of M = diag(diagonal) + diag(left) A diag(right); None is zeros for ``diagonal``, ones for the others."""

    diagonal: Tensor | None
    left: Tensor | None
    right: Tensor | None
    symmetric: bool = True
    """Whether M is symmetric if A is."""
    basis: str = "powers"


def _inverse(degree: Tensor) -> Tensor:
    """1/d, and 0 where d = 0 (isolated nodes)."""
    return torch.where(degree > 0, 1 / degree.clamp_min(torch.finfo(degree.dtype).tiny), torch.zeros_like(degree))


def _laplacian(of: Structure) -> Scaling:
    """L = D − A, the filter of the paper."""
    return Scaling(of.degree, -torch.ones_like(of.degree), None)


def _symmetric_laplacian(of: Structure) -> Scaling:
    """I − D^−½ A D^−½, 0 on isolated nodes."""
    root = _inverse(of.degree).sqrt()
    return Scaling((of.degree > 0).to(root.dtype), -root, root)


def _random_walk_laplacian(of: Structure) -> Scaling:
    """I − D⁻¹ A, 0 on isolated nodes."""
    return Scaling((of.degree > 0).to(of.degree.dtype), -_inverse(of.degree), None, symmetric=False)


def _adjacency(of: Structure) -> Scaling:
    """A: the sum over the neighbors; the node itself enters through W_p0."""
    return Scaling(None, None, None)


def _kipf(of: Structure) -> Scaling:
    """(D+I)^−½ (A+I) (D+I)^−½, the self-looped symmetric adjacency of Kipf and Welling."""
    root = (of.degree + 1).rsqrt()
    return Scaling(root * root, root, root)


def _mean(of: Structure) -> Scaling:
    """(D+I)⁻¹ (A+I): the mean over the closed neighborhood with a_ii = 1 (Eqs. 3 and 4)."""
    inverse = 1 / (of.degree + 1)
    return Scaling(inverse, inverse, None, symmetric=False)


def _chebyshev(of: Structure) -> Scaling:
    """2 L / λ − I for Chebyshev polynomials, which need a spectrum within ±1 (Defferrard et al., 2016).

    λ is an upper bound of the largest eigenvalue of L: the largest d_i + d_j over the edges of a graph (Anderson and
    Morley). It is taken for each graph, so that a filter does not depend on the other graphs of the batch.
    """
    degree, A = of.degree, of.A
    rows = A.rows()
    graph = torch.zeros_like(A.rowptr[1:]) if of.graph is None else of.graph
    both = degree[rows] + degree[A.col]
    if A.loops:  # stored with weight zero, not edges
        both = both * (rows != A.col)
    # n ≥ number of graphs, and unlike that number it is known from the shape
    bound = torch.zeros_like(degree).scatter_reduce(0, graph[rows], both, "amax")
    step = 2 * _inverse(bound)[graph]  # a graph without edges has L = 0 and M = −I
    return Scaling(step * degree - 1, -step, None, basis="chebyshev")


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


def batch_filter(name: str, batch: Batch) -> Filter:
    """Filter of a batch. A is symmetric; if nodes are merged with multiplicities m, m_a A_ab = m_b A_ba."""
    A = CSR(batch.rowptr, batch.col, batch.weight)
    if batch.multiplicity is None or batch.weight is None:
        return _filter(name, A, A, batch.dense, batch.batch)
    A_t = CSR(batch.rowptr, batch.col, batch.weight * batch.multiplicity[A.rows()] / batch.multiplicity[batch.col])
    return _filter(name, A, A_t, batch.dense, batch.batch)


def edge_filter(
    name: str, edge_index: Tensor, edge_weight: Tensor | None, x: Tensor, batch: Tensor | None = None
) -> Filter:
    """Filter of a graph in PyG's format; degrees count incoming edges."""
    A, A_t = from_edge_index(edge_index, None if edge_weight is None else edge_weight.to(x.dtype), x.size(0))
    return _filter(name, A, A_t, x, batch)


def _filter(name: str, A: CSR, A_t: CSR, like: Tensor, graph: Tensor | None) -> Filter:
    diagonal, left, right, symmetric, basis = FILTERS[name](Structure(A, A.row_sums(like), graph))
    off = _scaled(A, left, right)
    off_t = off if symmetric and A_t is A else _scaled(A_t, right, left)
    return Filter(None if diagonal is None else diagonal.unsqueeze(1), off, off_t, A, A_t, basis)


def _scaled(A: CSR, left: Tensor | None, right: Tensor | None) -> CSR:
    """diag(left) A diag(right)."""
    value = A.value
    for vector, at in ((left, A.rows), (right, lambda: A.col)):
        if vector is not None:
            factor = vector[at()]
            value = factor if value is None else value * factor
    return CSR(A.rowptr, A.col, value)
