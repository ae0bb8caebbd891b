"""Gradients of GCAPS-CNN without autograd: its three compiled operations one after the other, and back.

They are the same functions that autograd calls, so gradients are the same bit for bit. What is saved is autograd's part
of a training step: nodes of its graph, views, and sums of gradients. An epoch takes up to a tenth less where batches
are small (``python benchmarks/compiled.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.models.losses import loss_sum
from gcaps.nn.conv import GraphCapsuleConv
from gcaps.nn.cpu import head, readout, stack
from gcaps.nn.cpu.blocks import one_blas_thread
from gcaps.nn.distributed import is_distributed
from gcaps.nn.filters import batch_filter
from gcaps.nn.readout import MeanCovariance
from gcaps.nn.regularization import BatchNorm

if TYPE_CHECKING:
    from gcaps.models.gcaps import GCAPS


class _Context:
    """What a forward pass keeps for its backward pass, as autograd's context."""

    saved_tensors: tuple[Tensor | None, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors


@torch.no_grad()
@one_blas_thread()
def set_gradients(network: GCAPS, batch: Batch, graphs: int) -> tuple[Tensor, Tensor] | None:
    """Set the gradient of each parameter to that of the mean loss; return the sum of the losses, and the outputs.

    None, without any effect, if a part of the network is none of the compiled operations.

    Args:
        network: the network, in training mode.
        batch: with targets.
        graphs: number that the sum of the losses is divided by.
    """
    fused, covariance, capsules = network.head, network.readout, list(network.convs)
    if not isinstance(fused, head.Head) or not isinstance(covariance, MeanCovariance):
        return None
    if network.inputs is not None or network.num_relations > 1 or network.shape_args.get("edge_dim") is not None:
        return None
    if len(batch.ptr) < 3 or is_distributed() or not network.training:
        return None
    M = batch_filter(network.config.filter, batch)
    if not stack.can_fuse(capsules, batch, M):
        return None
    assert batch.y is not None
    of_stack, of_readout, of_head = _Context(), _Context(), _Context()
    convs = [conv for conv in capsules if isinstance(conv, GraphCapsuleConv)]
    given, weights = stack.arguments(convs, batch, M, keep=True)
    projection = None if covariance.projection is None else covariance.projection.weight
    layers = [layer for layer in fused if isinstance(layer, BatchNorm | nn.Linear)]
    Z = stack.CapsuleStack.forward(of_stack, given, batch.dense, *weights)
    options = covariance.options
    vectors = readout.MeanCovarianceFunction.forward(of_readout, Z, projection, batch.ptr, options, batch.multiplicity)
    length = vectors.size(1)
    if batch.graph_attr is not None:
        vectors = torch.cat([vectors, batch.graph_attr], dim=1)
    params = [p for layer in layers for p in (layer.weight, layer.bias)]
    outputs = head.HeadFunction.forward(of_head, vectors, list(fused), *params)
    with torch.enable_grad():
        leaf = outputs.requires_grad_()
        loss = loss_sum(network.task, leaf, batch.y, batch.sample_weight)
        (grad,) = torch.autograd.grad(loss / graphs, leaf)
    grad_vectors, _, *grads = head.HeadFunction.backward(of_head, grad)
    _set(params, grads)
    of_Z, grad_projection, *_ = readout.MeanCovarianceFunction.backward(of_readout, grad_vectors[:, :length])
    _set([projection], [grad_projection])
    assert of_Z is not None
    _, _, *grads = stack.CapsuleStack.backward(of_stack, of_Z)
    _set(weights, grads)
    return loss.detach(), outputs.detach()


def _set(params: list[Any], grads: list[Any]) -> None:
    for parameter, grad in zip(params, grads, strict=True):
        if isinstance(parameter, nn.Parameter):
            parameter.grad = grad
