"""Graph capsule layers on padded adjacency matrices: small graphs whose edges are changed or differentiated."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gcaps.nn.capsules import bounded


def dense_capsules(x: Tensor, A: Tensor, weight: Tensor, bound: float | None = None) -> Tensor:
    r"""Argument of σ in Eq. 5 with the filter A, for graphs with an adjacency matrix for each of R relations.

    .. math::
        \mathbf{F}^{\odot p} \mathbf{W}_{p0} + \sum_{r=1}^{R} \sum_{k=1}^{K}
        \mathbf{A}_r^k \, \mathbf{F}^{\odot p} \, \mathbf{W}_{prk}

    It equals :class:`gcaps.nn.GraphCapsuleConv` with ``filter="adjacency"`` and is differentiable in A to any order.

    Args:
        x: [B, N, c] node features, zeros on padding.
        A: [B, R, N, N] adjacency matrices, zeros on padding.
        weight: [P, c, 1 + R·K, h].
        bound: see :func:`gcaps.nn.bounded`.

    Returns:
        [B, N, P, h].
    """
    P, c, count, h = weight.shape
    R = A.size(1)
    small = bounded(x, bound)
    Y = torch.stack([x if p == 0 else small ** (p + 1) for p in range(P)], dim=2)
    own = torch.einsum("bnpc,pch->bnph", Y, weight[:, :, 0])
    if count == 1:
        return own
    mixed = torch.einsum("bnpc,pcrkh->brknph", Y, weight[:, :, 1:].reshape(P, c, R, (count - 1) // R, h)).flatten(4)
    total = mixed[:, :, -1]
    for k in range(mixed.size(2) - 2, -1, -1):
        total = mixed[:, :, k] + A @ total
    return own + (A @ total).sum(dim=1).view(own.shape)


class DenseGraphCapsuleConv(nn.Module):
    """Graph capsule convolution of Eq. 5 with the filter A on padded graphs, see :func:`dense_capsules`.

    Args:
        in_channels: columns c of the input.
        out_channels: width h of the output.
        capsule_size: P.
        degree: K.
        num_relations: R.
        bound: keeps powers in range, see :func:`gcaps.nn.bounded`.

    Shapes:
        - **input:** [B, N, c], adjacency matrices [B, R, N, N], which of the nodes are real [B, N].
        - **output:** [B, N, P·h], component by component, zeros on padding.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        capsule_size: int = 2,
        degree: int = 1,
        *,
        num_relations: int = 1,
        bound: float | None = 3.0,
    ) -> None:
        super().__init__()
        self.bound = bound
        self.weight = nn.Parameter(torch.empty(capsule_size, in_channels, 1 + num_relations * degree, out_channels))
        self.bias = nn.Parameter(torch.empty(capsule_size * out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset weights to Glorot-uniform values for each W_pk, and biases to zero."""
        limit = math.sqrt(6 / (self.weight.size(1) + self.weight.size(3)))
        nn.init.uniform_(self.weight, -limit, limit)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, A: Tensor, mask: Tensor) -> Tensor:
        """σ of :func:`dense_capsules`; σ is SiLU, whose gradient is smooth."""
        out = dense_capsules(x, A, self.weight, self.bound).flatten(2) + self.bias
        return nn.functional.silu(out) * mask.unsqueeze(2)


def closed_walks(A: Tensor, longest: int) -> Tensor:
    """[B, N, longest − 1] log(1 + number of closed walks of length 2, …, longest) at each node of A [B, N, N].

    The first is the degree. The others count triangles and longer rings, which no number of capsule layers on labels
    alone tells apart.
    """
    found, power = [], A
    for _ in range(longest - 1):
        power = power @ A
        found.append(torch.log1p(power.diagonal(dim1=1, dim2=2)))
    return torch.stack(found, dim=2)


def dense_mean_covariance(z: Tensor, mask: Tensor) -> Tensor:
    """[B, D + D(D+1)/2] mean and upper triangle of the covariance (Eq. 7) of the real nodes in z [B, N, D]."""
    share = (mask / mask.sum(dim=1, keepdim=True).clamp_min(1)).unsqueeze(2)
    mean = (z * share).sum(dim=1)
    centred = (z - mean.unsqueeze(1)) * mask.unsqueeze(2)
    C = centred.transpose(1, 2) @ (centred * share)
    i, j = torch.triu_indices(z.size(2), z.size(2), device=z.device)
    return torch.cat([mean, C[:, i, j]], dim=1)
