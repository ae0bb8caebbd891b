"""Where the time of a training step of GCAPS-CNN goes, part by part.

    python benchmarks/parts.py [--data NCI1 DD ...] [--graphs 1000] [--epochs 5] [--json FILE] [--short]

Each part is timed by itself: compiled functions (with the conversion of their arguments), and the Python between them.
Medians of the processor time of whole epochs, in milliseconds a step (32 graphs, one thread), after one epoch for
warming up. The clocks themselves add about 2 %. `--short` takes 100 generated graphs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from training import BATCH, ONE_NETWORK, gcaps_epoch

import gcaps
from gcaps.batching import BatchSource
from gcaps.config import Config
from gcaps.features import NodeFeatures
from gcaps.models import step
from gcaps.nn.cpu import head, readout, stack, stages
from gcaps.training import loop, optimizer

DATA = ("NCI1", "DD", "IMDB-BINARY", "REDDIT-BINARY")
PARTS: dict[str, list[tuple[Any, str]]] = {
    "cutting batches": [(BatchSource, "take")],
    "filter matrix": [(step, "batch_filter")],
    "capsule layers, forward": [(stages.forward, "serial")],
    "readout, forward": [(readout.vectors, "serial")],
    "fully connected, forward": [(head, "run")],
    "loss": [(step, "loss_with_gradient"), (loop, "score_sum")],
    "fully connected, backward": [(head, "run_backward")],
    "readout, backward": [(readout.gradients, "serial")],
    "capsule layers, backward": [(stages.backward, "serial")],
    "optimizer": [(optimizer, "_update")],
    "Python of the layers": [(stack, "Input"), (stack, "forward"), (stack, "backward")],
    "Python of the readout": [(readout, "forward"), (readout, "backward")],
    "Python of the head": [(head, "forward"), (head, "backward")],
    "Python of the optimizer": [(optimizer.FlatAdam, "step")],
    "Python of the step": [(step.FusedStep, "__call__")],
}
"""Functions of each part; what they call of other parts is not counted."""
REST = "the loop"

spent: dict[str, float] = {}
_inner: list[float] = []


def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose time without that of timed functions that it calls is added to ``spent``."""

    def run(*given: Any, **named: Any) -> Any:
        began = time.thread_time()
        _inner.append(0.0)
        try:
            return function(*given, **named)
        finally:
            took = time.thread_time() - began
            spent[part] += took - _inner.pop()
            if _inner:
                _inner[-1] += took

    return run


def watch() -> None:
    """Time all functions of :data:`PARTS` from now on."""
    for part, functions in PARTS.items():
        for owner, name in functions:
            setattr(owner, name, timed(part, getattr(owner, name)))


def profile(name: str, graphs_at_most: int, epochs: int) -> dict[str, Any]:
    graphs = gcaps.load(name)
    chosen = np.random.default_rng(0).permutation(len(graphs))[:graphs_at_most]
    graphs = graphs.subset(chosen)
    features = ("labels",) if graphs.node_labels is not None else ("degree",)
    config = Config(batch_size=BATCH, features=features, **ONE_NETWORK)
    run = gcaps_epoch(graphs, NodeFeatures.fit(config, graphs), config)
    found = []
    for _ in range(epochs + 1):
        spent.clear()
        spent.update(dict.fromkeys([*PARTS, REST], 0.0))
        timed(REST, run)()
        found.append(dict(spent))
    steps = -(-len(graphs) // BATCH)
    parts = {part: 1e3 * median(epoch[part] for epoch in found[1:]) / steps for part in found[0]}
    return {"data": name, "graphs": len(graphs), "milliseconds": parts}


def show(rows: list[dict[str, Any]]) -> None:
    table = Table("part of a step, ms", *(row["data"] for row in rows))
    for part in [*PARTS, REST]:
        table.add_row(part, *(f"{row['milliseconds'][part]:.2f}" for row in rows))
    table.add_row("together", *(f"{sum(row['milliseconds'].values()):.2f}" for row in rows))
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
    watch()
    names, most = (["families"], 100) if options.short else (options.data, options.graphs)
    rows = [profile(name, most, options.epochs) for name in names]
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
