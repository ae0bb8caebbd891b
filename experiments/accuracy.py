"""GCAPS-CNN on the paper's eleven data sets: the plain network, the default, settings of a set's own, and untrained.

    python experiments/accuracy.py [--data PTC ENZYMES ...] [--settings default own plain untrained single ...]
                                   [--seeds 0 1 ...] [--splits FOLDER] [--to FOLDER] [--jobs 2]

Ten stratified folds, the honest protocol; a seed divides a set into other folds. What "plain" is, what a set's own
settings are, and for which sets the default is also run as a single network or with attributes stands in
experiments/accuracy.toml; default and own settings were chosen on inner validation (experiments/tuning.py). Every fold
is kept in `runs/` as soon as it is done, so the script can be stopped at any time and started anew; a whole set becomes
a result file. `--table` prints the table of what is there, in Markdown, and runs nothing. "fair" is the default on the
folds of the ICLR 2020 fair comparison, one JSON file a set in `--splits`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from cells import PAGE, arguments, cell_file, markdown, percent, plain, printed, seed_file, seed_means

import gcaps
from gcaps.evaluation import Result, compare, stratified_folds
from gcaps.evaluation.published import published

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
KINDS = ("default", "own", "plain", "untrained", "single", "attributes", "fair")
MANY = 1000
"""Graphs of a set from which on the plain network is trained for fewer epochs."""
FOLDS = 10
FIRST = {("plain", "REDDIT-MULTI-5K"): 3}
"""Where only the first folds are run; all ten take an hour."""
RULES = ("honest", "last", "gin", "best")
RESULTS = Path("results/accuracy")


def settings_of(data: str, kind: str) -> dict[str, Any] | None:
    """What differs from the default configuration; None where there is nothing to run."""
    if kind in ("default", "fair"):
        return {}
    if kind == "untrained":
        return {"head": "svm"}
    if kind != "plain":
        return PAGE[kind].get(data)
    graphs = gcaps.load(data)
    return plain(graphs) | (PAGE["plain-many"] if len(graphs) >= MANY else {})


def run(data: str, kind: str, seed: int, splits: Path | None, folder: Path, jobs: int | None) -> None:
    file = seed_file(folder, kind, data, seed)
    given = None if kind != "fair" or splits is None else splits / f"{data}.json"
    missing = kind == "fair" and (given is None or not given.exists())
    if file.exists() or missing or (settings := settings_of(data, kind)) is None:
        return
    grid = {"gcaps": {name: [value] if isinstance(value, list) else value for name, value in settings.items()}}
    options = [f"--{name.replace('_', '-')}={_text(value)}" for name, value in settings.items()]
    options += [] if given is None else [f"--splits={given}"]
    options += [f"--seed={seed}"] if seed else []
    command, folds, about = shlex.join(["gcaps", "evaluate", data, *options]), given, str(given)
    if count := FIRST.get((kind, data)):
        command = f"python experiments/accuracy.py --settings {kind} --data {data}" + (
            f" --seeds {seed}" if seed else ""
        )
        folds = stratified_folds(gcaps.load(data).targets, FOLDS, seed=seed)[:count]
        about = f"the first {count} of {FOLDS} stratified folds, seed {seed}"
    kept = Path("runs/accuracy") / kind / file.stem
    found = compare(data, ["gcaps"], run=kept, splits=folds, seeds=[seed], grid=grid, jobs=jobs)
    result = found.result(data, "gcaps")
    assert result is not None
    replace(result, command=command, splits=result.splits if folds is None else about).save(file)
    print(f"{file.stem}  {kind}: {percent_of(result, 'honest')} in {seconds(result):,.0f} s", flush=True)


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
            ours = [
                honest(found, "plain"),
                honest(found, "untrained"),
                f"**{honest(found, 'default')}**",
                honest(found, "own"),
            ]
            spent = [_minutes(found.get(kind)) for kind in ("untrained", "default", "own")]
            peeking = percent_of(found.get("default"), "gin")
            rows.append([name, printed(name, "GCAPS-CNN"), *ours, peeking, known(name), " / ".join(spent)])
    ours = ["plain", "untrained", "default", "own settings", "default, `gin` rule"]
    return markdown(["data set", "paper", *ours, "best honest known", "minutes, untrained / default / own"], rows)


def short(data: Sequence[str] = DATA, folder: Path = RESULTS) -> str:
    """The same in fewer columns."""
    rows = []
    for name in data:
        if "default" in (found := recorded(name, folder)):
            ours = [honest(found, "untrained"), f"**{honest(found, 'default')}**", honest(found, "own")]
            rows.append([name, printed(name, "GCAPS-CNN"), *ours, percent_of(found["default"], "gin"), known(name)])
    ours = ["untrained", "default", "settings of its own", "default, read by the `gin` rule"]
    return markdown(["data set", "paper's GCAPS-CNN", *ours, "best honest number known"], rows)


def rules(data: Sequence[str] = DATA, folder: Path = RESULTS) -> str:
    """The same runs read by each of the four rules."""
    rows = []
    for name in data:
        for kind, result in recorded(name, folder).items():
            if kind in ("plain", "default"):
                rows.append([name, kind, *(percent_of(result, rule) for rule in RULES)])
    return markdown(["data set", "settings", *(f"`{rule}`" for rule in RULES)], rows)


def divisions(data: Sequence[str] = DATA, folder: Path = RESULTS) -> str:
    """What was run with several seeds: their mean, and how much one division of a set differs from another."""
    rows = []
    for name in data:
        for kind in KINDS:
            if len(means := seed_means(folder, kind, name)) > 1:
                spread = percent(float(np.mean(means)), float(np.std(means, ddof=1)))
                rows.append([name, kind, percent(means[0], None), f"**{spread}**", str(len(means))])
    return markdown(["data set", "settings", "seed 0", "all seeds", "seeds"], rows)


def attributes(folder: Path = RESULTS) -> str:
    """What continuous attributes beside labels are worth."""
    found = {name: recorded(name, folder) for name in PAGE["attributes"]}
    rows = [[name, honest(of, "default"), honest(of, "attributes")] for name, of in found.items()]
    return markdown(["data set", "labels", "labels and attributes"], rows)


def fair(data: Sequence[str] = DATA, folder: Path = RESULTS) -> str:
    """The default on our folds and on those of the fair comparison, beside the best that it found."""
    rows = []
    for name in data:
        if "fair" in (found := recorded(name, folder)):
            theirs = [row for row in published(name) if row.source == "fair" and row.mean is not None]
            best = max(theirs, key=lambda row: row.mean or 0, default=None)
            cell = "–" if best is None else f"{percent(best.mean, best.std)} ({best.method})"
            rows.append([name, honest(found, "default"), f"**{honest(found, 'fair')}**", cell])
    return markdown(["data set", "our folds", "its folds", "the best of its networks"], rows)


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
    return "–" if result is None else f"{max(seconds(result) / 60, 0.1):.{0 if seconds(result) > 90 else 1}f}"


def main() -> None:
    parser = arguments(__doc__, RESULTS)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--settings", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--splits", type=Path, help="folder of JSON files of folds, for fair")
    options = parser.parse_args()
    if not options.table:
        for kind in options.settings:
            for name in options.data:
                for seed in options.seeds:
                    run(name, kind, seed, options.splits, options.to, options.jobs)
    print(table(options.data, options.to))


if __name__ == "__main__":
    main()
