"""GCAPS-CNN on the paper's eleven data sets: the plain network, the default configuration, and settings of a set's own.

    python experiments/accuracy.py [--data PTC ENZYMES ...] [--settings default own plain attributes] [--to FOLDER]
                                   [--jobs 2]

Ten stratified folds (seed 0), the honest protocol. What "plain" is, what a set's own settings are and which sets have
attributes stands in experiments/accuracy.toml; default and own settings were chosen on inner validation
(experiments/tuning.py). Every fold is kept in `runs/` as soon as it is done, so the script can be stopped at any time
and started anew; a whole set becomes a result file. `--table` prints the table of what is there, in Markdown, and runs
nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cells import PAGE, arguments, cell_file, markdown, percent, plain, printed

import gcaps
from gcaps.evaluation import Result, compare, stratified_folds

DATA = (
    "MUTAG",
    "PTC",
    "ENZYMES",
    "IMDB-BINARY",
    "IMDB-MULTI",
    "PROTEINS",
    "NCI1",
    "NCI109",
    "COLLAB",
    "REDDIT-BINARY",
    "DD",
    "REDDIT-MULTI-5K",
)
"""Cheap ones first."""
KINDS = ("default", "own", "plain", "attributes")
MANY = 1000
"""Graphs of a set from which on the plain network is trained for fewer epochs."""
FOLDS = 10
FIRST = {("plain", "COLLAB"): 3, ("plain", "REDDIT-MULTI-5K"): 3}
"""Where only the first folds are run; all ten would take hours."""
RULES = ("honest", "last", "gin", "best")
RESULTS = Path("results/accuracy")


def settings_of(data: str, kind: str) -> dict[str, Any] | None:
    """What differs from the default configuration; None where there is nothing to run."""
    if kind in ("own", "attributes"):
        return PAGE[kind].get(data)
    if kind == "default":
        return {}
    graphs = gcaps.load(data)
    return plain(graphs) | (PAGE["plain-many"] if len(graphs) >= MANY else {})


def run(data: str, kind: str, folder: Path, jobs: int | None) -> None:
    file = cell_file(folder, kind, data)
    if file.exists() or (settings := settings_of(data, kind)) is None:
        return
    grid = {"gcaps": {name: [value] if isinstance(value, list) else value for name, value in settings.items()}}
    folds = stratified_folds(gcaps.load(data).targets, FOLDS, seed=0)[: FIRST.get((kind, data), FOLDS)]
    kept = Path("runs/accuracy") / kind / data
    splits = folds if len(folds) < FOLDS else None
    result = compare(data, ["gcaps"], run=kept, splits=splits, grid=grid, jobs=jobs).result(data, "gcaps")
    assert result is not None
    if splits is None:
        options = [f"--{name.replace('_', '-')}={_text(value)}" for name, value in settings.items()]
        result = replace(result, command=shlex.join(["gcaps", "evaluate", data, *options]))
    else:
        command = f"python experiments/accuracy.py --settings {kind} --data {data}"
        about = f"the first {len(folds)} of {FOLDS} stratified folds, seed 0"
        result = replace(result, command=command, splits=about)
    result.save(file)
    print(f"{data}  {kind}: {percent_of(result, 'honest')} in {seconds(result):,.0f} s", flush=True)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def seconds(result: Result) -> float:
    return sum(fold.seconds for fold in result.folds)


def recorded(data: str, folder: Path) -> dict[str, Result]:
    """What there is of a set."""
    files = {kind: cell_file(folder, kind, data) for kind in KINDS}
    return {kind: Result.read(file) for kind, file in files.items() if file.exists()}


def table(data: Sequence[str] = DATA, folder: Path = RESULTS) -> str:
    """A row for each set: the paper's number, ours, the best known, and the minutes that ten folds took."""
    rows = []
    for name in data:
        if found := recorded(name, folder):
            ours = [honest(found, "plain"), f"**{honest(found, 'default')}**", honest(found, "own")]
            spent = [_minutes(found.get(kind)) for kind in ("default", "own")]
            peeking = percent_of(found.get("default"), "gin")
            rows.append([name, printed(name, "GCAPS-CNN"), *ours, peeking, known(name), " / ".join(spent)])
    head = ["plain", "default", "own settings", "default, `gin` rule", "best honest known", "minutes, default / own"]
    return markdown(["data set", "paper", *head], rows)


def short(data: Sequence[str] = DATA, folder: Path = RESULTS) -> str:
    """The same in fewer columns."""
    rows = []
    for name in data:
        if "default" in (found := recorded(name, folder)):
            ours = [f"**{honest(found, 'default')}**", honest(found, "own")]
            rows.append([name, printed(name, "GCAPS-CNN"), *ours, percent_of(found["default"], "gin"), known(name)])
    ours = ["default, honest", "settings of its own, honest", "default, read by the `gin` rule"]
    return markdown(["data set", "paper's GCAPS-CNN", *ours, "best honest number known"], rows)


def rules(data: Sequence[str] = DATA, folder: Path = RESULTS) -> str:
    """The same runs read by each of the four rules."""
    rows = []
    for name in data:
        for kind, result in recorded(name, folder).items():
            if kind in ("plain", "default"):
                rows.append([name, kind, *(percent_of(result, rule) for rule in RULES)])
    return markdown(["data set", "settings", *(f"`{rule}`" for rule in RULES)], rows)


def attributes(folder: Path = RESULTS) -> str:
    """What continuous attributes beside labels are worth."""
    found = {name: recorded(name, folder) for name in PAGE["attributes"]}
    rows = [[name, honest(of, "default"), honest(of, "attributes")] for name, of in found.items()]
    return markdown(["data set", "labels", "labels and attributes"], rows)


def honest(found: dict[str, Result], kind: str) -> str:
    return percent_of(found.get(kind), "honest")


def percent_of(result: Result | None, rule: str) -> str:
    if result is None:
        return "–"
    found = percent(result.protocols[rule].mean, result.protocols[rule].std)
    return found if len(result.folds) == FOLDS else f"{found} ({len(result.folds)} folds)"


def known(data: str) -> str:
    return f"{PAGE['known'][data]:.1f}" if data in PAGE["known"] else "–"


def _minutes(result: Result | None) -> str:
    return "–" if result is None else f"{seconds(result) / 60:.0f}"


def main() -> None:
    parser = arguments(__doc__, RESULTS)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--settings", nargs="+", default=list(KINDS), choices=KINDS)
    options = parser.parse_args()
    if not options.table:
        for kind in options.settings:
            for name in options.data:
                run(name, kind, options.to, options.jobs)
    print(table(options.data, options.to))


if __name__ == "__main__":
    main()
