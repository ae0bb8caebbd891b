"""Sampled neighborhoods: mini-batches of a graph that is too large for steps on all of its nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Ints, pointer


class Neighborhood(NamedTuple):
    """Nodes within some hops of a batch, with the edges along which they were reached."""

    nodes: Ints
    """[m] nodes of the graph; those of the batch come first."""
    edges: Ints
    """[k] positions in the graph's ``edge_index`` of the edges, both directions of each."""


class NeighborSampler:
    """Sample neighborhoods, a bounded number of neighbors for each node and hop.

    Args:
        edge_index: [2, e] both directions of each edge, sorted by the first row.
        num_nodes: n.
        hops: receptive field of the network.
        neighbors: sampled for each node and hop, without replacement.
    """

    def __init__(self, edge_index: Ints, num_nodes: int, hops: int, neighbors: int) -> None:
        self.edge_index, self.hops, self.neighbors = edge_index, hops, neighbors
        self.rowptr = pointer(np.bincount(edge_index[0], minlength=num_nodes))
        codes = edge_index[0] * num_nodes + edge_index[1]
        self.reverse = np.searchsorted(codes, edge_index[1] * num_nodes + edge_index[0])
        """[e] position of the other direction of each edge."""

    def sample(self, batch: Ints, rng: np.random.Generator) -> Neighborhood:
        """Return a neighborhood of the nodes of a batch."""
        nodes, frontier, edges = [batch], batch, np.zeros(0, np.int64)
        seen = np.zeros(len(self.rowptr) - 1, dtype=bool)
        seen[batch] = True
        for _ in range(self.hops):
            taken = self._edges(frontier, rng)
            edges = np.union1d(edges, np.concatenate([taken, self.reverse[taken]]))
            reached = np.unique(self.edge_index[1, taken])
            frontier = reached[~seen[reached]]
            seen[frontier] = True
            nodes.append(frontier)
        return Neighborhood(np.concatenate(nodes), edges)

    def _edges(self, frontier: Ints, rng: np.random.Generator) -> Ints:
        """Draw at most ``neighbors`` edges of each node; return their positions."""
        begin, counts = self.rowptr[frontier], np.diff(self.rowptr)[frontier]
        owner = np.repeat(np.arange(len(frontier)), counts)
        ends = np.cumsum(counts)
        position = np.arange(len(owner)) - np.repeat(ends - counts, counts) + np.repeat(begin, counts)
        order = np.lexsort((rng.random(len(owner)), owner))
        rank = np.arange(len(owner)) - np.repeat(ends - counts, counts)
        drawn: Ints = position[order][rank < self.neighbors]
        return drawn
