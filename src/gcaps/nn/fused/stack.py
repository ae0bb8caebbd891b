"""All capsule layers of a network as one operation on CPU, forwards and backwards: Eq. 5 with raw moments.

The same as :class:`gcaps.nn.GraphCapsuleConv` after :class:`gcaps.nn.GraphCapsuleConv`, for the capsule function and
the filters that nearly every run uses. Between two matrix products everything is one pass over the nodes; the layers
write next to each other into Z, so nothing is concatenated; and one-hot input is never written out.
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
from gcaps.nn.fused import kernels
from gcaps.nn.fused.kernels import Array
from gcaps.nn.sparse import CSR
from gcaps.nn.tracing import tracing


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
    plan = _Plan(layers, M, None if batch.codes is None else batch.codes.numpy(), batch.one_hot)
    Z: Tensor = _CapsuleStack.apply(plan, batch.dense, *params)  # type: ignore[no-untyped-call]
    return Z


class _Layer(NamedTuple):
    norm: nn.BatchNorm1d
    inverse_bound: float
    training: bool


class _Plan(NamedTuple):
    layers: list[_Layer]
    M: Filter
    codes: Array | None
    one_hot: int


class _Saved(NamedTuple):
    """What a layer's backward pass needs beside Z."""

    powers: Array
    """[P, n, c] the powers of its dense input."""
    pre: Array
    """[n, P·h] the argument of the normalisation."""
    mean: Array
    inverse: Array
    """[P·h] 1/deviation."""


def _sparse(matrix: CSR, diagonal: Tensor | None, like: Array) -> kernels.Sparse:
    """A filter matrix as the kernels take it."""
    none = np.empty(0, like.dtype)
    value = none if matrix.value is None else matrix.value.detach().numpy().astype(like.dtype, copy=False)
    scale = none if diagonal is None else diagonal.detach().numpy().ravel()
    return matrix.rowptr.numpy(), matrix.col.numpy(), value, scale


def _powers_of_one(inverse_bound: float, weight: Tensor) -> Tensor:
    """[P, 1, 1] what the powers of a one are: 1, bounded(1)², …"""
    base = (1 + inverse_bound**2) ** -0.5
    return weight.new_tensor([1.0] + [base**p for p in range(2, len(weight) + 1)]).view(-1, 1, 1)


class _CapsuleStack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: _Plan, dense: Tensor, *params: Tensor) -> Tensor:
        widths = [w.size(0) * w.size(3) for w in params[::3]]
        Z = dense.new_empty(len(dense), sum(widths))
        z = Z.numpy()
        M = _sparse(plan.M.off, plan.M.diagonal, z)
        powers = np.empty((len(params[0]), *dense.shape), z.dtype)
        kernels.moments(dense.contiguous().numpy(), plan.layers[0].inverse_bound, powers)
        saved: list[_Saved] = []
        first = 0
        for number, (layer, width) in enumerate(zip(plan.layers, widths, strict=True)):
            weight, gamma, beta = (p.detach() for p in params[3 * number : 3 * number + 3])
            U = _mix(plan if number == 0 else None, weight.flatten(2), powers)
            pre, statistics = np.empty((len(z), width), z.dtype), np.empty((2, width))
            kernels.gather(U, weight.size(3), M, pre, statistics)
            mean, inverse = _normalization(layer, statistics, len(z), z.dtype)
            saved.append(_Saved(powers, pre, mean, inverse))
            last = number == len(widths) - 1
            powers = np.empty((0 if last else len(params[3 * number + 3]), len(z), width), z.dtype)
            following = layer if last else plan.layers[number + 1]
            kernels.normalize(
                pre, mean, inverse, gamma.numpy(), beta.numpy(), z, first, following.inverse_bound, powers
            )
            first += width
        ctx.plan, ctx.saved = plan, saved
        ctx.save_for_backward(Z, *params)
        return Z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_Z: Tensor) -> tuple[Tensor | None, ...]:
        plan: _Plan = ctx.plan
        Z, *params = (t.detach() for t in ctx.saved_tensors)
        outer, z = grad_Z.numpy(), Z.numpy()
        M_t = _sparse(plan.M.off_t, plan.M.diagonal, z)
        grads: list[Tensor | None] = [None] * len(params)
        first = z.shape[1] - ctx.saved[-1].pre.shape[1]
        grad = outer[:, first:].copy()
        for number in reversed(range(len(plan.layers))):
            layer, saved = plan.layers[number], ctx.saved[number]
            weight, gamma = params[3 * number], params[3 * number + 1].numpy()
            sums = np.empty((2, grad.shape[1]))
            kernels.gate_backward(grad, z, first, saved.pre, saved.mean, sums)
            grads[3 * number + 1] = torch.from_numpy((sums[1] * saved.inverse).astype(z.dtype))
            grads[3 * number + 2] = torch.from_numpy(sums[0].astype(z.dtype))
            scale, constant, slope = np.empty((3, len(gamma)), z.dtype)
            if layer.training:
                sums, count = _over_processes(sums, len(z))
            else:  # running statistics do not depend on the batch
                sums, count = np.zeros_like(sums), 1.0
            kernels.normalization_gradient(sums, count, gamma, saved.inverse, scale, constant, slope)
            flat = weight.flatten(2)
            G = np.empty((len(flat), len(z), flat.size(2)), z.dtype)
            kernels.spread_backward(grad, saved.pre, saved.mean, scale, constant, slope, weight.size(3), M_t, G)
            g = torch.from_numpy(G)
            grads[3 * number] = _weight_gradient(plan if number == 0 else None, flat, saved.powers, g).view_as(weight)
            if number == 0:
                break
            through = torch.bmm(g, flat.transpose(1, 2))
            first -= ctx.saved[number - 1].pre.shape[1]
            grad = outer[:, first : first + flat.size(1)].copy()
            kernels.input_backward(saved.powers, layer.inverse_bound, through.numpy(), grad)
        return None, None, *grads


