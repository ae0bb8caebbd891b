"""What each part of the network is worth: capsule function × size, filter, readout, under the honest protocol.

    python experiments/ablation.py [--data ENZYMES IMDB-BINARY NCI1] [--to results/ablation] [--jobs 2]

One change at a time against the plain network of the paper, the same stratified folds (seed 0) for all, a short
schedule, and the first few of ten folds: RUNS says how many. Every cell is a result file; cells that are there already
are not run again, so the script can be stopped at any time and started anew.
`--table` prints the table of what is there, in Markdown, and runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cells import arguments, cell_file, markdown, percent, plain

import gcaps
from gcaps.evaluation import Result, evaluate, stratified_folds

RESULTS = Path("results/ablation")
RUNS = {"ENZYMES": (5, 60), "IMDB-BINARY": (3, 20), "NCI1": (1, 30)}
"""How many of ten folds are tested, and how many epochs each is trained."""

CELLS: dict[str, dict[str, object]] = {
    **{
        f"capsule {name}, size {size}": {"capsule": name, "capsule_size": size}
        for name in ("moments", "central", "polynomial", "density", "routing")
        for size in (1, 2, 3, 4)
    },
    **{
        f"filter {name}": {"filter": name}
        for name in ("laplacian", "symmetric", "random_walk", "kipf", "mean", "chebyshev", "cayley")
    },
    **{f"readout {name}": {"readout": name} for name in ("mean", "sum", "max_sort")},
}
PLAIN_CELL = "capsule moments, size 2"
"""With the adjacency filter and the covariance readout."""


def run(data: str, folder: Path, jobs: int | None) -> None:
    graphs = gcaps.load(data)
    count, epochs = RUNS[data]
    folds = stratified_folds(graphs.targets, 10, seed=0)[:count]
    base = plain(graphs) | {"epochs": epochs, "decay_every": 2 * epochs // 5}
    for cell, change in CELLS.items():
        file = cell_file(folder, data, cell)
        if file.exists():
            continue
        command = f"python experiments/ablation.py --data {data}"
        result = evaluate(
            graphs,
            splits=folds,
            config=base | change,
            jobs=jobs,
            command=command,
        )
        replace(result, splits=f"the first {len(folds)} of 10 stratified folds, seed 0").save(file)
        honest = result.protocols["honest"]
        print(f"{data}  {cell}: {honest.mean:.1%} ± {honest.std:.1%}", flush=True)


def table(data: Sequence[str] = tuple(RUNS), folder: Path = RESULTS) -> str:
    rows = []
    for cell in CELLS:
        numbers = []
        for name in data:
            file = cell_file(folder, name, cell)
            honest = Result.read(file).protocols["honest"] if file.exists() else None
            folds = RUNS[name][0]
            numbers.append("–" if honest is None else percent(honest.mean, honest.std if folds > 1 else None))
        rows.append([f"{cell} (plain)" if cell == PLAIN_CELL else cell, *numbers])
    return markdown(["one change", *data], rows)


def main() -> None:
    parser = arguments(__doc__, RESULTS)
    parser.add_argument("--data", nargs="+", default=list(RUNS), choices=list(RUNS))
    options = parser.parse_args()
    if not options.table:
        for name in options.data:
            run(name, options.to, options.jobs)
    print(table(options.data, options.to))


if __name__ == "__main__":
    main()
