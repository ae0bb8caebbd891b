"""``gcaps evaluate``: cross-validate one method, with the accuracy under every protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import Data, MethodName, Seed
from gcaps.cli.options import command_of


def command(arguments: Sequence[str]) -> Callable[..., None]:
    """Return the verb with the options of the method that the arguments name."""
    return command_of(run, arguments)


def run(
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the result as a record: FILE.json and FILE.npz."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with tables and figures here.")
    ] = None,
    method: MethodName = "gcaps",
    folds: Annotated[int, typer.Option("--folds", min=2, help="Stratified folds.")] = 10,
    splits: Annotated[
        Path | None, typer.Option("--splits", metavar="FILE", help="JSON file of folds, instead of --folds.")
    ] = None,
    seed: Seed = 0,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, help="Processes; the result does not depend on it (default: all CPUs)."),
    ] = None,
    *,
    config: Any,
) -> None:
    """Cross-validate a method on a data set; one run gives the accuracy under every protocol, the honest one first.

    honest: nothing of a test fold decides anything. last: last epoch. gin: one epoch for all folds, the best on the
    test folds. best: each fold's best test epoch. Many papers report one of the last two, which are optimistic.

    Example: [cyan]gcaps evaluate MUTAG -o result.json --html result.html[/cyan]

    Another method: [cyan]gcaps evaluate MUTAG --method gin --layers 3[/cyan]
    """
    import shlex
    import sys

    from rich.console import Console

    from gcaps.data.catalog import load
    from gcaps.errors import ConfigError, GcapsError
    from gcaps.estimators.auto import resolve
    from gcaps.evaluation import compare
    from gcaps.evaluation.splits import folds_of
    from gcaps.report import print_comparison, write_report
    from gcaps.training import training_bar

    if output is not None and output.suffix != ".json":
        raise ConfigError(f"{output}: a record's name ends in .json")
    graphs = load(data)
    parts = folds_of(graphs, folds, splits, seed)
    epochs = getattr(resolve(config, graphs, parts[0].train)[0], "epochs", 1)
    console = Console(highlight=False)
    with training_bar(f"{graphs.name}, {len(parts)} folds", epochs, len(parts)) as report:
        found = compare(
            data,
            {method: (method, config)},
            folds=folds,
            splits=splits,
            seeds=[seed],
            jobs=jobs,
            on_epoch=lambda cell, epoch: report(cell.fold, epoch),
            command=shlex.join(["gcaps", *sys.argv[1:]]),
        )
    for outcome in found.outcomes:
        if outcome.result is None:
            raise GcapsError(f"fold {outcome.fold}: {outcome.error}")
    if output is not None:
        found.save(output)
    if html is not None:
        write_report(found, html)
    for line in found.results()[0].folds[0].resolution:
        console.print(f"  {line}", markup=False)
    print_comparison(found, console)
