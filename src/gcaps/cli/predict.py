"""``gcaps predict``: classes and probabilities for graphs, as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcaps.cli.arguments import Data, Model


def run(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="CSV file; by default standard output.")
    ] = None,
) -> None:
    """Predict the class of every graph: a CSV row with the graph's id, the class and all probabilities.

    The graphs need no labels; where they have them, the accuracy is printed too.

    Example: [cyan]gcaps predict mutag-model MUTAG -o predictions.csv[/cyan]
    """
    import csv
    import io

    import numpy as np

    from gcaps.data.catalog import load
    from gcaps.files import write_text
    from gcaps.persistence import load_model

    estimator = load_model(model)
    graphs = load(data, labelled=False)
    probabilities = estimator.predict_proba(graphs)
    chosen = estimator.classes_[probabilities.argmax(axis=1)]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["graph", "class", *(f"p({name})" for name in estimator.classes_)])
    for graph, name, row in zip(graphs.ids, chosen, probabilities, strict=True):
        table.writerow([graph, name, *(f"{p:.6f}" for p in row)])
    if output is None:
        typer.echo(text.getvalue(), nl=False)
    else:
        write_text(output, text.getvalue())
        typer.echo(f"{output}: {len(graphs)} predictions", err=True)
    if graphs.y is not None:
        typer.echo(f"accuracy {np.mean(chosen == graphs.y):.1%} on {len(graphs)} labelled graphs", err=True)
