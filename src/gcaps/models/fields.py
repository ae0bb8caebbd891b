"""Receptive fields of PATCHY-SAN: which nodes of a graph come first, and what each of them sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcaps.data.arrays import Array, Ints, pointer, ranges
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, join, mix, neighbors_of_set, stable_colors, sums


@dataclass(frozen=True)
class ReceptiveFields:
    """The receptive fields of all nodes of a set, in the order in which a graph's nodes come."""

    ptr: Ints
    """[G+1] the set's."""
    nodes: Array
    """[N, k] int32: row ptr[g] + i is the field of graph g's i-th node, nodes counted within g, −1 for none."""

    @staticmethod
    def of(graphs: GraphSet, k: int) -> ReceptiveFields:
        """Fields of k nodes: breadth-first assembly, cut and ordered by distance, then by Weisfeiler-Lehman color.

        A node's rank is its degree, the largest first, then its labels, then how many walks of length 2, 3, … begin at
        it, the most first, then its stable color, which begins as degree and node labels. Names of colors have no order
        that means anything; walks bring nodes with like neighborhoods into like places.
        Nodes of a field that tie in distance and rank are brought into the order with the largest adjacency code.
        Nodes of a graph come by rank; those that tie, by the colors of their fields.

        Under another order of the nodes, fields hold the same colors in the same places: what follows from colors,
        such as labels and degrees, comes out the same. Other features (attributes, harmonic distances) may differ
        between nodes of one color, and which of them comes first, or is cut off, is then left to the node order.
        """
        from gcaps.models.field_kernels import assemble, break_ties

        colors = stable_colors(graphs)
        graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
        labels = () if graphs.node_labels is None else graphs.node_labels.T
        rank = _dense_ranks(graph, -graphs.degrees, *labels, *(~count for count in walk_counts(graphs)), colors)
        fields, distances = assemble(graphs.ptr, graphs.rowptr, graphs.col, rank, k)
        break_ties(graphs.ptr, graphs.rowptr, graphs.col, rank, fields, distances)
        content = np.zeros(len(fields), dtype=np.uint64)
        first = graphs.ptr[:-1][graph]
        for column, distance in zip(fields.T, distances.T, strict=True):
            content = join(content, np.where(column >= 0, colors[first + column] + mix(distance), np.uint64(0)))
        return ReceptiveFields(graphs.ptr, fields[np.lexsort([content, rank, graph])])

    def take(self, indices: Ints) -> dict[str, Tensor]:
        """``fields`` [n, k]: those of the graphs at ``indices``, nodes counted within the batch, −1 for none."""
        sizes = np.diff(self.ptr)[indices]
        fields = self.nodes[ranges(self.ptr[indices], sizes)].astype(np.int64)
        shift = np.repeat(pointer(sizes)[:-1], sizes)[:, None]
        return {"fields": torch.from_numpy(np.where(fields >= 0, fields + shift, -1))}


def walk_counts(graphs: GraphSet, longest: int = 5) -> list[Hashes]:
    """[N] for each length 2..longest: how many walks begin at a node, modulo 2⁶⁴."""
    col, count, found = neighbors_of_set(graphs), graphs.degrees.astype(np.uint64), []
    for _ in range(longest - 1):
        count = sums(count[col], graphs.rowptr)
        found.append(count)
    return found


def _dense_ranks(graph: Ints, *keys: Array) -> Ints:
    """[N] 0, 1, 2, … by graph, then by the keys; equal where all are equal."""
    order = np.lexsort([*keys[::-1], graph])
    new = np.zeros(len(order), dtype=bool)
    for key in (graph, *keys):
        new[1:] |= key[order[1:]] != key[order[:-1]]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(new)
    return rank
