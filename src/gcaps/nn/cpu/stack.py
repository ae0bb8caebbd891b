"""All capsule layers of a network (Eq. 5 with raw moments) as one operation on CPU.

Computes the same as a sequence of :class:`gcaps.nn.GraphCapsuleConv` for the default capsule function and the filters
that are powers of a matrix. One-hot input is never written out, layers write side by side into one matrix Z, rows may
represent several nodes (:mod:`gcaps.batching.merging`), relations of edges are computed at the nodes that have such
edges only (:mod:`gcaps.nn.cpu.relations`), and sums do not depend on the number of threads. Compared with the plain
layers, an epoch is 4.9 times as fast on IMDB-BINARY, where nodes are merged, and 2.4 times on DD and NCI1
(``python benchmarks/compiled.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.batching.batch import Batch
from gcaps.nn.conv import GraphCapsuleConv
from gcaps.nn.cpu import stages
from gcaps.nn.cpu.blocks import PARTIAL_SUMS, Array, compiled, cut, is_supported, one_blas_thread
from gcaps.nn.cpu.relations import no_relations, relation_rows, transposed_relations
from gcaps.nn.cpu.running import RunningStatistics
from gcaps.nn.cpu.state import Nodes, Output, Relations, Stack
from gcaps.nn.distributed import is_distributed, merged_statistics, sum_over_processes
from gcaps.nn.filters import Filter
from gcaps.nn.flat import in_shapes

INPUT_PARTIAL_SUMS = 8
"""As :data:`~gcaps.nn.cpu.blocks.PARTIAL_SUMS`, for the first layer, whose tables may be long."""


def can_fuse(convs: Sequence[nn.Module], batch: Batch, M: Filter) -> bool:
    """Whether :func:`capsule_stack` supports these layers: normalised raw moments with ReLU, powers of M, on CPU."""
    return (
        is_supported(batch.dense)
        and not batch.dense.requires_grad
        and M.basis == "powers"
        and not M.requires_grad
        and are_default(convs)
    )


def are_default(convs: Sequence[nn.Module]) -> bool:
    """Whether these are normalised raw moments with ReLU, all of one shape but for the input of the first."""
    return (
        all(isinstance(conv, GraphCapsuleConv) and _is_default(conv) for conv in convs)
        and len({(conv.capsule_size, conv.out_channels, conv.degree) for conv in convs}) == 1
        and all(conv.in_channels == before.width for before, conv in pairwise(convs))
    )


def _is_default(conv: GraphCapsuleConv) -> bool:
    return conv.capsule_name == "moments" and conv.activation == "relu" and conv.norm is not None and conv.bias is None


def capsule_stack(convs: Sequence[GraphCapsuleConv], batch: Batch, M: Filter) -> Tensor:
    """Z [n, Σ P·h]: the flattened outputs of all layers, side by side."""
    gates = gates_of(convs, M)
    given = Input(Layers(convs), batch, M, gates is not None, torch.is_grad_enabled())
    params = [p for conv in convs for p in (conv.relation_weight(M.relations), *_affine(conv))]
    Z: Tensor = CapsuleStack.apply(given, gates, *params)  # type: ignore[no-untyped-call]
    return Z


def gates_of(convs: Sequence[GraphCapsuleConv], M: Filter) -> Tensor | None:
    """[L, P, e] gates of all layers times the values of the filter; None if the layers have none."""
    found = [gates for conv in convs if (gates := conv.gates(M.edge_attr)) is not None]
    if not found:
        return None
    gates, scale = torch.stack(found).transpose(1, 2), M.off.value
    return gates.contiguous() if scale is None else (gates * scale.to(gates.dtype)).contiguous()


def _affine(conv: GraphCapsuleConv) -> tuple[Tensor, Tensor]:
    assert conv.norm is not None
    return conv.norm.weight, conv.norm.bias


class Layers:
    """What does not change from batch to batch: the shape of the layers and their normalisations.

    Args:
        convs: the layers.
    """

    def __init__(self, convs: Sequence[GraphCapsuleConv]) -> None:
        first, bound = convs[0], convs[0].capsule.bound
        self.norms = [conv.norm for conv in convs if conv.norm is not None]
        self.size, self.hidden = first.capsule_size, first.out_channels
        self.columns, self.degree = first.in_channels, first.degree
        inverse_bound = 0.0 if bound is None else 1 / bound
        base = (1 + inverse_bound**2) ** -0.5
        self.ones = [1.0] + [base**p for p in range(2, self.size + 1)]
        training = self.norms[0].training
        self.options = np.array([[inverse_bound, norm.momentum or 0.0, norm.eps, training] for norm in self.norms])
        self.statistics = RunningStatistics(self.norms)


class Input:
    """What the layers read of a batch.

    Args:
        layers: the layers.
        batch: the batch.
        M: its filter.
        gated: whether the layers have gates.
        keep: whether a backward pass follows; otherwise layers share arrays.
    """

    def __init__(self, layers: Layers, batch: Batch, M: Filter, gated: bool, keep: bool) -> None:
        ptr, dense = batch.ptr.numpy(), batch.dense.contiguous().numpy()
        none, index = np.empty(0, dense.dtype), batch.one_hot_index
        self.layers, self.M, self.keep, self.x = layers, M, keep, dense
        self.one_hot_index = np.empty((len(dense), 0), np.int32) if index is None else index.numpy()
        self.graphs = cut(ptr)
        """[C+1] first graph of each block."""
        self.cuts = ptr[self.graphs]
        self.multiplicity = none if batch.multiplicity is None else batch.multiplicity.numpy()
        with_edges = M.relation is not None or gated
        self.reverse = reverse_arcs(batch.rowptr.numpy(), batch.col.numpy()) if with_edges else None
        """[e] position of the arc j → i for each arc i → j; None if there is one relation and no gates."""

    def nodes(self, transposed: bool = False) -> Nodes:
        """Nodes with M or its transpose."""
        M, none, diagonal, dtype = self.M, np.empty(0, self.x.dtype), self.M.diagonal, self.x.dtype
        matrix = M.off_t if transposed else M.off
        value = none if matrix.value is None else matrix.value.detach().numpy().astype(dtype, copy=False)
        scale = none if diagonal is None else diagonal.detach().numpy().ravel()
        return Nodes(self.cuts, self.multiplicity, matrix.rowptr.numpy(), matrix.col.numpy(), value, scale)

    def rows(self, nodes: Nodes, forward: Relations | None = None) -> Relations:
        """Rows of relations of M, or of its transpose if those of M are given."""
        M, shares = self.M, np.empty((0, 0), self.x.dtype)
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

    def stack(self, weights: Array, gates: Array, rows: Relations) -> Stack:
        """Return the layers with room for what a forward pass writes."""
        layers, x, n, dtype = self.layers, self.x, len(self.x), self.x.dtype
        L, P, h = len(layers.norms), layers.size, layers.hidden
        w, one_hot, matrices = P * h, layers.columns - x.shape[1], 1 + layers.degree * self.M.relations
        several, turns = (L - 1, L) if self.keep else (min(L - 1, 1), min(L, 2))
        return Stack(
            *(L, P, matrices, h, one_hot, weights, gates, np.array(layers.ones, dtype)),
            *(layers.options, layers.statistics.read().reshape(L, 2, w), x, np.empty((n, L * w), dtype)),
            np.empty((P - 1, n, x.shape[1]), dtype),
            np.empty((several, P - 1, n, w), dtype),
            np.empty((turns, n, w), dtype),
            np.empty((L, 2, w), dtype),
            np.empty((L, P, len(rows.node), layers.degree * h) if len(gates) else (0, 0, 0, 0), dtype),
        )


class Pass(NamedTuple):
    """What a forward pass keeps for its backward pass."""

    given: Input
    rows: Relations
    stack: Stack
    nodes: Array
    """[1] number of nodes, of all processes."""


def forward(given: Input, weights: Array, gates: Array | None = None) -> Pass:
    """Compute Z, which is ``stack.Z`` of what is returned.

    Args:
        given: batch and layers.
        weights: weights, γ and β of each layer, laid end to end.
        gates: [L, P, e], or None.
    """
    gates = np.empty((0, 0, 0), weights.dtype) if gates is None else gates
    nodes, layers = given.nodes(), given.layers
    rows = given.rows(nodes)
    stack, count = given.stack(weights, gates, rows), np.empty(1)
    merged, L, training = np.empty((2, stack.pre.shape[2])), stack.layers, stack.options[0, 3] != 0
    with one_blas_thread():
        for first, last in _stages(0, L + 1, training):
            stages.forward(nodes, rows, given.one_hot_index, stack, merged, count, first, last)
            if last <= L:
                mean, squares, total = merged_statistics(torch.from_numpy(merged), int(count[0]))
                merged[0], merged[1], count[0] = mean.numpy(), squares.numpy(), total
    if training:
        layers.statistics.write(stack.running.ravel())
    return Pass(given, rows, stack, count)


def backward(of: Pass, grad_Z: Array, gradient: Array) -> Array:
    """Write the gradient of the weights, laid out as they are; return that of the gates [L, P, e]."""
    given, stack = of.given, of.stack
    nodes, L, shape = given.nodes(transposed=True), stack.layers, stack.gates.shape
    rows = given.rows(nodes, of.rows)
    if len(stack.gates):
        stack = stack._replace(gates=np.ascontiguousarray(stack.gates[:, :, given.reverse]))
    gate_grad, grad = np.zeros(shape, gradient.dtype), np.empty(stack.pre.shape[1:], gradient.dtype)
    merged, count, training = np.empty((2, grad.shape[1])), of.nodes.copy(), stack.options[0, 3] != 0
    output = Output(stack.Z, grad_Z)
    with one_blas_thread():
        for first, last in _stages(L, -1, training):
            stages.backward(
                *(nodes, rows, given.one_hot_index, stack, output, grad, merged, count),
                *(first, last, PARTIAL_SUMS, INPUT_PARTIAL_SUMS, gradient, gate_grad),
            )
            if last >= 0 and is_distributed() and training:
                merged[:] = sum_over_processes(torch.from_numpy(merged)).numpy()
    if given.reverse is not None and len(gate_grad):  # found for the transpose
        gate_grad = gate_grad.take(given.reverse, axis=2)
    return gate_grad


def _stages(first: int, last: int, training: bool) -> Sequence[tuple[int, int]]:
    """First and last stage of each call: all in one, or one by one where processes exchange statistics between them."""
    step = 1 if last > first else -1
    if training and is_distributed():
        return [(stage, stage + step) for stage in range(first, last, step)]
    return [(first, last)]


class CapsuleStack(torch.autograd.Function):
    """All layers in one operation."""

    @staticmethod
    def forward(ctx: Any, given: Input, gates: Tensor | None, *params: Tensor) -> Tensor:
        """Z"""
        weights = np.concatenate([p.detach().numpy().ravel() for p in params])
        ctx.of = forward(given, weights, None if gates is None else gates.detach().numpy())
        ctx.shapes = [p.shape for p in params]
        return torch.from_numpy(ctx.of.stack.Z)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_Z: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the gates and of the parameters."""
        gradient = np.empty_like(ctx.of.stack.weights)
        of_gates = backward(ctx.of, grad_Z.contiguous().numpy(), gradient)
        own = torch.from_numpy(of_gates) if len(of_gates) else None
        return None, own, *in_shapes(gradient, ctx.shapes)


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
