"""``gcaps tasks generate``: graphs like those of a set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import Seed
from gcaps.cli.tasks.training import Output, fit_and_save, say


def run(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Small graphs: a folder, file or name as for gcaps train.")
    ],
    output: Output,
    seed: Seed = 0,
    count: Annotated[int, typer.Option(min=1, help="Number of graphs to generate.")] = 100,
    graphs: Annotated[
        Path | None,
        typer.Option("--graphs", metavar="FOLDER", help="Saved set to write the graphs to.", show_default=False),
    ] = None,
    *,
    config: Any,
) -> None:
    """Train a generator on small graphs, generate some, and report how many of them are different and new.

    An interrupted training is resumed from MODEL.checkpoint.

    Example: [cyan]gcaps tasks generate molecules.csv -o generator --count 200 --graphs new.gset[/cyan]
    """
    from gcaps.data.catalog import load
    from gcaps.persistence import require_goal
    from gcaps.tasks.generation import CapsuleGraphGenerator
    from gcaps.tasks.generation_quality import variety

    require_goal(output)
    read = load(data, labelled=False)
    model = CapsuleGraphGenerator(**dict(config), random_state=seed)
    fit_and_save(model, read, output, read.name)
    made = model.sample(count, random_state=seed)
    if graphs is not None:
        made.save(graphs)
    seen = variety(made, read)
    doubt = "; the generator has collapsed" if seen.collapsed(natural=1.0) else ""
    say(output, f"{count:,} graphs: {seen.unique:.0%} different, {seen.novel:.0%} new{doubt}")
