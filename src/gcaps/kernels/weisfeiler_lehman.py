"""The Weisfeiler-Lehman subtree kernel (Shervashidze et al., 2011)."""

from __future__ import annotations

import numpy as np

from gcaps.data.arrays import Ints
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError, DataError
from gcaps.kernels.base import Bag, FeatureKernel
from gcaps.kernels.hashing import Names, join, mix, neighbors_of_set, node_names, rows, sums


class WeisfeilerLehman(FeatureKernel):
    """k(G, H) = Σ_{i=0..h} Σ_c n_i,c(G) n_i,c(H), n_i,c the number of nodes with color c after i refinements.

    A node's next color is its color and the multiset of its neighbors' colors (with ``edge_labels``, of the pairs of
    arc label and neighbor's color). Colors begin as node labels, as degrees where the set has none.

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
        """Colors of all refinements; a color's name carries the number of the refinement."""
        colors = refine(graphs, self.height, labels=self.labels, edge_labels=self.edge_labels)
        return color_bag(graphs, colors)


def refine(graphs: GraphSet, height: int, *, labels: bool = True, edge_labels: bool = False) -> Names:
    """[h+1, N] the color of every node of every graph after 0..h refinements, all graphs at once."""
    if not 0 <= height <= 100:
        raise ConfigError(f"height must be from 0 to 100, not {height}")
    if edge_labels and graphs.edge_labels is None:
        raise DataError(f"{graphs.name} has no edge labels; leave edge_labels off")
    col = neighbors_of_set(graphs)
    arc = rows(graphs.edge_labels) if edge_labels and graphs.edge_labels is not None else None
    colors = np.empty((height + 1, graphs.num_nodes), dtype=np.uint64)
    colors[0] = node_names(graphs, labels)
    for i in range(height):
        seen = mix(colors[i])[col] if arc is None else join(arc, colors[i][col])
        colors[i + 1] = join(colors[i], sums(seen, graphs.rowptr))
    return colors


def color_bag(graphs: GraphSet, colors: Names) -> Bag:
    """A set's bag of colors: [h+1, N] by refinement and node, a graph's entries side by side."""
    levels = len(colors)
    named = np.stack([mix(color + np.uint64(i)) for i, color in enumerate(colors)], axis=1)
    ptr: Ints = graphs.ptr * levels
    return Bag(ptr, named.ravel(), np.ones(named.size))
