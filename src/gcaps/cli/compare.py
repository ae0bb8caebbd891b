"""``gcaps compare``: cross-validate methods on data sets; an interrupted comparison is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import PREPARATION, READING, TaskName, compile_ahead, reading_options, with_reading
from gcaps.cli.evaluate import LearningCurve, MetricName, TrainSizes, curve_points, numbers


@with_reading
def run(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA...",
            help="Data sets, each as for [bold]gcaps evaluate[/bold]; none: continue with the plan in RUN. "
            "With --verify: records, folders of them, or runs.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="RUN", help="Folder of the comparison; its cells are not run again."),
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", metavar="NAME,…", help="Methods of gcaps evaluate, or all (default).")
    ] = None,
    task: TaskName = "auto",
    metric: MetricName = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            "--splits",
            metavar="HOW",
            help="stratified (default for classes), random (default otherwise), scaffold, scaffold-balanced, "
            "group:COLUMN, time:COLUMN, column:COLUMN, a JSON file of folds, or a folder with NAME.json for each set.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option("--folds", min=1, help="Number of folds (default 10); 1: a single division 80/10/10."),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option("--repeats", min=1, help="Repeat everything with so many seeds, and other folds.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="N,…", help="Seeds (default 0); --repeats N means 0,…,N−1.")
    ] = None,
    learning_curve: LearningCurve = None,
    train_sizes: TrainSizes = None,
    grid: Annotated[
        str | None,
        typer.Option(
            "--grid",
            metavar="FILE|default",
            help="TOML file with a table of settings for each method; lists are chosen from, on inner validation only.",
        ),
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option("--experiment", metavar="NAME|FILE", help="A TOML file, or one of gcaps' own, such as paper."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="Write the comparison as a record: FILE.json and FILE.npz."),
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Processes (default: all CPUs).")] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="tcp://HOST:PORT", help="A Dask scheduler, instead of --jobs.")
    ] = None,
    time_limit: Annotated[
        str | None, typer.Option("--time-limit", metavar="30m", help="Time of a cell; exceeding it is an outcome.")
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option("--memory-limit", metavar="4G", help="Memory of a cell; exceeding it is an outcome.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Run cells again that failed or exceeded a limit.", show_default=False)
    ] = False,
    reuse: Annotated[
        list[Path] | None,
        typer.Option(
            "--reuse",
            metavar="FILE",
            help="A record whose cells are taken instead of being run; repeat it for several.",
            show_default=False,
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Run a fold of each recorded result again and compare.", show_default=False),
    ] = False,
    fold: Annotated[
        int | None, typer.Option("--fold", min=0, help="With --verify: this one (default: the quickest).")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", metavar="NAME,…", help="With --verify: only these data sets and rows.")
    ] = None,
    *,
    read: dict[str, Any],
) -> None:
    """Cross-validate methods on data sets and keep every fold in a file of its own; targets are classes or numbers.

    It can be killed at any time: the same command resumes it, and only the cells that were running are repeated. The
    exit code is 0 if every cell is done and 11 if cells failed; --retry runs these again.

    Example: [cyan]gcaps compare MUTAG --methods gcaps,wl,gin,deepsets -o run[/cyan]

    On a cluster: [cyan]gcaps compare --experiment paper -o run --cluster tcp://head:8786[/cyan]

    Add to what was recorded: [cyan]gcaps compare --experiment paper -o run --reuse results/paper.json[/cyan]

    Can recorded results be reproduced? [cyan]gcaps compare --verify results/default.json[/cyan]
    """
    import shlex
    import sys

    from gcaps.errors import ConfigError, FailedCellsError
    from gcaps.evaluation.splits import Split

    if verify:
        _verify(data or [], fold, [] if only is None else only.split(","))
        return
    if output is None:
        raise ConfigError("say where the comparison is kept: -o RUN")
    if record is not None and record.suffix != ".json":
        raise ConfigError(f"{record}: a record's name ends in .json")
    given: dict[str, Any] = {
        "data": data or None,
        "methods": methods,
        "task": None if task == "auto" else task,
        "metric": metric,
        "folds": folds,
        "split": split,
        "repeats": repeats,
        "seeds": None if seeds is None else numbers(seeds, "--seeds", "0,1"),
        "train_sizes": curve_points(learning_curve, train_sizes) or None,
        "grid": grid,
        **read,
        "strict": read["strict"] or None,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if experiment is not None:
        given = {"experiment": _experiment(experiment, given)}
    elif "data" not in given and given:
        raise ConfigError(f"--{next(iter(given))} needs a data set; without one, the plan in {output} is continued")
    else:
        column = None if split is None else Split.parse(split).column
        options = {name: given.pop(name) for name in READING | PREPARATION if name in given}
        given["reading"] = reading_options(data, **options, columns=[column] if column else [])

    from gcaps.evaluation import compare
    from gcaps.evaluation.progress import comparison_progress
    from gcaps.report import print_comparison
    from gcaps.terminal import Terminal

    if cluster is None and experiment is None:
        compile_ahead(["gcaps"] if methods in (None, "all") else (methods or "").split(","))
    with comparison_progress() as report:
        found = compare(
            run=output,
            jobs=jobs,
            cluster=cluster,
            time_limit=time_limit,
            memory_limit=memory_limit,
            retry=retry,
            reuse=reuse or (),
            report=report,
            command=shlex.join(["gcaps", *sys.argv[1:]]),
            **given,
        )
    if record is not None:
        found.save(record)
    console = Terminal(highlight=False)
    print_comparison(found, console)
    console.print(f"as a page: gcaps report {output} -o report.html", markup=False, soft_wrap=True)
    failed = [outcome for outcome in found.outcomes if outcome.status != "done"]
    if failed:
        first = f"{failed[0].data} {failed[0].label} fold {failed[0].fold}: {failed[0].error}"
        said = f"{len(failed)} of {len(found.outcomes)} cells failed; --retry runs them again; the first: {first}"
        raise FailedCellsError(said)


def _experiment(name: str, given: dict[str, Any]) -> Any:
    """Return the experiment, overridden by the other options."""
    from gcaps.evaluation.experiments import read_experiment, read_grid
    from gcaps.evaluation.run import repeated

    found = read_experiment(name)
    options = {name: given.pop(name) for name in READING | PREPARATION if name in given}
    if options:
        given["reading"] = found.reading | reading_options(**options)
    if "repeats" in given:
        given["seeds"] = repeated(given.pop("seeds", found.seeds[:1]), given.pop("repeats"))
    if "data" in given:
        found = found.on(given.pop("data"))
    if "methods" in given:
        names = given["methods"]
        given["methods"] = names if names == "all" else tuple(part.strip() for part in names.split(","))
    if "grid" in given:
        given["grid"] = dict(read_grid(given["grid"]))
    return found.model_copy(update=given)


def _verify(paths: list[str], fold: int | None, only: list[str]) -> None:
    from gcaps.errors import ConfigError
    from gcaps.escaping import visible
    from gcaps.evaluation.verify import verify

    if not paths:
        raise ConfigError("--verify needs recorded results, such as results/default.json")
    verdicts = []
    for path in paths:
        for verdict in verify(path, fold, only):
            typer.echo(visible(verdict))
            verdicts.append(verdict.verdict)
    if set(verdicts) != {"same"}:  # what cannot be compared is not verified
        raise typer.Exit(1)
