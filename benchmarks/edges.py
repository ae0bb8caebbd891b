"""Cost of relations and of edge attributes: time of a training epoch against the same network without them.

    python benchmarks/edges.py [--data FILE ...] [--graphs 1000] [--epochs 5] [--relations 4] [--json FILE] [--short]

The default network with node features as by default, one thread. Edges get random labels and attributes, so that every
set has as many relations as ``--relations`` says; ratios are to the network without edge features. Variants take turns,
and medians of processor time count, after one epoch each for warming up. `--short` takes 100 generated graphs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

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

DATA = ("NCI1", "ENZYMES")
VARIANTS: dict[str, tuple[tuple[str, ...], bool]] = {
    "no edge features": ((), True),
    "relations": (("labels",), True),
    "2 attributes": (("attributes",), True),
    "both": (("labels", "attributes"), True),
    "relations, plain layers": (("labels",), False),
}
"""Edge features, and whether layers are compiled."""


def with_edges(graphs: GraphSet, relations: int) -> GraphSet:
    """The graphs with random edge labels and two edge attributes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, relations, (len(graphs.col), 1))
    return replace(graphs, edge_labels=labels, edge_attr=rng.standard_normal((len(graphs.col), 2)))


def training(graphs: GraphSet, edges: tuple[str, ...], compiled: bool) -> Callable[[], float]:
    """A function that trains for one epoch and returns its processor time."""
    config = resolve(Config(ensemble_size=1, with_svm=False, edge_features=edges), graphs)[0]
    y = Classes.of(graphs.y).encode(graphs.y)
    source = BatchSource(graphs, NodeFeatures.fit(config, graphs).encode(graphs), y=y)
    torch.manual_seed(0)
    network = GCAPS(source.num_features, graphs.num_classes, config, **source.shape)
    run = TrainingRun(network, source, np.arange(len(graphs)), config, seed=0)

    def epoch() -> float:
        began = time.process_time()
        if compiled:
            run.epoch()
        else:
            with patch("gcaps.models.gcaps.can_fuse", lambda *given: False):
                run.epoch()
        return time.process_time() - began

    return epoch


def compare(graphs: GraphSet, epochs: int) -> dict[str, Any]:
    """Median seconds of an epoch of each variant, and ratios to the first."""
    runs = {name: training(graphs, *how) for name, how in VARIANTS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(epochs + 1):
        for name, epoch in runs.items():
            took = epoch()
            if number:
                seconds[name].append(took)
    middle = {name: median(times) for name, times in seconds.items()}
    return {name: {"seconds": took, "ratio": took / middle["no edge features"]} for name, took in middle.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--relations", type=int, default=4)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    sources: list[Any] = [gcaps.load(name) for name in given.data]
    if given.short:
        sources = [gcaps.data.make_families(100)]
    found: dict[str, Any] = {}
    table = Table("edge features", *(graphs.name for graphs in sources), title="time of an epoch, ratio to none")
    for graphs in sources:
        some = graphs if len(graphs) <= given.graphs else graphs[np.arange(0, len(graphs), len(graphs) // given.graphs)]
        found[graphs.name] = compare(with_edges(some, given.relations), 1 if given.short else given.epochs)
    for name in VARIANTS:
        table.add_row(name, *(f"{found[graphs.name][name]['ratio']:.2f}" for graphs in sources))
    Console().print(table)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
