"""Filter matrices M of Eq. 5: what a node takes from its neighbors.

Every filter here has the form  M = diag(d) + diag(l) A diag(r)  with vectors d, l and r that follow from the degrees,
so one sparse product with A serves them all, forwards and (transposed) backwards. D holds the weighted degrees, and
L = D − A.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from gcaps.batching.batch import Batch
from gcaps.nn.sparse import CSR, from_edge_index

BASES = ("powers", "chebyshev", "cayley")
"""How a polynomial in M is written: in powers M^k, Chebyshev polynomials T_k(M), or powers of M's Cayley transform."""


class Filter(NamedTuple):
    """A filter matrix M, ready to be applied, and the adjacency matrix A behind it."""

    diagonal: Tensor | None
    """[n, 1], or None where it is zero."""
    off: CSR
    """The rest of M."""
    off_t: CSR
    """The rest of Mᵀ."""
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
        """[e] where each entry of Aᵀ, row by row, stands in A."""
        return torch.argsort(self.A.col * len(self.A.rowptr) + self.A.rows(), stable=True)

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient with respect to edge weights is wanted."""
        return self.off.value is not None and self.off.value.requires_grad


def _plus_diagonal(product: Tensor, diagonal: Tensor | None, x: Tensor) -> Tensor:
    return product if diagonal is None else torch.addcmul(product, diagonal, x)


class Structure(NamedTuple):
    """What a filter is made from."""

    A: CSR
    degree: Tensor
    """[n] weighted degrees."""
    graph: Tensor | None
    """[n] the graph of each node; None where there is only one."""


class Scaling(NamedTuple):
    """The vectors of M = diag(diagonal) + diag(left) A diag(right); None is zeros in ``diagonal``, ones elsewhere."""

    diagonal: Tensor | None
    left: Tensor | None
    right: Tensor | None
    symmetric: bool = True
    """Whether M is symmetric where A is."""
    basis: str = "powers"


def _inverse(degree: Tensor) -> Tensor:
    """1/d, and 0 where d = 0: an isolated node takes nothing."""
    return torch.where(degree > 0, 1 / degree.clamp_min(torch.finfo(degree.dtype).tiny), torch.zeros_like(degree))


def _laplacian(of: Structure) -> Scaling:
    """L = D − A, the paper's own."""
    return Scaling(of.degree, -torch.ones_like(of.degree), None)


def _symmetric_laplacian(of: Structure) -> Scaling:
    """I − D^−½ A D^−½, 0 on isolated nodes."""
    root = _inverse(of.degree).sqrt()
    return Scaling((of.degree > 0).to(root.dtype), -root, root)


def _random_walk_laplacian(of: Structure) -> Scaling:
    """I − D⁻¹ A, 0 on isolated nodes."""
    return Scaling((of.degree > 0).to(of.degree.dtype), -_inverse(of.degree), None, symmetric=False)


def _adjacency(of: Structure) -> Scaling:
    """A: with W_0 for the node itself, a sum over the neighbors."""
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

    λ is a bound of the largest eigenvalue of L that no graph exceeds: the largest d_i + d_j over its edges (Anderson
    and Morley), graph by graph, so that a graph's filter does not depend on what it is batched with.
    """
    degree, A = of.degree, of.A
    rows = A.rows()
    graph = torch.zeros_like(A.rowptr[1:]) if of.graph is None else of.graph
    both = degree[rows] + degree[A.col]
    if A.loops:  # they carry no weight and are no edges
        both = both * (rows != A.col)
    # one place a node is at least one a graph, and does not depend on what is in the tensors
    bound = torch.zeros_like(degree).scatter_reduce(0, graph[rows], both, "amax")
    step = 2 * _inverse(bound)[graph]  # a graph without edges has L = 0, and M = −I
    return Scaling(step * degree - 1, -step, None, basis="chebyshev")


def _cayley(of: Structure) -> Scaling:
    """The symmetric-normalised Laplacian, whose Cayley transform is then solved for (Levie et al., 2017)."""
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
"""Filters by name: from a graph's structure to the vectors that make M out of A."""


def orders(name: str, degree: int) -> int:
    """How many weight matrices W_pk a filter of that degree has: K + 1, or 2K + 1 for complex Cayley powers."""
    return 2 * degree + 1 if name == "cayley" else degree + 1


def batch_filter(name: str, batch: Batch) -> Filter:
    """The filter ``name`` of a batch, whose A is symmetric; of one with merged nodes, m_a A_ab = m_b A_ba."""
    A = CSR(batch.rowptr, batch.col, batch.weight)
    if batch.multiplicity is None or batch.weight is None:
        return _filter(name, A, A, batch.dense, batch.batch)
    A_t = CSR(batch.rowptr, batch.col, batch.weight * batch.multiplicity[A.rows()] / batch.multiplicity[batch.col])
    return _filter(name, A, A_t, batch.dense, batch.batch)


def edge_filter(
    name: str, edge_index: Tensor, edge_weight: Tensor | None, x: Tensor, batch: Tensor | None = None
) -> Filter:
    """The filter ``name`` of a graph given as PyG gives it; degrees count what arrives at a node."""
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
