"""Where some graphs of a set lie in its arrays."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer, ranges

OWNERS = {
    **dict.fromkeys(("y", "given_ids"), "graphs"),
    **dict.fromkeys(("node_labels", "x"), "nodes"),
    **dict.fromkeys(("col", "edge_labels", "edge_attr", "edge_weight"), "arcs"),
}
"""The arrays of a GraphSet that have a row for each graph, node or arc, whatever stands before it."""


class Selection(NamedTuple):
    """Rows of graphs, nodes and arcs: slices where the graphs stand next to each other, else positions."""

    graphs: Ints
    nodes: slice | Ints
    arcs: slice | Ints
    ptr: Ints
    """That of the chosen graphs alone."""

    @classmethod
    def of(cls, ptr: Ints, rowptr: Ints, chosen: Ints) -> Self:
        """The rows of the graphs ``chosen``; reads the pointers of these graphs only."""
        first, last = ptr[chosen], ptr[chosen + 1]
        if len(chosen) and chosen[-1] - chosen[0] == len(chosen) - 1 and (np.diff(chosen) == 1).all():
            nodes = slice(int(first[0]), int(last[-1]))
            arcs = slice(int(rowptr[nodes.start]), int(rowptr[nodes.stop]))
            return cls(chosen, nodes, arcs, np.append(first, last[-1]) - first[0])
        first_arc = rowptr[first]
        sizes = last - first
        return cls(chosen, ranges(first, sizes), ranges(first_arc, rowptr[last] - first_arc), pointer(sizes))

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

    def rowptr(self, rowptr: Array) -> Ints:
        """[n+1] the pointer of the chosen nodes alone, from that of all."""
        if not isinstance(self.nodes, slice):
            return pointer(rowptr[self.nodes + 1] - rowptr[self.nodes])
        part: Ints = rowptr[self.nodes.start : self.nodes.stop + 1]
        return part - part[0] if part[0] else part
