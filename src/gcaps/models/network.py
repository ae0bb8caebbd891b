"""Base class of all networks, and the linear layer on node features that they share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch, Extras
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Task
from gcaps.models.losses import loss_sum
from gcaps.nn.cpu.blocks import is_supported
from gcaps.nn.cpu.rows import chosen_rows


class Network(nn.Module):
    """A network from a batch to outputs (see :mod:`gcaps.models.losses`): ``head(embed(batch))``.

    Args:
        in_channels: columns of the node features.
        shape_args: what :meth:`shape_from` returned for the training graphs; saved with the model.
    """

    head: nn.Module
    task: Task = "classification"
    """What the outputs mean, and with it the loss."""
    ensemble_size: int = 1
    """Number of networks whose predictions are averaged."""
    trained: bool = True
    """Whether graph vectors depend on trained weights."""
    takes_edges: bool = False
    """Whether the constructor takes ``num_relations``, ``edge_dim`` and ``graph_dim``, for edges and whole graphs."""
    prepared_by: tuple[str, ...] = ()
    """Names of the settings that :meth:`prepare` depends on."""

    def __init__(self, in_channels: int, **shape_args: Any) -> None:
        super().__init__()
        self.in_channels, self.shape_args = in_channels, shape_args

    @staticmethod
    def shape_from(config: Any, graphs: GraphSet) -> dict[str, Any]:
        """Constructor arguments derived from the training graphs (JSON values)."""
        return {}

    @staticmethod
    def prepare(config: Any, graphs: GraphSet) -> Extras | None:
        """Compute what batches of these graphs contain besides features and edges; it must not depend on training."""
        return None

    @staticmethod
    def merges(config: Any) -> bool:
        """Return whether the network takes batches with merged nodes (:attr:`gcaps.batching.Batch.multiplicity`)."""
        return False

    def embed(self, batch: Batch) -> Tensor:
        """[B, ·] graph vectors before the last layers."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Tensor:
        """[B, C] logits, or [B, T] outputs for several targets or regression."""
        outputs: Tensor = self.head(self.embed(batch))
        return outputs

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Sum of the losses of the graphs, times their sample weights if given, and the outputs."""
        assert batch.y is not None
        outputs: Tensor = self(batch)
        return loss_sum(self.task, outputs, batch.y, batch.sample_weight), outputs

    def training_step(self) -> TrainingStep:
        """Return :meth:`set_gradients`, or a faster function that does the same for parameters that stay in place."""
        return self.set_gradients

    def set_gradients(self, batch: Batch, graphs: int) -> tuple[Tensor, Tensor]:
        """Set the parameters' gradients to those of ``loss / graphs``; return :meth:`loss`."""
        set_to_zero(self)
        loss, outputs = self.loss(batch)
        (loss / graphs).backward()  # type: ignore[no-untyped-call]
        return loss.detach(), outputs.detach()


TrainingStep = Callable[[Batch, int], tuple[Tensor, Tensor]]
"""A function as :meth:`Network.set_gradients`."""


def set_to_zero(network: nn.Module) -> None:
    """Set gradients to zero where there are any."""
    found = [p.grad for p in network.parameters() if p.grad is not None]
    if found:
        torch._foreach_zero_(found)


class InputLinear(nn.Module):
    """Linear layer X W (+ b) on the node features of a batch; one-hot columns of X select rows of W.

    Shapes:
        - **weight:** [d, out]; **output:** [n, out].
    """

    def __init__(self, in_channels: int, out_channels: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset weights as torch's Linear does."""
        bound = 1 / math.sqrt(max(self.weight.size(0), 1))
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, batch: Batch) -> Tensor:
        """[n, out]"""
        product = node_product(batch, self.weight)
        return product if self.bias is None else product + self.bias

    def extra_repr(self) -> str:
        """Arguments of the constructor."""
        return f"{self.weight.size(0)}, {self.weight.size(1)}, bias={self.bias is not None}"


def node_product(batch: Batch, weight: Tensor) -> Tensor:
    """X W [n, out] for node features X of a batch and W [d, out], without writing out one-hot columns."""
    if batch.one_hot_index is None:
        return batch.dense @ weight
    if is_supported(weight):
        product = chosen_rows(weight[: batch.one_hot], batch.one_hot_index)
    else:
        missing = weight.new_zeros(1, weight.size(1))
        rows = torch.cat([weight[: batch.one_hot], missing])
        at = torch.where(batch.one_hot_index < 0, batch.one_hot, batch.one_hot_index)
        product = rows.index_select(0, at[:, 0])
        for column in at.T[1:]:
            product = product + rows.index_select(0, column)
    return product + batch.dense @ weight[batch.one_hot :] if batch.dense.size(1) else product
