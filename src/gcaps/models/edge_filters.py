"""Filters that depend on the edge: how edges are described, and the convolution with a matrix for each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.batching.batch import Batch
from gcaps.data.graphset import GraphSet
from gcaps.errors import DataError
from gcaps.models import edge_kernels
from gcaps.models.network import InputLinear
from gcaps.nn.filters import Filter
from gcaps.nn.neighborhood import neighbor_sum
from gcaps.nn.sparse import CSR


class EdgeFeatures(nn.Module):
    """From labels, attributes and weights of edges to numbers: one-hot, standardised, logarithm.

    Args:
        values: the labels of the training graphs, column by column; a label never seen there gives zeros.
        mean, deviation: of their attributes.
        weighted: whether they have weights.
    """

    def __init__(self, values: list[list[int]], mean: list[float], deviation: list[float], weighted: bool) -> None:
        super().__init__()
        self.values, self.mean, self.deviation, self.weighted = values, mean, deviation, weighted

    @staticmethod
    def shape_from(graphs: GraphSet) -> dict[str, Any]:
        """The arguments, from training graphs."""
        labels, attributes = graphs.edge_labels, graphs.edge_attr
        deviation = np.zeros(0) if attributes is None else attributes.std(axis=0, dtype=np.float64)
        return {
            "values": [] if labels is None else [np.unique(column).tolist() for column in labels.T],
            "mean": [] if attributes is None else attributes.mean(axis=0, dtype=np.float64).tolist(),
            "deviation": np.where(deviation > 0, deviation, 1.0).tolist(),
            "weighted": graphs.edge_weight is not None,
        }

    @property
    def num_features(self) -> int:
        """Numbers of an edge."""
        return sum(map(len, self.values)) + len(self.mean) + self.weighted

    def forward(self, batch: Batch) -> Tensor | None:
        """[e, ·], or None where edges are all alike."""
        parts = []
        if self.values:
            labels = self._given(batch, "edge_labels", len(self.values))
            for column, values in zip(labels.T, self.values, strict=True):
                parts.append((column[:, None] == torch.tensor(values)).to(batch.dense.dtype))
        if self.mean:
            attributes = self._given(batch, "edge_attr", len(self.mean)).to(batch.dense.dtype)
            parts.append((attributes - attributes.new_tensor(self.mean)) / attributes.new_tensor(self.deviation))
        if self.weighted:
            if batch.weight is None:
                raise DataError("the network was trained on graphs with edge weights; these have none")
            parts.append(torch.log(batch.weight).unsqueeze(1))
        return torch.cat(parts, dim=1) if parts else None

    @staticmethod
    def _given(batch: Batch, name: str, columns: int) -> Tensor:
        found = None if batch.extras is None else batch.extras.get(name)
        if found is None or found.size(1) != columns:
            raise DataError(f"the network was trained on graphs with {columns} {name.replace('_', ' ')}; these differ")
        return found


class EdgeConditionedConv(nn.Module):
    """y_i = 1/(d_i + 1) (Θ_0 x_i + Σ_{j ∼ i} Θ(e_ji) x_j) + b,   Θ(e) = Σ_h ReLU(U e + u)_h V_h + V_0.

    A matrix for each edge would take e · c · c' numbers. Θ(e) is a combination of H + 1 matrices, so V_h x_j is
    computed for each node and combined edge by edge, out = Σ_h A_h (X V_h), A_h sparse with the values ReLU(U e + u)_h:
    (H + 2) · c' numbers for a node, none for an edge but its H values. (PyTorch Geometric's NNConv holds the matrices.)

    Args:
        in_channels, out_channels: widths c and c'.
        edge_channels: numbers of an edge; 0: all edges are alike, Θ = V_0.
        hidden: units H of the network that makes filters.
        first: whether the nodes' values are the features of a batch.
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

    def forward(self, x: Tensor | Batch, A: CSR, edges: Tensor | None) -> Tensor:
        """[n, c'].

        Args:
            x: [n, c], in the first layer the batch.
            A: pattern of the edges, symmetric.
            edges: [e, ·] what is known of them.
        """
        products = self.linear(x)
        own, rest = products[:, : self.out_channels], products[:, self.out_channels :]
        if self.filters is None:
            out = neighbor_sum(rest, Filter(None, A, A, A, A))
        else:
            assert edges is not None
            values = torch.relu(self.filters(edges))
            values = torch.cat([values.new_ones(len(values), 1), values], dim=1)
            out = edge_mix(rest.unflatten(1, (-1, self.out_channels)), values, A)
        size = (A.rowptr.diff() + 1).to(products.dtype).unsqueeze(1)
        mixed: Tensor = (own + out) / size + self.bias
        return mixed


def edge_mix(Y: Tensor, values: Tensor, A: CSR) -> Tensor:
    """[n, c] Σ_h A_h Y_h for Y [n, H, c] and the values [e, H] of the sparse A_h: ones, or what a ReLU gives."""
    if Y.device.type != "cpu":
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
        edge_kernels.mix(ctx.rowptr, ctx.col, values.detach().numpy(), Y.detach().numpy(), out.numpy())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        Y, values = ctx.saved_tensors
        to_Y, to_values = torch.zeros_like(Y), torch.zeros_like(values)
        given = values.detach().numpy(), Y.detach().numpy(), grad.contiguous().numpy()
        edge_kernels.mix_backward(ctx.rowptr, ctx.col, *given, to_values.numpy(), to_Y.numpy())
        return to_Y, to_values, None
