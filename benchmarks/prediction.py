"""Predicting: many molecules a second, and one molecule in milliseconds, against PyTorch Geometric's GIN.

    python benchmarks/prediction.py [--graphs 100000] [--short] [--json FILE]

gcaps streams a saved (memory-mapped) set of generated molecules through `predict_proba`; PyTorch Geometric's GIN (5
layers of width 64) takes the same graphs from its DataLoader, batches of 256, features made beforehand. Peak resident
memory of the stream is that of a process of its own. Latency is of one molecule at a time, model loaded and warm:
features, batch and network. One thread everywhere.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import gcaps
from gcaps.data import GraphSetWriter, random_molecules


def stream(model: str, data: str) -> None:
    """Predict all graphs of a saved set here, and print seconds and peak memory."""
    torch.set_num_threads(1)
    classifier, graphs = gcaps.load_model(model), gcaps.load(data)
    classifier.predict_proba(graphs.subset(np.arange(64)))
    began = time.perf_counter()
    found = classifier.predict_proba(graphs)
    seconds = time.perf_counter() - began
    assert found.shape == (len(graphs), 2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mib": peak}))


def peer_seconds(graphs: Any, share: int) -> float:
    """GIN's time for ``share`` of the graphs, scaled to all."""
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import global_add_pool
    from torch_geometric.nn.models import GIN

    some = graphs.subset(np.arange(share))
    labels = int(graphs.node_labels.max()) + 1
    datas = []
    for number, data in enumerate(some.to_pyg()):
        rows = slice(some.ptr[number], some.ptr[number + 1])
        x = torch.nn.functional.one_hot(torch.from_numpy(some.node_labels[rows, 0].astype(np.int64)), labels)
        datas.append(Data(x=x.float(), edge_index=data.edge_index, num_nodes=len(x)))
    network, head = GIN(labels, 64, 5, norm="batch_norm").eval(), torch.nn.Linear(64, 2)
    best = float("inf")
    with torch.no_grad():
        for _ in range(3):
            began = time.perf_counter()
            for data in DataLoader(datas, batch_size=256):
                head(global_add_pool(network(data.x, data.edge_index), data.batch, data.num_graphs)).softmax(1)
            best = min(best, time.perf_counter() - began)
    return best * len(graphs) / share


def latency(classifier: Any, graphs: Any, count: int) -> tuple[float, float]:
    """Median and 99th percentile of one molecule's prediction, in milliseconds."""
    torch.set_num_threads(1)
    times = []
    for number in range(count):
        one = graphs.subset(np.array([number % len(graphs)]))
        began = time.perf_counter()
        classifier.predict_proba(one)
        times.append(1e3 * (time.perf_counter() - began))
    return float(np.median(times[10:])), float(np.percentile(times[10:], 99))


def main() -> None:
    if sys.argv[1:2] == ["--stream"]:
        stream(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=100_000)
    parser.add_argument("--short", action="store_true", help="5,000 graphs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    count = 5_000 if options.short else options.graphs
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
        theirs = peer_seconds(graphs, min(count, 10_000))
        median, worst = latency(gcaps.load_model(model), graphs, 210 if options.short else 1010)
    row = {
        "graphs": count,
        "gcaps_graphs_per_second": count / ours["seconds"],
        "pyg_gin_graphs_per_second": count / theirs,
        "times_faster": theirs / ours["seconds"],
        "peak_mib": ours["peak_mib"],
        "latency_median_ms": median,
        "latency_p99_ms": worst,
    }
    table = Table("graphs", "gcaps, graphs/s", "PyG GIN", "times faster", "peak MiB", "one, median ms", "p99 ms")
    speeds = f"{row['gcaps_graphs_per_second']:,.0f}", f"{row['pyg_gin_graphs_per_second']:,.0f}"
    table.add_row(
        f"{count:,}", *speeds, f"{row['times_faster']:.2f}", f"{row['peak_mib']:,.0f}", f"{median:.2f}", f"{worst:.2f}"
    )
    Console(width=120).print(table)
    if options.json:
        options.json.write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
