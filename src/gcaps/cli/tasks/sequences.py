"""``gcaps tasks sequences``: forecasts of the values on the nodes of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import Seed
from gcaps.cli.tasks.predict import forecast_rows, write_table

Sequence = Annotated[
    Path,
    typer.Argument(
        metavar="SEQUENCE",
        help="JSON of PyTorch Geometric Temporal: edges, weights and X or FX [steps, nodes]; or edge_mapping and y.",
        show_default=False,
    ),
]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="Folder for the model.")]


def run(
    sequence: Sequence,
    output: Output,
    seed: Seed = 0,
    validation: Annotated[float, typer.Option(help="Share of the steps that choose lags and epoch.")] = 0.25,
    test: Annotated[int, typer.Option(help="Last steps that are kept back, and forecast for a score.")] = 0,
    forecasts: Annotated[
        Path | None,
        typer.Option(
            "--forecasts", metavar="FILE", help="CSV to write: what follows the last step.", show_default=False
        ),
    ] = None,
    *,
    config: Any,
) -> None:
    """Train a forecaster on a sequence of values on the nodes of a graph.

    The last steps validate; with --test, steps after them are not used for training at all. An interrupted training is
    resumed from MODEL.checkpoint.

    Example: [cyan]gcaps tasks sequences chickenpox.json -o model --test 104 --forecasts next.csv[/cyan]
    """
    from gcaps.files import require_file

    require_file(sequence)  # before torch is imported
    import shutil

    from gcaps.data.sequence import read_sequence
    from gcaps.errors import ConfigError
    from gcaps.persistence import require_goal
    from gcaps.tasks.sequences import CapsuleForecaster
    from gcaps.terminal import Terminal
    from gcaps.training.progress import training_bar

    require_goal(output)
    read = read_sequence(sequence)
    if not 0 <= test < len(read) or not 0 < validation < 1:
        raise ConfigError(f"--test is from 0 to {len(read) - 1} steps, --validation between 0 and 1")
    model = CapsuleForecaster(**{name: getattr(config, name) for name in type(config).model_fields})
    model.random_state = seed
    checkpoint = output.with_name(output.name + ".checkpoint")
    with training_bar(sequence.stem, config.epochs, console=Terminal(stderr=True), unit="steps") as report:
        past = read.until(len(read) - test)
        model.fit(past, validation=validation, checkpoint=checkpoint, on_epoch=lambda epoch: report(0, epoch))
    model.save(output)
    shutil.rmtree(checkpoint, ignore_errors=True)
    if forecasts is not None:
        write_table(forecasts, forecast_rows(model.predict(read)[-1]))
    epoch = f"epoch {model.epoch_}" if model.epoch_ else f"{model.base} alone, as no epoch was better"
    what = f"{len(read):,} steps, {read.num_nodes:,} nodes, {epoch}"
    score = f", R² of the last {test:,} steps {model.score(read, steps=test):.3f}" if test else ""
    Terminal().print(f"{output}: {what}{score}", markup=False, soft_wrap=True)
