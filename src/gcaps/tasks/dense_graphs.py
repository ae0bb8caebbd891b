"""Small graphs as padded arrays of codes, to and from a GraphSet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gcaps.data.arrays import Ints, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import neighbors_of_set
from gcaps.errors import DataError


class DenseGraphs(NamedTuple):
    """B graphs of at most N nodes; padding has the codes 0."""

    nodes: Tensor
    """[B, N] code of the label of each node."""
    edges: Tensor
    """[B, N, N] 0 for no edge, else 1 + the code of its label; symmetric."""
    mask: Tensor
    """[B, N] whether a node is real."""

    def take(self, which: Tensor) -> DenseGraphs:
        """Return the graphs ``which``."""
        return DenseGraphs(*(part[which] for part in self))

    def where(self, chosen: Tensor, other: DenseGraphs) -> DenseGraphs:
        """Return these graphs where ``chosen`` [B] is true, those of ``other`` elsewhere."""
        nodes, mask = (
            torch.where(chosen[:, None], a, b) for a, b in ((self.nodes, other.nodes), (self.mask, other.mask))
        )
        return DenseGraphs(nodes, torch.where(chosen[:, None, None], self.edges, other.edges), mask)


class Alphabet(NamedTuple):
    """Node and edge labels of a set of graphs, in the order of their codes; None if it has none."""

    nodes: Ints | None
    edges: Ints | None

    @classmethod
    def of(cls, graphs: GraphSet) -> Alphabet:
        """Return the labels of a set."""
        return cls(
            *(
                None if labels is None else np.unique(labels[:, 0])
                for labels in (graphs.node_labels, graphs.edge_labels)
            )
        )

    @property
    def num_nodes(self) -> int:
        """Number of node codes."""
        return 1 if self.nodes is None else len(self.nodes)

    @property
    def num_edges(self) -> int:
        """Number of edge codes, 0 (no edge) not counted."""
        return 1 if self.edges is None else len(self.edges)

    def encode(self, graphs: GraphSet, largest: int) -> DenseGraphs:
        """Pad graphs to ``largest`` nodes; edge weights and attributes are not used."""
        if graphs.sizes.max(initial=0) > largest:
            raise DataError(f"{graphs.name}: has a graph of {graphs.sizes.max()} nodes; expected at most {largest}")
        B, of_graph = len(graphs), np.repeat(np.arange(len(graphs)), graphs.sizes)
        place = np.arange(graphs.num_nodes) - graphs.ptr[of_graph]
        nodes, mask = np.zeros((B, largest), dtype=np.int64), np.zeros((B, largest), dtype=bool)
        mask[of_graph, place] = True
        nodes[of_graph, place] = _codes(self.nodes, graphs.node_labels, graphs.num_nodes, graphs.name)
        edges = np.zeros((B, largest, largest), dtype=np.int64)
        source, target = np.repeat(np.arange(graphs.num_nodes), graphs.degrees), neighbors_of_set(graphs)
        codes = _codes(self.edges, graphs.edge_labels, len(source), graphs.name)
        edges[of_graph[source], place[source], place[target]] = 1 + codes
        return DenseGraphs(torch.from_numpy(nodes), torch.from_numpy(edges), torch.from_numpy(mask))

    def decode(self, graphs: DenseGraphs, name: str) -> GraphSet:
        """Return the graphs as a GraphSet; the real nodes of each graph come first."""
        mask, edges = graphs.mask.numpy(), graphs.edges.numpy()
        ptr = pointer(mask.sum(axis=1))
        b, i, j = np.nonzero(np.triu(edges, 1))
        labels = None if self.edges is None else self.edges[edges[b, i, j] - 1]
        rows = EdgeRows(ptr[b] + i, ptr[b] + j, None if labels is None else labels[:, None])
        node_labels = None if self.nodes is None else self.nodes[graphs.nodes.numpy()[mask]][:, None]
        return assemble(name, ptr, rows, node_labels=node_labels)


def _codes(known: Ints | None, labels: Ints | None, count: int, name: str) -> Ints:
    if known is None:
        return np.zeros(count, dtype=np.int64)
    if labels is None:
        raise DataError(f"{name}: has no labels; the generator was fitted on graphs with labels")
    codes = np.searchsorted(known, labels[:, 0]).clip(max=len(known) - 1)
    if not np.array_equal(known[codes], labels[:, 0]):
        raise DataError(f"{name}: has labels that the graphs of the training do not have")
    return codes


def is_connected(graphs: DenseGraphs) -> Tensor:
    """[B] whether all real nodes of a graph are one component."""
    N = graphs.mask.size(1)
    reach = ((graphs.edges > 0) | torch.eye(N, dtype=torch.bool)).float()
    for _ in range(max(1, (N - 1).bit_length())):
        reach = (reach @ reach > 0).float()
    pair = graphs.mask.unsqueeze(1) & graphs.mask.unsqueeze(2)
    return ((reach > 0) | ~pair).all(dim=2).all(dim=1)


def orders(graphs: DenseGraphs) -> Tensor:
    """[B, N] sum of the edge codes of each node: its degree, or its valence where code r is a bond of order r."""
    return graphs.edges.sum(dim=2)
