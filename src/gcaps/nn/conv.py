"""Graph capsule convolution: Eq. 5 of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.nn.capsules import CAPSULES
from gcaps.nn.filters import FILTERS, Filter, edge_filter


def filter_polynomial(parts: Sequence[Tensor], weight: Tensor, M: Filter) -> Tensor:
    """Σ_k M^k Y_p W_pk for every capsule component p (the argument of σ in Eq. 5, without bias).

    Args:
        parts: P matrices Y_p [n, c].
        weight: [P, c, K+1, h]; W_pk is weight[p, :, k].
        M: the filter.

    Returns:
        [n, P·h], component by component.

    Horner's scheme: U_0 + M (U_1 + M (U_2 + …)) with U_k = [Y_1 W_1k, …, Y_P W_Pk] needs K sparse products of width
    P·h, and one dense product a component gives all its U_k. Backwards, the gradient of U_k is (Mᵀ)^k of the output's:
    K more sparse products, and no power of M is ever stored.
    """
    if M.requires_grad:
        return _horner(parts, weight, M)
    out: Tensor = _FilterPolynomial.apply(M, weight, *parts)  # type: ignore[no-untyped-call]
    return out


def _horner(parts: Sequence[Tensor], weight: Tensor, M: Filter) -> Tensor:
    """The scheme itself, in operations that autograd can follow."""
    P, _, orders, h = weight.shape
    U = torch.stack([part @ weight[p].flatten(1) for p, part in enumerate(parts)], dim=1)  # [n, P, (K+1)·h]
    U = U.view(-1, P, orders, h)
    total = U[:, :, orders - 1].flatten(1)
    for k in reversed(range(orders - 1)):
        total = U[:, :, k].flatten(1) + M.matmul(total)
    return total


class _FilterPolynomial(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, M: Filter, weight: Tensor, *parts: Tensor) -> Tensor:
        ctx.M = M
        ctx.save_for_backward(weight, *parts)
        return _horner(parts, weight, M)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, *parts = ctx.saved_tensors
        P, _, orders, h = weight.shape
        n = len(grad)
        # the gradients of all U_k, laid out so that one dense product a component serves all orders
        grads = grad.new_empty(P, n, orders, h)
        for k in range(orders):
            grad = ctx.M.t_matmul(grad) if k else grad.contiguous()
            grads[:, :, k] = grad.view(n, P, h).transpose(0, 1)
        flat = grads.view(P, n, orders * h)
        grad_weight: Tensor | None = None
        grad_parts: list[Tensor | None] = [None] * P
        if ctx.needs_input_grad[1]:
            grad_weight = torch.stack([part.t() @ g for part, g in zip(parts, flat, strict=True)]).view_as(weight)
        for p in range(P):
            if ctx.needs_input_grad[2 + p]:
                grad_parts[p] = flat[p] @ weight[p].flatten(1).t()
        return None, grad_weight, *grad_parts


def flatten_capsules(capsules: Tensor) -> Tensor:
    """[n, h, P] to [n, P·h], component by component: the order in which a layer computes them, so nothing is copied."""
    return capsules.transpose(1, 2).flatten(1)


class GraphCapsuleConv(nn.Module):
    r"""The graph capsule convolution of *Graph Capsule Convolutional Neural Networks* (Verma & Zhang, 2018), Eq. 5.

    .. math::
        f_p = \sigma\Big(\sum_{k=0}^{K} \mathbf{M}^k \, \mathbf{F}^{\odot p} \, \mathbf{W}_{pk} + \mathbf{b}_p\Big),
        \qquad p = 1, \dots, P

    where :math:`\mathbf{F}` is the input, the previous layer's capsules flattened, and :math:`\mathbf{M}` the filter.

    Args:
        in_channels: columns of the input; P times the width after another capsule layer.
        out_channels: width h of the output.
        capsule_size: P, how many instantiation parameters a capsule keeps.
        degree: K, the highest power of the filter: how many hops one layer sees (Theorem 1).
        capsule: the capsule function, a name in :data:`gcaps.nn.CAPSULES`.
        filter: the filter matrix, a name in :data:`gcaps.nn.FILTERS`.
        bound: keeps powers in range, see :func:`gcaps.nn.bounded`; None is Eq. 5 to the letter.
        normalize: batch normalisation of the flattened output before σ.
        activation: σ: ``"relu"``, ``"tanh"``, ``"elu"`` or None.
        bias: whether to add b_p.

    Shapes:
        - **input:** node features [n, in_channels] or capsules [n, h, P] with h·P = in_channels; ``edge_index`` [2, e]
          and ``edge_weight`` [e] as in PyTorch Geometric, or a ready :class:`gcaps.nn.Filter` as ``edge_index``.
        - **output:** capsules [n, out_channels, capsule_size].
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        capsule_size: int = 2,
        degree: int = 1,
        capsule: str = "moments",
        filter: str = "laplacian",  # noqa: A002 (the paper's word)
        *,
        bound: float | None = None,
        normalize: bool = False,
        activation: str | None = "relu",
        bias: bool = True,
    ) -> None:
        super().__init__()
        for what, name, known in (
            ("capsule", capsule, CAPSULES),
            ("filter", filter, FILTERS),
            ("activation", activation, ACTIVATIONS),
        ):
            if name not in known:
                raise ValueError(f"unknown {what} {name!r}; there are {', '.join(map(str, known))}")
        if capsule_size < 1 or degree < 0 or in_channels < 1 or out_channels < 1:
            raise ValueError("in_channels, out_channels and capsule_size start at 1, degree at 0")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.capsule_size, self.degree = capsule_size, degree
        self.capsule, self.filter, self.bound, self.activation = capsule, filter, bound, activation
        self.weight = nn.Parameter(torch.empty(capsule_size, in_channels, degree + 1, out_channels))
        self.bias = nn.Parameter(torch.empty(capsule_size * out_channels)) if bias else None
        self.norm = nn.BatchNorm1d(capsule_size * out_channels) if normalize else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot-uniform weights for each W_pk, zero biases, fresh running statistics."""
        limit = math.sqrt(6 / (self.in_channels + self.out_channels))
        nn.init.uniform_(self.weight, -limit, limit)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.norm is not None:
            self.norm.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor | Filter, edge_weight: Tensor | None = None) -> Tensor:
        """Eq. 5: node features to capsules [n, out_channels, capsule_size]."""
        if x.dim() == 3:
            x = flatten_capsules(x)
        M = edge_index if isinstance(edge_index, Filter) else edge_filter(self.filter, edge_index, edge_weight, x)
        parts = CAPSULES[self.capsule](x, self.capsule_size, self.bound)
        out = filter_polynomial(parts, self.weight, M)
        if self.bias is not None:
            out = out + self.bias
        if self.norm is not None:
            out = self.norm(out)
        out = ACTIVATIONS[self.activation](out)
        return out.view(-1, self.capsule_size, self.out_channels).transpose(1, 2)

    def extra_repr(self) -> str:
        """The arguments, as in the constructor."""
        return (
            f"{self.in_channels}, {self.out_channels}, capsule_size={self.capsule_size}, degree={self.degree}, "
            f"capsule={self.capsule!r}, filter={self.filter!r}, bound={self.bound}, activation={self.activation!r}"
        )


def _identity(x: Tensor) -> Tensor:
    return x


ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "elu": nn.functional.elu, None: _identity}
"""σ of Eq. 5 by name."""
