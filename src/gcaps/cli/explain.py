"""``gcaps explain``: molecules with atoms colored by what they contribute to a prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import (
    Data,
    Model,
    reading_bar,
    reading_of,
    reading_options,
    report_skipped,
    with_model_reading,
)

FIRST = 12
"""Molecules that are explained where none is chosen."""


@with_model_reading
def run(
    model: Model,
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Page to write.")] = Path(
        "explanation.html"
    ),
    graph: Annotated[
        list[str] | None,
        typer.Option(
            "--graph",
            metavar="ID",
            help=f"Molecule to explain, by its id; may be repeated (default: the first {FIRST}).",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="NAME",
            help="Target of the model to explain, if it predicts several (default: the first).",
            show_default=False,
        ),
    ] = None,
    *,
    read: dict[str, Any],
) -> None:
    """Write a page with molecules whose atoms are colored by what they contribute to a prediction.

    The contribution of an atom is the prediction minus the prediction with the features of this atom hidden. Explained
    is the value, or the probability of the second of two classes; of more classes, that of the predicted one.

    Example: [cyan]gcaps explain esol-model ESOL.csv -o atoms.html[/cyan]

    Example: [cyan]gcaps explain tox21-model Tox21.csv --graph TOX3021 --target NR-AhR -o atoms.html[/cyan]
    """
    options = reading_options(data, target=None, **read, predicting=True)
    import shlex
    import sys

    from gcaps.data.catalog import load
    from gcaps.errors import DataError
    from gcaps.explain.contributions import explain
    from gcaps.files import write_text
    from gcaps.persistence import load_model
    from gcaps.report.explanation import chosen_graphs, explanation_page

    estimator = load_model(model)
    with reading_bar(data) as progress:
        graphs = load(data, progress=progress, **reading_of(estimator, options))
    if "smiles" not in graphs.columns:
        raise DataError("explains molecules only: a table with a column of SMILES, or an SDF", graphs.name)
    ids = [str(name) for name in graphs.ids.tolist()]
    places = chosen_graphs(ids, graph or (), FIRST)
    if -1 in places:
        name = (graph or [""])[places.index(-1)]
        raise DataError(f"has no molecule {name!r}; its molecules are called {', '.join(ids[:3])} and so on", data)
    found = explain(estimator, graphs.subset(places), target)
    if not any(values.any() for values in found.contributions):
        raise DataError("no atom changes a prediction: this model does not look at atoms, or predicts a constant", data)
    write_text(output, explanation_page(estimator, found, shlex.join(["gcaps", *sys.argv[1:]])))
    typer.echo(f"{output}: {len(places)} molecule{'s' if len(places) > 1 else ''} explained", err=True)
    report_skipped(graphs.skipped)
