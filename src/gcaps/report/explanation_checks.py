"""Sections of the page of explanations: their faithfulness, and a summary of each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from gcaps.data.graphset import GraphSet
from gcaps.estimators.base import GraphEstimator
from gcaps.estimators.network import NetworkEstimator
from gcaps.explain.atoms import atoms_of
from gcaps.explain.classes import ClassSummary, Evidence
from gcaps.explain.contributions import explain
from gcaps.explain.explanation import Explanation
from gcaps.explain.feature_names import label_text
from gcaps.explain.fidelity import Fidelity, fidelity_of, random_fidelity, randomised_correlation
from gcaps.report.chart import Drawing, Scale, number
from gcaps.report.explained_graph import MAX_DRAWN, NodeMark, draw_explained_graph, important_nodes, part_of
from gcaps.report.explanation_drawing import signed_text
from gcaps.report.molecule_drawing import AtomMark, draw_molecule
from gcaps.report.template import environment

CHART = (330.0, 230.0)
SMALL = (190.0, 150.0)
"""Width and height of a chart, and of a drawing of a typical graph, in CSS pixels."""


class FidelityRow(NamedTuple):
    """An order of the nodes with the areas under its curves."""

    name: str
    kind: str
    """Class of the style sheet of its curves."""
    found: Fidelity


class ShownGraph(NamedTuple):
    """A typical graph, or one with a substructure of large contribution."""

    id: str
    words: str
    picture: Markup | None


class ShownEvidence(NamedTuple):
    """A substructure or pair of channels of large contribution, as text."""

    words: str
    contribution: str
    share: str
    id: str


class ShownClass(NamedTuple):
    """A class on the page."""

    name: str
    graphs: int
    typical: list[ShownGraph]
    substructures: list[ShownEvidence]
    examples: list[ShownGraph]
    pairs: list[ShownEvidence]


def fidelity_rows(model: Any, explanation: Explanation) -> list[FidelityRow]:
    """Return the curves of an explanation, of gradient × input where the model has gradients, and of random order."""
    rows = [FidelityRow(explanation.method.replace("-", " "), "blue", fidelity_of(model, explanation))]
    if isinstance(model, NetworkEstimator) and explanation.method != "gradient-x-input":
        names = model.target_.names
        target = names[explanation.output.target] if len(names) > 1 else None
        other = explain(model, explanation.graphs, target, method="gradient-x-input", nodes_only=True)
        rows.append(FidelityRow("gradient × input", "green", fidelity_of(model, other)))
    return [*rows, FidelityRow("random order", "muted", random_fidelity(model, explanation))]


def fidelity_section(model: Any, explanation: Explanation) -> Markup:
    """Return the section about deletion and insertion, and for networks about the randomised model."""
    rows = fidelity_rows(model, explanation)
    correlation = float("nan")
    if isinstance(model, NetworkEstimator) and model.method != "capsule-svm" and explanation.method != "own":
        correlation = randomised_correlation(model, explanation)
    text = (
        environment()
        .get_template("explanation_fidelity.html.j2")
        .render(
            rows=rows,
            deletion=_curves(rows, "deletion", "nodes hidden, most important first"),
            insertion=_curves(rows, "insertion", "nodes shown, most important first"),
            graphs=len(explanation),
            correlation="" if np.isnan(correlation) else f"{correlation:.2f}",
        )
    )
    return Markup(text)  # of a template that escapes


def _curves(rows: Sequence[FidelityRow], which: str, title: str) -> Markup:
    """Return a chart of the deletion, or insertion, curves."""
    curves = [(row.kind, getattr(row.found, which)) for row in rows]
    top = max(float(np.max(curve)) for _, curve in curves) or 1.0
    x, y = Scale(0, 1, 44, CHART[0] - 10), Scale(0, 1.05 * top, CHART[1] - 40, 18)
    areas = ", ".join(f"{row.name} {getattr(row.found, f'{which}_area'):.3f}" for row in rows)
    chart = Drawing(*CHART, f"Change of the prediction against the share of {title}; areas: {areas}")
    chart.axes(x, y, (f"share of {title}", "change"), number)
    for kind, curve in reversed(curves):
        points = [(x(float(a)), y(float(b))) for a, b in zip(rows[0].found.shares, curve, strict=True)]
        chart.path(points, f"stroke {kind}" + (" dashed" if kind == "muted" else ""))
    return chart.svg()


def classes_section(graphs: GraphSet, classes: Sequence[ClassSummary]) -> Markup:
    """Return the section about each class: typical graphs, substructures and pairs of channels.

    Args:
        graphs: the set that the summaries were made of.
        classes: see :func:`gcaps.explain.class_summaries`.
    """
    shown = [
        ShownClass(
            one.name,
            one.graphs,
            [
                _shown(graphs, g, f"probability {p:.3f}", np.empty(0, np.int64), 0.0)
                for g, p in zip(one.typical.tolist(), one.probability.tolist(), strict=True)
            ],
            [_telling(graphs, each, probability=False) for each in one.substructures],
            [_shown(graphs, t.graph, t.words, t.nodes, t.contribution) for t in one.substructures[:4] if len(t.nodes)],
            [_telling(graphs, each, probability=True) for each in one.pairs],
        )
        for one in classes
    ]
    text = environment().get_template("explanation_classes.html.j2").render(classes=shown, data=graphs.name)
    return Markup(text)  # of a template that escapes


def _telling(graphs: GraphSet, one: Evidence, *, probability: bool) -> ShownEvidence:
    value = signed_text(one.contribution, probability=probability)
    return ShownEvidence(one.words, value, f"{one.share:.0%}", str(graphs.ids[one.graph]))


def _shown(graphs: GraphSet, g: int, words: str, marked: Any, value: float) -> ShownGraph:
    """Return a small drawing of a graph with some nodes in the color of a contribution."""
    single = graphs.subset([g])
    name, strength = str(graphs.ids[g]), float(np.sign(value)) * 0.9
    graph = single[0]
    inside = np.zeros(graph.num_nodes)
    inside[marked] = strength
    label = f"Graph {name}, {words}"
    if "smiles" in graphs.columns and graphs.preparation is not None:
        atoms = atoms_of(single)[0]
        by_atom = np.zeros(atoms.molecule.GetNumAtoms())
        by_atom[atoms.atom[marked]] = strength
        marks = [AtomMark(float(v), "") for v in by_atom] if len(marked) else []
        return ShownGraph(name, words, draw_molecule(atoms.molecule, label, SMALL, marks))
    labels = [""] * graph.num_nodes
    if graph.node_labels is not None:
        labels = [label_text(single, 0, int(v)) for v in graph.node_labels[:, 0]]
    nodes = important_nodes(graph, np.abs(inside), MAX_DRAWN)
    part = part_of(graph, nodes)
    ends = part.edge_index.T[part.edge_index[0] < part.edge_index[1]]
    marks_of = [NodeMark(float(inside[k]), f"node {k} {labels[k]}".strip(), labels[k]) for k in nodes.tolist()]
    return ShownGraph(name, words, draw_explained_graph(part, ends, marks_of, [None] * len(ends), label, SMALL))


def class_page_sections(model: GraphEstimator, graphs: GraphSet) -> Markup:
    """Return :func:`classes_section` of a model's classes, from graphs."""
    from gcaps.explain.classes import class_summaries

    found = model.loaded(graphs)
    return classes_section(found, class_summaries(model, found))
