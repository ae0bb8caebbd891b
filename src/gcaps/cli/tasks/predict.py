"""``gcaps tasks predict``: predictions of a saved model of nodes, links or sequences, or new graphs of a generator."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import Seed


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that gcaps tasks wrote.")],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help="A graph as .npz for a model of nodes, a CSV file with two columns of node numbers for one of links, "
            "JSON for one of sequences; nothing for a generator.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="CSV file; by default standard output. Of a generator the graphs, as for gcaps data convert: "
            "NAME.gset, .json, .graphml and so on.",
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, help="Number of graphs to generate.")] = 100,
    seed: Seed = 0,
) -> None:
    """Predict with a model that gcaps tasks has trained.

    A row is a node with its class and the probability of each class; a pair of nodes with the probability of a link; or
    a node with its values in the steps that follow the last one.

    Example: [cyan]gcaps tasks predict cora-model cora.npz -o nodes.csv[/cyan]

    Example: [cyan]gcaps tasks predict generator --count 20 -o new.gset[/cyan]
    """
    from gcaps.errors import ConfigError
    from gcaps.files import require_file

    if data is not None:
        require_file(data)  # before torch is imported
    from gcaps.persistence import load_model
    from gcaps.tasks import CapsuleForecaster, CapsuleGraphGenerator, CapsuleLinkPredictor, CapsuleNodeClassifier

    loaded = load_model(model)
    if isinstance(loaded, CapsuleGraphGenerator):
        if data is not None or output is None:
            raise ConfigError(f"{model} generates graphs: it takes no DATA, and needs -o FILE, such as new.gset")
        from gcaps.data.catalog import convert

        convert(loaded.sample(count, random_state=seed), output, labelled=False)
        typer.echo(f"{output}: {count:,} graphs", err=True)
        return
    if not isinstance(loaded, CapsuleNodeClassifier | CapsuleLinkPredictor | CapsuleForecaster):
        raise ConfigError(f"{model} is a model of graphs; gcaps predict uses it")
    if data is None:
        wanted = {CapsuleNodeClassifier: "a graph (.npz)", CapsuleLinkPredictor: "pairs of nodes (.csv)"}
        raise ConfigError(f"{model} needs DATA: {wanted.get(type(loaded), 'a sequence (.json)')}")
    if isinstance(loaded, CapsuleNodeClassifier):
        from gcaps.tasks.graph import NodeGraph

        rows: Iterable[Sequence[Any]] = node_rows(loaded, NodeGraph.read(data))
    elif isinstance(loaded, CapsuleLinkPredictor):
        rows = _link_rows(loaded, _read_pairs(data))
    else:
        from gcaps.data.sequence import read_sequence

        rows = forecast_rows(loaded.predict(read_sequence(data))[-1])
    written = write_table(output, rows)
    if output is not None:
        typer.echo(f"{output}: {written:,} predictions", err=True)


def node_rows(model: Any, graph: Any) -> Iterator[Sequence[Any]]:
    """Yield a header and a row for each node: its number, its class, and the probability of each class."""
    from gcaps.cli.predict import cells_of, header_of

    yield ["node", *header_of(model.target_)]
    for node, cells in enumerate(cells_of(model.target_, model.predict_proba(graph))):
        yield [node, *cells]


def forecast_rows(ahead: Any) -> Iterator[Sequence[Any]]:
    """Yield a header and a row for each node: its number, and its value in each step ahead [n, H]."""
    yield ["node", *(f"+{step}" for step in range(1, ahead.shape[1] + 1))]
    for node, row in enumerate(ahead):
        yield [node, *(f"{value:.6g}" for value in row)]


def _link_rows(model: Any, pairs: Any) -> Iterator[Sequence[Any]]:
    yield ["source", "target", "p(link)"]
    for (one, other), p in zip(pairs.tolist(), model.predict_proba(pairs), strict=True):
        yield [one, other, f"{p:.6f}"]


def _read_pairs(path: Path) -> Any:
    """Return the pairs of node numbers [m, 2] of a CSV or TSV file; its first line may be a header."""
    import re

    import numpy as np

    from gcaps.errors import DataError
    from gcaps.files import read_bytes

    pairs = []
    for line, text in enumerate(read_bytes(path).decode("utf-8", errors="replace").splitlines(), start=1):
        fields = re.split(r"\s*[,;\t ]\s*", text.strip().lstrip("\ufeff"))
        if len(fields) == 2 and all(re.fullmatch(r"[0-9]{1,18}", field) for field in fields):
            pairs.append([int(field) for field in fields])
        elif text.strip() and line > 1:
            raise DataError("is not a pair of node numbers, such as 0,7", str(path), line)
    if not pairs:
        raise DataError("has no pairs of node numbers, such as 0,7", str(path))
    return np.array(pairs, dtype=np.int64)


def write_table(path: Path | None, rows: Iterable[Sequence[Any]]) -> int:
    """Write a CSV file, or to standard output; return the number of rows after the header."""
    import csv
    import io

    from gcaps.escaping import csv_cell, visible
    from gcaps.files import output_text

    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    written = -1
    for row in rows:
        table.writerow([csv_cell(cell) for cell in row])
        written += 1
    if path is None:
        sys.stdout.write(visible(text.getvalue(), keep="\n") if sys.stdout.isatty() else text.getvalue())
    else:
        with output_text(path) as file:
            file.write(text.getvalue())
    return written
