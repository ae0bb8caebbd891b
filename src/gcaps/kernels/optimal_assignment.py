"""The Weisfeiler-Lehman optimal assignment kernel (Kriege, Giscard and Wilson, 2016)."""

from __future__ import annotations

import numpy as np

from gcaps.data.graphset import GraphSet
from gcaps.kernels.base import Bag
from gcaps.kernels.hashing import join
from gcaps.kernels.weisfeiler_lehman import WeisfeilerLehman


class WLOptimalAssignment(WeisfeilerLehman):
    """k(G, H) = Σ_{i=0..h} Σ_c min(n_i,c(G), n_i,c(H)): the best assignment of G's nodes to H's.

    Two nodes are worth the number of refinements after which they still have the same color; since colors form a
    hierarchy, the best assignment is the intersection of the color histograms. min(a, b) = Σ_{t≥1} [t ≤ a][t ≤ b]: φ
    has a one for the first, second, third, … node of every color.

    Its arguments are those of :class:`WeisfeilerLehman`.
    """

    def bag(self, graphs: GraphSet) -> Bag:
        """Pairs (color, t), t = 1..number of nodes of that color."""
        colors = super().bag(graphs)
        graph = np.repeat(np.arange(len(graphs)), np.diff(colors.ptr))
        order = np.lexsort([colors.names, graph])
        name = colors.names[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (name[1:] != name[:-1]) | (np.diff(graph) > 0)
        start = np.flatnonzero(new)
        t = np.arange(len(order)) - start[np.cumsum(new) - 1]
        return Bag(colors.ptr, join(name, t), colors.counts)
