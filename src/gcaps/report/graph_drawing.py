"""A graph on paper: nodes placed so that distances on the page follow distances in the graph."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from gcaps.data.arrays import Floats
from gcaps.data.graphset import Graph
from gcaps.report.chart import Drawing

LARGEST = 400
"""Nodes up to which a graph is drawn."""


def layout(graph: Graph, rounds: int = 80) -> Floats:
    """[N, 2] by stress majorization (Gansner, Koren and North, 2004), the same for the same graph every time.

    Minimises Σ_{i<j} d_ij⁻² (‖p_i − p_j‖ − d_ij)², d the hops between nodes, from the main planes of classical scaling
    and, as these may show a ring from the side, from a few scattered starts; the best is taken. Pieces that no path
    joins are held apart.
    """
    n = graph.num_nodes
    if n == 1:
        return np.zeros((1, 2))
    A = csr_array((np.ones(graph.edge_index.shape[1]), tuple(graph.edge_index)), shape=(n, n))
    d = shortest_path(A, unweighted=True, directed=False)
    finite = d[np.isfinite(d)]
    d[~np.isfinite(d)] = finite.max() / 2 + 2
    centred = -0.5 * (d**2 - (d**2).mean(axis=0) - (d**2).mean(axis=1)[:, None] + (d**2).mean())
    values, vectors = np.linalg.eigh(centred)
    directions = vectors * np.sqrt(np.maximum(values, 1e-9))
    # nodes with the same distances to all others would never part; a fixed spiral parts them
    turn = np.arange(n) * 2.399963
    apart = 0.05 * np.stack([np.cos(turn), np.sin(turn)], axis=1) * np.sqrt((np.arange(n)[:, None] + 1) / n)
    np.fill_diagonal(d, 1.0)
    weight = d**-2.0
    np.fill_diagonal(weight, 0.0)
    total = weight.sum(axis=1)[:, None]
    best, least = directions[:, -2:], np.inf
    planes = ((-2, -1), (-3, -1), (-3, -2)) if n > 2 else ((-2, -1),)
    scattered = np.random.default_rng(0).normal(scale=d.max() / 3, size=(4 if n <= 60 else 0, n, 2))
    for start in (*(directions[:, plane] + apart for plane in planes), *scattered):
        p = start
        for _ in range(rounds):
            pull = weight * d / np.maximum(_gaps(p), 1e-6)
            # each node goes to where the others' circles of radius d would have it on average
            p = (weight @ p + pull.sum(axis=1)[:, None] * p - pull @ p) / total
        stress = float((weight * (_gaps(p) - d) ** 2).sum())
        if stress < 0.999 * least:
            best, least = p, stress
    return _upright(best - best.mean(axis=0))


def _gaps(p: Floats) -> Floats:
    """[N, N] distances between points, one on the diagonal."""
    gaps: Floats = np.sqrt(((p[:, None] - p[None]) ** 2).sum(axis=2))
    np.fill_diagonal(gaps, 1.0)
    return gaps


def _upright(p: Floats) -> Floats:
    """Turned so that the longer side lies flat."""
    _, _, axes = np.linalg.svd(p, full_matrices=False)
    turned: Floats = p @ axes.T
    # of the two ways to lie, the one whose heavier end is to the right
    signs = np.where((turned**3).sum(axis=0) < 0, -1.0, 1.0)
    return turned * signs


def draw_graph(graph: Graph, label: str, colours: dict[int, int], size: float = 190) -> Markup | None:
    """The graph as an SVG element; None where it is too large to be seen.

    Args:
        graph: what to draw.
        label: what a reader who cannot see it is told.
        colours: the place in the palette for each node label; nodes without labels share one colour.
    """
    if graph.num_nodes > LARGEST:
        return None
    p = layout(graph)
    low, span = p.min(axis=0), np.ptp(p, axis=0)
    margin, inner = 10.0, size - 20.0
    scale = min(inner / max(float(span.max()), 1e-9), 26.0)
    place = (p - low - span / 2) * scale + margin + inner / 2
    picture = Drawing(size, size, label)
    source, target = graph.edge_index
    once = source < target
    ends = zip(place[source[once]].tolist(), place[target[once]].tolist(), strict=True)
    picture.segments((((a[0], a[1]), (b[0], b[1])) for a, b in ends), "edge")
    kinds = np.full(graph.num_nodes, 0) if graph.node_labels is None else graph.node_labels[:, 0]
    lengths = np.linalg.norm(place[source] - place[target], axis=1)
    dot = float(np.clip(0.5 * np.median(lengths), 3, 11)) if len(lengths) else 9.0
    for kind in np.unique(kinds).tolist():
        here = place[kinds == kind].tolist()
        picture.dots([(x, y) for x, y in here], f"k{colours.get(kind, 0) % 8}", dot)
    return picture.svg()
