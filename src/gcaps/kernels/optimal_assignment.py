"""The Weisfeiler-Lehman optimal assignment kernel (Kriege, Giscard and Wilson, 2016)."""

from __future__ import annotations

import numpy as np

from gcaps.data.graphset import GraphSet
from gcaps.kernels.base import Bag, FeatureKernel
from gcaps.kernels.hashing import join
from gcaps.kernels.weisfeiler_lehman import color_bag, refine


class WLOptimalAssignment(FeatureKernel):
    """k(G, H) = Σ_{i=0..h} Σ_c min(n_i,c(G), n_i,c(H)): the best assignment of G's nodes to H's.

    Two nodes are worth the number of refinements after which they still have the same color; since colors form a
    hierarchy, the best assignment is the intersection of the color histograms. min(a, b) = Σ_{t≥1} [t ≤ a][t ≤ b]: φ
    has a one for the first, second, third, … node of every color.

    Args:
        height: refinements h.
        labels: begin with the node labels; off: with the degrees.
        edge_labels: let the labels of edges take part.
        normalize: divide by √(k(G, G) k(H, H)).
    """

    def __init__(
        self, height: int = 4, *, labels: bool = True, edge_labels: bool = False, normalize: bool = False
    ) -> None:
        self.height, self.labels, self.edge_labels, self.normalize = height, labels, edge_labels, normalize

    def bag(self, graphs: GraphSet) -> Bag:
        """Pairs (color, t), t = 1..number of nodes of that color."""
        colors = color_bag(graphs, refine(graphs, self.height, labels=self.labels, edge_labels=self.edge_labels))
        graph = np.repeat(np.arange(len(graphs)), np.diff(colors.ptr))
        order = np.lexsort([colors.names, graph])
        name = colors.names[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (name[1:] != name[:-1]) | (np.diff(graph) > 0)
        start = np.flatnonzero(new)
        t = np.arange(len(order)) - start[np.cumsum(new) - 1]
        return Bag(colors.ptr, join(name, t), colors.counts)
