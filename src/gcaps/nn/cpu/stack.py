"""All capsule layers of a network (Eq. 5 with raw moments) as one operation on CPU.

Computes the same as a sequence of :class:`gcaps.nn.GraphCapsuleConv` for the default capsule function and the filters
that are powers of a matrix. One-hot input is never written out, layers write side by side into one matrix Z, rows may
represent several nodes (:mod:`gcaps.batching.merging`), relations of edges are computed at the nodes that have such
edges only (:mod:`gcaps.nn.cpu.relations`), and sums do not depend on the number of threads. Compared with the plain
layers, an epoch is 2.5 times as fast on IMDB-BINARY, where nodes are merged, 2 times on DD and 1.5 times on NCI1
(``python benchmarks/compiled.py``).
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
from gcaps.nn.cpu import layers as kernels
from gcaps.nn.cpu.blocks import PARTIAL_SUMS, Array, compiled, cut, is_supported, one_blas_thread
from gcaps.nn.cpu.relations import no_relations, relation_rows, transposed_relations
from gcaps.nn.cpu.state import Gradient, Layer, Nodes, Output, Relations
from gcaps.nn.distributed import is_distributed, merged_statistics, sum_over_processes
from gcaps.nn.filters import Filter

INPUT_PARTIAL_SUMS = 8
"""As :data:`~gcaps.nn.cpu.blocks.PARTIAL_SUMS`, for the first layer, whose tables may be long."""


def can_fuse(convs: Sequence[nn.Module], batch: Batch, M: Filter) -> bool:
    """Whether :func:`capsule_stack` supports these layers: normalised raw moments with ReLU, powers of M, on CPU."""
    return (
        is_supported(batch.dense)
        and not batch.dense.requires_grad
        and M.basis == "powers"
        and not M.requires_grad
        and all(isinstance(conv, GraphCapsuleConv) and _is_default(conv) for conv in convs)
        and len({conv.width for conv in convs}) == 1
    )


def _is_default(conv: GraphCapsuleConv) -> bool:
    return conv.capsule_name == "moments" and conv.activation == "relu" and conv.norm is not None and conv.bias is None


def capsule_stack(convs: Sequence[GraphCapsuleConv], batch: Batch, M: Filter) -> Tensor:
    """Z [n, Σ P·h]: the flattened outputs of all layers, side by side."""
    given, params = arguments(convs, batch, M, torch.is_grad_enabled())
    Z: Tensor = CapsuleStack.apply(given, batch.dense, *params)  # type: ignore[no-untyped-call]
    return Z


def arguments(convs: Sequence[GraphCapsuleConv], batch: Batch, M: Filter, keep: bool) -> tuple[Input, list[Tensor]]:
    """Return what :class:`CapsuleStack` needs besides node features, and each layer's weights, γ, β and gates.

    Args:
        convs: the layers.
        batch: the batch.
        M: its filter.
        keep: whether a backward pass follows.
    """
    norms, bounds, params = [], [], []
    scale = M.off.value
    none = batch.dense.new_empty(0, 0)
    for conv in convs:
        assert conv.norm is not None
        bound = conv.capsule.bound
        norms.append(conv.norm)
        bounds.append(0.0 if bound is None else 1 / bound)
        gates = conv.gates(M.edge_attr)
        if gates is not None and scale is not None:
            gates = gates * scale.to(gates.dtype).unsqueeze(1)
        gated = none if gates is None else gates.t().contiguous()
        params += [conv.relation_weight(M.relations), conv.norm.weight, conv.norm.bias, gated]
    ptr, like = batch.ptr.numpy(), batch.dense.numpy()
    no_columns = np.empty((len(like), 0), np.int32)
    one_hot_index = no_columns if batch.one_hot_index is None else batch.one_hot_index.numpy()
    multiplicity = np.empty(0, like.dtype) if batch.multiplicity is None else batch.multiplicity.numpy()
    with_edges = M.relation is not None or convs[0].gate is not None
    reverse = reverse_arcs(batch.rowptr.numpy(), batch.col.numpy()) if with_edges else None
    given = Input(norms, bounds, M, one_hot_index, batch.one_hot, ptr[cut(ptr)], multiplicity, reverse, keep)
    return given, params


class Input(NamedTuple):
    """What the layers read besides node features, and their normalisations."""

    norms: Sequence[nn.BatchNorm1d]
    inverse_bounds: list[float]
    M: Filter
    one_hot_index: Array
    one_hot: int
    cuts: Array
    multiplicity: Array
    reverse: Array | None
    """[e] position of the arc j → i for each arc i → j; None if there is one relation and no gates."""
    keep: bool
    """Whether a backward pass follows; otherwise layers share arrays."""

    def nodes(self, like: Array, transposed: bool = False) -> Nodes:
        """Nodes with M or its transpose, without gates."""
        M, none, diagonal = self.M, np.empty(0, like.dtype), self.M.diagonal
        matrix = M.off_t if transposed else M.off
        value = none if matrix.value is None else matrix.value.detach().numpy().astype(like.dtype, copy=False)
        scale = none if diagonal is None else diagonal.detach().numpy().ravel()
        graph = (matrix.rowptr.numpy(), matrix.col.numpy(), value, scale)
        return Nodes(self.cuts, self.multiplicity, *graph, np.empty((0, 0), like.dtype))

    def rows(self, nodes: Nodes, forward: Relations | None = None) -> Relations:
        """Rows of relations of M, or of its transpose if those of M are given."""
        M, shares = self.M, np.empty((0, 0), nodes.gated.dtype)
        if self.reverse is None:
            return no_relations(shares.dtype)
        relation = np.zeros(len(nodes.col), np.int64) if M.relation is None else M.relation.numpy()
        if forward is not None:
            return transposed_relations(forward, nodes, relation[self.reverse])
        if M.shares is not None:
            shares = np.ascontiguousarray(M.shares.numpy())
        elif M.relation is None and len(nodes.diagonal):
            shares = nodes.diagonal[:, None]
        return relation_rows(nodes, relation, shares, M.relations)

    def parts(self, weight: Array) -> tuple[Array, Array]:
        """[P, c, (K+1)·h] and [P, R, c, K·h]: weights of all nodes and of relations; order 0 is of all nodes."""
        P, c, count, h = weight.shape
        if self.reverse is None:
            return weight.reshape(P, c, count * h), np.empty((P, 0, c, 0), weight.dtype)
        R = self.M.relations
        others = weight[:, :, 1:].reshape(P, c, R, (count - 1) // R * h)
        return weight[:, :, 0], others.transpose(0, 2, 1, 3)

    def joined(self, own: Array, others: Array, like: Array) -> Tensor:
        """Inverse of :meth:`parts`."""
        if self.reverse is None:
            return torch.from_numpy(own.reshape(like.shape))
        P, c, count, h = like.shape
        rest = others.transpose(0, 2, 1, 3).reshape(P, c, count - 1, h)
        return torch.from_numpy(np.concatenate([own.reshape(P, c, 1, h), rest], axis=2))

    def counts(self) -> Array:
        """[C] float64 number of nodes of each block."""
        if not len(self.multiplicity):
            return np.diff(self.cuts).astype(np.float64)
        offset = np.zeros(len(self.multiplicity) + 1)
        np.cumsum(self.multiplicity, out=offset[1:])
        return np.diff(offset[self.cuts])


class CapsuleStack(torch.autograd.Function):
    """All layers in one operation."""

    @staticmethod
    def forward(ctx: Any, given: Input, dense: Tensor, *params: Tensor) -> Tensor:
        """Z"""
        counts, n = given.counts(), len(dense)
        widths = [w.size(0) * w.size(3) for w in params[::4]]
        Z = dense.new_empty(n, sum(widths))
        z, x = Z.detach().numpy(), dense.contiguous().numpy()
        nodes = given.nodes(z)
        rows = given.rows(nodes)
        layers: list[Layer] = []
        arrays = [p.detach().numpy() for p in params]
        with one_blas_thread():
            for number, (norm, bound, width) in enumerate(zip(given.norms, given.inverse_bounds, widths, strict=True)):
                weight, gamma, beta, gated = arrays[4 * number : 4 * number + 4]
                own, others = given.parts(weight)
                first, one_hot = number == 0, given.one_hot if number == 0 else 0
                powers_of_one = _powers_of_one(bound, weight)
                statistics = np.empty((len(nodes.cuts) - 1, 2, width))
                kept = (len(gated), len(rows.node), others.shape[3]) if len(gated) else (0, 0, 0)
                powers = (len(own) - 1, n, x.shape[1] if first else width)
                shared = number > 1 and not given.keep
                layer = Layer(
                    np.ascontiguousarray(own[:, one_hot:]),
                    np.ascontiguousarray(others[:, :, one_hot:]),
                    np.ascontiguousarray(others[:, :, :one_hot] * powers_of_one[:, None]),
                    weight.shape[3],
                    bound,
                    x if first else z,
                    0 if first else sum(widths[: number - 1]),
                    layers[1].powers if shared else np.empty(powers, z.dtype),
                    layers[number - 2].pre if shared else np.empty((n, width), z.dtype),
                    np.empty(width, z.dtype),
                    np.empty(width, z.dtype),
                    gamma,
                    beta,
                    sum(widths[:number]),
                    np.empty(kept, z.dtype),
                )
                nodes = nodes._replace(gated=gated)
                shift = _running(norm)[0]
                if first:
                    table = np.ascontiguousarray(own[:, :one_hot] * powers_of_one)
                    kernels.first_layer(nodes, rows, given.one_hot_index, table, layer, shift, statistics)
                else:
                    kernels.next_layer(nodes, rows, given.one_hot_index, layers[-1], layer, shift, statistics)
                _normalize(norm, statistics, counts, layer)
                layers.append(layer)
        kernels.last_output(nodes.cuts, layers[-1], z, np.empty((0, 0, 0), z.dtype))
        ctx.given, ctx.rows, ctx.layers = given, rows, layers
        ctx.training = [norm.training for norm in given.norms]
        ctx.save_for_backward(Z, *params)
        return Z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_Z: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the parameters."""
        given, layers = ctx.given, ctx.layers
        Z, *params = (t.detach().numpy() for t in ctx.saved_tensors)
        output = Output(Z, grad_Z.contiguous().numpy())
        dtype, nodes, blocks = output.Z.dtype, given.nodes(output.Z, transposed=True), len(given.cuts) - 1
        rows = given.rows(nodes, ctx.rows)
        count = int(given.counts().sum())
        grads: list[Tensor | None] = [None] * len(params)
        grad, sums = np.empty_like(layers[-1].pre), np.empty((blocks, 2, layers[-1].pre.shape[1]))
        kernels.last_backward(nodes.cuts, output, layers[-1], grad, sums)
        with one_blas_thread():
            for number in reversed(range(len(layers))):
                layer: Layer = layers[number]
                weight, gated, total = params[4 * number], params[4 * number + 3], sums.sum(axis=0)
                grads[4 * number + 1] = torch.from_numpy((total[1] * layer.inverse).astype(dtype))
                grads[4 * number + 2] = torch.from_numpy(total[0].astype(dtype))
                gate_grad = np.zeros_like(gated)
                if len(gated):
                    nodes = nodes._replace(gated=np.ascontiguousarray(gated[:, given.reverse]))
                    grads[4 * number + 3] = torch.from_numpy(gate_grad)
                gradient = Gradient(grad, _coefficients(total, count, layer, ctx.training[number]))
                shares = min(blocks, PARTIAL_SUMS if number else INPUT_PARTIAL_SUMS)
                relation_grad = np.zeros((shares, *layer.relation_weight.shape), dtype)
                relation_table_grad = np.zeros((shares, *layer.relation_table.shape), dtype)
                index = given.one_hot_index
                if number == 0:
                    weight_grad = np.zeros((shares, *layer.weight.shape), dtype)
                    table_grad = np.zeros((shares, len(layer.weight), given.one_hot, layer.weight.shape[2]), dtype)
                    kernels.first_backward(
                        *(nodes, rows, layer, gradient, index),
                        *(weight_grad, table_grad, relation_grad, relation_table_grad, gate_grad),
                    )
                    ones = _powers_of_one(layer.inverse_bound, weight)
                    own = np.concatenate([table_grad.sum(axis=0) * ones, weight_grad.sum(axis=0)], axis=1)
                    others = np.concatenate(
                        [relation_table_grad.sum(axis=0) * ones[:, None], relation_grad.sum(axis=0)], axis=2
                    )
                    grads[0] = given.joined(own, others, weight)
                    break
                before: Layer = layers[number - 1]
                weight_grad = np.empty((shares, *layer.weight.shape), dtype)
                grad, sums = np.empty_like(before.pre), np.empty((blocks, 2, before.pre.shape[1]))
                kernels.layer_backward(
                    *(nodes, rows, index, layer, gradient, before, output),
                    *(weight_grad, relation_grad, relation_table_grad, gate_grad, grad, sums),
                )
                grads[4 * number] = given.joined(weight_grad.sum(axis=0), relation_grad.sum(axis=0), weight)
        for number in range(3, len(grads), 4):
            if (gate := grads[number]) is not None:  # found for the transpose
                grads[number] = gate[:, given.reverse]
        return None, None, *grads


