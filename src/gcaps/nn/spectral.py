"""Polynomials of a filter matrix applied to node features (the sum in Eq. 5), in three bases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcaps.nn.filters import Filter
from gcaps.nn.neighborhood import filter_product

ZOOM = 1.0
"""h of the Cayley transform (hM − i)(hM + i)⁻¹, which controls how far low eigenvalues are spread."""


def filter_polynomial(parts: Sequence[Tensor], weight: Tensor, M: Filter) -> Tensor:
    """Σ_k B_k(M) Y_p W_pk for every capsule component p (the argument of σ in Eq. 5, without bias).

    Args:
        parts: P matrices Y_p [n, c].
        weight: [P, c, orders, h]; W_pk is weight[p, :, k].
        M: the filter. Its basis determines B_k: M^k, the Chebyshev polynomial T_k(M), or (for k = 1, 2, 3, 4, …)
            Re C, Im C, Re C², Im C², … of the Cayley transform C = (hM − i)(hM + i)⁻¹.

    Returns:
        [n, P·h], component by component.

    Horner's scheme, U_0 + M (U_1 + M (U_2 + …)) with U_k = [Y_1 W_1k, …, Y_P W_Pk], takes K sparse products of width
    P·h (as does Clenshaw's for T_k) and one dense product per component. The gradient at U_k is B_k(Mᵀ) times the
    gradient at the output: K more sparse products. No power of M is stored.
    """
    if M.basis == "cayley":
        return _cayley(mixed(parts, weight), M)
    if M.requires_grad or torch.compiler.is_compiling():
        return _clenshaw(mixed(parts, weight), M)
    out: Tensor = _FilterPolynomial.apply(M, weight, *parts)  # type: ignore[no-untyped-call]
    return out


def relation_polynomial(U: list[Tensor], filters: Sequence[Filter]) -> Tensor:
    """Σ_k B_k(M_p) U_k for U_k [n, P·h] that have been mixed, by autograd.

    Args:
        U: U_0, U_1, …
        filters: one filter for all components, or one for each.
    """
    if filters[0].basis == "cayley":
        return _cayley(U, filters[0])

    def product(u: Tensor) -> Tensor:
        pieces = zip(u.chunk(len(filters), dim=1), filters, strict=True)
        return torch.cat([filter_product(piece.contiguous(), M) for piece, M in pieces], dim=1)

    return _clenshaw(U, filters[0], (lambda u: filter_product(u, filters[0])) if len(filters) == 1 else product)


def mixed(parts: Sequence[Tensor], weight: Tensor) -> list[Tensor]:
    """[U_0, U_1, …], each [n, P·h]."""
    P, _, orders, h = weight.shape
    U = torch.stack([part @ weight[p].flatten(1) for p, part in enumerate(parts)], dim=1).view(-1, P, orders, h)
    return [u.flatten(1) for u in U.unbind(2)]


def _clenshaw(U: list[Tensor], M: Filter, product: Callable[[Tensor], Tensor] | None = None) -> Tensor:
    """Σ_k B_k(M) U_k for powers (Horner) and Chebyshev polynomials (Clenshaw)."""
    product = product or M.matmul
    if M.basis == "powers":
        total = U[-1]
        for u in reversed(U[:-1]):
            total = u + product(total)
        return total
    after, total = torch.zeros_like(U[0]), U[-1]
    for u in reversed(U[1:-1]):
        after, total = total, u + 2 * product(total) - after
    return U[0] if len(U) == 1 else U[0] + product(total) - after


def _spread(grad: Tensor, count: int, M: Filter) -> list[Tensor]:
    """[B_0(Mᵀ) G, B_1(Mᵀ) G, …] by recurrence."""
    found = [grad]
    for k in range(1, count):
        following = M.t_matmul(found[-1])
        if M.basis == "chebyshev" and k > 1:
            following = 2 * following - found[-2]
        found.append(following)
    return found


class _FilterPolynomial(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, M: Filter, weight: Tensor, *parts: Tensor) -> Tensor:
        ctx.M = M
        ctx.save_for_backward(weight, *parts)
        return _clenshaw(mixed(parts, weight), M)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, *parts = ctx.saved_tensors
        P, _, orders, h = weight.shape
        # this layout needs one dense product per component for all orders
        spread = torch.stack(_spread(grad.contiguous(), orders, ctx.M), dim=1).view(-1, orders, P, h)
        flat = spread.permute(2, 0, 1, 3).reshape(P, -1, orders * h)
        grad_weight: Tensor | None = None
        if ctx.needs_input_grad[1]:
            grad_weight = torch.stack([part.t() @ g for part, g in zip(parts, flat, strict=True)]).view_as(weight)
        wanted = ctx.needs_input_grad[2:]
        grad_parts = [flat[p] @ weight[p].flatten(1).t() if wanted[p] else None for p in range(P)]
        return None, grad_weight, *grad_parts


def _cayley(U: list[Tensor], M: Filter) -> Tensor:
    """U_0 + Σ_k Re C^k U_{2k−1} + Im C^k U_{2k}, by Horner's scheme in C with V_k = U_{2k−1} − i U_{2k}.

    C = (hM − i)(hM + i)⁻¹ = (h²M² − I − 2i hM) S with S = (h²M² + I)⁻¹; systems with S⁻¹ are solved, S is never formed.
    """
    if len(U) == 1:
        return U[0]
    real, imaginary = U[-2], -U[-1]
    for k in range(len(U) // 2 - 1, -1, -1):
        solved = _solve(torch.cat([real, imaginary], dim=1), M)
        once = ZOOM * filter_product(solved, M)
        shrunk = ZOOM * filter_product(once, M) - solved
        y, z = once.chunk(2, dim=1)
        q, r = shrunk.chunk(2, dim=1)
        real, imaginary = q + 2 * z, r - 2 * y
        if k:
            real, imaginary = real + U[2 * k - 1], imaginary - U[2 * k]
    return U[0] + real


class _Solve(torch.autograd.Function):
    """(h²M² + I)⁻¹ x for a symmetric M with spectrum in [0, 2]; the gradient is another solve with the same matrix."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, M: Filter) -> Tensor:
        ctx.M = M
        return _chebyshev_iteration(x, M)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _chebyshev_iteration(grad.contiguous(), ctx.M), None


def _solve(x: Tensor, M: Filter) -> Tensor:
    if M.requires_grad or torch.compiler.is_compiling():
        return _chebyshev_iteration(x, M)
    out: Tensor = _Solve.apply(x, M)  # type: ignore[no-untyped-call]
    return out


def _chebyshev_iteration(b: Tensor, M: Filter) -> Tensor:
    """Solve (h²M² + I) y = b by Chebyshev's semi-iteration, to the precision of the type.

    The eigenvalues lie in [1, 1 + 4h²], so the number of steps is known in advance (18 in float32). There are no inner
    products, so the solution of a graph does not depend on the other graphs of the batch.
    """
    low, high = 1.0, 1.0 + 4 * ZOOM**2
    root = math.sqrt(high / low)
    steps = math.ceil(math.log(2 / torch.finfo(b.dtype).eps) / math.log((root + 1) / (root - 1)))
    centre, radius = (high + low) / 2, (high - low) / 2
    y = torch.zeros_like(b)
    residual, change, rho = b, b / centre, radius / centre
    for _ in range(steps):
        y = y + change
        twice = M.matmul(M.matmul(change))
        residual = residual - change - ZOOM**2 * twice
        following = 1 / (2 * centre / radius - rho)
        change = following * rho * change + 2 * following / radius * residual
        rho = following
    return y + change
