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
from gcaps.explain.feature_names import label_text
from gcaps.explain.predictor import predictor_of, target_of
from gcaps.report.chart import coordinate
from gcaps.report.explained_graph import (
    MAX_DRAWN,
    EdgeMark,
    NodeMark,
    draw_explained_graph,
    important_nodes,
    part_of,
)
from gcaps.report.molecule_drawing import MAX_ATOMS, AtomMark, BondMark, draw_molecule, opacity
from gcaps.report.template import environment
from gcaps.version import __version__

SIZE = (340.0, 260.0)
"""Width and height of a drawing in CSS pixels."""
NOTED = 3
"""Number of nodes of a graph that have their contribution written beside them."""
LEAST_NOTED = 0.15
"""Smaller contributions, relative to the end of the color scale, are not written beside nodes."""
QUANTILE = 0.99
"""Quantile of all contributions at which the color scale ends, so that one extreme node does not fade the others."""
UNNOTICED = 0.001
"""Smaller contributions to a probability are not seen in the drawing."""
LEGEND = np.linspace(-1, 1, 9)
"""Strengths shown in the legend."""
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


class Reach:
    """Ends of the color scales of an explanation, for nodes and for edges."""

    def __init__(self, explanation: Explanation) -> None:
        self.nodes = _reach([_by_atom(explanation, i) for i in range(len(explanation))])
        self.edges = _reach(explanation.edges or [])


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


def drawing(explanation: Explanation, i: int, size: tuple[float, float] = SIZE) -> Markup | None:
    """Return one graph of an explanation as an SVG element, colored by the classes of the page's style sheet.

    A molecule is drawn by RDKit; another graph is laid out. Of a large graph the most important neighborhood is drawn.

    Args:
        explanation: see :func:`gcaps.explain.explain`.
        i: number of the graph.
        size: width and height in CSS pixels.

    Returns:
        None for a molecule that RDKit cannot draw.
    """
    return _picture(explanation, i, Reach(explanation), size)


def _picture(explanation: Explanation, i: int, reach: Reach, size: tuple[float, float]) -> Markup | None:
    drawn = _of_molecule if explanation.atoms is not None else _of_graph
    return drawn(explanation, i, reach, size)


def _of_molecule(explanation: Explanation, i: int, reach: Reach, size: tuple[float, float]) -> Markup | None:
    assert explanation.atoms is not None
    atoms = explanation.atoms[i]
    values = _by_atom(explanation, i)
    symbols = [atom.GetSymbol() for atom in atoms.molecule.GetAtoms()]
    noted, texts = _noted(values, reach.nodes), _texts(explanation, values)
    marks = [
        AtomMark(float(value) / reach.nodes, f"{symbol} {k}: {text}", short_text(float(value)) if k in noted else "")
        for k, (value, symbol, text) in enumerate(zip(values, symbols, texts, strict=True))
    ]
    bonds = []
    if explanation.edges is not None:
        given = zip(explanation.edge_ends[i].tolist(), explanation.edges[i].tolist(), strict=True)
        for (u, v), value in given:
            a, b = int(atoms.atom[u]), int(atoms.atom[v])
            if atoms.is_hydrogen[[u, v]].any() or not np.isfinite(value) or abs(value) < 0.02 * reach.edges:
                continue
            words = f"bond {symbols[a]} {a} – {symbols[b]} {b}: {_text(explanation, value)}"
            bonds.append(BondMark(a, b, value / reach.edges, words))
    return draw_molecule(atoms.molecule, _label(explanation, i, values, symbols), size, marks, bonds)


