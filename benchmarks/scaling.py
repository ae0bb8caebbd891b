"""How the cost of a training step grows: with edges, nodes, capsule size, width and graphs; and shrinks with processes.

    python benchmarks/scaling.py [SECTION ...] [--largest 7] [--short] [--json FILE] [--picture FILE.svg]

Sections, all by default:

    edges      random graphs of 1,000 nodes and average degree 10, so many that they have 10^4 … 10^LARGEST edges
    one        the same number of edges in two random graphs: neighbors lie anywhere in memory, the worst there is
    nodes      two graphs without edges of growing size
    graphs     a batch of molecules of growing number
    capsules   capsule size 1 … 8 on a batch of molecules
    width      hidden width 16 … 256 on a batch of molecules
    processes  graphs per second of one and of two processes that share every batch, and how far their losses differ
               in float64 (training makes any difference in rounding about ten times larger with each step)

A step is forward, backward and optimiser, default configuration, one thread; the best of several counts. A slope of 1
is linear growth.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from gcaps.batching import Batch, BatchSource
from gcaps.config import Config
from gcaps.data import random_molecules
from gcaps.data.graphset import GraphSet
from gcaps.models import GCAPS
from gcaps.training.optimizer import FlatAdam

ONE_NETWORK = {"layers": 4, "reduce": "mean", "dropout": 0.5, "ensemble_size": 1, "with_svm": False}
SECTIONS = ("edges", "one", "nodes", "graphs", "capsules", "width", "processes")


def step_seconds(batch: Batch, config: Config, repeats: int) -> float:
    """The best of several training steps on one batch."""
    torch.manual_seed(0)
    network = GCAPS(batch.dense.size(1), 2, config)
    optimizer, set_gradients = FlatAdam(network, 1e-3, 0.0), network.train().training_step()
    best = float("inf")
    for number in range(repeats + 1):
        began = time.thread_time()
        set_gradients(batch, batch.num_graphs)
        optimizer.step()
        if number:
            best = min(best, time.thread_time() - began)
    return best


def random_graphs(count: int, nodes: int, edges: int) -> Batch:
    """``count`` random graphs of so many nodes and edges each, but for loops, which are left out."""
    rng = np.random.default_rng(0)
    graph = np.repeat(np.arange(count), edges)
    ends = rng.integers(0, nodes, (count * edges, 2)) + nodes * graph[:, None]
    ends = ends[ends[:, 0] != ends[:, 1]]
    both = np.concatenate([ends, ends[:, ::-1]])
    order = np.lexsort((both[:, 1], both[:, 0]))
    rowptr = np.concatenate([[0], np.cumsum(np.bincount(both[:, 0], minlength=count * nodes))])
    return Batch(
        torch.from_numpy(rng.standard_normal((count * nodes, 8)).astype(np.float32)),
        torch.from_numpy(rowptr),
        torch.from_numpy(both[order, 1].copy()),
        None,
        nodes * torch.arange(count + 1),
        torch.arange(count).repeat_interleave(nodes),
        torch.arange(count) % 2,
    )


def molecules(count: int) -> Batch:
    graphs: GraphSet = next(iter(random_molecules(count)))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((graphs.num_nodes, 8)).astype(np.float32)
    return BatchSource(graphs, x, y=graphs.y).take(np.arange(count))


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth(section: str, largest: int, repeats: int) -> list[dict[str, Any]]:
    """Rows (size, seconds) of one section."""
    plain = Config(**ONE_NETWORK)
    rows = []
    if section in ("edges", "one", "nodes"):
        for exponent in np.arange(4, largest + 0.01, 0.5):
            edges = round(10**exponent)
            if section == "edges":
                batch = random_graphs(edges // 5_000, 1_000, 5_000)
            else:
                batch = random_graphs(2, edges // 10, edges // 2 if section == "one" else 0)
            size = len(batch.batch) if section == "nodes" else batch.col.numel() // 2
            rows.append((size, step_seconds(batch, plain, repeats)))
            del batch
    elif section == "graphs":
        rows = [(n, step_seconds(molecules(n), plain, repeats)) for n in (32, 64, 128, 256, 512, 1024)]
    else:
        batch = molecules(128)
        if section == "capsules":
            rows = [(p, step_seconds(batch, Config(capsule_size=p, **ONE_NETWORK), repeats)) for p in range(1, 9)]
        else:
            rows = [(h, step_seconds(batch, Config(hidden=h, **ONE_NETWORK), repeats)) for h in (16, 32, 64, 128, 256)]
    return [{"section": section, "size": size, "seconds": seconds} for size, seconds in rows]


SHARED = """
import json, sys, time
import numpy as np, torch
from gcaps.batching import BatchSource
from gcaps.config import Config
from gcaps.data import random_molecules
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.nn.distributed import is_first_process
from gcaps.training.loop import TrainingRun, reproducible
from gcaps.training.distributed import joined
with joined("start again"):
    graphs = next(iter(random_molecules(int(sys.argv[1]))))
    concrete = dict(layers=4, reduce="mean", dropout=0.5, epochs=30, ensemble_size=1, with_svm=False)
    config = Config(batch_size=int(sys.argv[2]), features=("labels",), **concrete)
    features, dtype = NodeFeatures.fit(config, graphs), getattr(torch, sys.argv[3])
    with reproducible(0, 1):
        source = BatchSource(graphs, features.encode(graphs), dtype, y=graphs.y)
        network = GCAPS(source.num_features, 2, config).to(dtype)
        run = TrainingRun(network, source, np.arange(len(graphs)), config, seed=0)
        epochs = [run.epoch() for _ in range(5)]
    if is_first_process():
        speed = max(e.graphs_per_second for e in epochs)
        print(json.dumps({"graphs_per_second": speed, "losses": [e.loss for e in epochs]}))
