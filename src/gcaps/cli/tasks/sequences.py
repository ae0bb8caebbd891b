"""``gcaps tasks sequences``: forecasts of the values on the nodes of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import Seed
from gcaps.cli.tasks.predict import forecast_rows, write_table
from gcaps.cli.tasks.training import Output, fit_and_save, say

Sequence = Annotated[
    Path,
    typer.Argument(
        metavar="SEQUENCE",
        help="JSON of PyTorch Geometric Temporal: edges, weights and X or FX [steps, nodes]; or edge_mapping and y.",
        show_default=False,
    ),
]


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
    from gcaps.data.sequence import read_sequence
    from gcaps.errors import ConfigError
    from gcaps.persistence import require_goal
    from gcaps.tasks.sequences import CapsuleForecaster

    require_goal(output)
    read = read_sequence(sequence)
    if not 0 <= test < len(read) or not 0 < validation < 1:
        raise ConfigError(f"--test is from 0 to {len(read) - 1} steps, --validation between 0 and 1")
    model = CapsuleForecaster(**dict(config), random_state=seed)
    fit_and_save(model, read.until(len(read) - test), output, sequence.stem, validation=validation)
    if forecasts is not None:
        write_table(forecasts, forecast_rows(model.predict(read)[-1]))
    epoch = f"epoch {model.epoch_}" if model.epoch_ else f"{model.base} alone, as no epoch was better"
    score = f", R² of the last {test:,} steps {model.score(read, steps=test):.3f}" if test else ""
    say(output, f"{len(read):,} steps, {read.num_nodes:,} nodes, {epoch}{score}")
