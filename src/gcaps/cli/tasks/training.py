"""Training and saving of a model of :mod:`gcaps.tasks`, in one way for every verb."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Output = Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="Folder for the model.")]


def fit_and_save(model: Any, data: Any, output: Path, title: str, **options: Any) -> None:
    """Fit a model with a progress bar and a checkpoint beside it, save it and remove the checkpoint.

    Args:
        model: a :class:`gcaps.tasks.base.TaskModel`.
        data: first argument of its ``fit``.
        output: folder for the model; its checkpoint has the same name with ``.checkpoint``.
        title: of the progress bar.
        options: further arguments of ``fit``.
    """
    from gcaps.terminal import Terminal
    from gcaps.training.checkpoint import remove_checkpoint
    from gcaps.training.progress import training_bar

    checkpoint = output.with_name(output.name + ".checkpoint")
    with training_bar(title, model.epochs, console=Terminal(stderr=True), unit="steps") as report:
        model.fit(data, checkpoint=checkpoint, on_epoch=lambda epoch: report(0, epoch), **options)
    model.save(output)
    for folder in (*checkpoint.glob("*/"), checkpoint):  # a model of several trainings has a checkpoint for each
        remove_checkpoint(folder)


def say(output: Path, facts: str) -> None:
    """Print a line about the model in ``output``."""
    from gcaps.terminal import Terminal

    Terminal().print(f"{output}: {facts}", markup=False, soft_wrap=True)
