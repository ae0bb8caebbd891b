"""A page with graphs whose nodes and edges are colored by their contributions to a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Floats
from gcaps.data.graphset import Graph
from gcaps.data.targets import Target, missing
from gcaps.evaluation.metrics import METRICS
from gcaps.explain.explanation import Explanation
from gcaps.explain.predictor import predictor_of, target_of
from gcaps.report.explained_graph import MAX_DRAWN, important_nodes
from gcaps.report.explanation_drawing import (
    Reach,
    by_atom,
    color_legend,
    contribution_text,
    drawing,
    node_labels_of,
    signed_text,
)
from gcaps.report.molecule_drawing import MAX_ATOMS
from gcaps.report.template import environment
from gcaps.version import __version__

UNNOTICED = 0.001
"""Smaller contributions to a probability are not seen in the drawing."""
MAX_ROWS = 200
"""Nodes and edges of a graph that are listed, the largest contributions first."""
MAX_FEATURES = 12
"""Features, groups and substructures of a graph that are listed."""


@dataclass(frozen=True)
class Row:
    """A row of a graph's table of nodes."""

    number: int
    """Counted from 0; of molecules in the order of the SMILES."""
    symbol: str
    """Element or label; empty without labels."""
    contribution: str


@dataclass(frozen=True)
class Named:
    """A row of a table of edges, features, groups or substructures."""

    name: str
    contribution: str
    count: str = ""


@dataclass(frozen=True)
class ExplainedGraph:
    """A graph on the page."""

    id: str
    smiles: str
    """Empty if it is not a molecule."""
    picture: Markup | None
    """None if it is too large to draw."""
    drawn: str
    """Note on omissions of the picture; empty if it shows everything."""
    prediction: str
    explained: str
    """The number that is explained, where the prediction is a class."""
    sum: str
    """Sum of contributions in words; empty if they do not add up."""
    remark: str
    """Note if no node changes the prediction noticeably; else empty."""
    truth: str
    """Empty if it is not known."""
    rows: list[Row]
    """Largest contribution first."""
    more: int
    """Nodes that are not listed."""
    edges: list[Named]
    features: list[Named]
    groups: list[Named]
    substructures: list[Named]


def explanation_page(
    model: Any, explanation: Explanation, command: str = "", *, sections: Sequence[Markup] = ()
) -> str:
    """Return an explanation as one self-contained HTML page.

    Args:
        model: what predicted.
        explanation: see :func:`gcaps.explain.explain`.
        command: how the page was made.
        sections: further sections, such as those of :mod:`gcaps.report.explanation_checks`.
    """
    reach = Reach(explanation)
    predictor = predictor_of(model)
    target = target_of(predictor, explanation.scores)
    probability = explanation.output.is_probability
    graphs = [_graph(target, explanation, i, reach) for i in range(len(explanation))]
    return (
        environment()
        .get_template("explanation.html.j2")
        .render(
            data=explanation.graphs.name,
            model=predictor.describes,
            trained_on=getattr(model, "data_", {}),
            output=explanation.output.words,
            method=explanation.method,
            hidden=explanation.hidden,
            notes=explanation.notes,
            graphs=graphs,
            molecules=explanation.atoms is not None,
            legend=color_legend(reach.nodes, probability=probability, signed=explanation.method != "saliency"),
            edge_reach=signed_text(reach.edges, probability=probability)[1:] if explanation.edges is not None else "",
            hydrogens=any(one.is_hydrogen.any() for one in explanation.atoms or []),
            sections=sections,
            command=command,
            version=__version__,
        )
    )