"""


def processes(graphs: int, batch: int) -> dict[str, Any]:
    """One process against two that share every batch: speed in float32; losses of epochs of one step in float64."""
    one, two = (_trained(count, graphs, batch, "float32")["graphs_per_second"] for count in (1, 2))
    losses = [np.array(_trained(count, batch, batch, "float64")["losses"]) for count in (1, 2)]
    return {
        "batch": batch,
        "one_graphs_per_second": one,
        "two_graphs_per_second": two,
        "speed_up": two / one,
        "relative_loss_differences": np.abs(losses[1] / losses[0] - 1).tolist(),
    }


def _trained(count: int, graphs: int, batch: int, dtype: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    command += ["--no-python", sys.executable, "-c", SHARED, str(graphs), str(batch), dtype]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


LABELS = {
    "edges": "edges, in graphs of 1,000 nodes",
    "one": "edges, in two graphs",
    "nodes": "nodes, no edges",
    "graphs": "molecules in a batch",
    "capsules": "capsule size",
    "width": "hidden width",
}


def picture(rows: list[dict[str, Any]], file: Path) -> None:
    """Seconds of a step against size, a panel for each section; the dashed line is linear growth."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter, NullLocator

    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gcaps", "font.size": 9})
    sections = [s for s in SECTIONS if any(r["section"] == s for r in rows)]
    figure, axes = plt.subplots(-(-len(sections) // 3), 3, figsize=(8.5, 5), constrained_layout=True, squeeze=False)
    for axis in axes.ravel()[len(sections) :]:
        axis.remove()
    for axis, section in zip(axes.ravel(), sections, strict=False):
        size, seconds = zip(*((r["size"], r["seconds"]) for r in rows if r["section"] == section), strict=True)
        axis.loglog(size, [seconds[-1] * s / size[-1] for s in size], "--", color="#999999", linewidth=1)
        axis.loglog(size, seconds, "o-", color="#1f5fa8", markersize=3)
        axis.set_xlabel(LABELS[section])
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.xaxis.set_minor_locator(NullLocator())
        if size[-1] < 2_000:
            axis.set_xticks(size, [str(s) for s in size])
        axis.grid(True, alpha=0.25)
    figure.supylabel("seconds of a training step", fontsize=9)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", default=list(SECTIONS), metavar="SECTION")
    parser.add_argument("--largest", type=float, default=7.0, help="exponent of the largest number of edges")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--short", action="store_true", help="up to 10^5 edges, without processes")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    if options.short:
        options.largest, options.sections = 5.0, [s for s in options.sections if s != "processes"]
    torch.set_num_threads(1)
    report: dict[str, Any] = {"rows": [], "slopes": {}}
    table = Table("section", "from", "to", "seconds at both ends", "log-log slope")
    for section in [s for s in SECTIONS if s in options.sections and s != "processes"]:
        rows = growth(section, options.largest, options.repeats)
        sizes, seconds = [r["size"] for r in rows], [r["seconds"] for r in rows]
        report["rows"] += rows
        report["slopes"][section] = slope(sizes, seconds)
        ends = f"{seconds[0]:.4f} … {seconds[-1]:.4f}"
        table.add_row(section, f"{sizes[0]:,}", f"{sizes[-1]:,}", ends, f"{report['slopes'][section]:.2f}")
    Console(width=120).print(table)
    if "processes" in options.sections:
        report["processes"] = [processes(4096, batch) for batch in (32, 128, 512)]
        both = Table(
            "batch", "one process, graphs/s", "two", "speed-up", "relative difference of the losses of steps 1 … 5"
        )
        for row in report["processes"]:
            speeds = f"{row['one_graphs_per_second']:,.0f}", f"{row['two_graphs_per_second']:,.0f}"
            difference = ", ".join(f"{value:.0e}" for value in row["relative_loss_differences"])
            both.add_row(str(row["batch"]), *speeds, f"{row['speed_up']:.2f}", difference)
        Console(width=120).print(both)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.picture:
        picture(report["rows"], options.picture)


if __name__ == "__main__":
    main()
