"""``gcaps train``: a classifier from all graphs of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcaps.cli.arguments import Data, Seed
from gcaps.cli.options import with_config
from gcaps.config import Config


@with_config
def run(
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="Folder for the model.")],
    seed: Seed = 0,
    *,
    config: Config,
) -> None:
    """Train GCAPS-CNN on all graphs of a data set and save the classifier.

    How good it will be on new graphs is not for its training accuracy to say: ask [bold]gcaps evaluate[/bold].

    While it runs, the training is kept in MODEL.snapshot; stopped, it goes on from there when it is started again.
    Several processes share one training with torchrun: same batches, same result but for rounding.

    Example: [cyan]gcaps train MUTAG -o mutag-model --epochs 50[/cyan]

    Example: [cyan]torchrun --nproc-per-node 4 -m gcaps train graphs.zip -o model[/cyan]
    """
    import numpy as np
    from rich.console import Console

    from gcaps import persistence
    from gcaps.data.catalog import load
    from gcaps.nn.distributed import is_first_process
    from gcaps.training import fit, training_bar
    from gcaps.training.together import joined

    kept = output.with_name(output.name + ".snapshot")
    with joined(f"run the same command again: it goes on from {kept}"):
        graphs = load(data)
        console = None if is_first_process() else Console(quiet=True)
        with training_bar(graphs.name, config.passes(graphs.sizes), console=console) as report:
            model, curves, epoch = fit(
                graphs,
                np.arange(len(graphs)),
                config,
                seed,
                on_epoch=lambda done: report(0, done),
                snapshot=kept,
            )
        if not is_first_process():
            return
        persistence.save(model, output)
    parameters = sum(p.numel() for p in model.network.parameters())
    how = f", epoch {epoch}, training loss {curves.loss[epoch - 1]:.3f}" if curves.loss else ""
    Console().print(
        f"[bold]{output}[/bold]: {graphs.name}, {len(graphs)} graphs, {graphs.num_classes} classes, "
        f"{model.predictors}, {parameters:,} parameters{how}",
        highlight=False,
    )
