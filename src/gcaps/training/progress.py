"""Progress bar of a training: epochs, loss, score, graphs per second and time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gcaps.terminal import Terminal
from gcaps.training.loop import Epoch


class Report(Protocol):
    """Callback for each epoch of each run (fold)."""

    def __call__(self, run: int, epoch: Epoch) -> None:
        """Report that ``epoch`` of run ``run`` is over."""
        ...


@contextmanager
def training_bar(
    title: str, epochs: int, runs: int = 1, console: Console | None = None, unit: str = "graphs"
) -> Iterator[Report]:
    """Show a bar over ``runs`` trainings of ``epochs`` epochs each and yield its callback.

    A method without epochs counts as one epoch. ``unit`` is what :attr:`Epoch.graphs_per_second` counts.
    """
    epochs = max(epochs, 1)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TextColumn(
            f"loss {{task.fields[loss]}} score {{task.fields[score]}} {{task.fields[speed]}} {unit}/s, left",
            markup=False,
        ),
        TimeRemainingColumn(),
        console=console or Terminal(stderr=True),
    )
    latest: dict[int, Epoch] = {}
    done = dict.fromkeys(range(runs), 0)
    with bar:
        task = bar.add_task(title, total=epochs * runs, loss="–", score="–", speed="–")

        def report(run: int, epoch: Epoch) -> None:
            if epoch.number < done[run]:  # a refit starts again from epoch 1
                bar.update(task, total=(bar.tasks[0].total or 0) + epochs)
            done[run] = epoch.number
            latest[run] = epoch
            if epoch.number == epochs:
                del latest[run]
            shown = [*latest.values()] or [epoch]
            bar.update(
                task,
                advance=1,
                loss=f"{sum(e.loss for e in shown) / len(shown):.3f}",
                score=f"{sum(e.score for e in shown) / len(shown):.3f}",  # an accuracy, or R², which may be below zero
                speed=f"{sum(e.graphs_per_second for e in shown):,.0f}",
            )

        yield report
        bar.update(task, completed=bar.tasks[0].total)
