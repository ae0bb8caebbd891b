"""Weisfeiler-Lehman subtree kernel (Shervashidze et al., 2011) and optimal assignment kernel (Kriege et al., 2016)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, join, mix, neighbors_of_set, rows, sums
from gcaps.errors import ConfigError, DataError
from gcaps.kernels.base import FeatureKernel, SubstructureCounts, count_matrix, inverse_root, node_hashes, scaled
from gcaps.kernels.gram import gram


class WeisfeilerLehman(FeatureKernel):
    """Weisfeiler-Lehman subtree kernel.

    k(G, H) = Σ_{i=0..h} Σ_c n_i,c(G) n_i,c(H), where n_i,c is the number of nodes with color c after i refinements.

    A node's next color is its color and the multiset of its neighbors' colors (with ``edge_labels``, of the pairs of
    edge label and neighbor's color). The initial colors are the node labels, or the degrees if there are none.

    Args:
        n_iter: number of refinements h.
        labels: start from the node labels; if False, from the degrees.
        edge_labels: include the edge labels in the refinement; ``"auto"``: if the training graphs have them.
        normalize: divide by √(k(G, G) k(H, H)).
    """

    def __init__(
        self,
        n_iter: int = 4,
        *,
        labels: bool = True,
        edge_labels: bool | Literal["auto"] = "auto",
        normalize: bool = True,
    ) -> None:
        self.n_iter, self.labels, self.edge_labels, self.normalize = n_iter, labels, edge_labels, normalize

    def count_substructures(self, graphs: GraphSet) -> SubstructureCounts:
        """Count the colors of all refinements; a color's hash includes the number of the refinement."""
        arcs = self.compares_edge_labels(graphs)
        return self.occurrences(color_counts(graphs, refine(graphs, self.n_iter, labels=self.labels, edge_labels=arcs)))

    def occurrences(self, colors: SubstructureCounts) -> SubstructureCounts:
        """Return what the kernel counts, for the colors of all nodes of each graph."""
        return colors

    def grams(self, graphs: GraphSet, heights: Sequence[int]) -> list[Floats]:
        """Return the Gram matrix for each of several numbers of refinements, from one pass over the refinements.

        They are equal, bit for bit, to those of :meth:`fit_transform` with ``n_iter`` set to each height.
        """
        total, found = np.zeros((len(graphs), len(graphs))), {}
        for height, level in enumerate(self._levels(graphs, max(heights))):
            total += level
            if height in heights:
                found[height] = total.copy()
        for K in found.values() if self.normalize else ():
            scale = inverse_root(K.diagonal().copy())
            scaled(K, scale, scale)
        return [found[height] for height in heights]

    def _levels(self, graphs: GraphSet, height: int) -> Iterator[Floats]:
        """Yield Σ_c n_i,c(G) n_i,c(H), not normalised, for i = 0..height.

        Once a refinement splits no color of the whole set, no later one does: its colors, and those of every later
        one, are the same partition under other names, and so is their Gram matrix. It is not computed again.
        """
        arcs, colors = self.compares_edge_labels(graphs), -1
        K: Floats = np.zeros((0, 0))
        for i, color in enumerate(refinements(graphs, height, labels=self.labels, edge_labels=arcs)):
            distinct = len(np.unique(color))
            if distinct == colors:
                yield from [K] * (height + 1 - i)
                return
            counts = self.occurrences(SubstructureCounts(graphs.ptr, color, np.ones(len(color))))
            words, column = np.unique(counts.hashes, return_inverse=True)
            K, colors = gram(count_matrix(counts, column, len(words))), distinct
            yield K


class WLOptimalAssignment(WeisfeilerLehman):
    """Weisfeiler-Lehman optimal assignment kernel.

    k(G, H) = Σ_{i=0..h} Σ_c min(n_i,c(G), n_i,c(H)): the value of the best assignment of G's nodes to H's, where a pair
    of nodes is worth the number of colorings 0..h in which they have the same color. As the colors form a hierarchy,
    the best assignment is the intersection of the color histograms. With min(a, b) = Σ_{t≥1} [t ≤ a][t ≤ b], φ has a
    one for the first, second, third, … node of every color.

    The parameters are those of :class:`WeisfeilerLehman`.
    """

    def occurrences(self, colors: SubstructureCounts) -> SubstructureCounts:
        """List the pairs (color, t), t = 1..number of nodes of that color."""
        graph = np.repeat(np.arange(len(colors.ptr) - 1), np.diff(colors.ptr))
        order = np.lexsort([colors.hashes, graph])
        color = colors.hashes[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (color[1:] != color[:-1]) | (np.diff(graph) > 0)
        start = np.flatnonzero(new)
        t = np.arange(len(order)) - start[np.cumsum(new) - 1]
        return SubstructureCounts(colors.ptr, join(color, t), colors.counts)


def refine(graphs: GraphSet, n_iter: int, *, labels: bool = True, edge_labels: bool = False) -> Hashes:
    """Return the color of every node after 0..n_iter refinements, [n_iter+1, N]; all graphs are refined at once."""
    return np.stack(list(refinements(graphs, n_iter, labels=labels, edge_labels=edge_labels)))


def refinements(graphs: GraphSet, n_iter: int, *, labels: bool = True, edge_labels: bool = False) -> Iterator[Hashes]:
    """Yield the color of every node, [N], after 0, 1, …, n_iter refinements."""
    if not 0 <= n_iter <= 100:
        raise ConfigError(f"n_iter must be from 0 to 100, not {n_iter}")
    if edge_labels and graphs.edge_labels is None:
        raise DataError(f"{graphs.name} has no edge labels; set edge_labels=False")
    col = neighbors_of_set(graphs)
    arc = rows(graphs.edge_labels) if edge_labels and graphs.edge_labels is not None else None
    color = node_hashes(graphs, labels)
    yield color
    for _ in range(n_iter):
        seen = mix(color)[col] if arc is None else join(arc, color[col])
        color = join(color, sums(seen, graphs.rowptr))
        yield color


def color_counts(graphs: GraphSet, colors: Hashes) -> SubstructureCounts:
    """Return the colors [h+1, N] of :func:`refine` grouped by graph, each counted once per node."""
    hashes = color_hashes(colors)
    ptr: Ints = graphs.ptr * len(colors)
    return SubstructureCounts(ptr, hashes.ravel(), np.ones(hashes.size))


def color_hashes(colors: Hashes) -> Hashes:
    """Return the colors [h+1, N] as [N, h+1], with the number of the refinement mixed in."""
    return np.stack([mix(color + np.uint64(i)) for i, color in enumerate(colors)], axis=1)
