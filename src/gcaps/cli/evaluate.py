"""``gcaps evaluate``: cross-validation, all protocols from one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import Data, Seed
from gcaps.cli.options import config_of, require_options, with_config
from gcaps.config import TrainingConfig


def command(arguments: Sequence[str]) -> Callable[..., None]:
    """The verb with the options of the method that the arguments name."""
    kind = config_of(arguments)
    made = with_config(run, kind)
    require_options(made, kind, arguments)
    return made


def run(
    data: Data,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the whole result here, as JSON.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with tables and pictures here.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="gcaps; networks dcnn, pscn, ecc, dgcnn, gin, set; kernels rw, sp, gk, wl, wloa, dgk, mlg; fgsd. "
            "Each has settings of its own; --method NAME --help lists them.",
        ),
    ] = "gcaps",
    folds: Annotated[int, typer.Option("--folds", min=2, help="Stratified folds.")] = 10,
    splits: Annotated[
        Path | None, typer.Option("--splits", metavar="FILE", help="JSON file of folds, in the place of --folds.")
    ] = None,
    seed: Seed = 0,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, help="Processes; the result does not depend on it (default: all CPUs)."),
    ] = None,
    *,
    config: Any,
) -> None:
    """Cross-validate a method on a data set; one run gives the number under every protocol, the honest one first.

    honest: nothing of a test fold decides anything. last: last epoch. gin: one epoch for all folds, the best on the
    test folds. best: each fold's best test epoch. The last two are what many papers print; they flatter.

    Example: [cyan]gcaps evaluate MUTAG -o result.json --html result.html[/cyan]

    Another method: [cyan]gcaps evaluate MUTAG --method gin --layers 3[/cyan]
    """
    import shlex
    import sys

    from rich.console import Console

    from gcaps.data.catalog import load
    from gcaps.evaluation import evaluate
    from gcaps.evaluation.folds import read_splits
    from gcaps.evaluation.gather import gather
    from gcaps.report import print_comparison, write_report
    from gcaps.training import training_bar

    graphs = load(data)
    count = folds if splits is None else len(read_splits(splits, len(graphs)))
    epochs = config.passes(graphs.sizes[len(graphs) // count :]) if isinstance(config, TrainingConfig) else 1
    with training_bar(f"{graphs.name}, {count} folds", epochs, count) as report:
        result = evaluate(
            graphs,
            method,
            folds=folds,
            splits=splits,
            seed=seed,
            config=config,
            jobs=jobs,
            report=report,
            command=shlex.join(["gcaps", *sys.argv[1:]]),
        )
    if output is not None:
        result.save(output)
    if html is not None:
        write_report(gather([result]), html)
    print_comparison(gather([result]), Console())
