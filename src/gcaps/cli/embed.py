"""``gcaps embed``: vectors of graphs as a table, their nearest neighbors, and a map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from gcaps.data.arrays import Floats
    from gcaps.data.graphset import GraphSet, Skipped
    from gcaps.estimators.base import GraphEstimator
    from gcaps.estimators.vectors import GraphVectors
    from gcaps.report.embedding import EmbeddedPart


@with_model_reading
def run(
    model: Model,
    data: Data,
    output: Annotated[
        list[Path],
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write: .npz, .csv or .parquet for the vectors, .html for the map; may be repeated.",
            show_default=False,
        ),
    ],
    neighbors: Annotated[
        int | None,
        typer.Option(
            "--neighbors",
            metavar="K",
            min=1,
            help="Also write the K nearest graphs of each graph, with their distances, to NEIGHBORS.",
            show_default=False,
        ),
    ] = None,
    neighbors_output: Annotated[
        Path | None,
        typer.Option(
            "--neighbors-output",
            metavar="NEIGHBORS",
            help="CSV file for the neighbors (default: the name of the first FILE with .neighbors.csv).",
            show_default=False,
        ),
    ] = None,
    among: Annotated[
        str | None,
        typer.Option(
            "--among",
            metavar="DATA2",
            help="Graphs to find neighbors among, such as those of the training (default: DATA itself).",
            show_default=False,
        ),
    ] = None,
    distance: Annotated[
        str, typer.Option("--distance", metavar="euclidean|cosine", help="Distance of two vectors.")
    ] = "euclidean",
    projection: Annotated[
        str,
        typer.Option(
            "--projection",
            metavar="pca|tsne",
            help="How the map flattens vectors: plane of the largest variance; or t-SNE, which keeps neighbors close.",
        ),
    ] = "pca",
    *,
    read: dict[str, Any],
) -> None:
    """Write the vector of every graph, as the model sees it, beside its id and prediction.

    Of networks the vector before the fully connected layers, of trees the histogram or fingerprint, of kernels Nyström
    features on the support graphs. A table or a saved set of any size is read piece by piece. Graphs need no targets;
    rows that are no graphs are left out and reported. Molecules are prepared as those of the training were.

    Example: [cyan]gcaps embed model MUTAG -o vectors.npz[/cyan]   (arrays ids, vectors, predictions, scores, columns)

    Example: [cyan]gcaps embed model MUTAG -o vectors.csv -o map.html --projection tsne[/cyan]

    What is like my molecules? [cyan]gcaps embed model new.csv -o new.npz --neighbors 5 --among train.csv[/cyan]
    """
    options = reading_options(data, **read, predicting=True)
    from gcaps.errors import ConfigError

    if neighbors is None and (among is not None or neighbors_output is not None):
        raise ConfigError("--among and --neighbors-output are about --neighbors; give it, too")
    if distance not in ("euclidean", "cosine") or projection not in ("pca", "tsne"):
        raise ConfigError("--distance is euclidean or cosine, --projection is pca or tsne")
    maps = [path for path in output if path.suffix.lower() == ".html"]
    import tempfile
    from contextlib import ExitStack

    import numpy as np

    from gcaps.cli.vector_files import Rows, writer_of
    from gcaps.estimators.vectors import GraphVectors
    from gcaps.persistence import load_estimator

    writers = [(path, writer_of(path)) for path in output if path not in maps]
    estimator = load_estimator(model)
    vectors_of = GraphVectors(estimator)
    options = reading_of(estimator, options)
    skipped: list[Skipped] = []
    sampled = _Sample() if maps else None
    count = width = 0
    names: list[str] = []
    from gcaps.cli.predict import cells_of, header_of

    with ExitStack() as stack:
        files = [stack.enter_context(opened(path)) for path, opened in writers]
        kept = stack.enter_context(tempfile.TemporaryFile()) if neighbors is not None else None
        for graphs in streamed(data, options):
            skipped += graphs.skipped
            if not len(graphs):
                continue
            vectors, scores = vectors_of(graphs), estimator.scores(graphs)
            ids = [str(name) for name in graphs.ids.tolist()]
            target = estimator.target_
            rows = Rows(ids, header_of(target), cells_of(target, scores), target.decode(scores), scores, vectors)
            for file in files:
                file.add(rows)
            count, width = count + len(ids), vectors.shape[1]
            if kept is not None:
                names += ids
                kept.write(np.ascontiguousarray(vectors, np.float64).tobytes())
            if sampled is not None:
                sampled.add(graphs, vectors, scores)
        if not count:
            raise ConfigError(f"{data}: has no graphs to embed")
        if neighbors is not None and kept is not None:
            goal = neighbors_output or output[0].with_name(output[0].stem + ".neighbors.csv")
            kept.flush()
            own = np.memmap(kept, np.float64, "r", shape=(count, width)) if width else np.zeros((count, 0))
            others = _others(among, estimator, vectors_of, options)
            _write_neighbors(goal, names, own, others, neighbors, distance)
            most = min(neighbors, len(names) - 1 if others is None else len(others[0]))
            typer.echo(f"{goal}: {most} nearest of {among or data} for {count:,} graphs", err=True)
    for path, _ in writers:
        typer.echo(f"{path}: {count:,} vectors of {width} numbers", err=True)
    if sampled is not None:
        import shlex
        import sys

        from gcaps.files import write_text
        from gcaps.report.embedding import embedding_page

        page = embedding_page(
            sampled.parts,
            estimator.target_,
            total=count,
            projection=projection,  # type: ignore[arg-type]  # checked above
            describes=vectors_of.describes,
            command=shlex.join(["gcaps", *sys.argv[1:]]),
        )
        for path in maps:
            write_text(path, page)
            typer.echo(f"{path}: map of {sum(len(part.graphs) for part in sampled.parts):,} graphs", err=True)
    report_skipped(skipped[:100], len(skipped[100:]))


class _Sample:
    """Random sample of a stream of graphs for the map: the graphs with the smallest random numbers are kept."""

    def __init__(self) -> None:
        import numpy as np

        self._random = np.random.default_rng(0)
        self._draws: list[Any] = []
        self.parts: list[EmbeddedPart] = []

    def add(self, graphs: GraphSet, vectors: Floats, scores: Floats) -> None:
        """Add a piece; drop graphs that cannot belong to the sample."""
        import numpy as np

        from gcaps.report.embedding import MOST, EmbeddedPart

        self._draws.append(self._random.random(len(graphs)))
        self.parts.append(EmbeddedPart(graphs, vectors, scores))
        every = np.concatenate(self._draws)
        if len(every) <= MOST:
            return
        limit = float(np.partition(every, MOST - 1)[MOST - 1])
        before, self._draws, self.parts = list(zip(self._draws, self.parts, strict=True)), [], []
        for draws, part in before:
            if len(here := np.flatnonzero(draws <= limit)):
                self._draws.append(draws[here])
                self.parts.append(EmbeddedPart(part.graphs.subset(here), part.vectors[here], part.scores[here]))


def _others(
    among: str | None, estimator: GraphEstimator, vectors_of: GraphVectors, options: dict[str, Any]
) -> tuple[list[str], Floats, list[str]] | None:
    """Return ids, vectors and known targets of the graphs to find neighbors among; None: those of DATA itself."""
    if among is None:
        return None
    import numpy as np

    names: list[str] = []
    parts: list[Floats] = []
    truth: list[str] = []
    for graphs in streamed(among, options):
        if len(graphs):
            names += [str(name) for name in graphs.ids.tolist()]
            parts.append(np.asarray(vectors_of(graphs), np.float64))
            known = graphs.y is not None and graphs.y.ndim == 1
            truth += (
                [str(value) for value in graphs.y.tolist()] if known and graphs.y is not None else [""] * len(graphs)
            )
    from gcaps.errors import DataError

    if not names:
        raise DataError("has no graphs to find neighbors among", among)
    return names, np.concatenate(parts), truth


def _write_neighbors(
    goal: Path, names: list[str], own: Any, others: tuple[list[str], Floats, list[str]] | None, k: int, distance: Any
) -> None:
    """Write a row for each graph and neighbor: the graph, the rank, the neighbor, its distance and its target."""
    import csv

    from gcaps.escaping import csv_cell
    from gcaps.estimators.vectors import nearest
    from gcaps.files import output_text

    there, vectors, truth = (names, own, [""] * len(names)) if others is None else others
    with output_text(goal) as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["graph", "rank", "neighbor", "distance", *(["target"] if any(truth) else [])])
        for part in nearest(own, vectors, k, distance, same=others is None):
            for row, (places, gaps) in enumerate(zip(part.places.tolist(), part.distances.tolist(), strict=True)):
                for rank, (place, gap) in enumerate(zip(places, gaps, strict=True), 1):
                    cells = [names[part.first + row], rank, there[place], f"{gap:.6g}"]
                    writer.writerow([*map(csv_cell, cells), *([csv_cell(truth[place])] if any(truth) else [])])
