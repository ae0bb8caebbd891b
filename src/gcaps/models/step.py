"""Training steps of GCAPS-CNN without autograd: its three compiled operations one after the other, and back.

They are the same functions that autograd calls, so gradients are the same bit for bit. What is saved is Python's part
of a training step: what does not change from step to step is prepared once, and weights and gradients are slices of two
vectors, which the optimiser reads as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gcaps.batching.batch import Batch
from gcaps.models.losses import loss_with_gradient
from gcaps.nn.conv import GraphCapsuleConv
from gcaps.nn.cpu import head, readout, stack
from gcaps.nn.cpu.blocks import is_supported, one_blas_thread
from gcaps.nn.distributed import is_distributed
from gcaps.nn.filters import batch_filter
from gcaps.nn.flat import FlatParameters
from gcaps.nn.readout import MeanCovariance

if TYPE_CHECKING:
    from gcaps.models.gcaps import GCAPS


def has_fused_step(network: GCAPS) -> bool:
    """Whether :class:`FusedStep` supports a network: all its parts are compiled operations."""
    return (
        isinstance(network.head, head.Head)
        and isinstance(network.readout, MeanCovariance)
        and network.inputs is None
        and network.num_relations == 1
        and network.shape_args.get("edge_dim") is None
        and stack.are_default(list(network.convs))
        and is_supported(next(network.parameters()))
    )


class FusedStep:
    """Set the gradients of a network, in training mode, to those of the mean loss.

    Args:
        network: see :func:`has_fused_step`; its parameters stay where they are in memory from now on.
    """

    def __init__(self, network: GCAPS) -> None:
        covariance, fused = network.readout, network.head
        assert isinstance(covariance, MeanCovariance)
        assert isinstance(fused, head.Head)
        convs = [conv for conv in network.convs if isinstance(conv, GraphCapsuleConv)]
        flat, self.network = FlatParameters.of(network), network
        self.layers, self.program = stack.Layers(convs), head.Program(list(fused))
        self.options = covariance.options
        ends = np.cumsum([sum(p.numel() for p in part.parameters()) for part in (network.convs, covariance, fused)])
        self.weights = np.split(flat.values.numpy(), ends[:2])
        self.gradients = np.split(flat.gradient.numpy(), ends[:2])
        shape = (-1, covariance.in_channels)
        self.projection, self.projection_gradient = self.weights[1].reshape(shape), self.gradients[1].reshape(shape)

    def __call__(self, batch: Batch, graphs: int) -> tuple[Tensor, Tensor]:
        """Set the gradients; return the sum of the losses, and the outputs.

        Args:
            batch: with targets.
            graphs: number that the sum of the losses is divided by.
        """
        if len(batch.ptr) < 3 or is_distributed() or not self.network.training:
            return self.network.set_gradients(batch, graphs)
        assert batch.y is not None
        with torch.no_grad(), one_blas_thread():
            M = batch_filter(self.network.config.filter, batch)
            given = stack.Input(self.layers, batch, M, gated=False, keep=True)
            capsules = stack.forward(given, self.weights[0])
            vectors, of_readout = readout.forward(
                capsules.stack.Z, self.projection, given.graphs, batch.ptr.numpy(), self.options, batch.multiplicity
            )
            length = vectors.shape[1]
            if batch.graph_attr is not None:
                vectors = np.concatenate([vectors, batch.graph_attr.numpy()], axis=1)
            outputs, of_head = head.forward(self.program, vectors, self.weights[2])
            found = torch.from_numpy(outputs)
            loss, grad = loss_with_gradient(self.network.task, found, batch.y, batch.sample_weight, graphs)
            grad_vectors = head.backward(of_head, grad.contiguous().numpy(), self.gradients[2])
            grad_vectors = np.ascontiguousarray(grad_vectors[:, :length])
            grad_Z = readout.backward(of_readout, grad_vectors, self.projection_gradient)
            stack.backward(capsules, grad_Z, self.gradients[0])
            return loss, found
