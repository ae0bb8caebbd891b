"""``gcaps compare``: every method on every data set, in one command that can be stopped and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def run(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA...",
            help="Data sets, each as for [bold]gcaps evaluate[/bold]; none: go on with what OUTPUT holds. "
            "With --verify: recorded results, or folders of them.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="RUN", help="The comparison's folder; what it holds is not run again."),
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", metavar="NAME,…", help="Methods of gcaps evaluate, or all (default).")
    ] = None,
    folds: Annotated[int | None, typer.Option("--folds", min=2, help="Stratified folds (default 10).")] = None,
    splits: Annotated[
        Path | None,
        typer.Option("--splits", metavar="PATH", help="A file of folds, or a folder with NAME.json for each set."),
    ] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", metavar="N,…", help="Seeds (default 0).")] = None,
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
        typer.Option("--experiment", metavar="NAME|FILE", help="A comparison that is written down, such as paper."),
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Processes (default: all CPUs).")] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="tcp://HOST:PORT", help="A Dask scheduler, in place of --jobs.")
    ] = None,
    time_limit: Annotated[
        str | None, typer.Option("--time-limit", metavar="30m", help="Time of a cell; going over it is an outcome.")
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option("--memory-limit", metavar="4G", help="Memory of a cell; going over it is an outcome.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Run cells again that failed or went over a limit.", show_default=False)
    ] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Run a fold of each recorded result again and compare.", show_default=False),
    ] = False,
    fold: Annotated[
        int | None, typer.Option("--fold", min=0, help="With --verify: this one (default: the quickest).")
    ] = None,
) -> None:
    """Cross-validate methods on data sets and keep every fold in a file of its own.

    Kill it whenever you like: the same command goes on, and only what was under way is done again.

    Example: [cyan]gcaps compare MUTAG --methods gcaps,wl,gin,set -o run[/cyan]

    On a cluster: [cyan]gcaps compare --experiment paper -o run --cluster tcp://head:8786[/cyan]

    Are recorded results still true? [cyan]gcaps compare --verify results/accuracy[/cyan]
    """
    import shlex
    import sys

    from gcaps.errors import ConfigError

    if verify:
        _verify(data or [], fold)
        return
    if output is None:
        raise ConfigError("say where the comparison is kept: -o RUN")
    if experiment is not None:
        from gcaps.evaluation.experiments import read_experiment

        planned = read_experiment(experiment)
    else:
        planned = None
    given: dict[str, Any] = {
        "data": data or None,
        "methods": methods,
        "folds": folds,
        "splits": splits,
        "seeds": None if seeds is None else _numbers(seeds),
        "grid": grid,
        "time_limit": time_limit,
        "memory_limit": memory_limit,
    }
    settings = {} if planned is None else planned.model_dump(exclude={"description"})
    settings |= {name: value for name, value in given.items() if value is not None}
    if "data" in settings:
        settings["data"] = list(settings["data"])
    elif ignored := [name for name in ("methods", "folds", "splits", "seeds", "grid") if name in settings]:
        raise ConfigError(f"--{ignored[0]} needs a data set; without one, the plan in {output} is taken as it is")

    from rich.console import Console

    from gcaps.evaluation import compare
    from gcaps.evaluation.progress import comparison_progress
    from gcaps.report import print_comparison

    command = shlex.join(["gcaps", *sys.argv[1:]])
    with comparison_progress() as report:
        found = compare(run=output, jobs=jobs, cluster=cluster, retry=retry, report=report, command=command, **settings)
    console = Console(highlight=False)
    print_comparison(found, console)
    console.print(f"as a page: gcaps report {output} -o report.html", soft_wrap=True)


def _numbers(text: str) -> list[int]:
    from gcaps.errors import ConfigError

    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ConfigError(f"--seeds: {text!r} is not a list of numbers such as 0,1")
    return [int(part) for part in parts]


def _verify(paths: list[str], fold: int | None) -> None:
    from gcaps.errors import ConfigError
    from gcaps.evaluation.verify import verify

    if not paths:
        raise ConfigError("--verify needs recorded results, such as results/accuracy")
    verdicts = []
    for path in paths:
        for verdict in verify(path, fold):
            typer.echo(str(verdict))
            verdicts.append(verdict.verdict)
    if "different" in verdicts:
        raise typer.Exit(1)
