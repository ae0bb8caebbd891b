"""``gcaps tune``: search the settings of a method on inner folds of a data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcaps.cli.arguments import Data, MethodName, Seed, TaskName, reading_bar, reading_options, with_reading
from gcaps.cli.evaluate import MetricName, SpaceFile
from gcaps.cli.options import command_of, method_in

if TYPE_CHECKING:
    from gcaps.evaluation.tuning_study import TuningStudy
    from gcaps.tuning import Trial


def command(arguments: Sequence[str]) -> Callable[..., None]:
    """Return the verb with the options of the method that the arguments name."""
    from gcaps.config.spaces import SPACES, search_space
    from gcaps.estimators.registry import config_class

    method = config_class(method_in(arguments)).method
    if method not in SPACES and not any(one.partition("=")[0] == "--space" for one in arguments):
        search_space(method)  # raises the error with the reason
    return command_of(run, arguments)


@with_reading
def run(
    data: Data,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="STUDY", help="Folder of the search; the same command continues what is there."
        ),
    ],
    method: MethodName = "gcaps",
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            min=1,
            metavar="N",
            help="Settings to try in all, the default among them (default: 50, or as many as --time-limit allows).",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option(
            "--time-limit",
            metavar="TIME",
            help="Begin no trial after 90s, 30m or 2h; one under way is finished by the next run.",
            show_default=False,
        ),
    ] = None,
    space: SpaceFile = None,
    task: TaskName = "auto",
    metric: MetricName = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            metavar="HOW",
            help="How inner folds are made: stratified (default for classes), random (default otherwise), scaffold, "
            "group:COLUMN or time:COLUMN; as the folds of the evaluation to come.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option("--folds", min=1, help="Inner folds; 1: a tenth of the graphs is held back.")
    ] = 5,
    pruner: Annotated[
        str,
        typer.Option(
            "--pruner",
            metavar="median|hyperband|none",
            help="Give a trial up when its first inner folds are worse than the median of others, or by Hyperband.",
        ),
    ] = "median",
    seed: Seed = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, help="Processes; with one, the same seed gives the same trials.")
    ] = 1,
    *,
    read: dict[str, Any],
    config: Any,
) -> None:
    """Search the settings of a method on inner folds of a data set, and write the best for [bold]gcaps train[/bold].

    The first trial has the default settings; Optuna proposes the others. Settings given as options are fixed, the rest
    of the method's search space is searched. STUDY gets best.toml, trials.csv, report.html and the search's journal.
    A search that was interrupted, even killed, is continued by the same command; a larger --trials adds to it.

    The inner score of the best trial is the best of several and so too optimistic. What tuning gives on new graphs says
    [bold]gcaps evaluate DATA --tune 20[/bold].

    Example: [cyan]gcaps tune MUTAG --method gin --trials 30 -o study[/cyan]

    then: [cyan]gcaps train MUTAG --config study/best.toml -o model[/cyan]

    Within ten minutes: [cyan]gcaps tune MUTAG --time-limit 10m --jobs 2 -o study[/cyan]

    Molecules: [cyan]gcaps tune BACE.csv --target Class --method ecfp --split scaffold -o study[/cyan]

    A space of one's own: [cyan]gcaps tune MUTAG --space space.toml -o study[/cyan]
    """
    column = None
    if split is not None and ":" in split:
        column = split.partition(":")[2]
    options = reading_options(data, **read, columns=[column] if column else [])
    import shlex
    import sys

    from gcaps.cli.signals import advising
    from gcaps.data.catalog import load
    from gcaps.evaluation.tuning_run import tune
    from gcaps.evaluation.tuning_study import BEST, FILE, TABLE, changed_settings
    from gcaps.files import exists, write_text
    from gcaps.report.tuning import tuning_page
    from gcaps.terminal import Terminal

    console = Terminal(stderr=True, highlight=False)
    with reading_bar(data, console) as progress:
        graphs = load(data, **options, progress=progress)
    with advising(lambda: f"the same command continues the search in {output}" if exists(output / FILE) else ""):
        with console.status("") as status:

            def on_fold(trial: Trial) -> None:
                status.update(f"trial {trial.number}, {len(trial.folds)} inner folds done")

            def on_trial(study: TuningStudy, trial: Trial) -> None:
                console.print(f"  {trial_line(study, trial)}", markup=False, soft_wrap=True)

            study = tune(
                *(graphs, method, output),
                trials=trials,
                time_limit=time_limit,
                config=config,
                space=space,
                metric=metric,
                split=split,
                folds=folds,
                pruner=pruner,  # type: ignore[arg-type]  # checked there
                seed=seed,
                jobs=jobs,
                task=task,
                command=shlex.join(["gcaps", *sys.argv[1:]]),
                on_trial=on_trial,
                on_fold=on_fold,
            )
        write_text(output / "report.html", tuning_page(study))
    best, default = study.best, study.default
    assert best.value is not None
    changed = changed_settings(study.plan.method, {**study.plan.settings, **best.changes})
    listed = ", ".join(f"{name} = {value}" for name, value in changed.items()) or "the default settings"
    out, text = Terminal(highlight=False), study.metric.text
    before = "" if default is None or default.value is None else f", default {text(default.value)}"
    out.print(
        f"best of {len(study.trials)}: inner {study.metric.heading} {text(best.value)}{before}: {listed}",
        markup=False,
        soft_wrap=True,
    )
    out.print(f"{output}: {BEST}, {TABLE}, report.html", markup=False, soft_wrap=True)
    train = f"gcaps train {shlex.quote(data)} --config {shlex.quote(str(output / BEST))} -o MODEL"
    out.print(f"train with it: {train}", markup=False, soft_wrap=True)


def trial_line(study: TuningStudy, trial: Trial) -> str:
    """Return a line about a finished trial."""
    settings = ", ".join(f"{name} {_short(value)}" for name, value in trial.changes.items())
    value = "" if trial.value is None else study.metric.text(trial.value)
    state = {"pruned": f"given up at {value}", "failed": f"failed: {trial.error}"}.get(trial.state, value)
    best = " *" if study.done and study.best.number == trial.number else ""
    return f"{trial.number:>3}  {state}{best}  {settings if trial.number else 'default settings'}"


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
