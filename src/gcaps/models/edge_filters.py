"""Edge features, and the convolution whose filter matrix is a function of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

import numpy as np
import torch
from numba import njit
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.batching.batch import Batch
from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.documents import Labels, Number, Page
from gcaps.errors import DataError
from gcaps.models.network import InputLinear, node_product
from gcaps.nn.cpu.blocks import is_supported
from gcaps.nn.cpu.scalar_edges import Rows, piecewise_sum
from gcaps.nn.filters import Filter
from gcaps.nn.neighborhood import neighbor_sum
from gcaps.nn.sparse import CSR


class EdgeShape(Page):
    """Arguments of :class:`EdgeFeatures`, from the training graphs."""

    values: list[Labels]
    mean: list[Number]
    deviation: list[Annotated[Number, Field(gt=0)]]
    weighted: bool

    @model_validator(mode="after")
    def _of_one_length(self) -> Self:
        if len(self.mean) != len(self.deviation):
            raise ValueError("mean and deviation should have the same length")
        return self


class EdgeFeatures(nn.Module):
    """Features of an edge: one-hot labels, standardised attributes, and the logarithm of its weight.

    Args:
        values: edge labels of the training graphs, for each column; other labels give zeros.
        mean, deviation: of the edge attributes of the training graphs.
        weighted: whether the training graphs have edge weights.
    """

    def __init__(self, values: list[list[int]], mean: list[float], deviation: list[float], weighted: bool) -> None:
        super().__init__()
        self.values, self.mean, self.deviation, self.weighted = values, mean, deviation, weighted

    @staticmethod
    def shape_from(graphs: GraphSet, names: Sequence[str] = ("labels", "attributes")) -> dict[str, Any]:
        """Arguments of the constructor, from the training graphs; ``names`` are the features to use."""
        labels = graphs.edge_labels if "labels" in names else None
        attributes = graphs.edge_attr if "attributes" in names else None
        deviation = np.zeros(0) if attributes is None else attributes.std(axis=0, dtype=np.float64)
        return {
            "values": [] if labels is None else [np.unique(column).tolist() for column in labels.T],
            "mean": [] if attributes is None else attributes.mean(axis=0, dtype=np.float64).tolist(),
            "deviation": np.where(deviation > 0, deviation, 1.0).tolist(),
            "weighted": graphs.edge_weight is not None,
        }

    @property
    def num_features(self) -> int:
        """Number of features of an edge."""
        return sum(map(len, self.values)) + len(self.mean) + self.weighted

    def forward(self, batch: Batch) -> Tensor | None:
        """[e, ·], or None if there are no features."""
        parts = []
        if self.values:
            labels = self._given(batch, "edge_labels", "edge labels", len(self.values))
            for column, values in zip(labels.T, self.values, strict=True):
                parts.append((column[:, None] == torch.tensor(values, device=column.device)).to(batch.dense.dtype))
        if self.mean:
            attributes = self._given(batch, "edge_attr", "edge attributes", len(self.mean)).to(batch.dense.dtype)
            parts.append((attributes - attributes.new_tensor(self.mean)) / attributes.new_tensor(self.deviation))
        if self.weighted:
            if batch.weight is None:
                raise DataError("the network was trained on graphs with edge weights; these have none")
            parts.append(torch.log(batch.weight).unsqueeze(1))
        return torch.cat(parts, dim=1) if parts else None

    @staticmethod
    def _given(batch: Batch, name: str, what: str, columns: int) -> Tensor:
        found = None if batch.extras is None else batch.extras.get(name)
        if found is None or found.size(1) != columns:
            given = "none" if found is None else found.size(1)
            raise DataError(f"the network was trained on graphs with {columns} {what}; these graphs have {given}")
        return found


class EdgeConditionedConv(nn.Module):
    """y_i = 1/(d_i + 1) (Θ_0 x_i + Σ_{j ∼ i} Θ(e_ji) x_j) + b,   Θ(e) = Σ_h ReLU(U e + u)_h V_h + V_0.

    A matrix for each edge would take e · c · c' numbers (PyTorch Geometric's NNConv stores them). Θ(e) is a combination
    of H + 1 matrices, so V_h x_j is computed for each node and combined for each edge: out = Σ_h A_h (X V_h) with
    sparse A_h of values ReLU(U e + u)_h. This takes (H + 2) · c' numbers for a node and H for an edge.

    With one edge feature Θ is piecewise linear, and :func:`gcaps.nn.cpu.scalar_edges.piecewise_sum` computes the same.

    Args:
        in_channels, out_channels: widths c and c'.
        edge_channels: number of edge features; with 0, Θ = V_0 for all edges.
        hidden: units H of the network that computes filters.
        first: whether the input is the node features of a batch.
    """

    def __init__(
        self, in_channels: int, out_channels: int, edge_channels: int, hidden: int, *, first: bool = False
    ) -> None:
        super().__init__()
        self.out_channels = out_channels
        self.filters = nn.Linear(edge_channels, hidden) if edge_channels else None
        columns = (2 + (hidden if edge_channels else 0)) * out_channels  # X [Θ_0, V_0, V_1 …]
        self.linear = (InputLinear if first else nn.Linear)(in_channels, columns, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Tensor | Batch, A: CSR, edges: Tensor | None, A_t: CSR | None = None) -> Tensor:
        """[n, c'].

        Args:
            x: [n, c], or the batch in the first layer.
            A: pattern of the edges; its values are how many edges each arc represents, if nodes are merged.
            edges: [e, ·] edge features.
            A_t: its transpose; by default A is symmetric.
        """
        size = (A.row_sums(self.bias) + 1).unsqueeze(1)
        if self.filters is None:
            own, rest = self._products(x, 0, 1), self._products(x, 1, 2)
            A_t = A_t or A
            out = neighbor_sum(rest, Filter(None, A, A_t, A, A_t))
        else:
            assert edges is not None
            if isinstance(x, Tensor) and edges.size(1) == 1 and is_supported(x) and not edges.requires_grad:
                own = self._products(x, 0, 1)
                matrices = self.linear.weight.view(-1, self.out_channels, x.size(1))[1:]
                units = self.filters.weight[:, 0], self.filters.bias
                out = piecewise_sum(x, edges[:, 0].contiguous(), *units, matrices, Rows(A.rowptr, A.col, A.value))
            else:
                own, rest = self._products(x, 0, 1), self._products(x, 1, None)
                values = torch.relu(self.filters(edges))
                values = torch.cat([values.new_ones(len(values), 1), values], dim=1)
                values = values if A.value is None else values * A.value.to(values).unsqueeze(1)
                out = edge_mix(rest.reshape(len(rest), values.size(1), self.out_channels), values, A)
        mixed: Tensor = (own + out) / size + self.bias
        return mixed

    def _products(self, x: Tensor | Batch, first: int, last: int | None) -> Tensor:
        """[n, ·] products with the matrices ``first`` … ``last`` − 1 of Θ_0, V_0, V_1 …"""
        columns = slice(first * self.out_channels, None if last is None else last * self.out_channels)
        if isinstance(x, Batch):
            return node_product(x, self.linear.weight[:, columns])
        return x @ self.linear.weight[columns].T


def edge_mix(Y: Tensor, values: Tensor, A: CSR) -> Tensor:
    """[n, c] Σ_h A_h Y_h for Y [n, H, c] and the values [e, H] of the sparse A_h: ones, or outputs of a ReLU."""
    if not is_supported(Y):
        return torch.zeros_like(Y[:, 0]).index_add(0, A.rows(), torch.einsum("eh,ehc->ec", values, Y[A.col]))
    out: Tensor = _Mix.apply(Y, values, A)  # type: ignore[no-untyped-call]
    return out


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, Y: Tensor, values: Tensor, A: CSR) -> Tensor:
        Y, values = Y.contiguous(), values.contiguous()
        ctx.save_for_backward(Y, values)
        ctx.rowptr, ctx.col = A.rowptr.numpy(), A.col.numpy()
        out = torch.zeros(len(Y), Y.size(2), dtype=Y.dtype)
        _mix(ctx.rowptr, ctx.col, values.detach().numpy(), Y.detach().numpy(), out.numpy())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        Y, values = ctx.saved_tensors
        to_Y, to_values = torch.zeros_like(Y), torch.zeros_like(values)
        given = values.detach().numpy(), Y.detach().numpy(), grad.contiguous().numpy()
        _mix_backward(ctx.rowptr, ctx.col, *given, to_values.numpy(), to_Y.numpy())
        return to_Y, to_values, None


@njit(cache=True, fastmath={"reassoc", "contract"})
def _mix(rowptr: Array, col: Array, values: Array, Y: Array, out: Array) -> None:
    """out_i += Σ_{arcs (i, j)} Σ_h values_h Y_jh, for Y [n, H, c] and values [e, H]."""
    _, H, c = Y.shape
    for i in range(len(rowptr) - 1):
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            for h in range(H):
                value = values[e, h]
                if value != 0:
                    for k in range(c):
                        out[i, k] += value * Y[j, h, k]


@njit(cache=True, fastmath={"reassoc", "contract"})
def _mix_backward(
    rowptr: Array, col: Array, values: Array, Y: Array, grad: Array, to_values: Array, to_Y: Array
) -> None:
    """Gradients of :func:`_mix` with respect to values and Y; the latter is added to to_Y."""
    _, H, c = Y.shape
    zero = grad.dtype.type(0)
    for i in range(len(rowptr) - 1):
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            for h in range(H):
                value = values[e, h]
                # where ReLU is zero its derivative is, so the gradient at the value is not needed
                if value != 0:
                    total = zero
                    for k in range(c):
                        to_Y[j, h, k] += value * grad[i, k]
                        total += grad[i, k] * Y[j, h, k]
                    to_values[e, h] = total
