"""Drawing of a graph whose layout preserves shortest-path distances."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from gcaps.data.arrays import Floats
from gcaps.data.graphset import Graph
from gcaps.report.chart import Drawing

MAX_NODES = 400
"""Graphs with more nodes are not drawn."""


def layout(graph: Graph, rounds: int = 80) -> Floats:
    """Return node positions [N, 2] by stress majorization (Gansner, Koren and North, 2004); deterministic.

    Minimises Σ_{i<j} d_ij⁻² (‖p_i − p_j‖ − d_ij)², where d is the shortest-path distance. The result with the lowest
    stress is returned of several starts: the leading planes of classical scaling and, because these may project a ring
    onto a line, a few random ones. Components are given a finite distance from each other.
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
    # nodes with equal distances to all others would keep equal positions; a fixed spiral separates them
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
            # minimum of the majorizing quadratic: the weighted mean of the places each other node would put it at
            p = (weight @ p + pull.sum(axis=1)[:, None] * p - pull @ p) / total
        stress = float((weight * (_gaps(p) - d) ** 2).sum())
        if stress < 0.999 * least:
            best, least = p, stress
    return _rotated(best - best.mean(axis=0))


def _gaps(p: Floats) -> Floats:
    """Return distances [N, N] between points, with ones on the diagonal."""
    gaps: Floats = np.sqrt(((p[:, None] - p[None]) ** 2).sum(axis=2))
    np.fill_diagonal(gaps, 1.0)
    return gaps


def _rotated(p: Floats) -> Floats:
    """Rotate points so that their principal axis is horizontal."""
    _, _, axes = np.linalg.svd(p, full_matrices=False)
    turned: Floats = p @ axes.T
    # the sign of a principal axis is arbitrary; the third moment fixes it
    signs = np.where((turned**3).sum(axis=0) < 0, -1.0, 1.0)
    return turned * signs


def draw_graph(graph: Graph, label: str, colors: dict[int, int], size: float = 190) -> Markup | None:
    """Return the graph as an SVG element; None if it has more than :data:`MAX_NODES` nodes.

    Args:
        graph: the graph.
        label: text alternative for screen readers.
        colors: index into the palette for each node label; graphs without node labels have one color.
        size: width and height in CSS pixels.
    """
    if graph.num_nodes > MAX_NODES:
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
        picture.dots([(x, y) for x, y in here], f"k{colors.get(kind, 0) % 8}", dot)
    return picture.svg()
