"""What training, prediction and saving ask of every network, and the first linear layer they have in common."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch, Extras
from gcaps.data.graphset import GraphSet


class Network(nn.Module):
    """A network from a batch to logits: ``head(embed(batch))``.

    Args:
        in_channels: columns of the node features.
        shape_args: what :meth:`measure` found on the training graphs.
    """

    head: nn.Module
    ensemble_size: int = 1
    """How many networks predict together."""
    trained: bool = True
    """Whether its graph vectors come from weights that were learned."""
    prepared_by: tuple[str, ...] = ()
    """The settings that :meth:`prepare` depends on."""

    def __init__(self, in_channels: int, **shape_args: Any) -> None:
        super().__init__()
        self.in_channels, self.shape_args = in_channels, shape_args

    @staticmethod
    def shape_from(config: Any, graphs: GraphSet) -> dict[str, Any]:
        """What the network's shape takes from the training graphs: JSON values, arguments of the constructor."""
        return {}

    @staticmethod
    def prepare(config: Any, graphs: GraphSet) -> Extras | None:
        """What batches of these graphs carry beside features and edges; it depends on nothing that is learned."""
        return None

    @staticmethod
    def merges(config: Any) -> bool:
        """Return whether the network takes batches with merged nodes (:attr:`gcaps.batching.Batch.multiplicity`)."""
        return False

    def embed(self, batch: Batch) -> Tensor:
        """[B, ·] graph vectors before the last layers."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Tensor:
        """[B, C] logits."""
        logits: Tensor = self.head(self.embed(batch))
        return logits

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The sum of the graphs' cross-entropies, what training makes small, and the logits [B, C]."""
        assert batch.y is not None
        logits: Tensor = self(batch)
        if batch.sample_weight is None:
            return nn.functional.cross_entropy(logits, batch.y, reduction="sum"), logits
        losses = nn.functional.cross_entropy(logits, batch.y, reduction="none")
        return (losses * batch.sample_weight).sum(), logits


class InputLinear(nn.Module):
    """X W (+ b) for the node features of a batch; the one-hot columns of X choose rows of W and are not written out.

    Shapes:
        - **weight:** [d, out]; **output:** [n, out].
    """

    def __init__(self, in_channels: int, out_channels: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As torch's Linear begins."""
        bound = 1 / math.sqrt(max(self.weight.size(0), 1))
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, batch: Batch) -> Tensor:
        """[n, out]"""
        product = node_product(batch, self.weight)
        return product if self.bias is None else product + self.bias

    def extra_repr(self) -> str:
        """The arguments, as in the constructor."""
        return f"{self.weight.size(0)}, {self.weight.size(1)}, bias={self.bias is not None}"


def node_product(batch: Batch, weight: Tensor) -> Tensor:
    """X W [n, out] for W [d, out]."""
    if batch.one_hot_index is None:
        return batch.dense @ weight
    missing = weight.new_zeros(1, weight.size(1))
    rows = torch.cat([weight[: batch.one_hot], missing])
    at = torch.where(batch.one_hot_index < 0, batch.one_hot, batch.one_hot_index)
    product = rows.index_select(0, at[:, 0])
    for column in at.T[1:]:
        product = product + rows.index_select(0, column)
    return product + batch.dense @ weight[batch.one_hot :] if batch.dense.size(1) else product
