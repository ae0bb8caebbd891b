"""Recurrent cells on graphs whose gates are graph capsule convolutions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gcaps.nn.conv import GraphCapsuleConv, flatten_capsules
from gcaps.nn.filters import Filter
from gcaps.nn.neighborhood import filter_product

Gate = Callable[[Tensor], Tensor]
"""A convolution of [n, c + h·P] to the arguments [n, g·h, P] of g gates."""


def gru_step(x: Tensor, state: Tensor, gates: Gate, candidate: Gate) -> Tensor:
    r"""One step of a gated recurrent unit.

    .. math::
        [u, r] = \sigma(\mathrm{gates}([x, H])), \qquad
        C = \tanh(\mathrm{candidate}([x, r \odot H])), \qquad
        H' = u \odot H + (1 - u) \odot C

    Args:
        x: [n, c] input.
        state: [n, h, P] capsules H of the step before.
        gates: convolution to [n, 2·h, P].
        candidate: convolution to [n, h, P].

    Returns:
        [n, h, P] capsules H'.
    """
    update, reset = torch.sigmoid(gates(_joined(x, state))).chunk(2, dim=1)
    new = torch.tanh(candidate(_joined(x, reset * state)))
    return update * state + (1 - update) * new


def lstm_step(x: Tensor, state: Tensor, memory: Tensor, gates: Gate) -> tuple[Tensor, Tensor]:
    r"""One step of a long short-term memory.

    .. math::
        [i, f, o, g] = \mathrm{gates}([x, H]), \qquad
        C' = \sigma(f) \odot C + \sigma(i) \odot \tanh(g), \qquad
        H' = \sigma(o) \odot \tanh(C')

    Args:
        x: [n, c] input.
        state: [n, h, P] capsules H of the step before.
        memory: [n, h, P] cells C of the step before.
        gates: convolution to [n, 4·h, P].

    Returns:
        H' and C', both [n, h, P].
    """
    i, f, o, g = gates(_joined(x, state)).chunk(4, dim=1)
    memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(memory), memory


def _joined(x: Tensor, state: Tensor) -> Tensor:
    return torch.cat([x, flatten_capsules(state)], dim=1)


class GraphCapsuleGRU(nn.Module):
    """Gated recurrent unit whose gates are graph capsule convolutions (:func:`gru_step`).

    The state of a node is a capsule [h, P]. The gates read it flattened, beside the input, as the next
    :class:`GraphCapsuleConv` of a network reads a layer's output (Eq. 5 without σ, which the gates replace).

    Args:
        in_channels: columns c of the input.
        out_channels: width h of the state.
        capsule_size: P.
        degree: K, the number of hops that one step sees.
        filter: the filter matrix, a name in :data:`gcaps.nn.FILTERS`.
        bound: keeps powers in range, see :func:`gcaps.nn.bounded`.

    Shapes:
        - **input:** [n, c], a :class:`gcaps.nn.Filter`, and the state, zeros where it is None.
        - **output:** the next state.
    """

    form = "gru"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        capsule_size: int = 2,
        degree: int = 1,
        filter: str = "mean",  # noqa: A002 (the paper's word)
        *,
        bound: float | None = 3.0,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.capsule_size = in_channels, out_channels, capsule_size

        def convolution(number: int) -> nn.Module:
            columns = in_channels + out_channels * capsule_size
            return self.convolution(columns, number * out_channels, capsule_size, degree, filter, bound)

        self.gates = convolution(2 if self.form == "gru" else 4)
        self.candidate = convolution(1) if self.form == "gru" else None

    def convolution(
        self, columns: int, width: int, capsule_size: int, degree: int, filter_name: str, bound: float | None
    ) -> nn.Module:
        """Convolution [n, columns] → [n, width, P] of one or several gates."""
        return GraphCapsuleConv(columns, width, capsule_size, degree, filter=filter_name, bound=bound, activation=None)

    def zeros(self, x: Tensor) -> Tensor:
        """[n, h, P] state before the first step."""
        return x.new_zeros(x.size(0), self.out_channels, self.capsule_size)

    def forward(self, x: Tensor, M: Filter, state: tuple[Tensor, ...] | None = None) -> tuple[Tensor, ...]:
        """State after one step: (H,) of a GRU, (H, C) of an LSTM."""
        if self.candidate is None:
            H, C = (self.zeros(x), self.zeros(x)) if state is None else state
            return lstm_step(x, H, C, lambda joint: self.gates(joint, M))
        (H,) = (self.zeros(x),) if state is None else state
        candidate = self.candidate
        return (gru_step(x, H, lambda joint: self.gates(joint, M), lambda joint: candidate(joint, M)),)

    def extra_repr(self) -> str:
        """Arguments of the constructor."""
        return f"{self.in_channels}, {self.out_channels}, capsule_size={self.capsule_size}"


class GraphCapsuleLSTM(GraphCapsuleGRU):
    """Long short-term memory whose gates are graph capsule convolutions (:func:`lstm_step`).

    Arguments and shapes are those of :class:`GraphCapsuleGRU`; the state is the pair (H, C).
    """

    form = "lstm"


class _GraphConvolution(nn.Module):
    """M X W + b with M of Kipf and Welling (2017), as capsules of size 1."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, M: Filter) -> Tensor:
        product = x @ self.linear.weight.t()
        return (filter_product(product, M) + self.linear.bias).unsqueeze(2)


class _WithGCN(GraphCapsuleGRU):
    """A cell whose gates are graph convolutions."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, capsule_size=1)

    def convolution(
        self, columns: int, width: int, capsule_size: int, degree: int, filter_name: str, bound: float | None
    ) -> nn.Module:
        """Convolution [n, columns] → [n, width, 1] of one or several gates."""
        return _GraphConvolution(columns, width)


class GCNGRU(_WithGCN):
    """Gated recurrent unit whose gates are GCN convolutions; its filter must be ``kipf``."""


class GCNLSTM(_WithGCN):
    """Long short-term memory whose gates are GCN convolutions; its filter must be ``kipf``."""

    form = "lstm"
