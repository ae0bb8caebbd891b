"""``gcaps train``: a classifier from all graphs of a data set."""

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
    output: Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="Folder for the model.")],
    method: MethodName = "gcaps",
    seed: Seed = 0,
    *,
    config: Any,
) -> None:
    """Train a method on all graphs of a data set and save the classifier.

    Its training accuracy does not tell how good it is on new graphs: [bold]gcaps evaluate[/bold] does.

    While a network is trained, MODEL.checkpoint holds its state; an interrupted training is resumed from it when the
    command is started again. With torchrun several processes share one training: same batches, same result up to
    rounding.

    Example: [cyan]gcaps train MUTAG -o mutag-model --epochs 50[/cyan]

    Example: [cyan]gcaps train MUTAG --method wl -o wl-model[/cyan]

    Example: [cyan]torchrun --nproc-per-node 4 -m gcaps train graphs.zip -o model[/cyan]
    """
    from rich.console import Console

    from gcaps.data.catalog import load
    from gcaps.estimators.auto import resolve
    from gcaps.estimators.registry import make_estimator
    from gcaps.nn.distributed import is_first_process
    from gcaps.training import training_bar
    from gcaps.training.distributed import joined

    checkpoint = output.with_name(output.name + ".checkpoint")
    with joined(f"run the same command again: it resumes from {checkpoint}"):
        graphs = load(data)
        console = Console(stderr=True, quiet=not is_first_process(), highlight=False)
        settings, resolution = resolve(config, graphs)
        for entry in resolution:
            console.print(f"  {entry}", markup=False)
        model = make_estimator(method, config, random_state=seed)
        with training_bar(graphs.name, getattr(settings, "epochs", 1), console=console) as report:
            model.fit_all(graphs, on_epoch=lambda epoch: report(0, epoch), checkpoint=checkpoint)
        if not is_first_process():
            return
        model.save(output)
    curves = model.curves_
    how = "" if curves is None else f", epoch {model.epoch_}, training loss {curves.loss[model.epoch_ - 1]:.3f}"
    Console().print(
        f"[bold]{output}[/bold]: {graphs.name}, {len(graphs)} graphs, {len(model.classes_)} classes, "
        f"{model.describes}{how}",
        highlight=False,
        soft_wrap=True,
    )