def _of_graph(explanation: Explanation, i: int, reach: Reach, size: tuple[float, float]) -> Markup:
    whole, values = explanation.graphs[i], explanation.nodes[i]
    labels = _labels(explanation, i)
    shown = important_nodes(whole, values)
    part = part_of(whole, shown)
    noted = _noted(values, reach.nodes)
    nodes = []
    for k in shown.tolist():
        words = f"node {k}{f', {labels[k]}' if labels[k] else ''}: {_text(explanation, float(values[k]))}"
        note = short_text(float(values[k])) if k in noted else ""
        nodes.append(NodeMark(float(values[k]) / reach.nodes, words, labels[k], note))
    place = np.full(whole.num_nodes, -1)
    place[shown] = np.arange(len(shown))
    ends = place[explanation.edge_ends[i]].reshape(-1, 2)
    inside = np.flatnonzero((ends >= 0).all(axis=1))
    edges: list[EdgeMark | None] = [None] * len(inside)
    if explanation.edges is not None:
        for at, (edge, value) in enumerate(zip(inside.tolist(), explanation.edges[i][inside].tolist(), strict=True)):
            if np.isfinite(value):
                u, v = explanation.edge_ends[i][edge].tolist()
                edges[at] = EdgeMark(value / reach.edges, f"edge {u} – {v}: {_text(explanation, value)}")
    label = _label(explanation, i, values, labels)
    return draw_explained_graph(part, ends[inside], nodes, edges, label, size)


def _label(explanation: Explanation, i: int, values: Floats, names: Sequence[str]) -> str:
    """Return the text alternative of a drawing."""
    kind, one = ("Molecule", "atoms") if explanation.atoms is not None else ("Graph", "nodes")
    order = np.argsort(-np.abs(values), kind="stable")[:NOTED].tolist()
    strongest = ", ".join(f"{names[k]} {k} {_text(explanation, float(values[k]))}".strip() for k in order)
    return f"{kind} {explanation.graphs.ids[i]}, {one} colored by contribution; strongest: {strongest}"


