"""An epoch of training: GCAPS-CNN against PyTorch Geometric's GIN, GCN and PNA, on the same graphs and features.

    python benchmarks/training.py [--data NCI1 ...] [--epochs 5] [--threads N] [--json FILE] [--short]

Everybody trains with Adam and cross-entropy on batches of 32 graphs, shuffled anew in each epoch, and pays for making
its batches: gcaps cuts them out of its arrays, PyTorch Geometric collates them with its DataLoader. Nodes that are
alike are merged once before the first epoch, as in every training of gcaps, and that is not counted. Epochs of all
networks take turns, so that a slow minute of the machine hits all; medians count, after one epoch of warming up. The
PyTorch Geometric networks have 5 layers of width 64, batch normalisation and two fully connected layers on a sum.
Figures are ratios of times: below 1, gcaps is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import gcaps
from gcaps.batching import BatchSource
from gcaps.config import Config
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Classes
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.training.loop import TrainingRun

WIDTH, LAYERS, BATCH = 64, 5, 32
ONE_NETWORK = {
    "layers": 4,
    "reduce": "mean",
    "dropout": 0.5,
    "weight_decay": 1e-4,
    "epochs": 30,
    "ensemble_size": 1,
    "with_svm": False,
    "device": "cpu",
}
"""One network, with nothing left to resolve."""
FULL = {"layers": 3, "rank": None}
"""The network with the full covariance."""


def gcaps_epoch(graphs: GraphSet, features: NodeFeatures, config: Config) -> Callable[[], None]:
    y = Classes.of(graphs.y).encode(graphs.y)
    source = BatchSource(graphs, features.encode(graphs), merge=GCAPS.merges(config), y=y)
    network = GCAPS(source.num_features, graphs.num_classes, config)
    run = TrainingRun(network, source, np.arange(len(graphs)), config, seed=0)
    return lambda: run.epoch() and None


class Peer(nn.Module):
    """One of PyTorch Geometric's networks, sum pooling and two fully connected layers."""

    def __init__(self, body: nn.Module, num_classes: int) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Dropout(0.5), nn.Linear(WIDTH, num_classes))

    def forward(self, data: Any) -> Tensor:
        from torch_geometric.nn import global_add_pool

        x = self.body(data.x, data.edge_index)
        logits: Tensor = self.head(global_add_pool(x, data.batch, data.num_graphs))
        return logits


def peer_epoch(name: str, graphs: GraphSet, features: NodeFeatures) -> Callable[[], None]:
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn.models import GCN, GIN, PNA
    from torch_geometric.utils import degree

    x, classes = features.transform(graphs), Classes.of(graphs.y).encode(graphs.y)
    datas = []
    for number, data in enumerate(graphs.to_pyg()):
        rows = slice(graphs.ptr[number], graphs.ptr[number + 1])
        y = torch.tensor([int(classes[number])])
        datas.append(Data(x=torch.from_numpy(x[rows]), edge_index=data.edge_index, y=y, num_nodes=len(x[rows])))
    extra: dict[str, Any] = {"norm": "batch_norm"}
    if name == "PNA":
        histogram = torch.bincount(torch.cat([degree(d.edge_index[1], d.num_nodes, torch.long) for d in datas]))
        extra |= {"aggregators": ["mean", "min", "max", "std"], "deg": histogram}
        extra["scalers"] = ["identity", "amplification", "attenuation"]
    body = {"GIN": GIN, "GCN": GCN, "PNA": PNA}[name](x.shape[1], WIDTH, LAYERS, **extra)
    network = Peer(body, graphs.num_classes)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-4)
    loader = DataLoader(datas, batch_size=BATCH, shuffle=True)
    loss_of = nn.CrossEntropyLoss()

    def epoch() -> None:
        network.train()
        for data in loader:
            loss = loss_of(network(data), data.y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            loss.item()

    return epoch


def compare(name: str, options: argparse.Namespace) -> dict[str, Any]:
    graphs = gcaps.load(name)
    if options.graphs and len(graphs) > options.graphs:
        graphs = graphs.subset(np.random.default_rng(0).choice(len(graphs), options.graphs, replace=False))
    features = ("labels",) if graphs.node_labels is not None else ("degree",)
    config = Config(batch_size=BATCH, features=features, **ONE_NETWORK)
    fitted = NodeFeatures.fit(config, graphs)
    runs = {
        "gcaps": gcaps_epoch(graphs, fitted, config),
        "gcaps_full": gcaps_epoch(graphs, fitted, config.model_copy(update=FULL)),
    }
    runs |= {peer: peer_epoch(peer, graphs, fitted) for peer in options.peers}
    seconds_of: dict[str, list[float]] = {key: [] for key in runs}
    for number in range(options.epochs + 1):
        for key, run in runs.items():
            began = time.perf_counter()
            run()
            if number:  # the first is for warming up
                seconds_of[key].append(time.perf_counter() - began)
    seconds = {key: median(values) for key, values in seconds_of.items()}
    row: dict[str, Any] = {"data": name, "graphs": len(graphs), "threads": options.threads, "seconds": seconds}
    for peer in options.peers:
        row[f"ratio_vs_pyg_{peer.lower()}"] = seconds["gcaps"] / seconds[peer]
    row["full_covariance_ratio_vs_pyg_gin"] = seconds["gcaps_full"] / seconds["GIN"]
    return row


def show(rows: list[dict[str, Any]], peers: list[str]) -> None:
    columns = ["gcaps", "gcaps_full", *peers]
    table = Table("data set", "graphs", *(f"{c}, s" for c in columns), *(f"/ {p}" for p in peers), "full / GIN")
    for row in rows:
        table.add_row(
            row["data"],
            f"{row['graphs']:,}",
            *(f"{row['seconds'][c]:.2f}" for c in columns),
            *(f"{row[f'ratio_vs_pyg_{p.lower()}']:.2f}" for p in peers),
            f"{row['full_covariance_ratio_vs_pyg_gin']:.2f}",
        )
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", help="catalog names; by default NCI1, or MUTAG where it is not at hand")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of all networks; by default all cores")
    parser.add_argument("--graphs", type=int, help="at most so many graphs of each set, drawn at random")
    parser.add_argument("--peers", nargs="+", default=["GIN", "GCN", "PNA"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--short", action="store_true", help="two epochs against GIN only")
    options = parser.parse_args()
    if options.short:
        options.epochs, options.peers = 2, ["GIN"]
    from gcaps.data.catalog import find

    names = options.data or ["NCI1" if find("NCI1") else "MUTAG"]
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    rows = [compare(name, options) for name in names]
    show(rows, options.peers)
    if options.json:
        options.json.write_text(json.dumps({**rows[0], "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
