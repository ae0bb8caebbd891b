"""Trials of what `gcaps compare` guarantees when processes are killed.

    python benchmarks/compare.py kill    [--short] [--data PTC ENZYMES IMDB-BINARY] [--methods all] [--kills 10]
    python benchmarks/compare.py cluster [--short] [--data PTC ENZYMES IMDB-BINARY] [--methods all] [--workers 3]

`kill` runs a comparison without interruption, and again with SIGKILL at random moments, each time resumed; what the two
have written must be equal byte for byte, except times, memory and dates. `cluster` runs it with `--jobs 2` and then on
a Dask cluster of worker processes on this machine, of which one is killed half-way: every cell must be there once and
equal. `--short` takes the set `families` and a few quick methods, a minute in all. A trial that was interrupted is
resumed by starting it again with the same `--to`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from gcaps.evaluation import Outcome, Plan

SHORT = {"data": ["families"], "methods": "deepsets,gin,sp,fgsd", "folds": 5}
SHORT_GRID = "[deepsets]\nepochs = 10\nhidden = [8, 16]\n[gin]\nepochs = 10\n[fgsd]\nn_estimators = 50\n"


def command(options: argparse.Namespace, run: Path, *more: str) -> list[str]:
    grid = ["--grid", str(options.grid)] if options.grid else []
    limits = [f"--{name}-limit={value}" for name in ("time", "memory") if (value := getattr(options, f"{name}_limit"))]
    head = [sys.executable, "-m", "gcaps", "compare", *options.data, "--methods", options.methods]
    return [*head, "--folds", str(options.folds), "-o", str(run), *grid, *limits, *more]


def files(run: Path) -> list[Path]:
    return sorted(file.relative_to(run) for file in run.glob("cells/*/*/*.json"))


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def to_the_end(arguments: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def computing(pid: int) -> set[int]:
    """The processes below ``pid`` that compute cells."""
    found = set()
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            if "gcaps.evaluation.child" in process.cmdline():
                found.add(process.pid)
    return found


def still_there(pids: set[int]) -> set[int]:
    """Those of the processes that are alive five seconds later."""
    until = time.monotonic() + 5
    while (alive := {pid for pid in pids if psutil.pid_exists(pid)}) and time.monotonic() < until:
        time.sleep(0.05)
    return alive


def check_equal(first: Path, second: Path) -> int:
    """Exit unless both hold every cell of the plan once and each is the same in both; the number of cells."""
    planned = sorted(cell.path for cell in Plan.read(first).cells())
    for run in (first, second):
        if files(run) != planned:
            sys.exit(f"{run}: {len(files(run))} files for {len(planned)} cells")
    different = [path for path in planned if content(first / path) != content(second / path)]
    for path in different:
        print(f"different: {path}")
    if different:
        sys.exit(f"{len(different)} of {len(planned)} cells differ")
    return len(planned)


def content(file: Path) -> bytes:
    return json.dumps(Outcome.read(file).unmeasured(), ensure_ascii=False).encode()


def states(run: Path) -> str:
    counts: dict[str, int] = {}
    for path in files(run):
        status = Outcome.read(run / path).status
        counts[status] = counts.get(status, 0) + 1
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))


def kill(options: argparse.Namespace, folder: Path) -> None:
    whole, broken = folder / "whole", folder / "broken"
    jobs = ["--jobs", str(options.jobs)]
    seconds = to_the_end(command(options, whole, *jobs))
    print(f"without interruption: {seconds:.0f} s; {states(whole)}", flush=True)
    written = [(whole / path).stat().st_mtime for path in files(whole)]
    pause = (max(written) - min(written)) / options.kills
    rng = random.Random(options.seed)
    for number in range(1, options.kills + 1):
        before = len(files(broken))
        process = start(command(options, broken, *jobs))
        wait = rng.uniform(0, pause)
        if rng.random() < 0.8:  # else it may be killed before its first cell
            while process.poll() is None and len(files(broken)) == before:
                time.sleep(0.05)
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            below = computing(process.pid)
            process.kill()
            process.wait()
            left = still_there(below)
            print(f"kill {number}: {before} -> {len(files(broken))} cells, {len(left)} processes left", flush=True)
            if left:
                sys.exit("processes that compute outlive the one that was killed")
        else:
            print(f"it was finished before kill {number}")
            break
    to_the_end(command(options, broken, *jobs))
    print(f"{check_equal(whole, broken)} cells are equal; {states(broken)}")


def cluster(options: argparse.Namespace, folder: Path) -> None:
    alone, spread = folder / "alone", folder / "spread"
    seconds = to_the_end(command(options, alone, "--jobs", "2"))
    print(f"--jobs 2: {seconds:.0f} s; {states(alone)}", flush=True)
    dask = [sys.executable, "-m", "dask"]
    where = folder / "scheduler.json"
    where.unlink(missing_ok=True)
    staff = [start([*dask, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(where)])]
    try:
        while not (where.exists() and where.read_text().endswith("}")):  # it may be half written
            time.sleep(0.1)
        address = json.loads(where.read_text())["address"]
        worker = [*dask, "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        staff += [start([*worker, "--local-directory", tempfile.mkdtemp(dir=folder)]) for _ in range(options.workers)]
        planned, began = len(Plan.read(alone).cells()), time.perf_counter()
        process = start(command(options, spread, "--cluster", address))
        while process.poll() is None and len(files(spread)) < planned // 2:
            time.sleep(0.1)
        staff[1].kill()
        print(f"a worker was killed after {len(files(spread))} of {planned} cells", flush=True)
        if process.wait():
            sys.exit("the comparison failed")
        print(f"{options.workers} workers: {time.perf_counter() - began:.0f} s; {states(spread)}")
    finally:
        for process in staff:
            process.kill()
            process.wait()
    print(f"{check_equal(alone, spread)} cells are there once and equal")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", choices=["kill", "cluster"])
    parser.add_argument("--data", nargs="+", default=["PTC", "ENZYMES", "IMDB-BINARY"])
    parser.add_argument("--methods", default="all")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--grid", type=Path)
    parser.add_argument("--time-limit")
    parser.add_argument("--memory-limit")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the moments to kill at")
    parser.add_argument("--to", type=Path, help="folder to keep; by default a temporary one")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    os.environ["PYTHONUNBUFFERED"] = "1"
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.to or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if options.short:
            vars(options).update(SHORT)
            options.kills = min(options.kills, 3)
            options.grid = folder / "grid.toml"
            options.grid.write_text(SHORT_GRID)
        {"kill": kill, "cluster": cluster}[options.trial](options, folder)


if __name__ == "__main__":
    main()
