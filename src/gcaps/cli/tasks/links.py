"""``gcaps tasks links``: missing links of one graph."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gcaps.cli.arguments import Seed
from gcaps.cli.tasks.nodes import Graph
from gcaps.cli.tasks.training import Output, fit_and_save, say


def run(
    graph: Graph,
    output: Output,
    seed: Seed = 0,
    test: Annotated[
        float, typer.Option("--test", min=0, max=0.9, help="Share of the links that is held out and tested.")
    ] = 0.1,
    *,
    config: Any,
) -> None:
    """Train a graph autoencoder that predicts the links of one graph.

    Links for validation and test are held out first; no messages pass along them. ROC AUC and average precision on the
    test links, against as many pairs of nodes that are not linked, are printed for the model and for scores of common
    neighbors. An interrupted training is resumed from MODEL.checkpoint.

    Example: [cyan]gcaps tasks links cora.npz -o cora-links --variational[/cyan]
    """
    from gcaps.files import require_file

    require_file(graph)  # before torch is imported
    from rich.table import Table

    from gcaps.persistence import require_goal
    from gcaps.tasks.graph import NodeGraph
    from gcaps.tasks.link_scores import LINK_SCORES
    from gcaps.tasks.link_split import split_links
    from gcaps.tasks.link_training import link_metrics
    from gcaps.tasks.links import CapsuleLinkPredictor
    from gcaps.terminal import Terminal

    require_goal(output)
    read = NodeGraph.read(graph)
    split = split_links(read, seed, config.validation, test)
    model = CapsuleLinkPredictor(**dict(config), random_state=seed)
    fit_and_save(model, split.graph, output, graph.stem, validation=split.validation, keep_checkpoint=True)
    if len(split.test.positive):
        table = Table("scores of pairs", "AUC, %", "AP, %", box=None, pad_edge=False)
        rows = {"capsule autoencoder": model.evaluate(split.test)}
        for name, score in LINK_SCORES.items():
            rows[name] = link_metrics(split.test.y, score(split.graph, split.test.both))
        for name, found in rows.items():
            table.add_row(name, *(f"{100 * value:.1f}" for value in found.values()))
        Terminal().print(table)
    kept = len(split.graph.edges)
    say(output, f"{len(read):,} nodes, {kept:,} of {len(read.edges):,} links, epoch {model.epoch_}")
