"""All capsule layers of a network as one operation on CPU, forwards and backwards: Eq. 5 with raw moments.

The same as :class:`gcaps.nn.GraphCapsuleConv` after :class:`gcaps.nn.GraphCapsuleConv`, for the capsule function and
the filters that nearly every run uses. The batch is cut into blocks, and what lies between two normalisations, which
need all nodes, is one pass over the blocks (see :mod:`gcaps.nn.fused.blocks`); the layers write next to each other into
Z, so nothing is concatenated; and one-hot input is never written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.batching.batch import Batch
from gcaps.nn.conv import GraphCapsuleConv
from gcaps.nn.distributed import merged_statistics, sum_over_processes, training_together
from gcaps.nn.filters import Filter
from gcaps.nn.fused import layers as passes
from gcaps.nn.fused.blocks import SHARES, Array, cut, one_blas_thread
from gcaps.nn.fused.normalization import merge, normalization, normalization_gradient
from gcaps.nn.fused.rows import Norm, Sparse
from gcaps.nn.sparse import CSR
from gcaps.nn.tracing import tracing

INPUT_SHARES = 8
"""As :data:`~gcaps.nn.fused.blocks.SHARES`, for the first layer, whose tables may be long."""


def can_fuse(convs: Sequence[nn.Module], batch: Batch, M: Filter) -> bool:
    """Whether :func:`capsule_stack` computes these layers: normalised raw moments with ReLU, powers of M, on CPU."""
    return (
        not tracing()
        and batch.dense.device.type == "cpu"
        and batch.dense.dtype in (torch.float32, torch.float64)
        and not batch.dense.requires_grad
        and M.basis == "powers"
        and not M.requires_grad
        and all(isinstance(conv, GraphCapsuleConv) and _plain(conv) for conv in convs)
    )


def _plain(conv: GraphCapsuleConv) -> bool:
    return conv.capsule_name == "moments" and conv.activation == "relu" and conv.norm is not None and conv.bias is None


def capsule_stack(convs: Sequence[GraphCapsuleConv], batch: Batch, M: Filter) -> Tensor:
    """Z [n, Σ P·h]: the flattened outputs of all layers side by side."""
    layers, params = [], []
    for conv in convs:
        assert conv.norm is not None
        bound = conv.capsule.bound
        layers.append(_Layer(conv.norm, 0.0 if bound is None else 1 / bound, conv.norm.training))
        params += [conv.weight, conv.norm.weight, conv.norm.bias]
    ptr = batch.ptr.numpy()
    one_hot_index = (
        np.empty((len(batch.dense), 0), np.int32) if batch.one_hot_index is None else batch.one_hot_index.numpy()
    )
    multiplicity = np.empty(0, batch.dense.numpy().dtype) if batch.multiplicity is None else batch.multiplicity.numpy()
    plan = _Plan(layers, M, one_hot_index, batch.one_hot, ptr[cut(ptr)], multiplicity)
    Z: Tensor = _CapsuleStack.apply(plan, batch.dense, *params)  # type: ignore[no-untyped-call]
    return Z


class _Layer(NamedTuple):
    norm: nn.BatchNorm1d
    inverse_bound: float
    training: bool


class _Plan(NamedTuple):
    layers: list[_Layer]
    M: Filter
    one_hot_index: Array
    one_hot: int
    cuts: Array
    """[C+1] where blocks begin, in nodes."""
    multiplicity: Array
    """[n] how often each row counts; empty where each counts once."""

    def counts(self) -> Array:
        """[C] float64: how many nodes the rows of each block are."""
        if not len(self.multiplicity):
            return np.diff(self.cuts).astype(np.float64)
        until = np.zeros(len(self.multiplicity) + 1)
        np.cumsum(self.multiplicity, out=until[1:])
        return np.diff(until[self.cuts])


class _Saved(NamedTuple):
    """What a layer's backward pass needs beside Z."""

    powers: Array
    """[P, n, c] the powers of its dense input."""
    pre: Array
    """[n, P·h] the argument of the normalisation."""
    norm: Norm
    column: int
    """Where its output begins in Z."""


