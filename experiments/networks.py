"""The other networks with their own papers' settings: accuracy on ten folds, beside what was published.

    python experiments/networks.py [--data PTC ENZYMES ...] [--methods gin set ...] [--splits FOLDER] [--to FOLDER]

Every cell (data set, method) is a result file with all protocols; cells that are there already are not run again, so
the script can be stopped at any time and started anew. Cheap cells come first. With `--splits` the folds are those of
the ICLR 2020 fair comparison (one JSON file a set), the epoch is picked on their validation graphs, and the files lie
in FOLDER/fair; ENZYMES is left out there, since that comparison adds its continuous attributes.
`--table` prints the tables of what is there, in Markdown, and runs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from cells import arguments, cell_file, markdown, percent, printed, run_cell

from gcaps.evaluation import Result

RESULTS = Path("results/networks")
DATA = ("PTC", "ENZYMES", "IMDB-BINARY", "PROTEINS", "NCI1")
LARGE = ("DD", "COLLAB", "REDDIT-MULTI-5K")
METHODS = ("set", "dcnn", "gin", "dgcnn", "pscn", "ecc")
FAIR = {"gin": "GIN", "dgcnn": "DGCNN", "ecc": "ECC", "set": "structure-blind-baseline"}
"""Our name and the fair comparison's."""
PATIENCE = 25
"""Epochs without a better one on the validation graphs of the fair comparison's folds before training ends."""


def run(data: str, method: str, splits: Path | None, folder: Path, jobs: int | None) -> None:
    options = "" if splits is None else f" --splits {splits} --selection validation --patience {PATIENCE}"
    config = {} if splits is None else {"selection": "validation", "patience": PATIENCE}
    run_cell(cell_file(folder, data, method), data, method, options, config, splits, jobs)


def table(
    data: Sequence[str] = DATA, methods: Sequence[str] = METHODS, folder: Path = RESULTS, source: str = "paper"
) -> str:
    rules = ("honest", "gin", "best") if source == "paper" else ("honest",)
    rows = []
    for name in data:
        for method in methods:
            file = cell_file(folder, name, method)
            if file.exists():
                found = Result.read(file).protocols
                numbers = [percent(found[rule].mean, found[rule].std) for rule in rules]
                theirs = FAIR.get(method, "") if source == "fair" else method.upper()
                rows.append([name, method, *numbers, printed(name, theirs, source)])
    return markdown(["data set", "method", *(f"`{rule}`" for rule in rules), "published"], rows)


def times(folder: Path = RESULTS / "times") -> str:
    """What complete folds cost (benchmarks/networks.py)."""
    rows = []
    for file in sorted(folder.glob("*.json"), key=lambda file: LARGE.index(file.stem)):
        for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
            numbers = [f"{row[key]:.1f}" for key in ("prepare", "epoch")]
            spent = [f"{row['training'] / 60:.1f}", f"{row['peak_gib']:.2f}", f"{100 * row['accuracy']:.1f}"]
            rows.append([row["data"], row["method"], str(row["epochs"]), *numbers, *spent])
    spent = ["prepare, s", "epoch, s", "whole training, min", "peak, GiB"]
    return markdown(["data set", "method", "epochs", *spent, "accuracy on the fold"], rows)


def main() -> None:
    parser = arguments(__doc__, RESULTS)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--splits", type=Path, help="folder of JSON files of folds")
    options = parser.parse_args()
    folder = options.to if options.splits is None else options.to / "fair"
    if not options.table:
        cells = [(name, method) for method in options.methods for name in options.data]
        for name, method in sorted(cells, key=lambda cell: (cell[0] not in DATA[:3], options.methods.index(cell[1]))):
            splits = None if options.splits is None else options.splits / f"{name}.json"
            if splits is None or (splits.exists() and name != "ENZYMES" and method in FAIR):
                run(name, method, splits, folder, options.jobs)
    print(table(options.data, options.methods, options.to, "paper"))
    print()
    print(table(options.data, options.methods, options.to / "fair", "fair"))


if __name__ == "__main__":
    main()
