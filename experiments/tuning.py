"""Settings of GCAPS-CNN tried on inner validation: no test graph of the first fold is ever looked at.

    python experiments/tuning.py [--data ENZYMES PROTEINS ...] [--settings NAME ...] [--to results/tuning] [--jobs 2]

The graphs of a set that the first of ten stratified folds (seed 0) trains on are divided into five folds again; PARTS
says how many of them are tried on each set. Settings stand in experiments/tuning.toml, against the plain network. Every
cell is a result file, its "test" graphs inner validation graphs; cells that are there already are not run again.
`--table` prints the table of what is there, in Markdown, and runs nothing: accuracy after the last epoch, and at the
best epoch in common.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from cells import arguments, cell_file, markdown, plain

import gcaps
from gcaps.data.graphset import GraphSet
from gcaps.evaluation import Fold, Result, evaluate, stratified_folds

PARTS = {
    "MUTAG": 5,
    "PTC": 5,
    "ENZYMES": 5,
    "PROTEINS": 5,
    "IMDB-BINARY": 5,
    "IMDB-MULTI": 5,
    "NCI1": 1,
    "NCI109": 1,
    "DD": 5,
    "COLLAB": 1,
    "REDDIT-BINARY": 1,
    "REDDIT-MULTI-5K": 1,
}
"""How many of five inner folds are tried."""
RESULTS = Path("results/tuning")
PAGE: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
SETTINGS = {
    name: PAGE["bases"][given["base"]] | {key: value for key, value in given.items() if key != "base"}
    for name, given in PAGE["settings"].items()
}


def inner_folds(graphs: GraphSet, count: int) -> list[Fold]:
    """The first ``count`` of five folds of the graphs that the first of ten folds trains on."""
    train = stratified_folds(graphs.targets, 10, seed=0)[0].train
    return [Fold(train[f.train], train[f.test]) for f in stratified_folds(graphs.targets[train], 5, seed=1)[:count]]


def run(data: str, names: list[str], folder: Path, jobs: int | None) -> None:
    graphs = gcaps.load(data)
    folds = inner_folds(graphs, PARTS[data])
    for name in names:
        file = cell_file(folder, data, name)
        if file.exists():
            continue
        command = f"python experiments/tuning.py --data {data} --settings {name}"
        result = evaluate(graphs, splits=folds, config=plain(graphs) | SETTINGS[name], jobs=jobs, command=command)
        about = f"the first {len(folds)} of 5 stratified folds, seed 1, of what the first of 10, seed 0, trains on"
        replace(result, splits=about).save(file)
        print(f"{data}  {name}: {100 * reached(result)[0]:.1f}", flush=True)


def reached(result: Result) -> tuple[float, float, int]:
    """Accuracy on the validation graphs after the last epoch, at the best epoch in common, and that epoch.

    A machine has no epochs: its accuracy, and 0 for the epoch.
    """
    if not result.folds[0].test_accuracy:
        accuracy = float(np.mean([fold.accuracy for fold in result.folds]))
        return accuracy, accuracy, 0
    curve = np.mean([fold.test_accuracy for fold in result.folds], axis=0)
    return float(curve[-1]), float(curve.max()), int(curve.argmax()) + 1


def table(data: Sequence[str] = tuple(PARTS), names: Sequence[str] = tuple(SETTINGS), folder: Path = RESULTS) -> str:
    """A row for each set and settings that were tried on it, the best first."""
    rows = []
    for one in data:
        files = {name: cell_file(folder, one, name) for name in names}
        found = {name: Result.read(file) for name, file in files.items() if file.exists()}
        for name, result in sorted(found.items(), key=lambda tried: -reached(tried[1])[0]):
            last, best, epoch = reached(result)
            seconds = sum(fold.seconds for fold in result.folds) / len(result.folds)
            numbers = [
                f"{100 * last:.1f}",
                f"{100 * best:.1f} at {epoch}" if epoch else "–",
                str(len(result.folds)),
                f"{seconds:.0f}",
            ]
            rows.append([one, f"`{name}`", *numbers])
    return markdown(["data set", "settings", "last epoch", "best epoch", "inner folds", "seconds a fold"], rows)


def main() -> None:
    parser = arguments(__doc__, RESULTS)
    parser.add_argument("--data", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    options = parser.parse_args()
    if not options.table:
        for name in options.data:
            run(name, options.settings, options.to, options.jobs)
    print(table(options.data, options.settings, options.to))


if __name__ == "__main__":
    main()
