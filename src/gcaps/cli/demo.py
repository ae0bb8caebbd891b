"""``gcaps demo``: the two-minute tour on a real data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where to put what it makes.")
    ] = Path("demo"),
    data: Annotated[
        str, typer.Option("--data", help="Data set: MUTAG, or families where nothing is installed.")
    ] = "MUTAG",
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Fewer epochs, for haste.")] = None,
) -> None:
    """Train and honestly evaluate GCAPS-CNN on MUTAG (188 real molecules), then predict with the saved model.

    Everything it does is one of the other verbs; it prints each as a command to try next.
    """
    import time

    import numpy as np
    from rich.console import Console

    from gcaps import persistence
    from gcaps.config import Config
    from gcaps.data.audit import facts
    from gcaps.data.catalog import load
    from gcaps.data.describe import describe
    from gcaps.evaluation import evaluate
    from gcaps.report import print_result, write_page
    from gcaps.training import fit, training_bar

    console = Console(highlight=False)
    began = time.perf_counter()
    config = Config() if epochs is None else Config(epochs=epochs)
    settings = "" if epochs is None else f" --epochs {epochs}"

    console.print(f"[bold cyan]1[/]  The data: [bold]gcaps data check {data}[/]")
    graphs = load(data)
    about = describe(facts(graphs))
    for name, value in about.items():
        console.print(f"   [dim]{name:<18}[/] {value}")

    command = f"gcaps evaluate {data}{settings} -o {output / 'result.json'}"
    console.print(f"\n[bold cyan]2[/]  How good is GCAPS-CNN on it? [bold]{command}[/]")
    with training_bar("10 folds", config.epochs, 10, console) as report:
        result = evaluate(graphs, config=config, report=report, command=command)
    result.save(output / "result.json")
    write_page(result, output / "report.html", facts=about)
    print_result(result, console)

    model = output / "model"
    console.print(f"\n[bold cyan]3[/]  A classifier from all graphs: [bold]gcaps train {data}{settings} -o {model}[/]")
    with training_bar("all graphs", config.epochs, 1, console) as report:
        fitted, _, _ = fit(graphs, np.arange(len(graphs)), config, 0, on_epoch=lambda epoch: report(0, epoch))
    persistence.save(fitted, model)

    console.print(f"\n[bold cyan]4[/]  Its word on the first graphs: [bold]gcaps predict {model} {data}[/]")
    probabilities = persistence.load(model).predict_proba(graphs.subset(np.arange(5)))
    for number, row in enumerate(probabilities):
        best = int(row.argmax())
        console.print(f"   graph {number}: class {fitted.classes[best]:>2} with probability {row[best]:.2f}")

    console.print(
        f"\nDone in {time.perf_counter() - began:.0f} seconds. Look at [bold]{output / 'report.html'}[/] in a browser: "
        "curves, folds, mistakes, and how to make it all again."
    )
