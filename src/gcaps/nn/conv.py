"""Graph capsule convolution: Eq. 5 of the paper."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gcaps.nn.capsules import CAPSULES, Routing
from gcaps.nn.filters import FILTERS, Filter, edge_filter, orders
from gcaps.nn.regularization import BatchNorm
from gcaps.nn.spectral import filter_polynomial


def flatten_capsules(capsules: Tensor) -> Tensor:
    """[n, h, P] to [n, P·h], component by component: the memory order of a layer's output, so this is a view."""
    return capsules.transpose(1, 2).flatten(1)


class GraphCapsuleConv(nn.Module):
    r"""The graph capsule convolution of *Graph Capsule Convolutional Neural Networks* (Verma & Zhang, 2018), Eq. 5.

    .. math::
        f_p = \sigma\Big(\sum_{k=0}^{K} \mathbf{M}^k \, \mathbf{F}^{\odot p} \, \mathbf{W}_{pk} + \mathbf{b}_p\Big),
        \qquad p = 1, \dots, P

    where :math:`\mathbf{F}` is the input, or the flattened capsules of the previous layer, and :math:`\mathbf{M}` the
    filter. Other capsule functions replace powers by statistics of the neighborhood, see
    :class:`gcaps.nn.CapsuleFunction`; Chebyshev and Cayley filters replace :math:`\mathbf{M}^k` by other polynomials,
    see :func:`gcaps.nn.filter_polynomial`.

    The defaults are Eq. 5 to the letter with the paper's filter, the Laplacian. :class:`gcaps.config.Config` has other
    defaults, which were chosen by accuracy on inner validation splits: ``filter="adjacency"``, ``bound=3.0`` and
    ``normalize=True``.

    Args:
        in_channels: columns of the input; P times the width after another capsule layer.
        out_channels: width h of the output.
        capsule_size: P, the number of instantiation parameters of a capsule.
        degree: K, the highest power of the filter and the number of hops that one layer sees (Theorem 1).
        capsule: the capsule function, a name in :data:`gcaps.nn.CAPSULES`.
        filter: the filter matrix, a name in :data:`gcaps.nn.FILTERS`. With ``degree`` 1 only ``moments`` and
            ``routing`` use it, since the other capsule functions are statistics one hop wide.
        bound: keeps powers in range, see :func:`gcaps.nn.bounded`. Without it, raw powers overflow float32 on dense
            graphs (the fourth under a squared Laplacian on COLLAB, for example).
        normalize: apply batch normalisation to the flattened output before σ.
        activation: σ: ``"relu"``, ``"tanh"``, ``"elu"`` or None.
        bias: add b_p.

    Shapes:
        - **input:** node features [n, in_channels] or capsules [n, h, P] with h·P = in_channels; ``edge_index`` [2, e]
          and ``edge_weight`` [e] as in PyTorch Geometric, or a :class:`gcaps.nn.Filter` in place of ``edge_index``.
        - **output:** capsules [n, out_channels, capsule_size]; with ``capsule="routing"`` [n, out_channels, 1].
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
                raise ValueError(f"unknown {what} {name!r}; choose one of {', '.join(map(str, known))}")
        if capsule_size < 1 or degree < 0 or in_channels < 1 or out_channels < 1:
            raise ValueError("in_channels, out_channels and capsule_size must be at least 1, degree at least 0")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.capsule_size, self.degree = capsule_size, degree
        self.filter, self.activation, self.capsule_name = filter, activation, capsule
        self.capsule = CAPSULES[capsule](in_channels, capsule_size, bound)
        count = orders(filter, degree)
        if not self.capsule.pointwise:  # the statistic covers the first hop
            count = 1 + orders(filter, degree - 1) if degree else 1
        self.weight = nn.Parameter(torch.empty(capsule_size, in_channels, count, out_channels))
        self.bias = nn.Parameter(torch.empty(capsule_size * out_channels)) if bias else None
        self.norm = BatchNorm(capsule_size * out_channels) if normalize else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset weights to Glorot-uniform values for each W_pk, biases to zero, and running statistics."""
        limit = math.sqrt(6 / (self.in_channels + self.out_channels))
        nn.init.uniform_(self.weight, -limit, limit)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.norm is not None:
            self.norm.reset_parameters()
        self.capsule.reset_parameters()

    @property
    def width(self) -> int:
        """Columns of the flattened output, which are ``in_channels`` of the next layer."""
        return self.out_channels if isinstance(self.capsule, Routing) else self.out_channels * self.capsule_size

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Filter,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Capsules [n, out_channels, capsule_size].

        ``batch`` [n], the graph of each node, is used by the Chebyshev filter only, which scales each graph separately.
        """
        if x.dim() == 3:
            x = flatten_capsules(x)
        M = (
            edge_index
            if isinstance(edge_index, Filter)
            else edge_filter(self.filter, edge_index, edge_weight, x, batch)
        )
        out = self._mix(x, M)
        if self.bias is not None:
            out = out + self.bias
        if self.norm is not None:
            out = self.norm(out)
        out = ACTIVATIONS[self.activation](out)
        capsules = out.view(-1, self.capsule_size, self.out_channels).transpose(1, 2)
        return self.capsule.combine(capsules) if isinstance(self.capsule, Routing) else capsules

    def _mix(self, x: Tensor, M: Filter) -> Tensor:
        """[n, P·h] argument of σ, without bias."""
        if self.capsule.pointwise:
            return filter_polynomial(self.capsule(x, M), self.weight, M)
        own = x @ self.weight[:, :, 0].transpose(0, 1).flatten(1)
        if self.weight.size(2) == 1:
            return own
        return own + filter_polynomial(self.capsule(x, M), self.weight[:, :, 1:], M)

    def extra_repr(self) -> str:
        """Arguments of the constructor."""
        return (
            f"{self.in_channels}, {self.out_channels}, capsule_size={self.capsule_size}, degree={self.degree}, "
            f"filter={self.filter!r}, activation={self.activation!r}"
        )


def _identity(x: Tensor) -> Tensor:
    return x


ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "elu": nn.functional.elu, None: _identity}
"""σ of Eq. 5 by name."""
