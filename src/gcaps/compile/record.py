"""Record which kernels small trainings and predictions compile, and with which types.

``python -m gcaps.compile --record`` calls this with an empty cache and writes ``signatures.json``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gcaps.compile import SIGNATURES, Part
from gcaps.compile.types import encode
from gcaps.data.graphset import GraphSet
from gcaps.estimators.registry import METHODS, make_estimator
from gcaps.files import write_text
from gcaps.persistence import load_estimator
from gcaps.testing import example_graphs, example_molecules

CAPSULES = ("gcaps", "capsule-svm")


def record(folder: Path) -> int:
    """Write ``signatures.json`` anew; models of the small trainings go to ``folder``. Return the number of kernels."""
    found: dict[tuple[str, str], tuple[Part, float]] = {}

    def add(part: Part, kernels: Iterator[tuple[str, Any, float]]) -> None:
        for name, types, seconds in kernels:
            found.setdefault((name, json.dumps(types)), (part, seconds))

    train_capsules(folder)
    trained = list(used())
    command = [
        sys.executable,
        "-c",
        "from gcaps.compile import record; import sys; record.predict(sys.argv[1])",
        str(folder),
    ]
    predicted = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
    )
    seconds = {(name, json.dumps(types)): spent for name, types, spent in trained}
    add("prediction", ((name, types, seconds.get((name, json.dumps(types)), 0.0)) for name, types, _ in predicted))
    add("training", iter(trained))
    _write(found)
    train_others()
    add("methods", used())
    return _write(found)


def _write(found: dict[tuple[str, str], tuple[Part, float]]) -> int:
    rows = [
        {"name": name, "types": json.loads(types), "part": part, "seconds": round(spent, 1)}
        for (name, types), (part, spent) in sorted(found.items())
    ]
    write_text(SIGNATURES, "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    return len(rows)


def train_capsules(folder: Path) -> None:
    """Train capsule networks on each kind of graphs and targets that has kernels of its own, and save them."""
    for number, (method, graphs, y, task, settings) in enumerate(_problems()):
        config = {"epochs": 1, **settings} if method == "gcaps" else settings
        estimator = make_estimator(method, config, task=task)
        estimator.fit(graphs, y).save(folder / str(number))


def _problems() -> Iterator[tuple[str, GraphSet, Any, Any, dict[str, Any]]]:
    graphs, share = example_graphs(24)
    row = np.repeat(np.arange(len(graphs.rowptr) - 1), np.diff(graphs.rowptr))
    kinds = ((row + graphs.col) % 2)[:, None].astype(np.int64)
    lengths = (0.1 + (row + graphs.col) % 3)[:, None].astype(np.float64)
    plain = replace(graphs, x=None)
    bare = replace(plain, node_labels=None)
    for method in CAPSULES:
        yield method, graphs, None, "classification", {}
        yield method, plain, None, "classification", {}
        yield method, bare, None, "classification", {}
        yield method, replace(plain, edge_labels=kinds), None, "classification", {}
        yield method, replace(plain, edge_attr=lengths), None, "classification", {}
    yield "gcaps", plain, share, "regression", {}
    yield "gcaps", replace(plain, edge_labels=kinds), share, "regression", {}


def predict(folder: str) -> None:
    """Load the models of :func:`train_capsules` and predict; print the kernels as JSON."""
    for number, (_, graphs, *_rest) in enumerate(_problems()):
        load_estimator(Path(folder) / str(number)).scores(graphs)
    print(json.dumps(list(used())))


def train_others() -> None:
    """Train every other method on small graphs and predict."""
    graphs, _ = example_graphs(24)
    molecules, _ = example_molecules(24)
    for method in METHODS.values():
        if method.name not in CAPSULES and method.name != "ensemble":
            config = {"epochs": 1} if method.family in ("network", "baseline") else {}
            some = molecules if method.needs_molecules else graphs
            make_estimator(method.name, config).fit(some).predict(some)


def used() -> Iterator[tuple[str, Any, float]]:
    """Yield name, types and seconds of compilation of each kernel that this process has called or stored."""
    from numba.core.dispatcher import Dispatcher

    for module_name, module in list(sys.modules.items()):
        for name, value in list(vars(module).items()) if module_name.startswith("gcaps.") else ():
            kernel = getattr(value, "serial", value)
            if not isinstance(kernel, Dispatcher) or kernel.py_func.__module__ != module_name:
                continue
            if not kernel.stats.cache_path:
                continue
            for types in kernel.signatures:
                timers = (kernel.get_metadata(types) or {}).get("timers", {})  # none where it was loaded
                try:
                    encoded = [encode(one) for one in types]
                except TypeError:  # such as literals: only compiled functions call it so, which hold what they call
                    continue
                yield f"{module_name}:{name}", encoded, float(timers.get("compiler_lock", 0.0))


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        print(f"{SIGNATURES}: {record(Path(made))} kernels")
