"""Training and prediction of an encoder on the nodes of one graph, for the classes of nodes and for links."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from gcaps.config.tasks import NodeEncoderConfig
from gcaps.data.arrays import Array
from gcaps.errors import ModelError
from gcaps.nn.filters import Filter, edge_filter
from gcaps.tasks.base import NETWORK, TaskModel, device_of, load_network
from gcaps.tasks.encoder import CapsuleEncoder
from gcaps.tasks.graph import NodeGraph
from gcaps.tasks.sparse_rows import SparseRows
from gcaps.tasks.training import Score, StepRun, fit_steps
from gcaps.training.loop import Epoch, reproducible
from gcaps.training.selection import Curves

C = TypeVar("C", bound=NodeEncoderConfig)


class Inputs(NamedTuple):
    """Input of a network on nodes."""

    x: Tensor | SparseRows
    """[n, c]"""
    M: Filter


def inputs_of(graph: NodeGraph, config: NodeEncoderConfig, device: torch.device) -> Inputs:
    """Return features and filter of a graph."""
    x = graph.features(normalize=config.normalize).to(device)
    edge_index, weight = graph.edge_tensors()
    weight = None if weight is None else weight.to(device)
    return Inputs(
        x, edge_filter(config.filter, edge_index.to(device), weight, torch.zeros(len(graph), 1, device=device))
    )


@torch.no_grad()
def outputs_of(network: nn.Module, inputs: Inputs) -> Tensor:
    """Return [n, d] in evaluation mode, on the whole graph."""
    network.eval()
    found: Tensor = network(*inputs)
    return found


class EncoderTraining(ABC, Generic[C]):
    """Losses and validation score of a network on the nodes of a graph; a subclass computes them.

    Args:
        network: maps :class:`Inputs` to [n, d].
        graph: the graph.
        config: settings.
        decayed: the weights that ``config.weight_decay`` regularises.
    """

    def __init__(self, network: nn.Module, graph: NodeGraph, config: C, decayed: Sequence[Tensor]) -> None:
        self.network, self.config, self.decayed = network, config, decayed
        self.device = next(network.parameters()).device
        self.inputs = inputs_of(graph, config, self.device)

    @abstractmethod
    def losses(self, rng: np.random.Generator) -> Iterator[Tensor]:
        """Yield the loss of each step of an epoch."""

    @abstractmethod
    def score(self) -> Score:
        """Return the quality on validation data, in evaluation mode."""

    def regularised(self, loss: Tensor) -> Tensor:
        """Return a loss plus the L2 regularisation of the decayed weights."""
        if not self.config.weight_decay:
            return loss
        squares = torch.stack([weight.square().sum() for weight in self.decayed]).sum()
        return loss + self.config.weight_decay / 2 * squares

    def fit(
        self,
        seed: int,
        identity: dict[str, Any] | None = None,
        checkpoint: str | Path | None = None,
        keep_checkpoint: bool = False,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> tuple[Curves, int]:
        """Train; see :func:`gcaps.tasks.training.fit_steps`."""
        run = StepRun(self.network, self.losses, self.config.model_copy(update={"weight_decay": 0.0}), seed)
        return fit_steps(
            run,
            self.score,
            patience=self.config.patience,
            identity=identity,
            checkpoint=checkpoint,
            keep_checkpoint=keep_checkpoint,
            on_epoch=on_epoch,
        )


class EncoderModel(TaskModel[C]):
    """Base class of the models whose network is a :class:`gcaps.tasks.encoder.CapsuleEncoder`.

    Attributes:
        network_: the encoder.
        features_: number of columns of the node features.
    """

    network_: CapsuleEncoder
    features_: int

    def _new_network(self, features: int, outputs: int) -> CapsuleEncoder:
        """Return an untrained encoder on the device of the settings."""
        config = self.config
        network = CapsuleEncoder(
            features,
            outputs,
            config.hidden,
            config.capsule_size,
            config.degrees,
            config.weights,
            config.input_dropout,
            config.dropout,
            config.node_dropout,
            config.bound,
        )
        return network.to(device_of(config.device))

    def _outputs(self, X: Any) -> Tensor:
        """Return the outputs [n, d] of the fitted encoder on a graph."""
        check_is_fitted(self)
        graph = NodeGraph.of(X)
        if graph.x.shape[1] != self.features_:
            raise ModelError(f"nodes have {graph.x.shape[1]} features; the model was fitted on {self.features_}")
        config = self.config
        with reproducible(0, config.threads):
            inputs = inputs_of(graph, config, next(self.network_.parameters()).device)
            return outputs_of(self.network_, inputs)

    def _restore_network(self, arrays: dict[str, Array], features: int, outputs: int) -> None:
        """Build the encoder again and load its weights.

        Raises:
            ModelError: the arrays are those of another network.
        """
        first = arrays.get(f"{NETWORK}layers.0.weight")
        if first is None or first.ndim != 4 or first.shape[1] != features:
            raise ModelError("its arrays are not those of its state")
        self.features_, self.network_ = features, self._new_network(features, outputs)
        load_network(self.network_, arrays)
