"""``gcaps evaluate``: cross-validate one method, with every metric of the task and the headline one by protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import (
    Data,
    MethodName,
    Seed,
    TaskName,
    reading_options,
    with_reading,
)
from gcaps.cli.options import command_of

MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Headline metric: accuracy (default for classes), balanced_accuracy, f1, mcc, roc_auc (default for "
        "multilabel), pr_auc, log_loss, brier; rmse (default for numbers), mae, r2, spearman.",
        show_default=False,
    ),
]
SplitBy = Annotated[
    str | None,
    typer.Option(
        "--split",
        "--splits",
        metavar="HOW",
        help="stratified (default for classes), random (default otherwise), scaffold, group:COLUMN, time:COLUMN, "
        "column:COLUMN (says train, validation or test), or a JSON file of folds.",
        show_default=False,
    ),
]


def command(arguments: Sequence[str]) -> Callable[..., None]:
    """Return the verb with the options of the method that the arguments name."""
    return command_of(run, arguments)


@with_reading
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
    task: TaskName = "auto",
    metric: MetricName = None,
    split: SplitBy = None,
    folds: Annotated[int, typer.Option("--folds", min=1, help="Number of folds; 1: a single division 80/10/10.")] = 10,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Repeat everything with so many seeds, and other folds.")
    ] = 1,
    seed: Seed = 0,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, help="Processes; the result does not depend on it (default: all CPUs)."),
    ] = None,
    *,
    read: dict[str, Any],
    config: Any,
) -> None:
    """Cross-validate a method on a data set: classes, several binary targets, or numbers.

    Of the accuracy of classes one run gives four protocols. honest: nothing of a test fold decides anything. last: last
    epoch. gin: one epoch for all folds, the best on the test folds. best: each fold's best test epoch. Many papers
    report one of the last two, which are optimistic. Other metrics are honest.

    Example: [cyan]gcaps evaluate MUTAG -o result.json --html result.html[/cyan]

    Another method: [cyan]gcaps evaluate MUTAG --method gin --layers 3[/cyan]

    Molecules: [cyan]gcaps evaluate BACE.csv --target Class --split scaffold --metric roc_auc --repeats 3[/cyan]
    """
    import shlex
    import sys

    from gcaps.errors import ConfigError, GcapsError
    from gcaps.evaluation.splits import Split

    if output is not None and output.suffix != ".json":
        raise ConfigError(f"{output}: a record's name ends in .json")
    column = None if split is None else Split.parse(split).column
    reading = reading_options(data, **read, columns=[column] if column else [])

    from rich.console import Console

    from gcaps.estimators.auto import resolve
    from gcaps.evaluation.experiments import Evaluation, named_methods, rows_of
    from gcaps.evaluation.plan import Limits, make_plan
    from gcaps.evaluation.run import repeated, run_plan
    from gcaps.report import print_comparison, write_report
    from gcaps.training import training_bar

    console = Console(highlight=False)
    how = Evaluation(folds, split, repeated([seed], repeats), task, metric, reading)
    rows = rows_of(data, named_methods({method: (method, config)}), how)
    plan, memory = make_plan(rows, Limits(), shlex.join(["gcaps", *sys.argv[1:]]))
    planned, graphs = plan.data[0], memory.graphs[plan.data[0].name]
    for line in introduction(planned, chosen=task != "auto", metric_given=metric is not None):
        console.print(f"  {line}", markup=False, soft_wrap=True)
    cells = [cell.key for cell in plan.cells()]
    epochs = getattr(resolve(config, graphs, planned.fold(graphs, plan.seeds[0], 0).train)[0], "epochs", 1)
    with training_bar(f"{graphs.name}, {len(cells)} fold{'s' if len(cells) > 1 else ''}", epochs, len(cells)) as report:
        found = run_plan(plan, memory, jobs, on_epoch=lambda cell, epoch: report(cells.index(cell.key), epoch))
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


def introduction(planned: Any, *, chosen: bool, metric_given: bool) -> list[str]:
    """Lines about what is evaluated: task, metric and folds, each with its reason."""
    from gcaps.evaluation.metrics import metric_for

    several = f", {len(planned.targets)} targets" if len(planned.targets) > 1 else ""
    named = f" of {planned.targets[0]}" if len(planned.targets) == 1 and planned.targets[0] != "y" else ""
    metric = metric_for(planned.task, planned.metric)
    reason = "asked for" if metric_given else f"default of {planned.task}"
    direction = "" if metric.greater_is_better else ", lower is better"
    seed = next(iter(planned.folds))
    return [
        f"task = {planned.task}{named}{several} ({'' if chosen else 'auto: '}{planned.reason})",
        f"metric = {metric.name} ({reason}{direction})",
        f"folds = {planned.origin(int(seed))}"
        + (f", {len(planned.folds)} repetitions" if len(planned.folds) > 1 else ""),
    ]