class _CapsuleStack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: _Plan, dense: Tensor, *params: Tensor) -> Tensor:
        cuts, multiplicity, n = plan.cuts, plan.multiplicity, len(dense)
        counts = plan.counts()
        widths = [w.size(0) * w.size(3) for w in params[::3]]
        Z = dense.new_empty(n, sum(widths))
        z, x = Z.numpy(), dense.contiguous().numpy()
        M = _sparse(plan.M.off, plan.M.diagonal, z)
        saved: list[_Saved] = []
        with one_blas_thread():
            for number, (layer, width) in enumerate(zip(plan.layers, widths, strict=True)):
                weight, gamma, beta = (p.detach() for p in params[3 * number : 3 * number + 3])
                h, bound = weight.size(3), layer.inverse_bound
                flat, shift = weight.flatten(2).numpy(), _running(layer)[0]
                pre, statistics = np.empty((n, width), z.dtype), np.empty((len(cuts) - 1, 2, width))
                powers = np.empty((len(flat), n, x.shape[1] if number == 0 else widths[number - 1]), z.dtype)
                if number == 0:
                    table = (weight.flatten(2)[:, : plan.one_hot] * _powers_of_one(bound, weight)).numpy()
                    dense_weight = np.ascontiguousarray(flat[:, plan.one_hot :])
                    source = (plan.one_hot_index, table, x, bound, powers, dense_weight)
                    passes.first_layer(cuts, multiplicity, *source, h, M, shift, pre, statistics)
                else:
                    before = saved[-1]
                    given = (before.pre, before.norm, z, before.column, bound, powers, flat)
                    passes.next_layer(cuts, multiplicity, *given, h, M, shift, pre, statistics)
                mean, inverse = _normalization(layer, statistics, counts, z.dtype)
                column = sum(widths[:number])
                saved.append(_Saved(powers, pre, (mean, inverse, gamma.numpy(), beta.numpy()), column))
        none = np.empty((0, 0, 0), z.dtype)
        passes.last_output(cuts, saved[-1].pre, saved[-1].norm, z, saved[-1].column, none)
        ctx.plan, ctx.saved = plan, saved
        ctx.save_for_backward(Z, *params)
        return Z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_Z: Tensor) -> tuple[Tensor | None, ...]:
        plan: _Plan = ctx.plan
        cuts, blocks = plan.cuts, len(plan.cuts) - 1
        Z, *params = (t.detach() for t in ctx.saved_tensors)
        outer, z = grad_Z.contiguous().numpy(), Z.numpy()
        M_t = _sparse(plan.M.off_t, plan.M.diagonal, z)
        grads: list[Tensor | None] = [None] * len(params)
        nodes = int(plan.counts().sum())
        last: _Saved = ctx.saved[-1]
        grad, sums = np.empty_like(last.pre), np.empty((blocks, 2, last.pre.shape[1]))
        passes.last_backward(cuts, outer, z, last.column, last.pre, last.norm[0], grad, sums)
        with one_blas_thread():
            for number in reversed(range(len(plan.layers))):
                layer, own = plan.layers[number], ctx.saved[number]
                weight, (mean, inverse, gamma, _) = params[3 * number], own.norm
                total = sums.sum(axis=0)
                grads[3 * number + 1] = torch.from_numpy((total[1] * inverse).astype(z.dtype))
                grads[3 * number + 2] = torch.from_numpy(total[0].astype(z.dtype))
                coefficients = np.empty((3, len(gamma)), z.dtype)
                if layer.training:
                    total, count = _over_processes(total, nodes)
                else:  # running statistics do not depend on the batch
                    total, count = np.zeros_like(total), 1.0
                normalization_gradient(total, count, gamma, inverse, coefficients)
                flat = weight.flatten(2).numpy()
                given = (cuts, plan.multiplicity, grad, own.pre, mean, coefficients, weight.size(3), M_t, own.powers)
                if number == 0:
                    shares = min(blocks, INPUT_SHARES)
                    weight_grad = np.zeros((shares, len(flat), own.powers.shape[2], flat.shape[2]), z.dtype)
                    table_grad = np.zeros((shares, len(flat), plan.one_hot, flat.shape[2]), z.dtype)
                    passes.first_backward(*given, plan.one_hot_index, weight_grad, table_grad)
                    ones = torch.from_numpy(table_grad).sum(0) * _powers_of_one(layer.inverse_bound, weight)
                    both = torch.cat([ones, torch.from_numpy(weight_grad).sum(0)], dim=1)
                    grads[0] = both.view_as(weight)
                    break
                before: _Saved = ctx.saved[number - 1]
                weight_grad = np.empty((min(blocks, SHARES), *flat.shape), z.dtype)
                grad, sums = np.empty_like(before.pre), np.empty((blocks, 2, before.pre.shape[1]))
                behind = (outer, z, before.column, before.pre, before.norm[0], grad, sums)
                passes.layer_backward(*given, layer.inverse_bound, flat, weight_grad, *behind)
                grads[3 * number] = torch.from_numpy(weight_grad).sum(0).view_as(weight)
        return None, None, *grads


def _sparse(matrix: CSR, diagonal: Tensor | None, like: Array) -> Sparse:
    """A filter matrix as the kernels take it."""
    none = np.empty(0, like.dtype)
    value = none if matrix.value is None else matrix.value.detach().numpy().astype(like.dtype, copy=False)
    scale = none if diagonal is None else diagonal.detach().numpy().ravel()
    return matrix.rowptr.numpy(), matrix.col.numpy(), value, scale


def _powers_of_one(inverse_bound: float, weight: Tensor) -> Tensor:
    """[P, 1, 1] what the powers of a one are: 1, bounded(1)², …"""
    base = (1 + inverse_bound**2) ** -0.5
    return weight.new_tensor([1.0] + [base**p for p in range(2, len(weight) + 1)]).view(-1, 1, 1)


def _running(layer: _Layer) -> tuple[Array, Array]:
    """Running mean and variance."""
    norm = layer.norm
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return norm.running_mean.numpy(), norm.running_var.numpy()


def _normalization(layer: _Layer, statistics: Array, counts: Array, dtype: Any) -> tuple[Array, Array]:
    """Mean and 1/deviation to normalise by; in training the batch's, and the running ones are brought up to date."""
    norm, running = layer.norm, _running(layer)
    found = np.empty((2, len(running[0])), dtype)
    if not layer.training:
        found[0], found[1] = running[0], 1 / np.sqrt(running[1] + norm.eps)
        return found[0], found[1]
    whole = np.empty(statistics.shape[1:])
    merge(counts, statistics, whole)
    mean, squares, total = merged_statistics(whole, int(counts.sum()))
    if training_together():
        whole = np.stack([mean, squares])
    normalization(whole, total, norm.momentum or 0.0, norm.eps, running, found)
    if norm.num_batches_tracked is not None:
        norm.num_batches_tracked.add_(1)
    return found[0], found[1]


def _over_processes(sums: Array, count: int) -> tuple[Array, float]:
    """``sums`` and ``count`` over the nodes of all processes."""
    if not training_together():
        return sums, float(count)
    together = sum_over_processes(np.append(sums.ravel(), count))
    return together[:-1].reshape(sums.shape), float(together[-1])
