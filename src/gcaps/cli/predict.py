"""``gcaps predict``: classes and probabilities, or values, for graphs, as CSV."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gcaps.cli.arguments import (
    Data,
    Model,
    reading_of,
    reading_options,
    report_skipped,
    streamed,
    with_model_reading,
)
from gcaps.cli.doubts import Doubts
from gcaps.predictions import decoded, unseen_in_words, unseen_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gcaps.data.arrays import Array, Floats
    from gcaps.data.graphset import GraphSet, Skipped
    from gcaps.data.targets import Target
    from gcaps.estimators.base import GraphEstimator
    from gcaps.estimators.predictor import NetworkPredictor
    from gcaps.features.structural import Unseen


@with_model_reading
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
    uncertainty: Annotated[
        bool,
        typer.Option(
            "--uncertainty",
            help="Add calibrated probabilities, sets of classes or intervals, and how similar each graph is to the "
            "training graphs; for a model trained with --calibrate.",
        ),
    ] = False,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage",
            metavar="X",
            help="Share of the sets or intervals that shall contain the truth (default 0.9).",
            show_default=False,
        ),
    ] = None,
    by_class: Annotated[
        bool,
        typer.Option("--by-class", help="Cover each class by itself as often, also rare ones; sets are larger."),
    ] = False,
    *,
    read: dict[str, Any],
) -> None:
    """Predict every graph: a CSV row with its id and its class and probabilities, or its values in their units.

    Rows come in the order of the input; a table of any size is predicted in bounded memory. A row that is not a graph,
    such as an invalid SMILES, stays empty and is reported. Molecules are prepared as those of the training were. Graphs
    need no targets; where they have them, the metrics are printed too.

    Example: [cyan]gcaps predict mutag-model MUTAG -o predictions.csv[/cyan]

    With --uncertainty there are also calibrated probabilities and the set of classes of each graph, as {a|b}, or
    lower and upper end of an interval; the similarity of the graph to the nearest training graph, the name of that
    graph, and whether this one is unlike anything seen.

    Example: [cyan]gcaps predict mutag-model MUTAG --uncertainty --coverage 0.95[/cyan]

    Example: [cyan]gcaps predict esol-model new.csv --smiles structure -o solubility.csv[/cyan]
    """
    options = reading_options(data, **read, predicting=True)
    from gcaps.errors import ConfigError
    from gcaps.escaping import visible
    from gcaps.files import output_text
    from gcaps.persistence import load_estimator, load_predictor

    estimator: Any = load_estimator(model) if uncertainty else load_predictor(model)
    predicted = estimator.target_
    if threshold is not None and (predicted.classes is None or len(predicted.classes) != 2):
        raise ConfigError("--threshold is for two classes, or for binary targets")
    if not uncertainty and (coverage is not None or by_class):
        raise ConfigError("--coverage and --by-class are about --uncertainty; give it, too")
    if _is_capsule_network(estimator):
        from gcaps.compile import require

        require(("prediction",))
    options = reading_of(estimator, options)
    tally = _Tally()
    doubts = Doubts.of(estimator, 0.9 if coverage is None else coverage, by_class=by_class) if uncertainty else None
    table = _rows(tally.of(_predictions(estimator, data, options, doubts)), predicted, threshold, doubts)
    if output is None:
        for line in table:
            # not echo, which takes codes for colors out of names
            sys.stdout.write(visible(line, keep="\n") if sys.stdout.isatty() else line)
    else:
        with output_text(output) as text:
            text.writelines(table)
        typer.echo(f"{output}: {tally.graphs:,} predictions", err=True)
    report_skipped(tally.skipped, tally.more_skipped)
    _warn_of_unseen(tally.unseen, molecules=estimator.preparation_ is not None)
    _print_metrics(tally, predicted)
    if doubts is not None:
        typer.echo(doubts.summary, err=True)


def _is_capsule_network(estimator: Any) -> bool:
    """Whether a model predicts with the compiled capsule layers."""
    fitted = getattr(estimator, "fitted_", None)
    return (
        fitted is not None
        and fitted.config.method in ("gcaps", "capsule-svm")
        and getattr(fitted.config, "device", "cpu") == "cpu"
    )


class _Piece(NamedTuple):
    """Graphs and their predictions."""

    graphs: GraphSet
    scores: Floats
    unseen: list[Unseen]
    doubts: list[list[str]] | None
    """Cells about the uncertainty of each graph."""


def _predictions(
    estimator: GraphEstimator | NetworkPredictor, data: str, options: dict[str, Any], doubts: Doubts | None
) -> Iterator[_Piece]:
    """Yield predictions piece by piece."""
    for graphs in streamed(data, options):
        scores = estimator.scores(graphs)
        cells = None if doubts is None else doubts.cells(graphs, scores)
        yield _Piece(graphs, scores, unseen_labels(estimator, graphs), cells)


class _Tally:
    """Counts, skipped rows, unseen labels and targets of all pieces, for the summary."""

    KEPT = 100
    """Number of skipped rows that are kept."""

    def __init__(self) -> None:
        self.graphs = self.more_skipped = 0
        self.skipped: list[Skipped] = []
        self.unseen: dict[tuple[str, int, int], Unseen] = {}
        self.y: list[Array] = []
        self.scores: list[Floats] = []

    def of(self, pieces: Iterator[_Piece]) -> Iterator[_Piece]:
        """Yield the pieces and count what is in them; those with targets are kept for the metrics."""
        for piece in pieces:
            self.graphs += len(piece.graphs)
            room = max(self.KEPT - len(self.skipped), 0)
            self.skipped += piece.graphs.skipped[:room]
            self.more_skipped += len(piece.graphs.skipped[room:])
            for one in piece.unseen:
                key = (one.kind, one.column, one.value)
                before = self.unseen[key].graphs if key in self.unseen else 0
                self.unseen[key] = one._replace(graphs=one.graphs + before)
            if piece.graphs.y is not None:
                self.y.append(piece.graphs.y)
                self.scores.append(piece.scores)
            yield piece


def _rows(pieces: Iterator[_Piece], target: Target, threshold: float | None, doubts: Doubts | None) -> Iterator[str]:
    """Yield the lines of the table, those of a piece at a time; a row that is not a graph has its id and no more."""
    import csv
    import io

    from gcaps.escaping import csv_cell

    position, header = 0, [*header_of(target), *([] if doubts is None else doubts.header)]
    for number, piece in enumerate(pieces):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if number == 0:
            writer.writerow(["graph", *map(csv_cell, header)])
        skipped = {one.row: one.id for one in piece.graphs.skipped}
        found = cells_of(target, piece.scores, threshold)
        if piece.doubts is not None:
            found = [[*own, *more] for own, more in zip(found, piece.doubts, strict=True)]
        rows = zip(piece.graphs.ids, found, strict=True)
        end = position + len(piece.graphs) + len(skipped)
        for row in range(position, end):
            if row in skipped:
                writer.writerow([csv_cell(skipped[row]), *[""] * len(header)])
            else:
                name, cells = next(rows)
                writer.writerow([csv_cell(str(name)), *map(csv_cell, cells)])
        position = end
        yield text.getvalue()


def header_of(target: Target) -> list[str]:
    """Return the names of the columns after that of the graph."""
    if target.classes is None:
        return list(target.names)
    if target.task == "classification":
        return ["class", *(f"p({name})" for name in target.classes)]
    return [title for name in target.names for title in (name, f"p({name} = {target.classes[1]})")]


def cells_of(target: Target, scores: Floats, threshold: float | None = None) -> list[list[Any]]:
    """Return the cells of each graph after its name."""
    if target.classes is None:
        return [[f"{v:.6g}" for v in row] for row in scores.tolist()]
    chosen = decoded(target, scores, threshold)
    shares = [[f"{p:.6f}" for p in row] for row in scores.tolist()]
    if target.task == "classification":
        return [[name, *row] for name, row in zip(chosen.tolist(), shares, strict=True)]
    return [
        [cell for pair in zip(names, row, strict=True) for cell in pair]
        for names, row in zip(chosen.tolist(), shares, strict=True)
    ]


def _warn_of_unseen(unseen: dict[tuple[str, int, int], Unseen], *, molecules: bool) -> None:
    """Warn about labels that no training graph had."""
    if not unseen:
        return
    from gcaps.escaping import visible

    found = [unseen_in_words(unseen[key], molecules=molecules) for key in sorted(unseen)]
    listed = ", ".join(str(one) for one in found[:8]) + (", …" if len(found) > 8 else "")
    typer.echo(
        f"warning: not in any training graph: {visible(listed)}; predictions for these graphs are guesses", err=True
    )


def _print_metrics(tally: _Tally, target: Target) -> None:
    """Print the metrics of the task where the graphs have targets that the model knows."""
    if not tally.y:
        return
    import numpy as np

    from gcaps.data.targets import has_target
    from gcaps.evaluation.metrics import compute_metrics

    y, scores = np.concatenate(tally.y), np.concatenate(tally.scores)
    known = has_target(y)
    width = 1 if y.ndim == 1 else y.shape[1]
    kinds_agree = (y.dtype.kind == "U") == (target.classes is not None and target.classes.dtype.kind == "U")
    if not known.any() or width != len(target.names) or not kinds_agree:
        return
    found = compute_metrics(target, y[known], scores[known])
    shown = ", ".join(f"{name} {value:.3f}" for name, value in found.items() if np.isfinite(value))
    typer.echo(f"{shown} on {int(known.sum()):,} graphs with targets", err=True)
