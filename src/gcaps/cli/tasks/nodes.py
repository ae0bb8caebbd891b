"""``gcaps tasks nodes``: classes of the nodes of one graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import Seed
from gcaps.cli.tasks.predict import node_rows, write_table
from gcaps.cli.tasks.training import Output, fit_and_save, say

Graph = Annotated[
    Path,
    typer.Argument(
        metavar="GRAPH",
        help="One graph as .npz: x \\[n, c] (or x_data, x_indices, x_indptr, x_shape), edges \\[m, 2], y \\[n], and "
        "node numbers or masks train, val, test.",
        show_default=False,
    ),
]


def run(
    graph: Graph,
    output: Output,
    seed: Seed = 0,
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions",
            metavar="FILE",
            help="CSV to write: class and probabilities of every node.",
            show_default=False,
        ),
    ] = None,
    *,
    config: Any,
) -> None:
    """Train a classifier of the nodes of one graph, some of whose classes are known.

    Classes of the training nodes are learned, those of the validation nodes choose the epoch. The accuracy on the test
    nodes is printed if the graph has such nodes and their classes. An interrupted training is resumed from
    MODEL.checkpoint.

    Example: [cyan]gcaps tasks nodes cora.npz -o cora-model --predictions nodes.csv[/cyan]
    """
    from gcaps.files import require_file

    require_file(graph)  # before torch is imported
    from gcaps.persistence import require_goal
    from gcaps.tasks.graph import NodeGraph
    from gcaps.tasks.nodes import CapsuleNodeClassifier

    require_goal(output)
    read = NodeGraph.read(graph)
    model = CapsuleNodeClassifier(**dict(config), random_state=seed)
    fit_and_save(model, read, output, graph.stem, keep_checkpoint=True)
    if predictions is not None:
        write_table(predictions, node_rows(model, read))
    best = model.curves_.validation[model.epoch_ - 1]
    tested = read.test is not None and len(read.test) > 0
    test = f", test accuracy {model.score(read):.1%}" if tested else ""
    facts = f"{len(read):,} nodes, {len(model.classes_)} classes, epoch {model.epoch_}"
    say(output, f"{facts}, validation accuracy {best:.1%}{test}")
