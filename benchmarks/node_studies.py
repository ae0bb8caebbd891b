"""Options, search over settings and record of the benchmarks on the nodes and links of one graph."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from gcaps.files import write_json
from gcaps.tasks.graph import NodeGraph

Row = dict[str, Any]


def read_options(description: str | None, models: Sequence[str], seeds: int) -> argparse.Namespace:
    """Parse the command line; end the process where the data are missing.

    Args:
        description: of the benchmark.
        models: names of all models.
        seeds: default of ``--seeds``.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora", "citeseer"])
    parser.add_argument("--models", nargs="+", default=list(models), choices=models)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--search-seeds", type=int, default=1)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("GCAPS_DATA", ".")) / "node")
    parser.add_argument("--short", action="store_true", help="Cora, two configurations, one seed, few epochs")
    options = parser.parse_args()
    if not options.folder.is_dir():
        print(f"{options.folder}: is missing; let GCAPS_DATA name a folder with node/cora.npz and node/citeseer.npz")
        raise SystemExit
    if options.short:
        options.data, options.seeds, options.search_seeds = options.data[:1], 1, 1
    return options


class Study:
    """Trainings by data set, model, part of the study, settings and seed.

    With ``--record``, each is written as soon as it is done, and those that the file has are not repeated.

    Args:
        options: see :func:`read_options`.
        training: settings of all trainings, written to the record.
        train: trains a model on a graph with settings and a seed.
        test_scores: keys of the test scores, which trainings of the search do not keep.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        training: dict[str, Any],
        train: Callable[[NodeGraph, str, dict[str, Any], int], Row],
        test_scores: Sequence[str],
    ) -> None:
        self.options, self.training, self.train, self.test_scores = options, training, train, test_scores
        self.graphs = {data: NodeGraph.read(options.folder / f"{data}.npz") for data in options.data}
        self.rows: list[Row] = []
        if options.record and options.record.exists():
            self.rows = json.loads(options.record.read_text())["rows"]

    def cell(self, data: str, model: str, part: str, settings: dict[str, Any], seed: int) -> Row:
        """Return a training, done now unless it is recorded."""
        key = {"data": data, "model": model, "part": part, "settings": json.loads(json.dumps(settings)), "seed": seed}
        found = next((row for row in self.rows if all(row[name] == value for name, value in key.items())), None)
        if found is None:
            found = {**key, **self.train(self.graphs[data], model, settings, seed)}
            if part == "search":
                for name in self.test_scores:
                    del found[name]
            self.rows.append(found)
            if self.options.record:
                self.options.record.parent.mkdir(parents=True, exist_ok=True)
                write_json(self.options.record, {"training": self.training, "rows": self.rows})
        return found

    def choose(self, data: str, model: str, space: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the settings with the best mean validation score over the seeds of the search."""
        space = space[: 2 if self.options.short else None]
        seeds = range(1000, 1000 + self.options.search_seeds)
        scores = [np.mean([self.cell(data, model, "search", s, n)["validation"] for n in seeds]) for s in space]
        return space[int(np.argmax(scores))]


def in_percent(values: list[float]) -> str:
    """Mean and standard deviation."""
    return f"{100 * mean(values):.2f} ± {100 * stdev(values) if len(values) > 1 else 0:.2f}"
