"""``gcaps export``: a trained network as a file that runs without gcaps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import Model, reading_bar, reading_of, reading_options, report_skipped, with_model_reading


@with_model_reading
def run(
    model: Model,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write: .onnx, or .pt2 for a program of torch.export.",
            show_default=False,
        ),
    ],
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="DATA",
            help="Graphs to compare the file with the model on, the first 1,000 (default: made-up ones).",
            show_default=False,
        ),
    ] = None,
    edge_weights: Annotated[
        bool | None,
        typer.Option(
            "--edge-weights/--no-edge-weights",
            help="Whether the file takes weights of edges (default: where the graphs of --check have them).",
            show_default=False,
        ),
    ] = None,
    *,
    read: dict[str, Any],
) -> None:
    """Write a trained network to an ONNX file or a program of torch.export, which run without gcaps.

    Before the file appears it is run and compared with the model.

    Example: [cyan]gcaps export model -o model.onnx[/cyan]

    Example: [cyan]gcaps export model -o model.pt2 --check my-graphs.zip[/cyan]
    """
    options = reading_options(check, **read, predicting=True)
    from gcaps.exporting import export
    from gcaps.exporting.check import TOLERANCE
    from gcaps.exporting.support import fitted_network, format_of
    from gcaps.persistence import load_estimator
    from gcaps.terminal import Terminal

    format_of(output)
    estimator = load_estimator(model)
    fitted_network(estimator)  # before graphs are read
    graphs = None
    if check is not None:
        from gcaps.data.catalog import load

        with reading_bar(check) as progress:
            graphs = load(check, progress=progress, **reading_of(estimator, options))
    with Terminal(stderr=True).status(f"writing {output.name} and comparing it with the model"):
        found = export(estimator, output, graphs, weighted=edge_weights)
    names = ", ".join(f"{one.name} {' × '.join(map(str, one.shape))}" for one in found.inputs)
    typer.echo(f"{output}: {found.path.stat().st_size:,} bytes; takes {names}; computes {found.output}", err=True)
    apart = f"{found.difference:.1e} (at most {TOLERANCE:.0e})"
    typer.echo(f"largest difference from the model on {found.graphs:,} graphs: {apart}", err=True)
    if graphs is not None:
        report_skipped(graphs.skipped)
