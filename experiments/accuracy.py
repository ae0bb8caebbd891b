"""GCAPS-CNN on the paper's eleven data sets: the default configuration, and one for each set.

    python experiments/accuracy.py [--data PTC ENZYMES ...] [--settings default own] [--to results/accuracy] [--jobs 2]

Ten stratified folds (seed 0), the honest protocol; settings of a set's own stand in experiments/accuracy.toml and were
chosen on inner validation (experiments/tuning.py). Every fold is kept in `runs/` as soon as it is done, so the script
can be stopped at any time and started anew; a whole set becomes a result file in the folder, those with own settings in
its subfolder `own`. `--table` prints the table of what is there, in Markdown, and runs nothing.
"""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from cells import arguments, markdown, percent, printed

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
PAGE: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def file_of(folder: Path, data: str, kind: str) -> Path:
    return folder / f"{data}.json" if kind == "default" else folder / kind / f"{data}.json"


def run(data: str, kind: str, folder: Path, jobs: int | None) -> None:
    settings = {} if kind == "default" else PAGE["own"].get(data)
    file = file_of(folder, data, kind)
    if settings is None or file.exists():
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
        found = {kind: file_of(folder, name, kind) for kind in ("default", "own")}
        there = {kind: Result.read(file) for kind, file in found.items() if file.exists()}
        if there:
            honest = [_rule(there.get(kind), "honest") for kind in found]
            spent = [f"{seconds(there[kind]) / 60:.0f}" if kind in there else "–" for kind in found]
            known = PAGE["known"].get(name)
            cells = [
                printed(name, "GCAPS-CNN"),
                *honest,
                _rule(there.get("default"), "gin"),
                _rule(there.get("own"), "gin"),
            ]
            rows.append([name, *cells, "–" if known is None else f"{known:.1f}", *spent])
    head = ["data set", "paper", "**default**", "**own settings**", "default, `gin`", "own, `gin`", "best honest known"]
    return markdown([*head, "default, min", "own, min"], rows)


def _rule(result: Result | None, rule: str) -> str:
    return "–" if result is None else percent(result.protocols[rule].mean, result.protocols[rule].std)


def main() -> None:
    parser = arguments(__doc__, "results/accuracy")
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--settings", nargs="+", default=["default", "own"], choices=["default", "own"])
    options = parser.parse_args()
    if not options.table:
        for kind in options.settings:
            for name in options.data:
                run(name, kind, options.to, options.jobs)
    print(table(options.data, options.to))


if __name__ == "__main__":
    main()