def _graph(target: Target, explanation: Explanation, i: int, reach: Reach) -> ExplainedGraph:
    graphs = explanation.graphs
    values = by_atom(explanation, i)
    molecule = None if explanation.atoms is None else explanation.atoms[i].molecule
    names = (
        [atom.GetSymbol() for atom in molecule.GetAtoms()] if molecule is not None else node_labels_of(explanation, i)
    )
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    scores = explanation.scores[i : i + 1]
    number = explanation.output.target
    prediction, explained = _prediction_texts(target, scores, number, float(explanation.values[i]))
    return ExplainedGraph(
        id=str(graphs.ids[i]),
        smiles="" if molecule is None else str(graphs.columns["smiles"][i]),
        picture=drawing(explanation, i, reach=reach),
        drawn=_left_out(graphs[i], values, molecule),
        prediction=prediction,
        explained=explained,
        sum=_sum_text(explanation, i),
        remark=_remark(explanation, i),
        truth=_truth_text(explanation, i, target),
        rows=[Row(k, names[k], contribution_text(explanation, float(values[k]))) for k in order[:MAX_ROWS]],
        more=max(len(order) - MAX_ROWS, 0),
        edges=_edge_rows(explanation, i, names),
        features=[
            Named(name, contribution_text(explanation, value))
            for name, value in list(explanation.features[i].items())[:MAX_FEATURES]
        ],
        groups=[
            Named(group.name, contribution_text(explanation, group.contribution))
            for group in (explanation.groups[i] if explanation.groups is not None else [])[:MAX_FEATURES]
        ],
        substructures=[
            Named(one.words, contribution_text(explanation, one.contribution), str(one.occurrences))
            for one in (explanation.substructures[i] if explanation.substructures is not None else [])[:MAX_FEATURES]
        ],
    )


def _edge_rows(explanation: Explanation, i: int, names: Sequence[str]) -> list[Named]:
    """Return the edges with the largest contributions."""
    if explanation.edges is None:
        return []
    values, ends = explanation.edges[i], explanation.edge_ends[i]
    order = [k for k in np.argsort(-np.abs(np.nan_to_num(values)), kind="stable").tolist() if np.isfinite(values[k])]
    found = []
    for k in order[:MAX_ROWS]:
        u, v = ends[k].tolist()
        if explanation.atoms is not None:
            u, v = explanation.atoms[i].atom[[u, v]].tolist()
        words = " – ".join(f"{names[node]} {node}".strip() for node in (u, v))
        found.append(Named(words, contribution_text(explanation, float(values[k]))))
    return found


def _left_out(graph: Graph, values: Floats, molecule: Any) -> str:
    if molecule is not None:
        return f"molecules of more than {MAX_ATOMS} heavy atoms are not drawn" if len(values) > MAX_ATOMS else ""
    if graph.num_nodes <= MAX_DRAWN:
        return ""
    shown = important_nodes(graph, values)
    share = float(np.abs(values[shown]).sum() / max(np.abs(values).sum(), 1e-300))
    return f"drawn: the most important {len(shown)} of {graph.num_nodes:,} nodes, {share:.0%} of all contributions"


def _sum_text(explanation: Explanation, i: int) -> str:
    """Return the sum of contributions of nodes in words; empty if they do not add up."""
    base = float(explanation.baselines[i])
    if not np.isfinite(base):
        return ""
    total = contribution_text(explanation, float(explanation.nodes[i].sum()))
    text = f"{base:.3f} without them, {total} by nodes, together {explanation.values[i]:.3f}"
    return text.replace("-", "−")


def _remark(explanation: Explanation, i: int) -> str:
    """Return a remark if a probability is so close to 0 or 1 that no node changes it noticeably."""
    if not explanation.output.is_probability or np.abs(explanation.nodes[i]).max(initial=0.0) >= UNNOTICED:
        return ""
    return f"no node changes this probability by more than {UNNOTICED:g}: the model is certain without any of them"


def _prediction_texts(target: Target, scores: Floats, number: int, explained: float) -> tuple[str, str]:
    """Return the prediction as in the source, and the explained number if it is a class."""
    decoded = target.decode(scores).reshape(1, -1)[0]
    if target.classes is None:
        return METRICS["mae"].text(float(decoded[number])), ""
    return str(decoded[number]), f"{explained:.3f}".replace("-", "−")


def _truth_text(explanation: Explanation, place: int, target: Target) -> str:
    """Return the true value of the explained target; empty if the graphs do not have it."""
    y = explanation.graphs.y
    if y is None or y.reshape(len(y), -1).shape[1] != len(target.names):
        return ""
    value = y.reshape(len(y), -1)[place : place + 1, explanation.output.target]
    if missing(value)[0]:
        return ""
    if target.classes is not None and value.dtype.kind == "f":
        return f"{value[0]:g}"
    return METRICS["mae"].text(float(value[0])) if value.dtype.kind == "f" else str(value[0])


def chosen_graphs(ids: Sequence[str], wanted: Sequence[str], count: int) -> list[int]:
    """Return the positions of the graphs called ``wanted``, by default of the first ``count``; −1 for no graph."""
    if not wanted:
        return list(range(min(count, len(ids))))
    places = {name: place for place, name in reversed(list(enumerate(ids)))}
    return [places.get(name, -1) for name in wanted]
