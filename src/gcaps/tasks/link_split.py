"""Splits of the links of a graph without leakage, and negative pairs that are drawn once and kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Ints
from gcaps.errors import DataError
from gcaps.tasks.graph import NodeGraph


class Pairs(NamedTuple):
    """Links, and as many pairs of nodes that are not linked."""

    positive: Ints
    """[m, 2] the smaller node first."""
    negative: Ints
    """[m, 2]"""

    @property
    def both(self) -> Ints:
        """[2m, 2] links, followed by the other pairs."""
        return np.concatenate([self.positive, self.negative])

    @property
    def y(self) -> Ints:
        """[2m] ones for links, followed by zeros."""
        return np.repeat(np.array([1, 0]), [len(self.positive), len(self.negative)])


class LinkSplit(NamedTuple):
    """A graph with some of its links held out."""

    graph: NodeGraph
    """The graph without the held-out links, for training."""
    validation: Pairs
    test: Pairs


def split_links(graph: NodeGraph, seed: int, validation: float = 0.05, test: float = 0.1) -> LinkSplit:
    """Hold out links for validation and test, and draw as many pairs that are not linked in the whole graph.

    Args:
        graph: the whole graph.
        seed: of the split.
        validation: share of the links.
        test: share of the links.

    Raises:
        DataError: the graph has too few links, or too few pairs that are not linked.
    """
    rng, edges = np.random.default_rng(seed), graph.edges
    sizes = [max(1, round(share * len(edges))) if share else 0 for share in (validation, test)]
    if sum(sizes) >= len(edges):
        raise DataError(f"has {len(edges)} links, too few to hold out {sum(sizes)}", "graph")
    order = rng.permutation(len(edges))
    held, tested = np.split(edges[order[: sum(sizes)]], sizes[:1])
    negative = absent_pairs(graph, sum(sizes), rng)
    seen = graph.without(np.concatenate([held, tested]))
    return LinkSplit(seen, Pairs(held, negative[: sizes[0]]), Pairs(tested, negative[sizes[0] :]))


def absent_pairs(graph: NodeGraph, count: int, rng: np.random.Generator) -> Ints:
    """Draw different pairs of nodes [count, 2], the smaller node first, that are not linked in a graph.

    Raises:
        DataError: there are fewer.
    """
    n = len(graph)
    low, high = graph.edges.T
    links = low * n + high
    if count > n * (n - 1) // 2 - len(links):
        raise DataError(f"has fewer than {count} pairs of nodes that are not linked", "graph")
    found = np.zeros(0, np.int64)
    if n * (n - 1) // 2 < 4 * (count + len(links)):  # draws would hit links or one another too often
        i, j = np.triu_indices(n, 1)
        found = np.setdiff1d(i * n + j, links)
    while len(found) < count:
        ends = rng.integers(0, n, (2, 2 * count))
        codes = (ends.min(axis=0) * n + ends.max(axis=0))[ends[0] != ends[1]]
        found = np.union1d(found, np.setdiff1d(codes, links))
    drawn = rng.permutation(found)[:count]
    return np.stack([drawn // n, drawn % n], axis=1)
