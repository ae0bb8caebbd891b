"""``gcaps tasks generate``: graphs like those of a set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import Seed


def run(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Small graphs: a folder, file or name as for gcaps train.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="Folder for the model.")],
    seed: Seed = 0,
    count: Annotated[int, typer.Option(min=1, help="Number of graphs to generate.")] = 100,
    graphs: Annotated[
        Path | None,
        typer.Option("--graphs", metavar="FOLDER", help="Saved set to write the graphs to.", show_default=False),
    ] = None,
    *,
    config: Any,
) -> None:
    """Train a generator on small graphs, generate some, and say how different they are.

    An interrupted training is resumed from MODEL.checkpoint.

    Example: [cyan]gcaps tasks generate molecules.csv -o generator --count 200 --graphs new.gset[/cyan]
    """
    from gcaps.data.catalog import load
    from gcaps.persistence import require_goal
    from gcaps.tasks.generation import CapsuleGraphGenerator
    from gcaps.tasks.generation_quality import variety
    from gcaps.terminal import Terminal
    from gcaps.training.progress import training_bar

    require_goal(output)
    read = load(data, labelled=False)
    model = CapsuleGraphGenerator(**{name: getattr(config, name) for name in type(config).model_fields})
    model.random_state = seed
    checkpoint = output.with_name(output.name + ".checkpoint")
    with training_bar(read.name, config.epochs, console=Terminal(stderr=True), unit="steps") as report:
        model.fit(read, checkpoint=checkpoint, on_epoch=lambda epoch: report(0, epoch))
    model.save(output)
    made = model.sample(count, random_state=seed)
    if graphs is not None:
        made.save(graphs)
    seen = variety(made, read)
    what = f"{count:,} graphs: {seen.unique:.0%} different, {seen.novel:.0%} new"
    doubt = "; the generator has collapsed" if seen.collapsed(natural=1.0) else ""
    Terminal().print(f"{output}: {what}{doubt}", markup=False, soft_wrap=True)
