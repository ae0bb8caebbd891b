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

    Example: [cyan]gcaps train MUTAG -o mutag-model --epochs 50[/cyan]
    """
    import numpy as np
    from rich.console import Console

    from gcaps import persistence
    from gcaps.data.catalog import load
    from gcaps.training import fit, training_bar

    graphs = load(data)
    with training_bar(graphs.name, config.epochs) as report:
        model, curves, epoch = fit(graphs, np.arange(len(graphs)), config, seed, on_epoch=lambda done: report(0, done))
    persistence.save(model, output)
    parameters = sum(p.numel() for p in model.network.parameters())
    Console().print(
        f"[bold]{output}[/bold]: {graphs.name}, {len(graphs)} graphs, {graphs.num_classes} classes, "
        f"{parameters:,} parameters, epoch {epoch}, training loss {curves.loss[epoch - 1]:.3f}",
        highlight=False,
    )
