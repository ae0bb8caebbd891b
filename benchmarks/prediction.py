"""Predicting: many molecules a second, and one molecule in milliseconds, against PyTorch Geometric's GIN and GINE.

    python benchmarks/prediction.py [--graphs 100000] [--peers GIN "GIN compiled" GINE] [--short] [--json FILE]

gcaps streams a saved (memory-mapped) set of generated molecules through `predict_proba`, in a process of its own whose
peak resident memory is shown. Against PyTorch Geometric, up to 10,000 of them: its networks (5 layers of width 64; "GIN
compiled" by torch.compile with dynamic shapes) take the same graphs from its DataLoader, batches of 256, features made
beforehand, while gcaps computes its features. They take turns; medians of processor time count. Latency is of one
molecule at a time, model loaded and warm: features, batch and network. One thread everywhere.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peers import PEERS, as_data, outputs_of, peer
from rich.console import Console
from rich.table import Table

import gcaps
from gcaps.data import GraphSetWriter, random_molecules


def stream(model: str, data: str) -> None:
    """Predict all graphs of a saved set here, and print seconds and peak memory."""
    torch.set_num_threads(1)
    classifier, graphs = gcaps.load_model(model), gcaps.load(data)
    classifier.predict_proba(graphs.subset(np.arange(64)))
    began = time.process_time()
    found = classifier.predict_proba(graphs)
    seconds = time.process_time() - began
    assert found.shape == (len(graphs), 2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mib": peak}))


def peers_seconds(graphs: Any, names: list[str], model: str, repeats: int) -> dict[str, float]:
    """Median processor time of gcaps and of each peer for these graphs; they take turns."""
    from torch_geometric.loader import DataLoader

    classifier, labels = gcaps.load_model(model), int(graphs.node_labels.max()) + 1
    x = np.eye(labels, dtype=np.float32)[graphs.node_labels[:, 0]]
    datas = as_data(graphs, x, np.zeros(len(graphs)))
    runs: dict[str, Callable[[], Any]] = {"gcaps": lambda: classifier.predict_proba(graphs)}
    for name in names:
        network = peer(name, datas, 2).eval()
        loader = DataLoader(datas, batch_size=256)
        runs[name] = lambda network=network, loader=loader: [outputs_of(network, data).softmax(1) for data in loader]
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    with torch.no_grad():
        for number in range(repeats + 1):
            for name, run in runs.items():
                began = time.thread_time()
                run()
                if number:  # the first is for warming up, and for compiling
                    seconds[name].append(time.thread_time() - began)
    return {name: float(np.median(values)) for name, values in seconds.items()}


def latency(classifier: Any, graphs: Any, count: int) -> tuple[float, float]:
    """Median and 99th percentile of the processor time of one molecule's prediction, in milliseconds."""
    torch.set_num_threads(1)
    times = []
    for number in range(count):
        one = graphs.subset(np.array([number % len(graphs)]))
        began = time.thread_time()
        classifier.predict_proba(one)
        times.append(1e3 * (time.thread_time() - began))
    return float(np.median(times[10:])), float(np.percentile(times[10:], 99))


def main() -> None:
    if sys.argv[1:2] == ["--stream"]:
        stream(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=100_000)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=["GIN", "GIN compiled", "GINE"])
    parser.add_argument("--short", action="store_true", help="5,000 graphs, GIN only")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    count = 5_000 if options.short else options.graphs
    options.peers = ["GIN"] if options.short else options.peers
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        data, model = Path(scratch) / "molecules.gset", Path(scratch) / "model"
        with GraphSetWriter(data, "molecules") as writer:
            for chunk in random_molecules(count):
                writer.extend(chunk)
        graphs = gcaps.load(data)
        settings = {"epochs": 1, "ensemble_size": 1, "with_svm": False}
        gcaps.GraphCapsuleClassifier(**settings).fit(graphs[:500]).save(model)
        command = [sys.executable, __file__, "--stream", str(model), str(data)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        ours = json.loads(done.stdout.splitlines()[-1])
        share = min(count, 2_000 if options.short else 10_000)
        seconds = peers_seconds(graphs.subset(np.arange(share)), options.peers, str(model), 5)
        median, worst = latency(gcaps.load_model(model), graphs, 210 if options.short else 1010)
    row = {
        "graphs": count,
        "gcaps_graphs_per_second": count / ours["seconds"],
        "seconds": seconds,
        "times_faster": {name: seconds[name] / seconds["gcaps"] for name in options.peers},
        "peak_mib": ours["peak_mib"],
        "latency_median_ms": median,
        "latency_p99_ms": worst,
    }
    table = Table("graphs", "gcaps, graphs/s", *(f"/ {p}" for p in options.peers), "MiB", "one, median ms", "p99 ms")
    faster = [f"{row['times_faster'][name]:.2f}" for name in options.peers]
    speed = f"{row['gcaps_graphs_per_second']:,.0f}"
    table.add_row(f"{count:,}", speed, *faster, f"{row['peak_mib']:,.0f}", f"{median:.2f}", f"{worst:.2f}")
    Console(width=120).print(table)
    if options.json:
        options.json.write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
