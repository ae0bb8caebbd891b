"""What the experiments share: cells (data set, method) as result files, and numbers as they stand in tables."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gcaps
from gcaps.data.graphset import GraphSet
from gcaps.evaluation import Fold, Result, evaluate
from gcaps.evaluation.published import published

PAGE: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("accuracy.toml").read_text(encoding="utf-8"))


def arguments(about: str | None, folder: str | Path) -> argparse.ArgumentParser:
    """What every experiment can be told: where its cells are, how many processes run, and to print its table only."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=Path(folder))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--table", action="store_true")
    return parser


def plain(graphs: GraphSet) -> dict[str, Any]:
    """The settings of the plain network of the paper: FGSD beside degrees where nodes have no labels."""
    settings = PAGE["plain"]
    return settings if graphs.node_labels is not None else settings | {"features": ["degree", "fgsd"]}


def cell_file(folder: Path, data: str, cell: str) -> Path:
    return folder / data / f"{cell.replace(', ', '-').replace(' ', '-')}.json"


def seed_file(folder: Path, data: str, cell: str, seed: int) -> Path:
    """The cell of another division of the set into folds."""
    return cell_file(folder, data, f"{cell}-seed{seed}" if seed else cell)


def seed_means(folder: Path, data: str, cell: str) -> list[float]:
    """Honest accuracy for each seed that a cell was run with, seed 0 first; none where it was not run with that."""
    first = cell_file(folder, data, cell)
    files = [first, *sorted(first.parent.glob(f"{first.stem}-seed*.json"))] if first.exists() else []
    return [Result.read(file).protocols["honest"].mean for file in files]


def run_cell(
    file: Path,
    data: str,
    method: str,
    options: str,
    config: dict[str, Any],
    splits: str | Path | Sequence[Fold] | None,
    jobs: int | None,
    seed: int = 0,
) -> None:
    """Evaluate a method and record it, unless that was done before."""
    if file.exists():
        return
    command = f"gcaps evaluate {data} --method {method}{options}" + (f" --seed {seed}" if seed else "")
    result = evaluate(gcaps.load(data), method, splits=splits, seed=seed, config=config, jobs=jobs, command=command)
    result.save(file)
    honest, seconds = result.protocols["honest"], sum(fold.seconds for fold in result.folds)
    print(f"{data}  {method}: {percent(honest.mean, honest.std)} in {seconds:,.0f} s", flush=True)


def percent(mean: float | None, std: float | None) -> str:
    if mean is None:
        return "–"
    return f"{100 * mean:.1f}" if std is None else f"{100 * mean:.1f} ± {100 * std:.1f}"


def printed(data: str, method: str, source: str = "paper") -> str:
    """What a source has in a cell, under the name that it gives to the method."""
    for row in published(data):
        if row.source == source and row.method == method:
            return row.status or percent(row.mean, row.std)
    return "–"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])
