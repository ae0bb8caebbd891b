"""``gcaps tasks nodes``: classes of the nodes of one graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import Seed
from gcaps.cli.tasks.predict import node_rows, write_table

Graph = Annotated[
    Path,
    typer.Argument(
        metavar="GRAPH",
        help="One graph as .npz: x \\[n, c] (or x_data, x_indices, x_indptr, x_shape), edges \\[m, 2], y \\[n], and "
        "node numbers or masks train, val, test.",
        show_default=False,
    ),
]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="Folder for the model.")]


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
    from gcaps.terminal import Terminal
    from gcaps.training.checkpoint import remove_checkpoint
    from gcaps.training.progress import training_bar

    require_goal(output)
    checkpoint = output.with_name(output.name + ".checkpoint")
    read = NodeGraph.read(graph)
    model = CapsuleNodeClassifier(**{name: getattr(config, name) for name in type(config).model_fields})
    model.random_state = seed
    with training_bar(graph.stem, config.epochs, console=Terminal(stderr=True), unit="steps") as report:
        model.fit(read, checkpoint=checkpoint, keep_checkpoint=True, on_epoch=lambda epoch: report(0, epoch))
    model.save(output)
    remove_checkpoint(checkpoint)
    if predictions is not None:
        write_table(predictions, node_rows(model, read))
    best = model.curves_.validation[model.epoch_ - 1]
    tested = read.test is not None and len(read.test) > 0
    test = f", test accuracy {model.score(read):.1%}" if tested else ""
    what = f"{len(read):,} nodes, {len(model.classes_)} classes, epoch {model.epoch_}"
    Terminal().print(f"{output}: {what}, validation accuracy {best:.1%}{test}", markup=False, soft_wrap=True)
