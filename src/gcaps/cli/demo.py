"""``gcaps demo``: a tour of two minutes on a real data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gcaps.cli.arguments import compile_ahead

if TYPE_CHECKING:
    from gcaps.data.graphset import GraphSet
    from gcaps.evaluation import Comparison
    from gcaps.terminal import Terminal

METHODS = ("gcaps", "ensemble", "wl", "gin")
"""Compared methods: GCAPS-CNN, an ensemble of cheap members, and a usual kernel and network."""
MEMBERS = 6
"""Members of the ensemble: the first of :data:`gcaps.estimators.portfolio.PORTFOLIO`, which are cheap."""
NEW = 8
"""One graph in so many is held out as a new graph."""
COVERAGE = 0.9
ATOMS = "0 carbon, 1 nitrogen, 2 oxygen, 3 fluorine, 4 iodine, 5 chlorine, 6 bromine"
"""Node labels of MUTAG."""


class Places(NamedTuple):
    """Paths of the files of the demo."""

    run: Path
    report: Path
    known: Path
    """The graphs that the model is trained on."""
    new: Path
    """The graphs that it predicts."""
    model: Path
    explanation: Path

    @classmethod
    def of(cls, folder: Path) -> Places:
        """Name the files in a folder."""
        names = ("run", "report.html", "known.gset", "new.gset", "model", "explanation.html")
        return cls(*(folder / name for name in names))


def run(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for everything it writes.")
    ] = Path("demo"),
    data: Annotated[
        str, typer.Option("--data", metavar="NAME", help="Data set: MUTAG, or families where grakel is not installed.")
    ] = "MUTAG",
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Fewer epochs, to save time.")] = None,
) -> None:
    """Compare four methods on MUTAG (188 real molecules), train the best, predict a molecule and explain it.

    Everything it does is one of the other verbs; it prints each as a command to try next. When it is interrupted and
    started again, the comparison is resumed.
    """
    import time

    from rich.markup import escape

    from gcaps.data.audit import describe, facts
    from gcaps.data.catalog import load
    from gcaps.report import print_comparison, write_report
    from gcaps.terminal import Terminal

    console, began, places = Terminal(markup=True), time.perf_counter(), Places.of(output)

    _step(console, 1, "What is in the data?", f"gcaps data check {data}")
    graphs = load(data)
    for name, value in describe(facts(graphs)).items():
        console.print(f"   [dim]{name:<18}[/] {escape(value)}")

    settings = _settings(epochs)
    command = f"gcaps compare {data} --methods {','.join(METHODS)} -o {places.run}"
    _step(console, 2, "Which method is best on it?", command)
    members = settings["ensemble"]["methods"].replace(",", ", ")
    console.print(f"   [dim]the ensemble has {MEMBERS} cheap members here: {members}[/]")
    compile_ahead(METHODS)
    found = _compared(data, places, settings, command)
    print_comparison(found, console)
    write_report(found, places.report)
    best = _best(found)

    options = "".join(f" --{name} {value}" for name, value in settings[best].items())
    train = f"gcaps train {places.known} --method {best}{options} --calibrate split -o {places.model}"
    _step(console, 3, "The best method, trained, and calibrated on graphs that it is not fitted on:", train)
    _train(graphs, best, settings[best], places)

    predict = f"gcaps predict {places.model} {places.new} --uncertainty"
    explain = f"gcaps explain {places.model} {places.new} -o {places.explanation}"
    _step(console, 4, "A graph that it has not seen: what is it, how sure is that, and why?", predict, explain)
    for line in _looked_into(places, explain):
        console.print(f"   {escape(line)}")

    console.print(f"\nDone in {time.perf_counter() - began:.0f} seconds. Open in a browser:")
    shown = {
        places.report: "which method is ahead and whether that is significant, costs, errors, how to repeat it",
        places.explanation: "new graphs, colored by what their nodes and edges contribute",
    }
    for page, words in shown.items():
        console.print(f"   [bold]{escape(str(page))}[/]  {words}")
    console.print("\nThe same with a table of your own:")
    for line in (
        "gcaps compare my.csv --target COLUMN --methods gcaps,ensemble,ecfp -o run && gcaps report run -o report.html",
        "gcaps train my.csv --target COLUMN --method ensemble --calibrate cross -o model",
        "gcaps explain model my.csv -o explanation.html",
    ):
        console.print(f"   [bold]{escape(line)}[/]", soft_wrap=True)


def _step(console: Terminal, number: int, words: str, *commands: str) -> None:
    """Print the title of a step, and the equivalent commands."""
    from rich.markup import escape

    console.print(f"\n[bold cyan]{number}[/]  {words}")
    for command in commands:
        console.print(f"   [bold]{escape(command)}[/]", soft_wrap=True)


def _settings(epochs: int | None) -> dict[str, dict[str, Any]]:
    """Return the settings of each method that differ from its default."""
    from gcaps.estimators.portfolio import PORTFOLIO

    fewer = {} if epochs is None else {"epochs": epochs}
    members = ",".join(entry.name for entry in PORTFOLIO[:MEMBERS])
    return {"gcaps": fewer, "ensemble": {"methods": members}, "wl": {}, "gin": fewer}


def _compared(data: str, places: Places, settings: dict[str, dict[str, Any]], command: str) -> Comparison:
    """Compare the methods on ten folds, or resume an interrupted run."""
    from gcaps.evaluation import compare
    from gcaps.evaluation.progress import comparison_progress

    with comparison_progress() as report:
        return compare(data, list(METHODS), run=places.run, grid=settings, report=report, command=command)


def _best(found: Comparison) -> str:
    """Return the method with the highest honest accuracy."""
    results = {label: found.result(found.plan.data[0].name, label) for label in METHODS}
    accuracies = {label: result.protocols["honest"].mean for label, result in results.items() if result is not None}
    return max(accuracies, key=lambda label: accuracies[label], default="gcaps")


def _train(graphs: GraphSet, method: str, settings: dict[str, Any], places: Places) -> None:
    """Train on all graphs except those held out; save the model and both sets."""
    import numpy as np

    from gcaps.estimators.registry import make_estimator

    new = np.arange(len(graphs)) % NEW == NEW - 1
    known = graphs[~new]
    known.save(places.known)
    graphs[new].save(places.new)
    make_estimator(method, settings).fit_calibrated(known, how="split").save(places.model)


def _looked_into(places: Places, command: str) -> list[str]:
    """Predict and explain the held-out graphs; return a sentence about the first."""
    from gcaps.data.graphset import GraphSet
    from gcaps.explain import explain
    from gcaps.files import write_text
    from gcaps.persistence import load_estimator
    from gcaps.report.explanation import explanation_page

    model, new = load_estimator(places.model), GraphSet.open(places.new)
    one = new[:1]
    probabilities = model.predict_calibrated(one)[0]
    inside = [
        str(name) for name, is_in in zip(model.classes_, model.predict_set(one, COVERAGE)[0], strict=True) if is_in
    ]
    likely = int(probabilities.argmax())
    found = explain(model, one)
    strongest = abs(found.nodes[0]).argsort()[::-1][:3].tolist()
    write_text(places.explanation, explanation_page(model, explain(model, new[:4]), command))
    truth = "" if one.y is None else f" (its true class is {one.y[0]})"
    similar = "unlike all training graphs" if model.novelty(one).novel[0] else "similar to some training graphs"
    counts = ", ".join(str(node) for node in strongest)
    lines = [
        f"graph {one.ids[0]} is of class {model.classes_[likely]} with a calibrated probability of "
        f"{probabilities[likely]:.2f}{truth}, and {similar}",
        f"with {COVERAGE:.0%} confidence its class is {' or '.join(inside) or 'none of the known ones'}",
        f"its nodes {counts} of {one.num_nodes} count most for that (method: {found.method})",
    ]
    return [*lines, f"labels of nodes: {ATOMS}"] if one.name == "MUTAG" else lines
