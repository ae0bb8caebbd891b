"""GCAPS-CNN on the paper's eleven data sets: the plain network, the default configuration, and settings of a set's own.

    python experiments/accuracy.py [--data PTC ENZYMES ...] [--settings default own plain] [--to FOLDER] [--jobs 2]

Ten stratified folds (seed 0), the honest protocol. What "plain" is and what a set's own settings are stands in
experiments/accuracy.toml; default and own settings were chosen on inner validation (experiments/tuning.py). Every fold
is kept in `runs/` as soon as it is done, so the script can be stopped at any time and started anew; a whole set becomes
a result file. `--table` prints the table of what is there, in Markdown, and runs nothing.
"""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from cells import arguments, cell_file, markdown, percent, plain, printed

import gcaps
from gcaps.evaluation import Result, compare

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
KINDS = ("default", "own", "plain")
PAGE: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def settings_of(data: str, kind: str) -> dict[str, Any] | None:
    """What differs from the default configuration; None where there is nothing to run."""
    if kind == "own":
        return PAGE["own"].get(data)
    return plain(gcaps.load(data)) if kind == "plain" else {}


def run(data: str, kind: str, folder: Path, jobs: int | None) -> None:
    file = cell_file(folder, kind, data)
    if file.exists() or (settings := settings_of(data, kind)) is None:
        return
    grid = {"gcaps": {name: [value] if isinstance(value, list) else value for name, value in settings.items()}}
    result = compare(data, ["gcaps"], run=Path("runs/accuracy") / kind / data, grid=grid, jobs=jobs).result(
        data, "gcaps"
    )
    assert result is not None
    options = [f"--{name.replace('_', '-')}={_text(value)}" for name, value in settings.items()]
    replace(result, command=shlex.join(["gcaps", "evaluate", data, *options])).save(file)
    honest = result.protocols["honest"]
    print(f"{data}  {kind}: {percent(honest.mean, honest.std)} in {seconds(result):,.0f} s", flush=True)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def seconds(result: Result) -> float:
    return sum(fold.seconds for fold in result.folds)


def table(data: list[str], folder: Path) -> str:
    rows = []
    for name in data:
        files = {kind: cell_file(folder, kind, name) for kind in KINDS}
        found = {kind: Result.read(file) for kind, file in files.items() if file.exists()}
        if found:
            honest = {kind: _rule(found.get(kind), "honest") for kind in KINDS}
            spent = f"{seconds(found['default']) / 60:.0f}" if "default" in found else "–"
            known = f"{PAGE['known'][name]:.1f}" if name in PAGE["known"] else "–"
            ours = [f"**{honest['default']}**", honest["own"], _rule(found.get("default"), "gin")]
            rows.append([name, printed(name, "GCAPS-CNN"), honest["plain"], *ours, known, spent])
    head = [
        "data set",
        "paper",
        "plain",
        "default",
        "own settings",
        "default, `gin` rule",
        "best honest known",
        "minutes",
    ]
    return markdown(head, rows)


def _rule(result: Result | None, rule: str) -> str:
    return "–" if result is None else percent(result.protocols[rule].mean, result.protocols[rule].std)


def main() -> None:
    parser = arguments(__doc__, "results/accuracy")
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
