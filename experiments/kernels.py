"""The kernels with an SVM: accuracy on ten folds, kernel and C chosen inside each, beside what was published.

    python experiments/kernels.py [--data PTC ENZYMES ...] [--methods wl sp ...] [--seeds 0 1 ...] [--to FOLDER]

Every cell (data set, method) is a result file; cells that are there already are not run again, so the script can be
stopped at any time and started anew. Small sets and cheap kernels come first. A seed divides a set into other folds.
`--table` prints the table of what is there, in Markdown, and runs nothing: seed 0, and below it the means over several.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from cells import arguments, cell_file, markdown, percent, printed, run_cell, seed_file, seed_means

from gcaps.evaluation import Result

RESULTS = Path("results/kernels")
DATA = ("PTC", "ENZYMES", "PROTEINS", "DD", "NCI1", "NCI109")
METHODS = ("sp", "wl", "gk", "wloa", "rw", "dgk", "mlg")
LARGE = ("DD", "NCI1", "NCI109")
FEWER: dict[str, dict[str, tuple[float, ...]]] = {"mlg": {"levels": (2,), "eta": (1.0,)}}
"""Smaller grids for large sets: these kernels are fitted anew on every fold."""


def run(data: str, method: str, seed: int, folder: Path, jobs: int | None) -> None:
    grid = FEWER.get(method, {}) if data in LARGE else {}
    options = "".join(f" --{name} {','.join(map(str, values))}" for name, values in grid.items())
    run_cell(seed_file(folder, data, method, seed), data, method, options, dict(grid), None, jobs, seed)


def table(data: Sequence[str] = DATA, methods: Sequence[str] = METHODS, folder: Path = RESULTS) -> str:
    """A row for each kernel, in each cell ours and in brackets the paper's."""
    rows = []
    for method in methods:
        cells = []
        for name in data:
            file = cell_file(folder, name, method)
            ours = "–"
            if file.exists():
                found = Result.read(file).protocols["honest"]
                ours = f"**{percent(found.mean, found.std)}**"
            cells.append(f"{ours} ({printed(name, method.upper())})")
        rows.append([f"`{method}`", *cells])
    return markdown(["", *data], rows)


def over_seeds(data: list[str], methods: list[str], folder: Path) -> str:
    """A line for each cell that was run with more than one seed: the mean, and the deviation between seeds."""
    lines = []
    for name, method in product(data, methods):
        if len(means := seed_means(folder, name, method)) > 1:
            lines.append(
                f"{method} on {name}, {len(means)} seeds: {percent(float(np.mean(means)), float(np.std(means)))}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__, RESULTS)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()
    if not options.table:
        cells = [(name, method) for method in options.methods for name in options.data]
        for name, method in sorted(cells, key=lambda cell: (cell[0] in LARGE, options.methods.index(cell[1]))):
            for seed in options.seeds:
                run(name, method, seed, options.to, options.jobs)
    print(table(options.data, options.methods, options.to))
    print(over_seeds(options.data, options.methods, options.to))


if __name__ == "__main__":
    main()
