"""What the other networks cost on the largest sets: time of an epoch and peak memory, on one fold.

    python benchmarks/networks.py [--data DD COLLAB REDDIT-MULTI-5K] [--methods gin ...] [--epochs 1 | --complete]
                                  [--threads 1] [--json FILE] [--short]

With --json every cell is written as soon as it is measured, and cells that FILE has already are not measured again.

Each network trains on the training graphs of the first of ten folds with its default configuration for --epochs epochs
(with --complete for as many as it says), then classifies the test graphs; labels are its features where the set has
them, degrees elsewhere, for gcaps too. Each cell runs in a process of its own, so that its peak is its own: the most
memory that was resident, the data set and all imports counted. "prepare" is what is computed once for a set before
training (receptive fields, coarser graphs). "epoch" is the median. `--short` is one epoch on MUTAG.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from gcaps.files import write_json

DATA = ("DD", "COLLAB", "REDDIT-MULTI-5K")
METHODS = ("deepsets", "dcnn", "gin", "dgcnn", "pscn", "ecc", "gcaps")


def measure(data: str, method: str, epochs: int | None, threads: int) -> dict[str, Any]:
    """One cell, in this process."""
    import gcaps
    from gcaps.data.prepared import PreparedSet
    from gcaps.estimators import make_estimator
    from gcaps.evaluation import stratified_folds
    from gcaps.models.registry import extras_of

    began = time.perf_counter()
    graphs = gcaps.load(data)
    read = time.perf_counter() - began
    settings = {"threads": threads} | ({} if epochs is None else {"epochs": epochs})
    model = make_estimator(method, settings)
    fold = stratified_folds(graphs.y, 10, seed=0)[0]
    prepared = PreparedSet(graphs)
    began = time.perf_counter()
    extras_of(model.config, prepared)
    prepare = time.perf_counter() - began
    speeds: list[float] = []
    began = time.perf_counter()
    model.fit_prepared(prepared, fold.train, on_epoch=lambda epoch: speeds.append(epoch.graphs_per_second))
    curves = model.curves_
    training = time.perf_counter() - began
    began = time.perf_counter()
    right = model.predict(graphs.subset(fold.test)) == graphs.y[fold.test]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if platform.system() == "Darwin" else 1024)
    return {
        "data": data,
        "method": method,
        "graphs": len(fold.train),
        "epochs": len(speeds),
        "read": read,
        "prepare": prepare,
        "epoch": len(fold.train) / median(speeds),
        "training": training,
        "predict": time.perf_counter() - began,
        "loss": curves.loss[-1],
        "accuracy": float(right.mean()),
        "peak_gib": peak / 2**30,
    }


def in_child(data: str, method: str, epochs: int | None, threads: int) -> dict[str, Any]:
    """The same, in a process of its own."""
    arguments = [data, method, "none" if epochs is None else str(epochs), str(threads)]
    found = subprocess.run([sys.executable, __file__, "--cell", *arguments], capture_output=True, text=True)
    if found.returncode:
        raise SystemExit(f"{data}, {method}: {found.stderr.strip().splitlines()[-1]}")
    row: dict[str, Any] = json.loads(found.stdout)
    return row


def show(rows: list[dict[str, Any]]) -> None:
    table = Table("data set", "method", "epochs", "prepare, s", "epoch, s", "predict, s", "peak, GiB")
    for row in rows:
        numbers = [f"{row[key]:.1f}" for key in ("prepare", "epoch", "predict")]
        table.add_row(row["data"], row["method"], str(row["epochs"]), *numbers, f"{row['peak_gib']:.2f}")
    Console(width=100).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--complete", action="store_true", help="the whole schedule of each network")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--short", action="store_true", help="one epoch on MUTAG")
    parser.add_argument("--cell", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        data, method, epochs, threads = options.cell
        print(json.dumps(measure(data, method, None if epochs == "none" else int(epochs), int(threads))))
        return
    epochs = None if options.complete else options.epochs
    rows = json.loads(options.json.read_text())["rows"] if options.json and options.json.exists() else []
    for data in ["MUTAG"] if options.short else options.data:
        for method in options.methods:
            if any((row["data"], row["method"]) == (data, method) for row in rows):
                continue
            rows.append(in_child(data, method, epochs, options.threads))
            if options.json:
                largest = max(row["peak_gib"] for row in rows)
                write_json(options.json, {"largest_peak_gib": largest, "rows": rows})
    show(rows)


if __name__ == "__main__":
    main()
