"""Networks of PyTorch Geometric that others are measured against, and gcaps' graphs as its data."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gcaps.data.graphset import GraphSet

WIDTH, LAYERS = 64, 5
PEERS = ("GIN", "GIN compiled", "GINE", "GCN", "PNA")
"""Names of :func:`peer`."""


class Peer(nn.Module):
    """Layers of PyTorch Geometric, sum pooling and two fully connected layers."""

    def __init__(self, body: nn.Module, num_classes: int, edges: bool) -> None:
        super().__init__()
        self.body, self.edges = body, edges
        self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Dropout(0.5), nn.Linear(WIDTH, num_classes))

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        from torch_geometric.nn import global_add_pool

        x = self.body(x, edge_index, edge_attr) if self.edges else self.body(x, edge_index)
        logits: Tensor = self.head(global_add_pool(x, batch, num_graphs))
        return logits


class GINE(nn.Module):
    """GIN with edge attributes (Hu et al., 2020): layers ``GINEConv`` with batch normalisation."""

    def __init__(self, in_channels: int, edge_dim: int) -> None:
        super().__init__()
        from torch_geometric.nn import GINEConv

        widths = [in_channels] + [WIDTH] * LAYERS
        self.convs = nn.ModuleList(
            GINEConv(nn.Sequential(nn.Linear(w, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)), edge_dim=edge_dim)
            for w in widths[:-1]
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in widths[1:])

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = torch.relu(norm(conv(x, edge_index, edge_attr)))
        return x


def as_data(graphs: GraphSet, x: np.ndarray[Any, Any], classes: np.ndarray[Any, Any]) -> list[Any]:
    """PyTorch Geometric's data of each graph, with node features x [N, d]; edge attributes are labels, or ones."""
    from torch_geometric.data import Data

    kinds = 1 if graphs.edge_labels is None else int(graphs.edge_labels.max()) + 1
    datas = []
    for number, data in enumerate(graphs.to_pyg()):
        rows = slice(graphs.ptr[number], graphs.ptr[number + 1])
        edge_attr = torch.ones(data.edge_index.size(1), 1)
        if graphs.edge_labels is not None:
            arcs = slice(graphs.rowptr[rows.start], graphs.rowptr[rows.stop])
            labels = torch.from_numpy(graphs.edge_labels[arcs, 0].astype(np.int64))
            edge_attr = nn.functional.one_hot(labels, kinds).float()
        y = torch.tensor([int(classes[number])])
        nodes = torch.from_numpy(np.ascontiguousarray(x[rows]))
        datas.append(Data(x=nodes, edge_index=data.edge_index, edge_attr=edge_attr, y=y, num_nodes=len(nodes)))
    return datas


def peer(name: str, datas: list[Any], num_classes: int) -> nn.Module:
    """An untrained network. "GIN compiled" is GIN under ``torch.compile`` with dynamic shapes."""
    from torch_geometric.nn.models import GCN, GIN, PNA
    from torch_geometric.utils import degree

    columns = datas[0].x.size(1)
    extra: dict[str, Any] = {"norm": "batch_norm"}
    if name == "GINE":
        return Peer(GINE(columns, datas[0].edge_attr.size(1)), num_classes, edges=True)
    if name == "PNA":
        histogram = torch.bincount(torch.cat([degree(d.edge_index[1], d.num_nodes, torch.long) for d in datas]))
        extra |= {"aggregators": ["mean", "min", "max", "std"], "deg": histogram}
        extra["scalers"] = ["identity", "amplification", "attenuation"]
    kind, *how = name.split()
    network = Peer(
        {"GIN": GIN, "GCN": GCN, "PNA": PNA}[kind](columns, WIDTH, LAYERS, **extra), num_classes, edges=False
    )
    return torch.compile(network, dynamic=True) if how else network  # type: ignore[return-value]


def outputs_of(network: nn.Module, data: Any) -> Tensor:
    """Outputs for one batch of PyTorch Geometric's."""
    outputs: Tensor = network(data.x, data.edge_index, data.edge_attr, data.batch, data.num_graphs)
    return outputs
