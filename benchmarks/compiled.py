"""Compiled functions for CPU against the plain layers: time of a training epoch, as ratios.

    python benchmarks/compiled.py [--data NCI1 DD ...] [--graphs 1000] [--epochs 5] [--json FILE] [--short]

The default network on the default features, one thread. Each row replaces some compiled functions (gcaps.nn.cpu) by the
plain layers that compute the same; ratios are to the default, above 1 where the compiled functions are faster. Variants
take turns, and medians of processor time count, after one epoch each for warming up. Merged nodes need the compiled
capsule layers, so "capsule layers" also loses them where a set has any. `--short` takes 100 generated graphs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import gcaps
from gcaps.batching import BatchSource
from gcaps.config import Config
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Classes
from gcaps.estimators.auto import resolve
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.training.loop import TrainingRun

DATA = ("ENZYMES", "NCI1", "DD", "IMDB-BINARY")
VARIANTS: dict[str, tuple[str, ...]] = {
    "default": (),
    "with autograd": ("step",),
    "without merged nodes": ("merged nodes",),
    "plain capsule layers": ("merged nodes", "layers"),
    "plain readout": ("readout",),
    "plain fully connected layers": ("head",),
    "all plain": ("merged nodes", "layers", "readout", "head"),
}
"""What each variant does without."""
PATCHES: dict[str, tuple[str, ...]] = {
    "layers": ("gcaps.models.gcaps.can_fuse", "gcaps.nn.cpu.stack.are_default"),
    "readout": ("gcaps.nn.readout.is_supported", "gcaps.models.gcaps.has_fused_step"),
    "step": ("gcaps.models.gcaps.has_fused_step",),
}
"""Functions that say whether to use compiled ones; set to return nothing."""


def training(graphs: GraphSet, without: tuple[str, ...]) -> Callable[[], float]:
    """A function that trains for one epoch and returns its processor time."""
    config = resolve(Config(ensemble_size=1, with_svm=False), graphs)[0]
    x = NodeFeatures.fit(config, graphs).encode(graphs)
    y = Classes.of(graphs.y).encode(graphs.y)
    source = BatchSource(graphs, x, merge="merged nodes" not in without and GCAPS.merges(config), y=y)
    torch.manual_seed(0)
    network = GCAPS(source.num_features, graphs.num_classes, config, **source.shape)
    if "head" in without:
        assert isinstance(network.head, nn.Sequential)
        network.head = nn.Sequential(*network.head)
    with replaced(without):
        run = TrainingRun(network, source, np.arange(len(graphs)), config, seed=0)

    def epoch() -> float:
        with replaced(without):
            began = time.process_time()
            run.epoch()
            return time.process_time() - began

    return epoch


@contextmanager
def replaced(parts: tuple[str, ...]) -> Iterator[None]:
    """Use the plain layers for these parts."""
    with ExitStack() as stack:
        for name in [name for part in parts for name in PATCHES.get(part, ())]:
            stack.enter_context(patch(name, lambda *given: None))
        yield


def compare(graphs: GraphSet, epochs: int) -> dict[str, Any]:
    runs = {name: training(graphs, without) for name, without in VARIANTS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(epochs + 1):
        for name, epoch in runs.items():
            spent = epoch()
            if number:  # the first is for warming up
                seconds[name].append(spent)
    medians = {name: median(some) for name, some in seconds.items()}
    ratios = {name: spent / medians["default"] for name, spent in medians.items()}
    return {"data": graphs.name, "graphs": len(graphs), "seconds": medians, "ratios": ratios}


def show(rows: list[dict[str, Any]]) -> None:
    table = Table("data set", "graphs", "default, s", *list(VARIANTS)[1:], title="processor time of an epoch")
    for row in rows:
        ratios = [f"{row['ratios'][name]:.2f}" for name in list(VARIANTS)[1:]]
        table.add_row(row["data"], f"{row['graphs']:,}", f"{row['seconds']['default']:.2f}", *ratios)
    Console(width=120).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--graphs", type=int, default=1000, help="at most so many of each set, drawn at random")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--short", action="store_true", help="100 generated graphs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in ["families"] if options.short else options.data:
        graphs = gcaps.load(name)
        count = min(len(graphs), 100 if options.short else options.graphs)
        rows.append(compare(graphs.subset(np.random.default_rng(0).permutation(len(graphs))[:count]), options.epochs))
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