def _powers_of_one(inverse_bound: float, weight: Array) -> Array:
    """[P, 1, 1] powers of a one: 1, bounded(1)², …"""
    base = (1 + inverse_bound**2) ** -0.5
    powers = [1.0] + [base**p for p in range(2, len(weight) + 1)]
    return np.array(powers, weight.dtype).reshape(-1, 1, 1)


def _running(norm: nn.BatchNorm1d) -> tuple[Array, Array]:
    """Running mean and variance."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return norm.running_mean.numpy(), norm.running_var.numpy()


def _normalize(norm: nn.BatchNorm1d, statistics: Array, counts: Array, layer: Layer) -> None:
    """Write layer.mean and layer.inverse: those of the batch in training, which also updates the running ones."""
    running = _running(norm)
    if not norm.training:
        layer.mean[:], layer.inverse[:] = running[0], 1 / np.sqrt(running[1] + norm.eps)
        return
    own = np.empty(statistics.shape[1:])
    merge_statistics(counts, statistics, own)
    total = counts.sum()
    if is_distributed():
        mean, squares, total = merged_statistics(torch.from_numpy(own), int(total))
        own = torch.stack([mean, squares]).numpy()
    normalization(own, float(total), norm.momentum or 0.0, norm.eps, running, layer.mean, layer.inverse)
    if norm.num_batches_tracked is not None:
        norm.num_batches_tracked.add_(1)


def _coefficients(sums: Array, count: int, layer: Layer, training: bool) -> Array:
    """Coefficients of the gradient of a normalisation, from sums over the nodes of this process."""
    found = np.empty((3, len(layer.gamma)), layer.gamma.dtype)
    if not training:  # running statistics do not depend on the batch
        sums = np.zeros_like(sums)
    elif is_distributed():
        whole = sum_over_processes(torch.from_numpy(np.append(sums.ravel(), count))).numpy()
        sums, count = whole[:-1].reshape(sums.shape), whole[-1]
    normalization_gradient(sums, float(count), layer.gamma, layer.inverse, found)
    return found


@compiled
def reverse_arcs(rowptr: Array, col: Array) -> Array:
    """[e] position of the arc j → i for each arc i → j of a symmetric pattern whose rows are sorted."""
    following, found = np.empty(len(rowptr), np.int64), np.empty(len(col), np.int64)
    for i in range(len(rowptr)):
        following[i] = rowptr[i]
    for e in range(len(col)):
        found[e] = following[col[e]]
        following[col[e]] += 1
    return found


@compiled
def merge_statistics(counts: Array, statistics: Array, merged: Array) -> None:
    """merged [2, w]: mean and Σ (x − mean)² over all blocks from those of each block [C, 2, w] and its number of nodes.

    Uses Chan's formula.
    """
    merged[:] = 0
    mean, squares = merged[0], merged[1]
    for b in range(len(statistics)):
        for j in range(len(mean)):
            mean[j] += counts[b] * statistics[b, 0, j]
    total = 0.0
    for b in range(len(statistics)):
        total += counts[b]
    total = max(total, 1.0)
    for j in range(len(mean)):
        mean[j] /= total
    for b in range(len(statistics)):
        for j in range(len(mean)):
            d = statistics[b, 0, j] - mean[j]
            squares[j] += statistics[b, 1, j] + counts[b] * d * d


@compiled
def normalization(
    statistics: Array,
    count: float,
    momentum: float,
    epsilon: float,
    running: tuple[Array, Array],
    mean: Array,
    inverse: Array,
) -> None:
    """Write mean and 1/√(variance + ε) of ``count`` rows, and update the running mean and variance as torch does."""
    for j in range(len(mean)):
        mean[j] = statistics[0, j]
        inverse[j] = 1 / np.sqrt(statistics[1, j] / count + epsilon)
        running[0][j] += momentum * (statistics[0, j] - running[0][j])
        running[1][j] += momentum * (statistics[1, j] / max(count - 1, 1) - running[1][j])


@compiled
def normalization_gradient(sums: Array, count: float, gamma: Array, inverse: Array, coefficients: Array) -> None:
    """Coefficients [3, w] of :func:`filter_backward`: scale, constant and slope, from sums over all nodes."""
    for j in range(len(gamma)):
        scale = gamma[j] * inverse[j]
        coefficients[0, j] = scale
        coefficients[1, j] = scale * sums[0, j] / count
        coefficients[2, j] = scale * inverse[j] * inverse[j] * sums[1, j] / count
