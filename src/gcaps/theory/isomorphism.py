"""The Sub-Graph Isomorphism Feature Test of section 4.1, and Propositions 1 and 2, as programs.

For G_1 isomorphic to a sub-graph of G_2, the paper asks that the positions f_1i and f_2i of an invariant feature vector
be "comparable under certain notion". This module defines a notion that can be checked. A position of the vector *reads*
an entry (node, column) of the node features if it depends on it. Position i is comparable between G_1 and G_2 if it
reads

1. the same columns in both graphs, and
2. the same nodes: all nodes of its graph in both, or in G_2 exactly those that correspond to the ones in G_1.

A readout passes on a pair of graphs if every position is comparable, and passes the test if it does on every pair.

**Proposition 1**: max-sort pooling fails. Position (r, c) reads column c of the node with rank r, and an extra node of
higher rank makes that another node: :func:`proposition1` constructs such a pair. (The remark below it in the paper,
"does not guarantee that f_1i ≢ f_2i", has one negation too many.)

**Proposition 2**: the covariance passes. C_ab = (1/N) Σ_i (z_ia − μ_a)(z_ib − μ_b) (Eq. 7) has the derivatives

    ∂C_ab / ∂z_jc = (1/N) ([c = a] (z_jb − μ_b) + [c = b] (z_ja − μ_a)):

outside columns a and b they vanish for every N and node order, inside for no node, except for a node exactly at the
mean. So position (a, b) always reads columns a and b of all nodes. :func:`proposition2` checks this on a pair.

A readout that passes gives a position the same *meaning*, not the same *value*: the covariance of G_2 differs from that
of G_1. Other readouts pass as well: every position that is one formula of all nodes (a mean, a sum) does, and every
position that selects a node by comparison (also a maximum) fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gcaps.nn.pooling import MaxSortPool
from gcaps.nn.readout import MeanCovariance

Readout = Callable[[Tensor], Tensor]
"""From node features [n, D] of one graph to its feature vector."""
NEARBY = 1e-6
"""Distance of the second point at which derivatives are taken, as a fraction of the largest feature."""


class SubgraphPair(NamedTuple):
    """Two graphs, the first isomorphic to an induced sub-graph of the second."""

    z1: Tensor
    """[n1, D] node features of G_1."""
    edge_index1: Tensor
    z2: Tensor
    """[n2, D] node features of G_2."""
    edge_index2: Tensor
    embedding: Tensor
    """[n1] the node of G_2 that corresponds to each of G_1."""


class Reading(NamedTuple):
    """Entries of the node features that one position of a feature vector depends on."""

    nodes: frozenset[int]
    columns: frozenset[int]
    everywhere: bool
    """Whether ``nodes`` are all nodes of the graph."""

    def __str__(self) -> str:
        if not self.columns:
            return "nothing"
        columns = f"column{'s' if len(self.columns) > 1 else ''} {_list(self.columns)}"
        nodes = "all nodes" if self.everywhere else f"node{'s' if len(self.nodes) > 1 else ''} {_list(self.nodes)}"
        return f"{columns} of {nodes}"


@dataclass(frozen=True)
class FeatureTest:
    """Outcome of the test on one pair of graphs."""

    comparable: tuple[bool, ...]
    """For each position of the feature vector."""
    first: tuple[Reading, ...]
    """Entries that each position reads in G_1."""
    second: tuple[Reading, ...]
    """Entries that each position reads in G_2, with node numbers of G_2."""
    explanation: str
    """The outcome in a sentence."""

    @property
    def passed(self) -> bool:
        """Whether every position is comparable."""
        return all(self.comparable)


def readings(readout: Readout, z: Tensor) -> tuple[Reading, ...]:
    """Entries that each position of ``readout(z)`` reads: those with a non-zero derivative.

    Derivatives are taken at z and at a second point nearby, because they may vanish at special points (a node exactly
    at the mean). If nodes tie, a sorted position therefore reads all of them.
    """
    noise = torch.randn(z.shape, dtype=z.dtype, generator=torch.Generator().manual_seed(0)).to(z.device)
    beside = z + NEARBY * z.abs().max() * noise
    support = _jacobian_support(readout, z) | _jacobian_support(readout, beside)
    found = []
    for entries in support:
        nodes, columns = entries.any(dim=1), entries.any(dim=0)
        found.append(Reading(_members(nodes), _members(columns), bool(nodes.all())))
    return tuple(found)


def subgraph_feature_test(readout: Readout, z1: Tensor, z2: Tensor, embedding: Tensor | None = None) -> FeatureTest:
    """Whether each position of the feature vector means the same in G_1 and in G_2.

    Args:
        readout: from node features [n, D] to a vector of fixed length.
        z1: [n1, D] node features of G_1; at least two nodes, since the covariance of one node is constant.
        z2: [n2, D] node features of G_2.
        embedding: [n1] node of G_2 that corresponds to each node of G_1; by default the first n1 in order.
    """
    if len(z1) < 2:
        raise ValueError("the test needs a graph of at least two nodes: the covariance of one node is constant")
    image = list(range(len(z1))) if embedding is None else embedding.tolist()
    if len(image) != len(z1) or len(set(image)) != len(z1) or not all(0 <= node < len(z2) for node in image):
        raise ValueError(f"embedding must name {len(z1)} different nodes of the {len(z2)} of G_2")
    first, second = readings(readout, z1), readings(readout, z2)
    if len(first) != len(second):
        raise ValueError(f"the feature vectors differ in length: {len(first)} and {len(second)}")
    comparable = tuple(
        one.columns == other.columns
        and ((one.everywhere and other.everywhere) or {image[node] for node in one.nodes} == other.nodes)
        for one, other in zip(first, second, strict=True)
    )
    return FeatureTest(comparable, first, second, _explained(comparable, first, second, image))


def example_pair() -> SubgraphPair:
    """A path of three nodes, and the same path with a fourth node attached to its middle that ranks above all others.

    The features have two columns; max-sort pooling ranks by the last.
    """
    z = torch.tensor([[1.0, 3.0], [4.0, 2.0], [2.0, 1.0], [3.0, 5.0]], dtype=torch.float64)
    edges = torch.tensor([[0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1]])
    return SubgraphPair(z[:3], edges[:, :4], z, edges, torch.arange(3))


def random_pair(nodes: int, extra: int, columns: int, seed: int = 0) -> SubgraphPair:
    """A random graph of ``nodes + extra`` nodes with normal features, and the sub-graph on ``nodes`` of them."""
    generator = torch.Generator().manual_seed(seed)
    total = nodes + extra
    z = torch.randn(total, columns, dtype=torch.float64, generator=generator)
    upper = torch.triu(torch.rand(total, total, generator=generator) < 2 / total, diagonal=1)
    source, target = torch.nonzero(upper | upper.t(), as_tuple=True)
    kept = torch.randperm(total, generator=generator)[:nodes]
    number = torch.full((total,), -1).index_copy(0, kept, torch.arange(nodes))
    inside = (number[source] >= 0) & (number[target] >= 0)
    edges = torch.stack([source, target])
    return SubgraphPair(z[kept], number[edges[:, inside]], z, edges, kept)


def proposition1(pair: SubgraphPair | None = None, k: int = 3) -> FeatureTest:
    """Test max-sort pooling to k nodes, by default on :func:`example_pair`, where it fails."""
    pair = example_pair() if pair is None else pair
    return subgraph_feature_test(MaxSortPool(k), pair.z1, pair.z2, pair.embedding)


def proposition2(pair: SubgraphPair | None = None) -> FeatureTest:
    """Test mean and covariance, by default on :func:`example_pair`; they pass on every pair."""
    pair = example_pair() if pair is None else pair
    return subgraph_feature_test(MeanCovariance(pair.z1.size(1)), pair.z1, pair.z2, pair.embedding)


def _jacobian_support(readout: Readout, z: Tensor) -> Tensor:
    """[k, n, D] whether the derivative of each position is not 0."""
    z = z.detach().clone().requires_grad_()
    vector = readout(z).flatten()
    support = torch.zeros(len(vector), *z.shape, dtype=torch.bool, device=z.device)
    for position, value in enumerate(vector):
        (grad,) = torch.autograd.grad(value, z, retain_graph=True)
        support[position] = grad != 0
    return support


def _members(mask: Tensor) -> frozenset[int]:
    return frozenset(torch.nonzero(mask).flatten().tolist())


def _list(numbers: frozenset[int]) -> str:
    *most, last = map(str, sorted(numbers))
    return f"{', '.join(most)} and {last}" if most else last


def _explained(
    comparable: tuple[bool, ...], first: tuple[Reading, ...], second: tuple[Reading, ...], image: list[int]
) -> str:
    if all(comparable):
        return f"each of the {len(comparable)} positions reads the same columns of the same nodes in both graphs"
    worst = comparable.index(False)
    strangers = second[worst].nodes - set(image)
    return (
        f"{comparable.count(False)} of {len(comparable)} positions change their meaning: position {worst} reads "
        f"{first[worst]} in G_1, and {second[worst]} in G_2"
        + (f" (node {_list(strangers)} is not in G_1)" if strangers and not second[worst].everywhere else "")
    )
