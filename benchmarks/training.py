"""An epoch of training: GCAPS-CNN against PyTorch Geometric's GIN (also compiled), GINE, GCN and PNA.

    python benchmarks/training.py [--data NCI1 ...] [--epochs 5] [--threads N] [--peers GIN ...] [--json FILE] [--short]
    python benchmarks/training.py --check FILE

Everybody trains with Adam and cross-entropy on batches of 32 graphs, shuffled anew in each epoch, and pays for making
its batches: gcaps cuts them out of its arrays, PyTorch Geometric collates them with its DataLoader. Nodes that are
alike are merged once before the first epoch, as in every training of gcaps, and that is not counted. Epochs of all
networks take turns, so that a slow minute of the machine hits all; medians count, after one epoch of warming up, in
which "GIN compiled" is compiled by torch.compile with dynamic shapes. With one thread, processor time is measured. The
PyTorch Geometric networks have 5 layers of width 64, batch normalisation and two fully connected layers on a sum.
Figures are ratios of times: below 1, gcaps is faster.

`--check` runs the data sets and peers of a recorded FILE (`--json`) again, and fails if a ratio has grown by a quarter.
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
from peers import PEERS, as_data, outputs_of, peer
from rich.console import Console
from rich.table import Table
from torch import nn

import gcaps
from gcaps.batching import BatchSource
from gcaps.config import Config
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Classes
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.training.loop import TrainingRun

BATCH = 32
TOLERANCE = 1.25
"""Growth of a ratio that `--check` takes for noise."""
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


def peer_epoch(name: str, graphs: GraphSet, features: NodeFeatures) -> Callable[[], None]:
    from torch_geometric.loader import DataLoader

    datas = as_data(graphs, features.transform(graphs), Classes.of(graphs.y).encode(graphs.y))
    network = peer(name, datas, graphs.num_classes)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-4)
    loader = DataLoader(datas, batch_size=BATCH, shuffle=True)
    loss_of = nn.CrossEntropyLoss()

    def epoch() -> None:
        network.train()
        for data in loader:
            loss = loss_of(outputs_of(network, data), data.y)
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
    runs |= {name: peer_epoch(name, graphs, fitted) for name in options.peers}
    seconds_of: dict[str, list[float]] = {key: [] for key in runs}
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    for number in range(options.epochs + 1):
        for key, run in runs.items():
            began = clock()
            run()
            if number:  # the first is for warming up
                seconds_of[key].append(clock() - began)
    seconds = {key: median(values) for key, values in seconds_of.items()}
    row: dict[str, Any] = {"data": name, "graphs": len(graphs), "threads": options.threads, "seconds": seconds}
    for other in options.peers:
        row[_ratio(other)] = seconds["gcaps"] / seconds[other]
    row["full_covariance_ratio_vs_pyg_gin"] = seconds["gcaps_full"] / seconds["GIN"]
    return row


def _ratio(name: str) -> str:
    return f"ratio_vs_pyg_{name.lower().replace(' ', '_')}"


def check(recorded: list[dict[str, Any]], rows: list[dict[str, Any]]) -> int:
    """Print each ratio beside the recorded one; return how many have grown by more than :data:`TOLERANCE`."""
    table, slower = Table("data set", "ratio", "recorded", "now", "now / recorded"), 0
    for before, after in zip(recorded, rows, strict=True):
        for key in before:
            if "ratio" in key and key in after:
                change = after[key] / before[key]
                slower += change > TOLERANCE
                mark = " slower" if change > TOLERANCE else ""
                table.add_row(before["data"], key, f"{before[key]:.2f}", f"{after[key]:.2f}", f"{change:.2f}{mark}")
    Console(width=120).print(table)
    return slower


def show(rows: list[dict[str, Any]], peers: list[str]) -> None:
    columns = ["gcaps", "gcaps_full", *peers]
    table = Table("data set", "graphs", *(f"{c}, s" for c in columns), *(f"/ {p}" for p in peers), "full / GIN")
    for row in rows:
        table.add_row(
            row["data"],
            f"{row['graphs']:,}",
            *(f"{row['seconds'][c]:.2f}" for c in columns),
            *(f"{row[_ratio(p)]:.2f}" for p in peers),
            f"{row['full_covariance_ratio_vs_pyg_gin']:.2f}",
        )
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", help="catalog names; by default NCI1, or MUTAG where it is not at hand")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of all networks; by default all cores")
    parser.add_argument("--graphs", type=int, help="at most so many graphs of each set, drawn at random")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument(
        "--check", type=Path, metavar="FILE", help="measure again what FILE records, and compare ratios"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--short", action="store_true", help="two epochs against GIN only")
    options = parser.parse_args()
    if options.short:
        options.epochs, options.peers = 2, ["GIN"]
    from gcaps.data.catalog import find

    recorded: list[dict[str, Any]] = []
    if options.check:
        recorded = json.loads(options.check.read_text())["rows"]
        options.data = [row["data"] for row in recorded]
        options.peers = [name for name in PEERS if _ratio(name) in recorded[0]]
        options.threads, options.graphs = recorded[0]["threads"], max(row["graphs"] for row in recorded)
    names = options.data or ["NCI1" if find("NCI1") else "MUTAG"]
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    rows = [compare(name, options) for name in names]
    show(rows, options.peers)
    if recorded and check(recorded, rows):
        raise SystemExit("some ratios have grown")
    if options.json:
        options.json.write_text(json.dumps({**rows[0], "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
