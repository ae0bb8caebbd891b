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
    compile_ahead,
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
        "multilabel), pr_auc, enrichment (factor at 1 %), log_loss, brier; rmse (default for numbers), mae, r2, "
        "spearman.",
        show_default=False,
    ),
]
SplitBy = Annotated[
    str | None,
    typer.Option(
        "--split",
        "--splits",
        metavar="HOW",
        help="stratified (default for classes), random (default otherwise), scaffold, scaffold-balanced, "
        "group:COLUMN, time:COLUMN, column:COLUMN (says train, validation or test), or a JSON file of folds.",
        show_default=False,
    ),
]

LearningCurve = Annotated[
    int | None,
    typer.Option(
        "--learning-curve",
        metavar="N",
        min=2,
        help="Also train on parts of each fold's training graphs: N sizes, each half of the next.",
        show_default=False,
    ),
]
TrainSizes = Annotated[
    str | None,
    typer.Option(
        "--train-sizes",
        metavar="N,…",
        help="The same with these sizes, such as 100,300,1000.",
        show_default=False,
    ),
]

Tune = Annotated[
    int | None,
    typer.Option(
        "--tune",
        metavar="TRIALS",
        min=1,
        help="Search the settings of each fold in so many trials on inner folds of its training graphs (gcaps tune); "
        "the estimate stays honest, and takes about TRIALS × inner folds times as long.",
        show_default=False,
    ),
]
TuneFolds = Annotated[
    int, typer.Option("--tune-folds", metavar="N", min=1, help="Inner folds of --tune.", show_default=True)
]
SpaceFile = Annotated[
    Path | None,
    typer.Option(
        "--space",
        metavar="FILE",
        help="TOML file with the settings to search, a table for each method: hidden = [16, 32, 64], or "
        "lr = {low = 0.001, high = 0.1, log = true} (default: the method's own space).",
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
    learning_curve: LearningCurve = None,
    train_sizes: TrainSizes = None,
    tune: Tune = None,
    tune_folds: TuneFolds = 5,
    space: SpaceFile = None,
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

    Molecules: [cyan]gcaps evaluate BACE.csv --target Class --split scaffold-balanced --folds 1 --repeats 3[/cyan]

    Is tuning worth it? [cyan]gcaps evaluate MUTAG --tune 20[/cyan] searches inside each fold.

    How much would more data help? [cyan]gcaps evaluate MUTAG --learning-curve 5[/cyan]
    """
    import shlex
    import sys

    from gcaps.errors import ConfigError, GcapsError
    from gcaps.evaluation.splits import Split

    if output is not None and output.suffix != ".json":
        raise ConfigError(f"{output}: a record's name ends in .json")
    if space is not None and tune is None:
        raise ConfigError("--space is about --tune; give it, too")
    sizes = curve_points(learning_curve, train_sizes)
    column = None if split is None else Split.parse(split).column
    reading = reading_options(data, **read, columns=[column] if column else [])

    from gcaps.estimators.auto import resolve
    from gcaps.evaluation.experiments import Evaluation, named_methods, rows_of
    from gcaps.evaluation.plan import Limits
    from gcaps.evaluation.planning import make_plan
    from gcaps.evaluation.run import repeated, tuned_row
    from gcaps.evaluation.runner import run_plan
    from gcaps.report import print_comparison, write_report
    from gcaps.terminal import Terminal
    from gcaps.training import training_bar

    console = Terminal(highlight=False)
    how = Evaluation(folds, split, repeated([seed], repeats), task, metric, reading, sizes)
    rows = rows_of(data, named_methods({method: (method, config)}), how)
    if tune is not None:
        rows = [tuned_row(row, tune, tune_folds, space) for row in rows]
    plan, memory = make_plan(rows, Limits(), shlex.join(["gcaps", *sys.argv[1:]]))
    planned, graphs = plan.data[0], memory.graphs[plan.data[0].name]
    for line in introduction(planned, chosen=task != "auto", metric_given=metric is not None):
        console.print(f"  {line}", markup=False, soft_wrap=True)
    if note := leakage_note(planned, graphs):
        console.print(f"  {note}", markup=False, soft_wrap=True)
    compile_ahead([method])
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
    if tune is not None:
        for outcome in found.outcomes:
            console.print(f"  {chosen_settings(outcome)}", markup=False, soft_wrap=True)
    print_comparison(found, console)


def chosen_settings(outcome: Any) -> str:
    """Describe the settings chosen for a fold, with their inner metric and that of the default."""
    from gcaps.evaluation.tuning_study import changed_settings

    changed = changed_settings(outcome.method, outcome.config)
    listed = ", ".join(f"{name} = {value}" for name, value in changed.items()) or "the default settings"
    inner = next((tried["inner"] for tried in outcome.candidates if tried["config"] == outcome.config), None)
    first = outcome.candidates[0]["inner"] if outcome.candidates else None
    values = "" if inner is None or first is None else f" (inner {inner:.4g}, default {first:.4g})"
    return f"fold {outcome.fold}: {listed}{values}"


def curve_points(learning_curve: int | None, train_sizes: str | None) -> int | list[int]:
    """Return the points of a learning curve from the options: their number, the sizes, or none.

    Raises:
        ConfigError: both are given, or the sizes are not numbers.
    """
    from gcaps.errors import ConfigError

    if learning_curve is not None and train_sizes is not None:
        raise ConfigError("give --learning-curve or --train-sizes, not both")
    if train_sizes is None:
        return [] if learning_curve is None else learning_curve
    return numbers(train_sizes, "--train-sizes", "100,300")


def numbers(text: str, option: str, example: str) -> list[int]:
    """Parse the comma-separated numbers of an option.

    Raises:
        ConfigError: they are not numbers.
    """
    from gcaps.errors import ConfigError

    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ConfigError(f"{option}: {text!r} is not a list of numbers such as {example}")
    return [int(part) for part in parts]


def leakage_note(planned: Any, graphs: Any) -> str:
    """Return a note on similar test and training molecules, if folds are random and there are many."""
    from gcaps.evaluation.leakage import NOTABLE, molecule_leakage

    if planned.splits is not None or planned.split not in ("random", "stratified") or "smiles" not in graphs.columns:
        return ""
    found = molecule_leakage(graphs, planned.all_folds(graphs, int(next(iter(planned.folds)))))
    if found is None or found.scaffold_share < NOTABLE:
        return ""
    return f"{found}; --split scaffold-balanced tests on new scaffolds"


def introduction(planned: Any, *, chosen: bool, metric_given: bool) -> list[str]:
    """Return lines on task, metric and folds, each with its reason."""
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
