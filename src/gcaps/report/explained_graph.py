"""Drawing of a graph whose nodes and edges are colored by their contributions to a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import Graph
from gcaps.escaping import visible
from gcaps.report.chart import coordinate
from gcaps.report.graph_drawing import layout
from gcaps.report.molecule_drawing import marked_line, opacity

MAX_DRAWN = 120
"""Most nodes of a drawing; of larger graphs the most important neighborhood is drawn."""
LARGEST_DOT, SMALLEST_DOT = 12.0, 3.5
"""Radius of a node in CSS pixels."""
READABLE_DOT = 7.5
"""Radius from which labels are written into nodes."""


class NodeMark(NamedTuple):
    """Drawing of a node."""

    strength: float
    """From −1 to 1: the sign chooses the color, the size its intensity."""
    words: str
    """Shown when the pointer rests on the node."""
    text: str = ""
    """Label, written into the node where there is room."""
    note: str = ""
    """Short text beside the node."""


class EdgeMark(NamedTuple):
    """Drawing of an edge."""

    strength: float
    words: str


def important_nodes(graph: Graph, nodes: Floats, count: int = MAX_DRAWN) -> Ints:
    """Return at most ``count`` nodes, ascending: from the most important one on, always the most important neighbor.

    Where a component is exhausted, the most important node of the others follows.

    Args:
        graph: the graph.
        nodes: [n] contributions; their absolute values are their importance.
        count: number of nodes.
    """
    import heapq

    if graph.num_nodes <= count:
        return np.arange(graph.num_nodes)
    source, target = graph.edge_index
    first = np.searchsorted(source, np.arange(graph.num_nodes + 1))
    size = np.abs(nodes)
    order = np.argsort(-size, kind="stable").tolist()
    chosen: set[int] = set()
    border: list[tuple[float, int]] = []
    for start in order:
        if start not in chosen:
            heapq.heappush(border, (-float(size[start]), start))
        while border and len(chosen) < count:
            node = heapq.heappop(border)[1]
            if node in chosen:
                continue
            chosen.add(node)
            for other in target[first[node] : first[node + 1]].tolist():
                if other not in chosen:
                    heapq.heappush(border, (-float(size[other]), other))
        if len(chosen) >= count:
            break
    return np.array(sorted(chosen))


def part_of(graph: Graph, nodes: Ints) -> Graph:
    """Return the subgraph induced by nodes, without features."""
    place = np.full(graph.num_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    ends = place[graph.edge_index]
    return Graph(ends[:, (ends >= 0).all(axis=0)], len(nodes), None, None, None, None, None, None, None)


def draw_explained_graph(
    graph: Graph,
    ends: Ints,
    nodes: Sequence[NodeMark],
    edges: Sequence[EdgeMark | None],
    label: str,
    size: tuple[float, float],
) -> Markup:
    """Return a graph as an SVG element.

    Args:
        graph: at most some hundred nodes.
        ends: [m, 2] nodes of each edge.
        nodes: [n]
        edges: [m] None for an edge whose contribution is not known, which is a thin gray line.
        label: text alternative for screen readers.
        size: width and height in CSS pixels.
    """
    place, dot = _placed(layout(graph), ends, size)
    parts = []
    plain = "".join(
        f"M{coordinate(place[u, 0])} {coordinate(place[u, 1])}L{coordinate(place[v, 0])} {coordinate(place[v, 1])}"
        for u, v in ends.tolist()
    )
    if plain:
        parts.append(f'<path class="edge" d="{plain}"/>')
    for (u, v), edge in zip(ends.tolist(), edges, strict=True):
        if edge is not None and abs(edge.strength) >= 0.02:
            parts.append(marked_line(place[u], place[v], edge.strength, edge.words, max(0.7 * dot, 2.0)))
    for (x, y), node in zip(place.tolist(), nodes, strict=True):
        at = f'cx="{coordinate(x)}" cy="{coordinate(y)}" r="{coordinate(dot)}"'
        strong = " strong" if node.note else ""
        kind = "raises" if node.strength >= 0 else "lowers"
        parts.append(f'<circle class="base" {at}/>')
        parts.append(
            f'<circle class="{kind}{strong}" {at} fill-opacity="{opacity(node.strength) / 0.7 * 0.9:.2f}">'
            f"<title>{escape(visible(node.words))}</title></circle>"
        )
        if node.text and dot >= READABLE_DOT and len(node.text) <= 3:
            spot = f'x="{coordinate(x)}" y="{coordinate(y + 4)}"'
            parts.append(f'<text {spot} text-anchor="middle">{escape(visible(node.text))}</text>')
    parts += _notes(place, dot, nodes, size)
    box = f"0 0 {coordinate(size[0])} {coordinate(size[1])}"
    head = f'<svg class="chart explained-graph" viewBox="{box}" role="img" aria-label="{escape(visible(label))}"'
    return Markup(f'{head} style="max-width:{coordinate(1.2 * size[0])}px">{"".join(parts)}</svg>')


def _placed(p: Floats, ends: Ints, size: tuple[float, float]) -> tuple[Floats, float]:
    """Return places in pixels, and the radius of nodes."""
    margin = np.array([46.0, 22.0])
    low, span = p.min(axis=0), np.ptp(p, axis=0)
    room = np.array(size) - 2 * margin
    scale = float(min((room / np.maximum(span, 1e-9)).min(), 46.0))
    place: Floats = (p - low - span / 2) * scale + np.array(size) / 2
    if len(place) < 2:
        return place, LARGEST_DOT
    gaps = np.linalg.norm(place[:, None] - place[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    room_between = float(np.quantile(gaps.min(axis=1), 0.15))
    return place, float(np.clip(0.48 * room_between, SMALLEST_DOT, LARGEST_DOT))


def _notes(place: Floats, dot: float, nodes: Sequence[NodeMark], size: tuple[float, float]) -> list[str]:
    """Return the texts beside nodes, the strongest first, each on the side where it covers the fewest nodes.

    A text that would cover another is left out; its number is in the tooltip and the table.
    """
    centre, found = place[:, 0].mean(), []
    taken: list[_Box] = []
    noted = [k for k in np.argsort([-abs(node.strength) for node in nodes], kind="stable").tolist() if nodes[k].note]
    for k in noted:
        x, y = place[k].tolist()
        width, side = 6.8 * len(nodes[k].note), -1 if x < centre else 1
        boxes = [_beside(x, y, dot, width, s) for s in (side, -side)]
        boxes += [_Box(x - width / 2, v - 7, x + width / 2, v + 7) for v in (y - dot - 9, y + dot + 9)]
        free = [box for box in boxes if box.inside(size) and not any(box.covers(other) for other in taken)]
        if not free:
            continue
        box = min(free, key=lambda one: one.nodes(place, dot))  # the first of equals
        taken.append(box)
        spot = f'x="{coordinate((box.left + box.right) / 2)}" y="{coordinate(box.top + 11)}" text-anchor="middle"'
        found.append(f'<text class="note" {spot}>{escape(nodes[k].note)}</text>')
    return found


class _Box(NamedTuple):
    """Position of a text."""

    left: float
    top: float
    right: float
    bottom: float

    def covers(self, other: _Box) -> bool:
        """Whether two texts overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def inside(self, size: tuple[float, float]) -> bool:
        """Whether all of it is within the drawing."""
        return self.left >= 0 and self.top >= 0 and self.right <= size[0] and self.bottom <= size[1]

    def nodes(self, place: Floats, dot: float) -> int:
        """Return the number of nodes that it covers in part."""
        nearest = np.clip(place, [self.left, self.top], [self.right, self.bottom])
        return int((np.linalg.norm(place - nearest, axis=1) < dot).sum())


def _beside(x: float, y: float, dot: float, width: float, side: int) -> _Box:
    start = x + side * (dot + 3)
    return _Box(min(start, start + side * width), y - 7, max(start, start + side * width), y + 7)
