"""``gcaps explain``: graphs with nodes and edges colored by what they contribute to a prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gcaps.cli.arguments import (
    Data,
    Model,
    reading_bar,
    reading_of,
    reading_options,
    report_skipped,
    with_model_reading,
)

FIRST = 12
"""Default number of explained graphs."""
METHODS = ("auto", "substructures", "occlusion", "integrated-gradients", "saliency", "gradient-x-input")


@with_model_reading
def run(
    model: Model,
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Page to write.")] = Path(
        "explanation.html"
    ),
    graph: Annotated[
        list[str] | None,
        typer.Option(
            "--graph",
            metavar="ID",
            help=f"Graph to explain, by its id; may be repeated (default: the first {FIRST}).",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="|".join(METHODS),
            help="How contributions are computed. auto: exact ones for the kernels wl, wloa, sp and gk, integrated "
            "gradients for networks, occlusion for the rest.",
        ),
    ] = "auto",
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="NAME",
            help="Target of the model to explain, if it predicts several (default: the first).",
            show_default=False,
        ),
    ] = None,
    fidelity: Annotated[
        bool,
        typer.Option(
            help="Say how faithful the contributions are: hide the nodes that they name, and compare with random nodes "
            "and with a model of random weights. Takes some further predictions for each graph."
        ),
    ] = True,
    classes: Annotated[
        bool,
        typer.Option(
            "--classes",
            help="Add what the model knows of each class: its most typical graphs in DATA, its most telling "
            "substructures (wl, wloa, sp, gk), and the pairs of channels of the covariance readout (gcaps).",
        ),
    ] = False,
    *,
    read: dict[str, Any],
) -> None:
    """Write a page with graphs whose nodes and edges are colored by what they contribute to a prediction.

    Explained is the value, or the probability of the second of two classes; of more classes, that of the predicted one;
    of the kernels wl, wloa, sp and gk, the decision value. Functional groups of molecules are explained, too.

    Example: [cyan]gcaps explain esol-model ESOL.csv -o atoms.html[/cyan]

    Example: [cyan]gcaps explain tox21-model Tox21.csv --graph TOX3021 --target NR-AhR -o atoms.html[/cyan]

    Example: [cyan]gcaps explain model PROTEINS --graph 17 --method occlusion -o nodes.html[/cyan]

    Example: [cyan]gcaps explain wl-model MUTAG --classes -o classes.html[/cyan]
    """
    options = reading_options(data, target=None, **read, predicting=True)
    import shlex
    import sys

    from gcaps.data.catalog import load
    from gcaps.errors import ConfigError, DataError

    if method not in METHODS:
        raise ConfigError(f"--method {method}: choose from {', '.join(METHODS)}")
    from gcaps.explain.contributions import explain
    from gcaps.files import write_text
    from gcaps.persistence import load_estimator
    from gcaps.report.explanation import chosen_graphs, explanation_page
    from gcaps.report.explanation_checks import class_page_sections, fidelity_section
    from gcaps.terminal import Terminal

    estimator = load_estimator(model)
    with reading_bar(data) as progress:
        graphs = load(data, progress=progress, **reading_of(estimator, options))
    ids = [str(name) for name in graphs.ids.tolist()]
    places = chosen_graphs(ids, graph or (), FIRST)
    kind = "molecule" if "smiles" in graphs.columns else "graph"
    if -1 in places:
        name = (graph or [""])[places.index(-1)]
        remedy = f"its {kind}s are called {', '.join(ids[:3])} and so on"
        numbered = ids[:1] == ["0"] and read["id"] is None and kind == "molecule"
        remedy += " (--id COLUMN takes their names from a column)" if numbered else ""
        raise DataError(f"has no {kind} {name!r}; {remedy}", data)
    with reading_bar("explaining") as progress:
        found = explain(estimator, graphs.subset(places), target, method=method, progress=progress)
    if not any(values.any() for values in found.nodes):
        raise DataError("no node changes a prediction: this model does not look at nodes, or predicts a constant", data)
    with Terminal(stderr=True).status("measuring how faithful the contributions are" if fidelity else "drawing"):
        sections = [fidelity_section(estimator, found)] if fidelity else []
        if classes:
            sections.append(class_page_sections(estimator, graphs))
    page = explanation_page(estimator, found, shlex.join(["gcaps", *sys.argv[1:]]), sections=sections)
    write_text(output, page)
    typer.echo(f"{output}: {len(places)} {kind}{'s' if len(places) > 1 else ''} explained", err=True)
    report_skipped(graphs.skipped)
