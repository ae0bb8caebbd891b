"""``gcaps train``: a predictor from all graphs of a data set."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcaps.cli.arguments import (
    Data,
    MethodName,
    Seed,
    TaskName,
    compile_ahead,
    reading_bar,
    reading_options,
    report_skipped,
    with_reading,
)
from gcaps.cli.options import command_of
from gcaps.cli.signals import advising, meanings
from gcaps.errors import GcapsError

if TYPE_CHECKING:
    from gcaps.data.targets import Target


def command(arguments: Sequence[str]) -> Callable[..., None]:
    """Return the verb with the options of the method that the arguments name."""
    return command_of(run, arguments)


@with_reading
def run(
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="Folder for the model.")],
    method: MethodName = "gcaps",
    task: TaskName = "auto",
    seed: Seed = 0,
    calibrate: Annotated[
        str | None,
        typer.Option(
            "--calibrate",
            metavar="cross|split",
            help="Measure how far predictions can be trusted, for predict --uncertainty: in five inner folds (the "
            "fit takes about six times as long), or on one graph in five that is held out of the fit.",
            show_default=False,
        ),
    ] = None,
    *,
    read: dict[str, Any],
    config: Any,
) -> None:
    """Train a method on all graphs of a data set and save the classifier or regressor.

    How well it fits its training graphs does not tell how good it is on new ones: [bold]gcaps evaluate[/bold] does.

    While a network or an ensemble is trained, MODEL.checkpoint holds its state; an interrupted training is resumed from
    it when the command is started again. It is saved every 20 seconds; the environment variable
    GCAPS_CHECKPOINT_SECONDS sets another number, 0 saves after every epoch. With torchrun several processes share one
    training: same batches, same result up to rounding.

    Example: [cyan]gcaps train MUTAG -o mutag-model --epochs 50[/cyan]

    Example: [cyan]gcaps train ESOL.csv --target "measured log solubility in mols per litre" -o esol-model[/cyan]

    Example: [cyan]gcaps train MUTAG --method wl --class-weight balanced -o wl-model[/cyan]

    Example: [cyan]gcaps train MUTAG --method wl --calibrate cross -o wl-model[/cyan]

    The best answer in ten minutes: [cyan]gcaps train MUTAG --method ensemble --time-limit 10m -o model[/cyan]

    Example: [cyan]torchrun --nproc-per-node 4 -m gcaps train graphs.zip -o model[/cyan]
    """
    options = reading_options(data, **read)
    from functools import partial

    from rich.text import Text

    from gcaps.data.catalog import load
    from gcaps.data.targets import has_target, resolve_task
    from gcaps.estimators.auto import resolve
    from gcaps.estimators.calibrating import fit_calibrated, remove_folds, require_how
    from gcaps.estimators.problem import targets_of
    from gcaps.estimators.registry import make_estimator
    from gcaps.nn.distributed import is_first_process
    from gcaps.persistence import require_goal
    from gcaps.terminal import Terminal
    from gcaps.training import training_bar
    from gcaps.training.checkpoint import checkpoint_seconds
    from gcaps.training.distributed import LostProcessError, joined, started_by_torchrun

    require_goal(output)
    checkpoint_seconds()  # a wrong one is refused before anything is read
    how = None if calibrate is None else require_how(calibrate)
    checkpoint = output.with_name(output.name + ".checkpoint")
    if started_by_torchrun():  # which ends the other processes with SIGTERM when one is lost
        again = f"run the same command again: it resumes from {checkpoint}"
        lost = f"error: another process of this training has ended; {again}"
        meanings[signal.SIGTERM] = lost, LostProcessError.exit_code
    resumable = f"the same command resumes from {checkpoint}"
    with (
        joined(f"run the same command again: it resumes from {checkpoint}"),
        advising(lambda: resumable if checkpoint.exists() else ""),
    ):
        console = Terminal(stderr=True, quiet=not is_first_process(), highlight=False)
        with reading_bar(data, console) as progress:
            graphs = load(data, **options, progress=progress)
        report_skipped(graphs.skipped)
        known = has_target(targets_of(graphs))
        if not known.all():
            console.print(f"left out: {(~known).sum():,} graphs without a target")
            graphs = graphs[known]
        posed = resolve_task(targets_of(graphs), task, graphs.name)
        console.print(f"  task = {posed.task} ({'auto: ' if task == 'auto' else ''}{posed.reason})", markup=False)
        model = make_estimator(method, config, random_state=seed, task=posed.task)
        settings, resolution = resolve(config, graphs, task=posed.task)
        for entry in resolution:
            console.print(f"  {entry}", markup=False)
        if is_first_process():
            compile_ahead([method])
        fit: Callable[..., object] = model.fit_all if how is None else partial(fit_calibrated, model, how=how)
        if getattr(settings, "weights", "mean") != "mean":  # members, one after the other
            with console.status("") as status:

                def say(line: str) -> None:
                    console.print(f"  {line}", markup=False)
                    status.update(line)

                fit(graphs, say=say, checkpoint=checkpoint, keep_checkpoint=True)
        else:
            with training_bar(graphs.name, getattr(settings, "epochs", 1), console=console) as report:
                fit(
                    graphs,
                    on_epoch=lambda epoch: report(0, epoch),
                    checkpoint=checkpoint,
                    keep_checkpoint=True,
                )
        if not is_first_process():
            return
        try:
            model.save(output)
        except GcapsError as error:
            if checkpoint.exists():
                raise type(error)(f"{error}; {resumable}, without training again") from error
            raise
        model.remove_checkpoint(checkpoint)
        remove_folds(checkpoint)
    if found := getattr(model, "leaderboard_", []):
        from gcaps.report import leaderboard

        Terminal().print(leaderboard(found, model.target_.task))
    curves = model.curves_
    epochs = "" if curves is None else f", epoch {model.epoch_}, training loss {curves.loss[model.epoch_ - 1]:.3f}"
    errors = model.uncertainty_
    measured = "" if errors is None else f", calibrated on {errors.graphs:,} graphs"
    what = f"{graphs.name}, {len(graphs)} graphs, {in_words(model.target_)}, {model.describes}{epochs}{measured}"
    Terminal().print(Text.assemble((str(output), "bold"), f": {what}"), soft_wrap=True)


def in_words(target: Target) -> str:
    """Return what a model predicts."""
    if target.task == "classification" and target.classes is not None:
        return f"{len(target.classes)} classes"
    if target.task == "multilabel":
        return f"{len(target.names)} binary targets"
    return f"regression of {', '.join(target.names)}"
