"""Cold start: what a user waits for before the first epoch and the first prediction.

    python benchmarks/start.py [--repeats 3] [--before SOURCES] [--short] [--json FILE]

Each figure is that of whole processes, from their start to their end, the best of several: seconds, and processor
seconds of the process and its children, which other programs on the machine disturb less. The unit is ``import torch``,
without which no network predicts.

    import torch      the unit
    estimator         ``import gcaps; gcaps.GraphCapsuleClassifier``
    predict           ``gcaps predict`` of ten graphs of MUTAG without targets
    train             ``gcaps train MUTAG --epochs 1``
    train, first      the same with an empty cache of compiled kernels, as after an installation
    compile           ``python -m gcaps.compile`` for the capsule networks, with an empty cache

``--before`` names the ``src`` folder of another checkout that is measured in turn with this one; without the module
``gcaps.compile`` its row is empty. MUTAG comes with the extra ``demo``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

TEN = """
import sys
from dataclasses import replace
import numpy as np
import gcaps
graphs = gcaps.load("MUTAG")
replace(graphs.subset(np.arange(10)), y=None).save(sys.argv[1])
"""
CAPSULES = ("--only", "prediction", "--only", "training")


def commands(folder: Path) -> dict[str, Callable[[], list[str]]]:
    """Arguments of Python for each row; every call gives a new name for what is written."""
    number = iter(range(1_000_000))

    def out() -> str:
        return str(folder / f"out{next(number)}")

    return {
        "import torch": lambda: ["-c", "import torch"],
        "estimator": lambda: ["-c", "import gcaps; gcaps.GraphCapsuleClassifier"],
        "predict": lambda: ["-m", "gcaps", "predict", str(folder / "model"), str(folder / "ten"), "-o", out()],
        "train": lambda: ["-m", "gcaps", "train", "MUTAG", "--epochs", "1", "-o", out()],
        "train, first": lambda: ["-m", "gcaps", "train", "MUTAG", "--epochs", "1", "-o", out()],
        "compile": lambda: ["-m", "gcaps.compile", *CAPSULES],
    }


def measure(arguments: list[str], sources: str | None, cache: str) -> tuple[float, float] | None:
    """Seconds and processor seconds of a Python process; None where it failed."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    if sources is not None:
        environment["PYTHONPATH"] = sources
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    found = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=False)
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if found.returncode:
        return None
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--before", help="src folder of another checkout, measured in turn")
    parser.add_argument("--short", action="store_true", help="one repeat, with what is compiled already")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    repeats = 1 if given.short else given.repeats
    versions: dict[str, str | None] = {"after": os.environ.get("PYTHONPATH")}
    if given.before:
        versions = {"before": given.before, **versions}
    best: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in versions}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        warm = {name: str(folder / f"cache-{name}") for name in versions}
        subprocess.run([sys.executable, "-c", TEN, str(folder / "ten")], check=True)
        trained = ["-m", "gcaps", "train", "MUTAG", "--epochs", "1", "-o", str(folder / "model")]
        for name, sources in versions.items():  # fills the cache; the last one's model is used
            measure(trained, sources, warm[name])
            measure([*trained[:-1], str(folder / f"model-{name}")], sources, warm[name])
        rows = commands(folder)
        for repeat in range(repeats):
            for row, arguments in rows.items():
                empty = row in ("train, first", "compile")
                if empty and given.short:
                    continue
                for name, sources in versions.items():
                    cache = str(folder / f"empty-{row[:5]}-{name}-{repeat}") if empty else warm[name]
                    found = measure(arguments(), sources, cache)
                    if found is not None:
                        before = best[name].get(row, found)
                        best[name][row] = (min(before[0], found[0]), min(before[1], found[1]))
    show(best, repeats)
    if given.json is not None:
        page: dict[str, Any] = {
            "repeats": repeats,
            "machine": f"{platform.machine()}, {os.cpu_count()} processors",
            "python": platform.python_version(),
            "seconds and processor seconds": best,
        }
        given.json.write_text(json.dumps(page, indent=1) + "\n", encoding="utf-8")


def show(best: dict[str, dict[str, tuple[float, float]]], repeats: int) -> None:
    table = Table(title=f"Cold start, best of {repeats}")
    table.add_column("")
    for name in best:
        for column in ("s", "processor s", "of import torch"):
            table.add_column(f"{name}, {column}", justify="right")
    for row in dict.fromkeys(row for found in best.values() for row in found):
        cells = []
        for found in best.values():
            unit = found["import torch"][1]
            seconds, spent = found.get(row, (float("nan"), float("nan")))
            cells += [f"{seconds:.1f}", f"{spent:.1f}", f"{spent / unit:.1f}"]
        table.add_row(row, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