def _graph(target: Target, explanation: Explanation, i: int, reach: Reach) -> ExplainedGraph:
    graphs = explanation.graphs
    values = _by_atom(explanation, i)
    molecule = None if explanation.atoms is None else explanation.atoms[i].molecule
    names = [atom.GetSymbol() for atom in molecule.GetAtoms()] if molecule is not None else _labels(explanation, i)
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    scores = explanation.scores[i : i + 1]
    number = explanation.output.target
    prediction, explained = _prediction_texts(target, scores, number, float(explanation.values[i]))
    return ExplainedGraph(
        id=str(graphs.ids[i]),
        smiles="" if molecule is None else str(graphs.columns["smiles"][i]),
        picture=_picture(explanation, i, reach, SIZE),
        drawn=_left_out(graphs[i], values, molecule),
        prediction=prediction,
        explained=explained,
        sum=_sum_text(explanation, i),
        remark=_remark(explanation, i),
        truth=_truth_text(explanation, i, target),
        rows=[Row(k, names[k], _text(explanation, float(values[k]))) for k in order[:MAX_ROWS]],
        more=max(len(order) - MAX_ROWS, 0),
        edges=_edge_rows(explanation, i, names),
        features=[
            Named(name, _text(explanation, value))
            for name, value in list(explanation.features[i].items())[:MAX_FEATURES]
        ],
        groups=[
            Named(group.name, _text(explanation, group.contribution))
            for group in (explanation.groups[i] if explanation.groups is not None else [])[:MAX_FEATURES]
        ],
        substructures=[
            Named(one.words, _text(explanation, one.contribution), str(one.occurrences))
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
        found.append(Named(words, _text(explanation, float(values[k]))))
    return found


def _left_out(graph: Graph, values: Floats, molecule: Any) -> str:
    if molecule is not None:
        return f"molecules of more than {MAX_ATOMS} heavy atoms are not drawn" if len(values) > MAX_ATOMS else ""
    if graph.num_nodes <= MAX_DRAWN:
        return ""
    shown = important_nodes(graph, values)
    share = float(np.abs(values[shown]).sum() / max(np.abs(values).sum(), 1e-300))
    return f"drawn: the most important {len(shown)} of {graph.num_nodes:,} nodes, {share:.0%} of all contributions"


def _labels(explanation: Explanation, i: int) -> list[str]:
    """Return the label of each node as in the source; empty without labels."""
    graph = explanation.graphs[i]
    if graph.node_labels is None:
        return [""] * graph.num_nodes
    return [label_text(explanation.graphs, 0, int(value)) for value in graph.node_labels[:, 0]]


def _by_atom(explanation: Explanation, i: int) -> Floats:
    """Return contributions of nodes; of a molecule those of its atoms, with their hydrogens."""
    if explanation.atoms is None:
        return explanation.nodes[i]
    one = explanation.atoms[i]
    sums = np.bincount(one.atom, weights=explanation.nodes[i], minlength=one.molecule.GetNumAtoms())
    return sums.astype(np.float64)


def _reach(values: Sequence[Floats]) -> float:
    every = np.abs(np.concatenate([np.zeros(1), *values]))
    every = every[np.isfinite(every)]
    return float(np.quantile(every, QUANTILE)) or float(every.max()) or 1.0


def _noted(values: Floats, reach: float) -> set[int]:
    """Return the nodes that have their contribution written beside them."""
    order = np.argsort(-np.abs(values), kind="stable")[:NOTED].tolist()
    return {k for k in order if abs(values[k]) >= LEAST_NOTED * reach}


def _text(explanation: Explanation, value: float) -> str:
    return signed_text(value, probability=explanation.output.is_probability)


def _texts(explanation: Explanation, values: Floats) -> list[str]:
    return [_text(explanation, float(value)) for value in values]


def short_text(value: float) -> str:
    """Format a contribution as briefly as possible."""
    text = f"{value:+.2f}" if 0.1 <= abs(value) < 10 else f"{value:+.2g}" if abs(value) < 10 else f"{value:+.0f}"
    return text.replace("-", "−")


def signed_text(value: float, *, probability: bool) -> str:
    """Format a contribution with its sign."""
    if not probability:
        return METRICS["mae"].difference(value)
    text = f"{value:+.3f}".replace("-", "−")
    return text[1:] if float(text[1:]) == 0 else text


def _sum_text(explanation: Explanation, i: int) -> str:
    """Return the sum of contributions of nodes in words; empty if they do not add up."""
    base = float(explanation.baselines[i])
    if not np.isfinite(base):
        return ""
    total = _text(explanation, float(explanation.nodes[i].sum()))
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


def color_legend(reach: float, *, probability: bool, signed: bool = True) -> Markup:
    """Return the color scale from −reach to reach with numbers; from 0 for contributions without a sign."""
    width, height = 34.0, 16.0
    steps = LEGEND if signed else LEGEND[LEGEND >= 0]
    cells = "".join(_legend_cell(k * width, width, height, float(s)) for k, s in enumerate(steps))
    high = f"≥ {signed_text(reach, probability=probability)}"
    low = f"≤ {signed_text(-reach, probability=probability)}"
    ends = [(0.0, low if signed else "0", "start"), (len(steps) * width, high, "end")]
    ends += [(len(steps) * width / 2, "0", "middle")] * signed
    texts = "".join(
        f'<text x="{coordinate(x)}" y="32" text-anchor="{anchor}">{words}</text>' for x, words, anchor in ends
    )
    box = f"0 0 {coordinate(len(steps) * width)} 38"
    label = f"Color scale: orange lowers the prediction, blue raises it, from {low[2:]} to {high[2:]}"
    return Markup(
        f'<svg class="chart mol legend-scale" viewBox="{box}" role="img" aria-label="{label}">{cells}{texts}</svg>'
    )


def _legend_cell(x: float, width: float, height: float, strength: float) -> str:
    kind = "raises" if strength >= 0 else "lowers"
    corners = f"M{coordinate(x)} 0h{coordinate(width)}v{coordinate(height)}h-{coordinate(width)}Z"
    return f'<path class="{kind}" fill-opacity="{opacity(strength):.2f}" d="{corners}"/>'


def chosen_graphs(ids: Sequence[str], wanted: Sequence[str], count: int) -> list[int]:
    """Return the positions of the graphs called ``wanted``, by default of the first ``count``; −1 for no graph."""
    if not wanted:
        return list(range(min(count, len(ids))))
    places = {name: place for place, name in reversed(list(enumerate(ids)))}
    return [places.get(name, -1) for name in wanted]
