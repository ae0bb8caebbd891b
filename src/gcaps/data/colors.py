"""Stable Weisfeiler-Lehman colors: nodes that no number of rounds of looking at neighbors can tell apart."""

from __future__ import annotations

import numpy as np

from gcaps.data.arrays import Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.names import Names, join, mix, neighbors_of_set, rows, sums


def stable_colors(graphs: GraphSet, color: Names | None = None) -> Names:
    """[N] colors, each graph's refined until it gains none; they begin as ``color``, else as degree and node labels.

    Within a graph the colors are an equitable partition: nodes of one color have as many neighbors of any other.
    """
    col = neighbors_of_set(graphs)
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    if color is None:
        color = mix(graphs.degrees)
        if graphs.node_labels is not None:
            color = join(color, rows(graphs.node_labels))
    count = _colors_of_graphs(graph, color, len(graphs))
    while True:
        finer = join(color, sums(mix(color)[col], graphs.rowptr))
        found = _colors_of_graphs(graph, finer, len(graphs))
        gained = found > count
        if not gained.any():
            return color
        # graphs that are done keep theirs, whatever others of the set still need
        color, count = np.where(gained[graph], finer, color), np.maximum(count, found)


def _colors_of_graphs(graph: Ints, color: Names, graphs: int) -> Ints:
    """[G] how many colors each graph has."""
    _, first = np.unique(join(graph, color), return_index=True)
    return np.bincount(graph[first], minlength=graphs)
