"""Where some graphs of a set lie in its arrays."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer, ranges

OWNERS = {
    "labels": "graphs",
    **dict.fromkeys(("node_labels", "node_attributes"), "nodes"),
    **dict.fromkeys(("neighbors", "edge_labels", "edge_attributes", "edge_weight"), "arcs"),
}
"""The arrays of a GraphSet that have a row for each graph, node or arc, whatever stands before it."""


class Selection(NamedTuple):
    """Rows of graphs, nodes and arcs: slices where the graphs stand next to each other, else positions."""

    graphs: Ints
    nodes: slice | Ints
    arcs: slice | Ints
    node_ptr: Ints
    """That of the chosen graphs alone."""

    @classmethod
    def of(cls, node_ptr: Ints, edge_ptr: Ints, chosen: Ints) -> Self:
        """The rows of the graphs ``chosen``; reads the pointers of these graphs only."""
        first, last = node_ptr[chosen], node_ptr[chosen + 1]
        if len(chosen) and chosen[-1] - chosen[0] == len(chosen) - 1 and (np.diff(chosen) == 1).all():
            nodes = slice(int(first[0]), int(last[-1]))
            arcs = slice(int(edge_ptr[nodes.start]), int(edge_ptr[nodes.stop]))
            return cls(chosen, nodes, arcs, np.append(first, last[-1]) - first[0])
        first_arc = edge_ptr[first]
        sizes = last - first
        return cls(chosen, ranges(first, sizes), ranges(first_arc, edge_ptr[last] - first_arc), pointer(sizes))

    def rows(self, key: str) -> slice | Ints:
        """The rows of the array ``key``, one of :data:`OWNERS`."""
        owner = OWNERS[key]
        if owner == "nodes":
            return self.nodes
        if owner == "arcs":
            return self.arcs
        if isinstance(self.nodes, slice):
            return slice(int(self.graphs[0]), int(self.graphs[-1]) + 1)
        return self.graphs

    def edge_ptr(self, edge_ptr: Array) -> Ints:
        """[n+1] the pointer of the chosen nodes alone, from that of all."""
        if not isinstance(self.nodes, slice):
            return pointer(edge_ptr[self.nodes + 1] - edge_ptr[self.nodes])
        part: Ints = edge_ptr[self.nodes.start : self.nodes.stop + 1]
        return part - part[0] if part[0] else part
