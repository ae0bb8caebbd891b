"""Merging of equivalent nodes: rows and arcs that remain, and the time of an epoch with and without.

    python benchmarks/merging.py [--data IMDB-BINARY COLLAB ...] [--graphs 500] [--epochs 3] [--json FILE] [--short]

The default network on the default features, one thread. Epochs with and without merging take turns and medians count,
after one of each for warming up. "find" is the time to find the rows, once for a training. `--short` takes 100
generated graphs.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import gcaps
from gcaps.batching import BatchSource
from gcaps.config import Config
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Classes
from gcaps.estimators.auto import resolve
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.training.loop import TrainingRun

DATA = ("IMDB-BINARY", "IMDB-MULTI", "COLLAB", "REDDIT-BINARY", "REDDIT-MULTI-5K")


def compare(graphs: GraphSet, epochs: int) -> dict[str, Any]:
    config = resolve(Config(ensemble_size=1, with_svm=False), graphs)[0]
    x = NodeFeatures.fit(config, graphs).encode(graphs)
    y = Classes.of(graphs.y).encode(graphs.y)
    apart = BatchSource(graphs, x, y=y)
    began = time.perf_counter()
    together = BatchSource(graphs, x, merge=True, y=y)
    found = time.perf_counter() - began
    runs, seconds_of = [], ([], [])  # type: ignore[var-annotated]
    for source in (apart, together):
        torch.manual_seed(0)
        network = GCAPS(source.num_features, graphs.num_classes, config)
        runs.append(TrainingRun(network, source, np.arange(len(graphs)), config, seed=0))
    for number in range(epochs + 1):
        for run, seconds in zip(runs, seconds_of, strict=True):
            began = time.perf_counter()
            run.epoch()
            if number:  # the first is for warming up
                seconds.append(time.perf_counter() - began)
    rows = together.merged
    return {
        "data": graphs.name,
        "graphs": len(graphs),
        "nodes": graphs.num_nodes,
        "rows": graphs.num_nodes if rows is None else len(rows.head),
        "arcs": len(graphs.col),
        "merged_arcs": len(graphs.col) if rows is None else len(rows.col),
        "find": found,
        "apart": median(seconds_of[0]),
        "together": median(seconds_of[1]),
    }


def show(rows: list[dict[str, Any]]) -> None:
    table = Table("data set", "graphs", "rows / nodes", "arcs left", "find, s", "epoch apart, s", "merged, s", "ratio")
    for row in rows:
        left = [f"{row['rows'] / row['nodes']:.2f}", f"{row['merged_arcs'] / max(row['arcs'], 1):.2f}"]
        seconds = [f"{row[key]:.2f}" for key in ("find", "apart", "together")]
        table.add_row(row["data"], f"{row['graphs']:,}", *left, *seconds, f"{row['together'] / row['apart']:.2f}")
    Console(width=120).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--graphs", type=int, default=500, help="at most so many of each set, drawn at random")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--short", action="store_true", help="100 generated graphs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in ["families"] if options.short else options.data:
        graphs = gcaps.load(name)
        count = min(len(graphs), 100 if options.short else options.graphs)
        chosen = np.random.default_rng(0).choice(len(graphs), count, replace=False)
        rows.append(compare(graphs.subset(chosen), options.epochs))
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
