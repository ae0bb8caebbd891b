"""Memory that data sets of any size need: peak resident memory of building, opening, batching and training.

    python benchmarks/memory.py [SECTION ...] [--graphs 1000000] [--train-graphs 1000000] [--short] [--json FILE]

Sections, all by default:

    build     write a generated set of molecule-sized graphs (about 25 nodes, 27 edges) chunk by chunk
    open      open it and look at one graph
    batches   one pass of batches over it in random order, as a training epoch takes them
    train     one training epoch over its first --train-graphs graphs, opened from disk, in batches of 128
    convert   REDDIT-MULTI-5K and COLLAB from their zips to GraphSet folders as a stream, and beside it read at once
    epoch     one training epoch of REDDIT-MULTI-5K and of COLLAB, degree features

Each runs in a separate process. "Peak" is the most memory that was resident, counting
pages of mapped files, which the system may drop at any time. "Private" is the most that was resident without them,
sampled every 10 ms (Linux). The first row is the cost of imports alone. The two real sets are searched for in the
folders of GCAPS_DATA and skipped if missing. The generated set takes about 0.6 GB for a million graphs; it
is written to a temporary folder and removed.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

BATCH = 32
REAL = ("REDDIT-MULTI-5K", "COLLAB")


def imports() -> int:
    """What the other figures begin with."""
    import gcaps.batching
    import gcaps.data
    import gcaps.training  # noqa: F401

    return 0


def build(path: str, graphs: str) -> int:
    from gcaps.data import GraphSetWriter, random_molecules

    with GraphSetWriter(path, "molecules") as writer:
        for chunk in random_molecules(int(graphs)):
            writer.extend(chunk)
    return writer.num_graphs


def open_(path: str) -> int:
    import gcaps

    graphs = gcaps.load(path)
    assert graphs[len(graphs) // 2].num_nodes > 0
    return len(graphs)


def batches(path: str) -> int:
    """Node features are the labels themselves: a matrix of one-hot columns would be as large as the set."""
    import gcaps
    from gcaps.batching import BatchSource, shuffled

    graphs = gcaps.load(path)
    assert graphs.node_labels is not None
    source = BatchSource(graphs, graphs.node_labels)
    nodes = 0
    for chosen in shuffled(np.arange(len(graphs)), BATCH, np.random.default_rng(0)):
        nodes += len(source.take(chosen).batch)
    assert nodes == graphs.num_nodes
    return len(graphs)


def train(path: str, count: str) -> int:
    """One training pass over the first ``count`` graphs of a saved set."""
    import gcaps

    return _one_epoch(gcaps.load(path), int(count), features=("labels",), batch_size=128)


def epoch(name: str) -> int:
    import gcaps

    graphs = gcaps.load(name)
    return _one_epoch(graphs, len(graphs), features=("degree",))


def _one_epoch(graphs: Any, count: int, **settings: Any) -> int:
    from gcaps import GraphCapsuleClassifier

    indices = np.arange(min(count, len(graphs)))
    GraphCapsuleClassifier(epochs=1, ensemble_size=1, with_svm=False, **settings).fit(graphs.subset(indices))
    return len(indices)


def convert(name: str, path: str) -> int:
    from gcaps.data import convert

    return len(convert(name, path))


def read(name: str, path: str) -> int:
    import gcaps

    graphs = gcaps.load(name)
    graphs.save(path)
    return len(graphs)


STEPS: dict[str, Callable[..., int]] = {
    "imports": imports,
    "build": build,
    "open": open_,
    "batches": batches,
    "train": train,
    "convert": convert,
    "read": read,
    "epoch": epoch,
}


class PrivateMemory(threading.Thread):
    """Watches this process's private resident memory; ``peak`` is the most it saw, in MiB, 0 where it cannot see."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0.0
        self._status = Path("/proc/self/status")

    def run(self) -> None:
        while self._status.exists():
            fields = dict(line.split(":", 1) for line in self._status.read_text().splitlines())
            self.peak = max(self.peak, int(fields["RssAnon"].split()[0]) / 1024)
            time.sleep(0.01)


def child(step: str, arguments: list[str]) -> None:
    """Run one step here and print its figures."""
    watch = PrivateMemory()
    watch.start()
    if step != "imports":
        imports()
    began = time.perf_counter()
    graphs = STEPS[step](*arguments)
    seconds = time.perf_counter() - began
    unit = 1024**2 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps({"graphs": graphs, "seconds": seconds, "peak_mib": peak, "private_mib": watch.peak}))


def measure(step: str, *arguments: str | Path | int, data: str = "molecules") -> dict[str, Any]:
    """The figures of one step in a fresh process."""
    command = [sys.executable, __file__, "--child", step, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {"step": step, "data": data, **json.loads(done.stdout.splitlines()[-1])}


def run(sections: list[str], graphs: int, train_graphs: int, real: list[str]) -> list[dict[str, Any]]:
    """All rows of the chosen sections."""
    rows = [measure("imports", data="–")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "molecules.gset"
        if {"build", "open", "batches", "train"} & set(sections):
            built = measure("build", folder, graphs)
            rows += [built] if "build" in sections else []
        if "open" in sections:
            rows.append(measure("open", folder))
        if "batches" in sections:
            rows.append(measure("batches", folder))
        if "train" in sections:
            rows.append(measure("train", folder, train_graphs))
        for name in real:
            if "convert" in sections:
                rows.append(measure("convert", name, Path(scratch) / f"{name}.gset", data=name))
                rows.append(measure("read", name, Path(scratch) / f"{name}.gset", data=name))
            if "epoch" in sections:
                rows.append(measure("epoch", name, data=name))
    return rows


def main() -> None:
    from gcaps.data.catalog import find

    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3:])
        return
    known = ["build", "open", "batches", "train", "convert", "epoch"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(known))
    parser.add_argument("--graphs", type=int, help="graphs of the generated set (1,000,000; with --short 20,000)")
    parser.add_argument(
        "--train-graphs", type=int, help="how many of them are trained on (1,000,000; with --short 2,000)"
    )
    parser.add_argument("--short", action="store_true", help="a small set, and no real ones")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if unknown := set(options.sections) - set(known):
        parser.error(f"there is no section {unknown.pop()}; there are {', '.join(known)}")
    real = [] if options.short else [name for name in REAL if find(name)]
    graphs = options.graphs or (20_000 if options.short else 1_000_000)
    train_graphs = min(graphs, options.train_graphs or (2_000 if options.short else 1_000_000))
    rows = run(options.sections or known, graphs, train_graphs, real)
    table = Table("step", "data", "graphs", "seconds", "graphs/s", "peak MiB", "private MiB")
    for row in rows:
        speed = f"{row['graphs'] / row['seconds']:,.0f}" if row["step"] not in ("imports", "open") else ""
        figures = (
            f"{row['graphs']:,}",
            f"{row['seconds']:.2f}",
            speed,
            f"{row['peak_mib']:,.0f}",
            f"{row['private_mib']:,.0f}",
        )
        table.add_row(row["step"], row["data"], *figures)
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    if options.json:
        machine = {"machine": platform.machine(), "system": platform.system(), "python": platform.python_version()}
        options.json.write_text(json.dumps({**machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
