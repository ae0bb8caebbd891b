"""``gcaps demo``: a two-minute tour on a real data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcaps.cli.arguments import compile_ahead

METHODS = ("gcaps", "wl", "gin", "deepsets")
"""Ours, the kernel and the network that people use otherwise, and a network that ignores edges."""


def run(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for everything it writes.")
    ] = Path("demo"),
    data: Annotated[
        str, typer.Option("--data", help="Data set: MUTAG, or families where grakel is not installed.")
    ] = "MUTAG",
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Fewer epochs, to save time.")] = None,
) -> None:
    """Compare GCAPS-CNN with three other methods on MUTAG (188 real molecules), then train and use the winner.

    Everything it does is one of the other verbs; it prints each as a command to try next. When it is interrupted and
    started again, the comparison is resumed.
    """
    import time

    import numpy as np
    from rich.markup import escape

    from gcaps.data.audit import describe, facts
    from gcaps.data.catalog import load
    from gcaps.estimators.registry import make_estimator
    from gcaps.evaluation import compare
    from gcaps.evaluation.progress import comparison_progress
    from gcaps.persistence import load_model
    from gcaps.report import print_comparison, write_report
    from gcaps.terminal import Terminal

    console = Terminal(markup=True)
    began = time.perf_counter()
    folder, page, model = output / "run", output / "report.html", output / "model"
    shown = [escape(str(name)) for name in (folder, page, model, data)]
    shorter = {name: {} if epochs is None or name == "wl" else {"epochs": epochs} for name in METHODS}

    console.print(f"[bold cyan]1[/]  The data: [bold]gcaps data check {shown[3]}[/]")
    graphs = load(data)
    for name, value in describe(facts(graphs)).items():
        console.print(f"   [dim]{name:<18}[/] {escape(value)}")

    command = f"gcaps compare {data} --methods {','.join(METHODS)} -o {folder}"
    console.print(f"\n[bold cyan]2[/]  Which method is best on it? [bold]{escape(command)}[/]")
    compile_ahead(METHODS)
    with comparison_progress() as report:
        found = compare(data, list(METHODS), run=folder, grid=shorter, report=report, command=command)
    print_comparison(found, console)
    console.print(f"   As a page: [bold]gcaps report {shown[0]} -o {shown[1]}[/]")
    write_report(found, page)

    results = {label: found.result(found.plan.data[0].name, label) for label in METHODS}
    accuracies = {label: result.protocols["honest"].mean for label, result in results.items() if result is not None}
    best = max(accuracies, key=lambda label: accuracies[label], default="gcaps")
    options = "".join(f" --{name} {value}" for name, value in shorter[best].items())
    console.print(
        f"\n[bold cyan]3[/]  The winner, trained on all graphs: "
        f"[bold]gcaps train {shown[3]} --method {best}{options} -o {shown[2]}[/]"
    )
    make_estimator(best, shorter[best]).fit(graphs).save(model)

    console.print(
        f"\n[bold cyan]4[/]  Its predictions for the first graphs: [bold]gcaps predict {shown[2]} {shown[3]}[/]"
    )
    estimator = load_model(model)
    probabilities = estimator.predict_proba(graphs.subset(np.arange(5)))
    for number, row in enumerate(probabilities):
        top = int(row.argmax())
        console.print(
            f"   graph {number}: class {escape(str(estimator.classes_[top])):>2} with probability {row[top]:.2f}"
        )

    console.print(
        f"\nDone in {time.perf_counter() - began:.0f} seconds. Open [bold]{shown[1]}[/] in a browser: which method is "
        "ahead and whether the difference is significant, curves, costs, the hardest molecules, how to repeat it."
    )
