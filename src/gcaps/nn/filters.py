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


class Filter(NamedTuple):
    """A filter matrix M, ready to be applied."""

    diagonal: Tensor | None
    """[n, 1], or None where it is zero."""
    off: CSR
    """The rest of M."""
    off_t: CSR
    """The rest of Mᵀ."""

    def matmul(self, x: Tensor) -> Tensor:
        """M x for x [n, c]."""
        return _plus_diagonal(self.off.matmul(x), self.diagonal, x)

    def t_matmul(self, x: Tensor) -> Tensor:
        """Mᵀ x for x [n, c]."""
        return _plus_diagonal(self.off_t.matmul(x), self.diagonal, x)

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient with respect to edge weights is wanted."""
        return self.off.value is not None and self.off.value.requires_grad


def _plus_diagonal(product: Tensor, diagonal: Tensor | None, x: Tensor) -> Tensor:
    return product if diagonal is None else torch.addcmul(product, diagonal, x)


class Scaling(NamedTuple):
    """The vectors of M = diag(diagonal) + diag(left) A diag(right); None is zeros in ``diagonal``, ones elsewhere."""

    diagonal: Tensor | None
    left: Tensor | None
    right: Tensor | None
    symmetric: bool = True
    """Whether M is symmetric where A is."""


def _inverse(degree: Tensor) -> Tensor:
    """1/d, and 0 where d = 0: an isolated node takes nothing."""
    return torch.where(degree > 0, 1 / degree.clamp_min(torch.finfo(degree.dtype).tiny), torch.zeros_like(degree))


def _laplacian(degree: Tensor) -> Scaling:
    """L = D − A, the paper's own."""
    return Scaling(degree, -torch.ones_like(degree), None)


def _symmetric_laplacian(degree: Tensor) -> Scaling:
    """I − D^−½ A D^−½, 0 on isolated nodes."""
    root = _inverse(degree).sqrt()
    return Scaling((degree > 0).to(degree.dtype), -root, root)


def _random_walk_laplacian(degree: Tensor) -> Scaling:
    """I − D⁻¹ A, 0 on isolated nodes."""
    return Scaling((degree > 0).to(degree.dtype), -_inverse(degree), None, symmetric=False)


def _adjacency(degree: Tensor) -> Scaling:
    """A: with W_0 for the node itself, a sum over the neighbors."""
    return Scaling(None, None, None)


def _kipf(degree: Tensor) -> Scaling:
    """(D+I)^−½ (A+I) (D+I)^−½, the self-looped symmetric adjacency of Kipf and Welling."""
    root = (degree + 1).rsqrt()
    return Scaling(root * root, root, root)


def _mean(degree: Tensor) -> Scaling:
    """(D+I)⁻¹ (A+I): the mean over the closed neighborhood with a_ii = 1 (Eqs. 3 and 4)."""
    inverse = 1 / (degree + 1)
    return Scaling(inverse, inverse, None, symmetric=False)


FILTERS: dict[str, Callable[[Tensor], Scaling]] = {
    "laplacian": _laplacian,
    "symmetric": _symmetric_laplacian,
    "random_walk": _random_walk_laplacian,
    "adjacency": _adjacency,
    "kipf": _kipf,
    "mean": _mean,
}
"""Filters by name: from weighted degrees [n] to the vectors that make M out of A."""


def batch_filter(name: str, batch: Batch) -> Filter:
    """The filter ``name`` of a batch, whose A is symmetric."""
    A = CSR(batch.rowptr, batch.col, batch.weight)
    return _filter(name, A, A, like=batch.x)


def edge_filter(name: str, edge_index: Tensor, edge_weight: Tensor | None, x: Tensor) -> Filter:
    """The filter ``name`` of a graph given as PyG gives it; degrees count what arrives at a node."""
    A, A_t = from_edge_index(edge_index, None if edge_weight is None else edge_weight.to(x.dtype), x.size(0))
    return _filter(name, A, A_t, like=x)


def _filter(name: str, A: CSR, A_t: CSR, like: Tensor) -> Filter:
    diagonal, left, right, symmetric = FILTERS[name](A.row_sums(like))
    off = _scaled(A, left, right)
    off_t = off if symmetric and A_t is A else _scaled(A_t, right, left)
    return Filter(None if diagonal is None else diagonal.unsqueeze(1), off, off_t)


def _scaled(A: CSR, left: Tensor | None, right: Tensor | None) -> CSR:
    """diag(left) A diag(right)."""
    value = A.value
    for vector, at in ((left, A.rows), (right, lambda: A.col)):
        if vector is not None:
            factor = vector[at()]
            value = factor if value is None else value * factor
    return CSR(A.rowptr, A.col, value)