def _mix(plan: _Plan | None, weight: Tensor, powers: Array) -> Array:
    """U [P, n, (K+1)·h] = Y_p W_p from weight [P, c, (K+1)·h]; with a plan, one-hot columns come before the dense."""
    U = np.empty((len(weight), powers.shape[1], weight.size(2)), powers.dtype)
    mixed, parts = torch.from_numpy(U), torch.from_numpy(powers)
    if plan is None or plan.codes is None:
        torch.bmm(parts, weight, out=mixed)
        return U
    table = weight[:, : plan.one_hot] * _powers_of_one(plan.layers[0].inverse_bound, weight)
    kernels.table_rows(plan.codes, table.numpy(), U)
    if parts.size(2):
        mixed.baddbmm_(parts, weight[:, plan.one_hot :])
    return U


def _weight_gradient(plan: _Plan | None, weight: Tensor, powers: Array, G: Tensor) -> Tensor:
    """[P, c, (K+1)·h] Y_pᵀ G_p."""
    parts = torch.from_numpy(powers).transpose(1, 2)
    if plan is None or plan.codes is None:
        return torch.bmm(parts, G)
    table = np.zeros((len(weight), plan.one_hot, weight.size(2)), powers.dtype)
    kernels.add_to_table(plan.codes, G.numpy(), table)
    ones = torch.from_numpy(table).mul_(_powers_of_one(plan.layers[0].inverse_bound, weight))
    return torch.cat([ones, torch.bmm(parts, G)], dim=1) if parts.size(1) else ones


def _normalization(layer: _Layer, statistics: Array, count: int, dtype: Any) -> tuple[Array, Array]:
    """Mean and 1/deviation to normalise by; in training the batch's, and the running ones are brought up to date."""
    norm = layer.norm
    assert norm.running_mean is not None
    assert norm.running_var is not None
    running_mean, running_var = norm.running_mean.numpy(), norm.running_var.numpy()
    inverse = np.empty(len(running_mean), dtype)
    if not layer.training:
        kernels.inverse_deviation(running_var, 1.0, norm.eps, inverse)
        return running_mean, inverse
    mean, squares, total = merged_statistics(statistics, count)
    kernels.update_running(mean, squares, total, norm.momentum or 0.0, running_mean, running_var)
    kernels.inverse_deviation(squares, float(total), norm.eps, inverse)
    if norm.num_batches_tracked is not None:
        norm.num_batches_tracked.add_(1)
    return mean.astype(dtype), inverse


def _over_processes(sums: Array, count: int) -> tuple[Array, float]:
    """``sums`` and ``count`` over the nodes of all processes."""
    if not training_together():
        return sums, float(count)
    together = sum_over_processes(np.append(sums.ravel(), count))
    return together[:-1].reshape(sums.shape), float(together[-1])
