"""``gcaps demo``: the three-minute tour on a real data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

METHODS = ("gcaps", "wl", "gin", "set")
"""Ours, the kernel and the network that people take instead, and one that does not see the edges."""


def run(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where to put what it makes.")
    ] = Path("demo"),
    data: Annotated[
        str, typer.Option("--data", help="Data set: MUTAG, or families where nothing is installed.")
    ] = "MUTAG",
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Fewer epochs, for haste.")] = None,
) -> None:
    """Compare GCAPS-CNN with three others on MUTAG (188 real molecules), honestly, and predict with a saved model.

    Everything it does is one of the other verbs; it prints each as a command to try next. Stopped and started anew, the
    comparison goes on where it was.
    """
    import time

    import numpy as np
    from rich.console import Console

    from gcaps import persistence
    from gcaps.config import Config
    from gcaps.data.audit import facts
    from gcaps.data.catalog import load
    from gcaps.data.describe import describe
    from gcaps.evaluation import compare
    from gcaps.evaluation.progress import comparison_progress
    from gcaps.report import print_comparison, write_report
    from gcaps.training import fit, training_bar

    console = Console(highlight=False)
    began = time.perf_counter()
    config = Config() if epochs is None else Config(epochs=epochs)
    settings = "" if epochs is None else f" --epochs {epochs}"

    console.print(f"[bold cyan]1[/]  The data: [bold]gcaps data check {data}[/]")
    graphs = load(data)
    for name, value in describe(facts(graphs)).items():
        console.print(f"   [dim]{name:<18}[/] {value}")

    folder, page = output / "run", output / "report.html"
    command = f"gcaps compare {data} --methods {','.join(METHODS)} -o {folder}"
    console.print(f"\n[bold cyan]2[/]  Which method is best on it? [bold]{command}[/]")
    shorter = None if epochs is None else {name: {"epochs": epochs} for name in METHODS if name != "wl"}
    with comparison_progress() as report:
        found = compare(data, list(METHODS), run=folder, grid=shorter, report=report, command=command)
    print_comparison(found, console)
    console.print(f"   As a page: [bold]gcaps report {folder} -o {page}[/]")
    write_report(found, page)

    model = output / "model"
    console.print(f"\n[bold cyan]3[/]  A classifier from all graphs: [bold]gcaps train {data}{settings} -o {model}[/]")
    with training_bar("all graphs", config.passes(graphs.sizes), 1, console) as bar:
        fitted, _, _ = fit(graphs, np.arange(len(graphs)), config, 0, on_epoch=lambda epoch: bar(0, epoch))
    persistence.save(fitted, model)

    console.print(f"\n[bold cyan]4[/]  Its word on the first graphs: [bold]gcaps predict {model} {data}[/]")
    probabilities = persistence.load(model).predict_proba(graphs.subset(np.arange(5)))
    for number, row in enumerate(probabilities):
        best = int(row.argmax())
        console.print(f"   graph {number}: class {fitted.classes[best]:>2} with probability {row[best]:.2f}")

    console.print(
        f"\nDone in {time.perf_counter() - began:.0f} seconds. Look at [bold]{page}[/] in a browser: who is ahead and "
        "whether it means anything, curves, costs, the hardest molecules, and how to make it all again."
    )
