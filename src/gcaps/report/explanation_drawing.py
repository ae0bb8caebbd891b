"""Drawings of explanations: graphs or molecules whose nodes and edges are colored by contribution, and the legend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Floats
from gcaps.evaluation.metrics import METRICS
from gcaps.explain.explanation import Explanation
from gcaps.explain.feature_names import label_text
from gcaps.report.chart import coordinate
from gcaps.report.explained_graph import EdgeMark, NodeMark, draw_explained_graph, important_nodes, part_of
from gcaps.report.molecule_drawing import AtomMark, BondMark, draw_molecule, opacity

SIZE = (340.0, 260.0)
"""Width and height of a drawing in CSS pixels."""
NOTED = 3
"""Number of nodes of a graph that have their contribution written beside them."""
LEAST_NOTED = 0.15
"""Smaller contributions, relative to the end of the color scale, are not written beside nodes."""
QUANTILE = 0.99
"""Quantile of all contributions at which the color scale ends, so that one extreme node does not fade the others."""
LEGEND = np.linspace(-1, 1, 9)
"""Strengths shown in the legend."""


class Reach:
    """Ends of the color scales of an explanation, for nodes and for edges."""

    def __init__(self, explanation: Explanation) -> None:
        self.nodes = _reach([by_atom(explanation, i) for i in range(len(explanation))])
        self.edges = _reach(explanation.edges or [])


def drawing(
    explanation: Explanation, i: int, size: tuple[float, float] = SIZE, reach: Reach | None = None
) -> Markup | None:
    """Return one graph of an explanation as an SVG element, colored by the classes of the page's style sheet.

    A molecule is drawn by RDKit; another graph is laid out. Of a large graph the most important neighborhood is drawn.

    Args:
        explanation: see :func:`gcaps.explain.explain`.
        i: number of the graph.
        size: width and height in CSS pixels.
        reach: ends of the color scales, computed if not given.

    Returns:
        None for a molecule that RDKit cannot draw.
    """
    drawn = _of_molecule if explanation.atoms is not None else _of_graph
    return drawn(explanation, i, reach or Reach(explanation), size)


def _of_molecule(explanation: Explanation, i: int, reach: Reach, size: tuple[float, float]) -> Markup | None:
    assert explanation.atoms is not None
    atoms = explanation.atoms[i]
    values = by_atom(explanation, i)
    symbols = [atom.GetSymbol() for atom in atoms.molecule.GetAtoms()]
    noted = _noted(values, reach.nodes)
    texts = [contribution_text(explanation, float(value)) for value in values]
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
            words = f"bond {symbols[a]} {a} – {symbols[b]} {b}: {contribution_text(explanation, value)}"
            bonds.append(BondMark(a, b, value / reach.edges, words))
    return draw_molecule(atoms.molecule, _label(explanation, i, values, symbols), size, marks, bonds)


def _of_graph(explanation: Explanation, i: int, reach: Reach, size: tuple[float, float]) -> Markup:
    whole, values = explanation.graphs[i], explanation.nodes[i]
    labels = node_labels_of(explanation, i)
    shown = important_nodes(whole, values)
    part = part_of(whole, shown)
    noted = _noted(values, reach.nodes)
    nodes = []
    for k in shown.tolist():
        words = f"node {k}{f', {labels[k]}' if labels[k] else ''}: {contribution_text(explanation, float(values[k]))}"
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
                edges[at] = EdgeMark(value / reach.edges, f"edge {u} – {v}: {contribution_text(explanation, value)}")
    label = _label(explanation, i, values, labels)
    return draw_explained_graph(part, ends[inside], nodes, edges, label, size)


def _label(explanation: Explanation, i: int, values: Floats, names: Sequence[str]) -> str:
    """Return the text alternative of a drawing."""
    kind, one = ("Molecule", "atoms") if explanation.atoms is not None else ("Graph", "nodes")
    order = np.argsort(-np.abs(values), kind="stable")[:NOTED].tolist()
    strongest = ", ".join(f"{names[k]} {k} {contribution_text(explanation, float(values[k]))}".strip() for k in order)
    return f"{kind} {explanation.graphs.ids[i]}, {one} colored by contribution; strongest: {strongest}"


def node_labels_of(explanation: Explanation, i: int) -> list[str]:
    """Return the label of each node as in the source; empty without labels."""
    graph = explanation.graphs[i]
    if graph.node_labels is None:
        return [""] * graph.num_nodes
    return [label_text(explanation.graphs, 0, int(value)) for value in graph.node_labels[:, 0]]


def by_atom(explanation: Explanation, i: int) -> Floats:
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


def contribution_text(explanation: Explanation, value: float) -> str:
    """Format a contribution to the explained output."""
    return signed_text(value, probability=explanation.output.is_probability)


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
