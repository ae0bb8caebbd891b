"""Capsule layers on the nodes of one graph, with dense or sparse features."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gcaps.nn.capsules import moments
from gcaps.nn.filters import Filter
from gcaps.nn.regularization import Dropout
from gcaps.nn.spectral import mixed, relation_polynomial
from gcaps.tasks.sparse_rows import SparseRows


class NodeCapsuleConv(nn.Module):
    r"""The graph capsule convolution (Eq. 5) of one large graph, before σ.

    .. math::
        f_p = \sum_{k=0}^{K} \mathbf{M}^k \, \mathbf{F}^{\odot p} \, \mathbf{W}_{pk} + \mathbf{b}_p,
        \qquad p = 1, \dots, P

    with ``weights="separate"``, as in :class:`gcaps.nn.GraphCapsuleConv`; with ``weights="shared"`` the powers of the
    filter share their weights, and with ``weights="decaying"`` nearer nodes count more:

    .. math::
        \mathbf{W}_{pk} = \theta_k \mathbf{W}_p

    with factors θ_k = 1/(K+1), or proportional to 0.9^k, that add up to one. The number of weights does not grow with
    K, which suits few labels.

    Args:
        in_channels: columns c of the input.
        out_channels: width h of the output.
        capsule_size: P.
        degree: K.
        weights: ``"separate"``, ``"shared"`` or ``"decaying"``.
        bound: see :func:`gcaps.nn.bounded`.

    Shapes:
        - **input:** features [n, c], dense or :class:`gcaps.tasks.sparse_rows.SparseRows`; filter of n nodes.
        - **output:** [n, P·h], component by component.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        capsule_size: int = 1,
        degree: int = 1,
        weights: str = "separate",
        bound: float | None = 3.0,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.capsule_size, self.degree, self.weights, self.bound = capsule_size, degree, weights, bound
        orders = degree + 1 if weights == "separate" else 1
        self.weight = nn.Parameter(torch.empty(capsule_size, in_channels, orders, out_channels))
        self.bias = nn.Parameter(torch.empty(capsule_size * out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset weights to Glorot-uniform values for each matrix, biases to zero."""
        limit = math.sqrt(6 / (self.in_channels + self.out_channels))
        nn.init.uniform_(self.weight, -limit, limit)
        nn.init.zeros_(self.bias)

    def shares(self) -> list[float]:
        """θ_0 … θ_K; ones with separate weights."""
        K = self.degree
        if self.weights == "separate":
            return [1.0] * (K + 1)
        theta = [1.0 if self.weights == "shared" else 0.9**k for k in range(K + 1)]
        return [one / sum(theta) for one in theta]

    def forward(self, x: Tensor | SparseRows, M: Filter) -> Tensor:
        """[n, P·h] argument of σ."""
        if isinstance(x, SparseRows):
            U = self._mixed_sparse(x)
        else:
            U = mixed(moments(x, self.capsule_size, self.bound), self.weight)
        if self.weights != "separate":
            U = [U[0] * share for share in self.shares()]
        return relation_polynomial(U, [M]) + self.bias

    def _mixed_sparse(self, x: SparseRows) -> list[Tensor]:
        """[U_0, U_1, …] as :func:`gcaps.nn.spectral.mixed`, of sparse features."""
        P, _, orders, h = self.weight.shape
        powers = x.powers(P, self.bound)
        U = torch.stack([part.matmul(self.weight[p].flatten(1)) for p, part in enumerate(powers)], dim=1)
        return [u.flatten(1) for u in U.view(-1, P, orders, h).unbind(2)]

    def extra_repr(self) -> str:
        """Arguments of the constructor."""
        return (
            f"{self.in_channels}, {self.out_channels}, capsule_size={self.capsule_size}, degree={self.degree}, "
            f"weights={self.weights!r}"
        )


class CapsuleEncoder(nn.Module):
    """Capsule layers from node features to outputs; σ is ReLU, and the components of the last layer are summed.

    Args:
        in_channels: columns of the node features.
        out_channels: columns of the output.
        hidden: width h of all layers but the last.
        capsule_size: P of every layer.
        degrees: K of each layer.
        weights: of the first layer, see :class:`NodeCapsuleConv`; the others have separate weights.
        input_dropout: on node features.
        dropout: on the input of the layers after the first.
        node_dropout: probability with which all features of a node are zero.
        bound: see :func:`gcaps.nn.bounded`.

    Shapes:
        - **input:** features [n, in_channels], dense or sparse; filter of n nodes.
        - **output:** [n, out_channels].
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden: int,
        capsule_size: int,
        degrees: tuple[int, ...],
        weights: str,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        node_dropout: float = 0.0,
        bound: float | None = 3.0,
    ) -> None:
        super().__init__()
        widths = [in_channels, *[hidden * capsule_size] * (len(degrees) - 1)]
        outs = [*[hidden] * (len(degrees) - 1), out_channels]
        self.layers = nn.ModuleList(
            NodeCapsuleConv(width, out, capsule_size, degree, weights if i == 0 else "separate", bound)
            for i, (width, out, degree) in enumerate(zip(widths, outs, degrees, strict=True))
        )
        self.out_channels = out_channels
        self.input_dropout, self.dropout = Dropout(input_dropout), Dropout(dropout)
        self.node_dropout = Dropout(node_dropout)

    def forward(self, x: Tensor | SparseRows, M: Filter) -> Tensor:
        """[n, out_channels]."""
        first, *others = self.layers
        out: Tensor = first(self.thinned(x), M)
        for layer in others:
            out = layer(self.dropout(torch.relu(out)), M)
        return out.view(len(out), -1, self.out_channels).sum(dim=1)

    @property
    def first_weight(self) -> Tensor:
        """Weights of the first layer."""
        layer = self.layers[0]
        assert isinstance(layer, NodeCapsuleConv)
        return layer.weight

    def thinned(self, x: Tensor | SparseRows) -> Tensor | SparseRows:
        """Apply the dropout of entries and of nodes to features; in evaluation mode return x."""
        if not self.training:
            return x
        nodes = x.shape[0]
        if isinstance(x, SparseRows):
            x = x._replace(value=self.input_dropout(x.value)) if self.input_dropout.p else x
            return x.with_row_factors(self.node_dropout(x.value.new_ones(nodes))) if self.node_dropout.p else x
        dense: Tensor = self.input_dropout(x)
        return dense * self.node_dropout(dense.new_ones(nodes, 1)) if self.node_dropout.p else dense
