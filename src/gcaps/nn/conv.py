"""Graph capsule convolution: Eq. 5 of the paper."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gcaps.nn.capsules import CAPSULES, Routing
from gcaps.nn.filters import BASES, FILTERS, Filter, edge_filter, gated, orders, stack_relations
from gcaps.nn.regularization import BatchNorm
from gcaps.nn.spectral import filter_polynomial, mixed, relation_polynomial


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

    With edges of R relations (``edge_type``, for example kinds of bonds), every relation has a filter and weights:

    .. math::
        f_p = \sigma\Big(\mathbf{F}^{\odot p} \mathbf{W}_{p0} + \sum_{r=1}^{R} \sum_{k=1}^{K}
        \mathbf{M}_r^k \, \mathbf{F}^{\odot p} \, \mathbf{W}_{prk} + \mathbf{b}_p\Big)

    where :math:`\mathbf{M}_r` is made of the edges of relation r and normalised by the degrees of the whole graph, see
    :mod:`gcaps.nn.filters`. With ``num_bases`` B, :math:`\mathbf{W}_{prk} = \sum_{b=1}^{B} a_{rb} \mathbf{V}_{pbk}`
    (basis decomposition; Schlichtkrull et al., 2018). An edge whose relation is not known (``edge_type`` −1) counts as
    1/R of an edge in every relation.

    Edge attributes :math:`\mathbf{e}_{ij}` weight the edges: entry ij of every filter, off its diagonal, is multiplied
    by a gate of each capsule component, which is 1 for attributes of zero at the start:

    .. math::
        g_p(\mathbf{e}_{ij}) = \ln(1 + \exp(\mathbf{u}_p^\top \mathbf{e}_{ij} + c_p)) / \ln 2

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
        num_relations: R, the number of kinds of edges; with 1, ``edge_type`` is not used.
        num_bases: B, number of matrices of which the weights of relations are combinations; by default each relation
            has matrices of its own.
        edge_dim: number of edge attributes; None if there are none. They should be standardised. Not with the filters
            ``chebyshev`` and ``cayley``, whose polynomials need a spectrum that gates do not respect.

    Shapes:
        - **input:** node features [n, in_channels] or capsules [n, h, P] with h·P = in_channels; ``edge_index`` [2, e],
          ``edge_weight`` [e], ``edge_type`` [e] and ``edge_attr`` [e, edge_dim] as in PyTorch Geometric, or a
          :class:`gcaps.nn.Filter` in place of ``edge_index``.
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
        num_relations: int = 1,
        num_bases: int | None = None,
        edge_dim: int | None = None,
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
        if num_relations < 1 or (num_bases is not None and num_bases < 1) or (edge_dim is not None and edge_dim < 1):
            raise ValueError("num_relations, num_bases and edge_dim must be at least 1")
        if edge_dim is not None and filter in BASES:
            raise ValueError(f"edge attributes cannot gate the filter {filter!r}; choose another filter")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.capsule_size, self.degree = capsule_size, degree
        self.filter, self.activation, self.capsule_name = filter, activation, capsule
        self.capsule = CAPSULES[capsule](in_channels, capsule_size, bound)
        count = orders(filter, degree)
        if not self.capsule.pointwise:  # the statistic covers the first hop
            count = 1 + orders(filter, degree - 1) if degree else 1
        self.num_relations = num_relations
        self.num_bases = num_bases if num_relations > 1 else None
        self.edge_dim = edge_dim
        count = 1 + (count - 1) * (self.num_bases or num_relations)
        self.weight = nn.Parameter(torch.empty(capsule_size, in_channels, count, out_channels))
        self.comp = None if self.num_bases is None else nn.Parameter(torch.empty(num_relations, self.num_bases))
        self.gate = None if edge_dim is None else nn.Linear(edge_dim, capsule_size)
        self.bias = nn.Parameter(torch.empty(capsule_size * out_channels)) if bias else None
        self.norm = BatchNorm(capsule_size * out_channels) if normalize else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset weights to Glorot-uniform values for each W_pk, biases to zero, and running statistics."""
        limit = math.sqrt(6 / (self.in_channels + self.out_channels))
        nn.init.uniform_(self.weight, -limit, limit)
        if self.comp is not None:  # combinations with the variance of a basis
            nn.init.uniform_(self.comp, -math.sqrt(3 / self.comp.size(1)), math.sqrt(3 / self.comp.size(1)))
        if self.gate is not None:
            self.gate.reset_parameters()
            nn.init.zeros_(self.gate.bias)
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
        edge_type: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """Capsules [n, out_channels, capsule_size].

        ``batch`` [n], the graph of each node, is used by the Chebyshev filter only, which scales each graph separately.
        """
        if x.dim() == 3:
            x = flatten_capsules(x)
        if isinstance(edge_index, Filter):
            M = edge_index
        else:
            R = self.num_relations
            M = edge_filter(self.filter, edge_index, edge_weight, x, batch, edge_type, edge_attr, R)
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
        if self.num_relations > 1 or self.gate is not None:
            return self._mix_edges(x, stack_relations(M, x.dtype))
        if self.capsule.pointwise:
            return filter_polynomial(self.capsule(x, M), self.weight, M)
        own = x @ self.weight[:, :, 0].transpose(0, 1).flatten(1)
        if self.weight.size(2) == 1:
            return own
        return own + filter_polynomial(self.capsule(x, M), self.weight[:, :, 1:], M)

    def _mix_edges(self, x: Tensor, M: Filter) -> Tensor:
        """As :meth:`_mix`, for filters of several relations, stacked on copies of the nodes, and gated ones."""
        weight, R = self.relation_weight(M.copies), M.copies
        n, orders = x.size(0), (weight.size(2) - 1) // R
        gates = self.gates(M.edge_attr)
        filters = [M] if gates is None else [gated(M, gate) for gate in gates.unbind(1)]
        if self.capsule.pointwise:
            own, *rest = mixed(self.capsule(x, M), weight)
            U = [torch.stack(rest[k::orders], dim=1).flatten(0, 1) for k in range(orders)]
            U = [torch.zeros_like(u) for u in U[:1]] + U
        else:
            own = x @ weight[:, :, 0].transpose(0, 1).flatten(1)
            U = self._statistics(x.repeat_interleave(R, dim=0), filters, weight) if orders else []
        return own + relation_polynomial(U, filters).view(n, R, -1).sum(dim=1) if orders else own

    def _statistics(self, copies: Tensor, filters: list[Filter], weight: Tensor) -> list[Tensor]:
        """[n·R, P·h] for each order: statistics of the neighborhoods of each relation, mixed."""
        R, statistics = filters[0].copies, [self.capsule(copies, M) for M in filters]
        P, c, count, h = weight.shape
        matrices = weight[:, :, 1:].reshape(P, c, R, (count - 1) // R, h)
        parts = [
            torch.einsum("nrc,crkh->nrkh", statistics[p % len(filters)][p].view(-1, R, c), matrices[p])
            for p in range(P)
        ]
        return [torch.cat([part[:, :, k] for part in parts], dim=2).flatten(0, 1) for k in range(matrices.size(3))]

    def relation_weight(self, relations: int) -> Tensor:
        """[P, c, 1 + R·K, h] weights W_p0 and then W_prk, relation by relation.

        Args:
            relations: R of the filter.
        """
        if relations != self.num_relations:
            raise ValueError(f"the layer has {self.num_relations} relations; give it edge_type")
        if self.comp is None or self.weight.size(2) == 1:
            return self.weight
        P, c, count, h = self.weight.shape
        B = self.comp.size(1)
        rest = self.weight[:, :, 1:].reshape(P, c, B, (count - 1) // B, h)
        combined = torch.einsum("rb,pcbkh->pcrkh", self.comp, rest)
        return torch.cat([self.weight[:, :, :1], combined.flatten(2, 3)], dim=2)

    def gates(self, edge_attr: Tensor | None) -> Tensor | None:
        """[e, P] gates of edges with attributes [e, edge_dim]; None if the layer has none."""
        if self.gate is None:
            return None
        if edge_attr is None:
            raise ValueError(f"the layer has gates on {self.edge_dim} edge attributes; give it edge_attr")
        return nn.functional.softplus(self.gate(edge_attr)) / math.log(2)

    def extra_repr(self) -> str:
        """Arguments of the constructor."""
        return (
            f"{self.in_channels}, {self.out_channels}, capsule_size={self.capsule_size}, degree={self.degree}, "
            f"filter={self.filter!r}, activation={self.activation!r}"
            + (f", num_relations={self.num_relations}" if self.num_relations > 1 else "")
            + (f", num_bases={self.num_bases}" if self.num_bases is not None else "")
            + (f", edge_dim={self.edge_dim}" if self.edge_dim is not None else "")
        )


def _identity(x: Tensor) -> Tensor:
    return x


ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "elu": nn.functional.elu, None: _identity}
"""σ of Eq. 5 by name."""
