"""``gcaps predict``: classes and probabilities, or values, for graphs, as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcaps.cli.arguments import (
    Data,
    Model,
    reading_options,
    report_skipped,
    with_reading,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gcaps.data.arrays import Floats
    from gcaps.data.graphset import GraphSet
    from gcaps.data.targets import Target


@with_reading
def run(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="CSV file; by default standard output.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            min=0,
            max=1,
            help="Predict the second of two classes where its probability is above this (default 0.5).",
            show_default=False,
        ),
    ] = None,
    *,
    read: dict[str, Any],
) -> None:
    """Predict every graph: a CSV row with its id and its class and probabilities, or its values in their units.

    Rows come in the order of the input. A row that is not a graph, such as an invalid SMILES, stays empty and is
    reported. Graphs need no targets; where they have them, the metrics are printed too.

    Example: [cyan]gcaps predict mutag-model MUTAG -o predictions.csv[/cyan]

    Example: [cyan]gcaps predict esol-model new.csv --smiles structure -o solubility.csv[/cyan]
    """
    options = reading_options(data, **read, predicting=True)
    from gcaps.errors import ConfigError
    from gcaps.files import write_text
    from gcaps.persistence import load_model

    estimator = load_model(model)
    predicted = estimator.target_
    if threshold is not None and (predicted.classes is None or len(predicted.classes) != 2):
        raise ConfigError("--threshold is for two classes, or for binary targets")
    graphs = _read(data, options, predicted)
    scores = estimator.scores(graphs)
    text = "".join(_rows(graphs, predicted, scores, threshold))
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)
        typer.echo(f"{output}: {len(graphs):,} predictions", err=True)
    report_skipped(graphs)
    _warn_of_unseen(estimator, graphs)
    _print_metrics(graphs, predicted, scores)


def _read(data: str, options: dict[str, Any], predicted: Target) -> GraphSet:
    """Load the graphs, with targets of the names that the model predicts where the source has them."""
    from gcaps.data.catalog import load
    from gcaps.errors import DataError

    if options["target"] is not None:
        return load(data, **options)
    try:
        return load(data, **{**options, "target": list(predicted.names)})
    except DataError:
        return load(data, **options)


def _rows(graphs: GraphSet, target: Target, scores: Floats, threshold: float | None) -> Iterator[str]:
    """Yield the lines of the table; a row of the source that is not a graph has its id and nothing else."""
    import csv
    import io

    import numpy as np

    def line(cells: list[Any]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue()

    if target.classes is None:
        header, cells = list(target.names), [[f"{v:.6g}" for v in row] for row in scores]
    else:
        chosen = target.decode(scores)
        if threshold is not None:
            second = scores[:, 1] if target.task == "classification" else scores
            chosen = target.classes[(second > threshold).astype(np.int64)]
        shares = [[f"{p:.6f}" for p in row] for row in scores]
        if target.task == "classification":
            header = ["class", *(f"p({name})" for name in target.classes)]
            cells = [[name, *row] for name, row in zip(chosen, shares, strict=True)]
        else:
            header = [title for name in target.names for title in (name, f"p({name} = {target.classes[1]})")]
            cells = [
                [cell for pair in zip(names, row, strict=True) for cell in pair]
                for names, row in zip(chosen.tolist(), shares, strict=True)
            ]
    yield line(["graph", *header])
    skipped = {one.row: one.id for one in graphs.skipped}
    rows = zip(graphs.ids, cells, strict=True)
    for position in range(len(graphs) + len(skipped)):
        if position in skipped:
            yield line([skipped[position], *[""] * len(header)])
        else:
            name, row = next(rows)
            yield line([name, *row])


def _warn_of_unseen(estimator: Any, graphs: GraphSet) -> None:
    """Say which labels no training graph had: predictions for these graphs are guesses."""
    fitted = getattr(estimator, "fitted_", None)
    if fitted is None or not (found := fitted.features.unseen(graphs)):
        return
    if "smiles" in graphs.columns:  # the node labels of molecules are atomic numbers
        from rdkit.Chem import GetPeriodicTable

        symbol = GetPeriodicTable().GetElementSymbol
        found = [
            one._replace(kind="element", name=symbol(one.value)) if one.kind == "node label" and one.value else one
            for one in found
        ]
    listed = ", ".join(str(one) for one in found)
    typer.echo(f"warning: not in any training graph: {listed}; predictions for these graphs are guesses", err=True)


def _print_metrics(graphs: GraphSet, target: Target, scores: Floats) -> None:
    """Print the metrics of the task where the graphs have targets that the model knows."""
    if graphs.y is None:
        return
    import numpy as np

    from gcaps.data.targets import has_target
    from gcaps.evaluation.metrics import compute_metrics

    known = has_target(graphs.y)
    width = 1 if graphs.y.ndim == 1 else graphs.y.shape[1]
    kinds_agree = (graphs.y.dtype.kind == "U") == (target.classes is not None and target.classes.dtype.kind == "U")
    if not known.any() or width != len(target.names) or not kinds_agree:
        return
    found = compute_metrics(target, graphs.y[known], scores[known])
    shown = ", ".join(f"{name} {value:.3f}" for name, value in found.items() if np.isfinite(value))
    typer.echo(f"{shown} on {int(known.sum()):,} graphs with targets", err=True)
