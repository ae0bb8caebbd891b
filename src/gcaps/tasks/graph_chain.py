"""Markov chains of graph edits with a critic as log-density: Gibbs sampling with gradients, and moved edges."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from gcaps.nn.dense import DenseGraphCapsuleConv, closed_walks, dense_mean_covariance
from gcaps.tasks.dense_graphs import DenseGraphs, is_connected, orders

LARGEST_GAIN = 2.0
"""Bound of Δ/2 in a proposal: gradients are poor estimates of large changes of the score."""


class Critic(nn.Module):
    """Score of a graph by capsule layers and the mean-covariance readout, invariant to the order of the nodes.

    Args:
        num_nodes: number of node codes.
        num_edges: number of edge codes, 0 not counted.
        hidden: width h of each layer.
        capsule_size: P.
        layers: number of layers.
        walks: longest closed walk that is counted.
        rank: columns of Z that the covariance is taken of.

    Shapes:
        - **input:** one-hot node codes [B, N, L], one-hot edge codes [B, N, N, 1 + R], which nodes are real [B, N].
        - **output:** [B].
    """

    def __init__(
        self, num_nodes: int, num_edges: int, hidden: int, capsule_size: int, layers: int, walks: int, rank: int
    ) -> None:
        super().__init__()
        self.walks, width = walks, hidden * capsule_size
        columns = num_nodes + walks - 1
        self.layers = nn.ModuleList(
            DenseGraphCapsuleConv(columns if layer == 0 else width, hidden, capsule_size, num_relations=num_edges)
            for layer in range(layers)
        )
        self.project = nn.Linear(columns + layers * width, rank, bias=False)
        self.first = nn.Linear(2 * rank + rank * (rank + 1) // 2 + 1, 64)
        self.last = nn.Linear(64, 1)

    def forward(self, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        """[B] scores: the higher, the more like the training graphs."""
        A = edges[..., 1:].permute(0, 3, 1, 2)
        real = mask.to(nodes.dtype)
        x = torch.cat([nodes, closed_walks(A.sum(dim=1), self.walks)], dim=2) * real.unsqueeze(2)
        found = [x]
        for layer in self.layers:
            x = layer(x, A, real)
            found.append(x)
        z = self.project(torch.cat(found, dim=2))
        size = real.sum(dim=1, keepdim=True)
        total = (z * real.unsqueeze(2)).sum(dim=1) / 8
        readout = torch.cat([dense_mean_covariance(z, real), total, torch.log1p(size)], dim=1)
        score: Tensor = self.last(nn.functional.silu(self.first(readout))).squeeze(1)
        return score


class Limits(NamedTuple):
    """Constraints on every graph of a chain."""

    order: Tensor
    """[L] largest sum of edge codes (degree or valence) at a node of each code."""
    connected: bool


class Visited(NamedTuple):
    """A state of the chains, its scores, and the log-probabilities of the edits that leave it."""

    graphs: DenseGraphs
    score: Tensor
    """[B]"""
    log_edits: Tensor
    """[B, N·N·(1 + R) + N·L]; −∞ for edits that are not allowed."""


class GraphChain:
    """Metropolis–Hastings chains whose stationary distribution is proportional to exp(score) within the limits.

    Two kinds of steps alternate: one edge or node code changes, proposed with probability proportional to
    exp(Δ/2), where Δ is the change of the score to first order, within bounds (Gibbs with gradients; Grathwohl et al.,
    2021); or one end of a random edge moves to another node. Neither scores nor proposals depend on the order of nodes.

    Args:
        critic: the score.
        limits: edits that violate them are not made.
        num_nodes: L, number of node codes.
        num_edges: R, number of edge codes.
    """

    def __init__(self, critic: Critic, limits: Limits, num_nodes: int, num_edges: int) -> None:
        self.critic, self.limits, self.L, self.R = critic, limits, num_nodes, num_edges

    def one_hot(self, graphs: DenseGraphs) -> tuple[Tensor, Tensor]:
        """Node codes [B, N, L] and edge codes [B, N, N, 1 + R] as the critic takes them."""
        nodes = nn.functional.one_hot(graphs.nodes, self.L).float() * graphs.mask.unsqueeze(2)
        return nodes, nn.functional.one_hot(graphs.edges, self.R + 1).float()

    def score(self, graphs: DenseGraphs) -> Tensor:
        """[B] scores."""
        scores: Tensor = self.critic(*self.one_hot(graphs), graphs.mask)
        return scores

    def run(self, graphs: DenseGraphs, steps: int, generator: torch.Generator) -> DenseGraphs:
        """Return the graphs after some steps."""
        if not len(graphs.nodes):
            return graphs
        at = self._visit(graphs)
        for step in range(steps):
            new, log_ratio = self._moved(at, generator) if step % 2 else self._edited(at, generator)
            if self.limits.connected:
                log_ratio = log_ratio.masked_fill(~is_connected(new), -torch.inf)
            there = self._visit(new)
            if step % 2 == 0:
                log_ratio = log_ratio + there.log_edits.gather(1, self._reverse.unsqueeze(1)).squeeze(1)
            chance = torch.rand(len(log_ratio), generator=generator).log()
            accepted = chance < there.score - at.score + log_ratio
            at = Visited(
                there.graphs.where(accepted, at.graphs),
                torch.where(accepted, there.score, at.score),
                torch.where(accepted.unsqueeze(1), there.log_edits, at.log_edits),
            )
        return at.graphs

    def _visit(self, graphs: DenseGraphs) -> Visited:
        """Score graphs and find the probabilities of the edits that leave them."""
        nodes, edges = (part.requires_grad_() for part in self.one_hot(graphs))
        with torch.enable_grad():
            scores = self.critic(nodes, edges, graphs.mask)
            g_nodes, g_edges = torch.autograd.grad(scores.sum(), (nodes, edges))
        g_edges = g_edges + g_edges.transpose(1, 2)
        gain_edges = g_edges - g_edges.gather(3, graphs.edges.unsqueeze(3))
        gain_nodes = g_nodes - g_nodes.gather(2, graphs.nodes.unsqueeze(2))
        order = orders(graphs)
        free = self.limits.order[graphs.nodes] - order  # [B, N]
        more = torch.arange(self.R + 1) - graphs.edges.unsqueeze(3)  # change of order
        pairs = (graphs.mask.unsqueeze(1) & graphs.mask.unsqueeze(2)).triu(1)
        fits = (more <= free[:, :, None, None]) & (more <= free[:, None, :, None])
        allowed_edges = fits & pairs.unsqueeze(3) & (more != 0)
        other = torch.arange(self.L) != graphs.nodes.unsqueeze(2)
        allowed_nodes = other & graphs.mask.unsqueeze(2) & (self.limits.order >= order.unsqueeze(2))
        gains = (torch.cat([gain_edges.flatten(1), gain_nodes.flatten(1)], dim=1) / 2).clamp(
            -LARGEST_GAIN, LARGEST_GAIN
        )
        allowed = torch.cat([allowed_edges.flatten(1), allowed_nodes.flatten(1)], dim=1)
        stuck = ~allowed.any(dim=1, keepdim=True)
        log_edits = torch.log_softmax(gains.masked_fill(~allowed & ~stuck, -torch.inf), dim=1)
        return Visited(graphs, scores.detach(), log_edits.masked_fill(stuck, -torch.inf))

    def _edited(self, at: Visited, generator: torch.Generator) -> tuple[DenseGraphs, Tensor]:
        """Propose a change of one code of each graph; also return the logarithm of 1 / its probability."""
        graphs, N = at.graphs, at.graphs.mask.size(1)
        possible = torch.isfinite(at.log_edits).any(dim=1)
        gumbel = -torch.empty_like(at.log_edits).exponential_(generator=generator).log()
        chosen = (at.log_edits + gumbel).argmax(dim=1)
        rows = torch.arange(len(chosen))
        is_edge = chosen < N * N * (self.R + 1)
        pair, code = chosen // (self.R + 1), chosen % (self.R + 1)
        i, j = (pair // N).clamp(max=N - 1), pair % N
        place = (chosen - N * N * (self.R + 1)).clamp_min(0)
        node, label = place // self.L, place % self.L
        edges, nodes = graphs.edges.clone(), graphs.nodes.clone()
        e, v = rows[is_edge & possible], rows[~is_edge & possible]
        before_edge, before_node = graphs.edges[rows, i, j], graphs.nodes[rows, node]
        edges[e, i[e], j[e]] = code[e]
        edges[e, j[e], i[e]] = code[e]
        nodes[v, node[v]] = label[v]
        self._reverse = torch.where(
            is_edge, pair * (self.R + 1) + before_edge, N * N * (self.R + 1) + node * self.L + before_node
        )
        log_proposal = at.log_edits.gather(1, chosen.unsqueeze(1)).squeeze(1)
        return DenseGraphs(nodes, edges, graphs.mask), torch.where(possible, -log_proposal, -torch.inf)

    def _moved(self, at: Visited, generator: torch.Generator) -> tuple[DenseGraphs, Tensor]:
        """Propose to move one end of an edge of each graph, a symmetric proposal; −∞ where it violates the limits."""
        graphs, (B, N) = at.graphs, at.graphs.mask.shape
        rows = torch.arange(B)
        present = graphs.edges > 0
        chosen = (torch.rand(B, N * N, generator=generator) * present.flatten(1)).argmax(dim=1)
        i, j = chosen // N, chosen % N
        elsewhere = graphs.mask & ~present[rows, i]
        elsewhere[rows, i] = False
        k = (torch.rand(B, N, generator=generator) * elsewhere).argmax(dim=1)
        code = graphs.edges[rows, i, j]
        possible = present[rows, i, j] & elsewhere[rows, k]
        possible &= self.limits.order[graphs.nodes[rows, k]] >= orders(graphs)[rows, k] + code
        edges, at_rows = graphs.edges.clone(), rows[possible]
        for a, b, value in ((i, j, 0), (i, k, code[possible])):
            edges[at_rows, a[possible], b[possible]] = value
            edges[at_rows, b[possible], a[possible]] = value
        return DenseGraphs(graphs.nodes, edges, graphs.mask), torch.zeros(B).masked_fill(~possible, -torch.inf)


def random_trees(mask: Tensor, nodes: Tensor, limits: Limits, generator: torch.Generator) -> DenseGraphs:
    """Return a random tree on the real nodes as the start of each chain; degrees respect the limits where possible.

    Args:
        mask: [B, N] real nodes, which come first.
        nodes: [B, N] node codes.
        limits: of the chains.
        generator: of the random numbers.
    """
    B, N = mask.shape
    edges = torch.zeros(B, N, N, dtype=torch.long)
    rows = torch.arange(B)
    for v in range(1, N):
        free = (limits.order[nodes] - edges.sum(dim=2)).clamp(min=0)[:, :v]
        weight = (free > 0).float() + 1e-6
        parent = torch.multinomial(weight, 1, generator=generator).squeeze(1)
        real = mask[:, v].long()
        edges[rows, v, parent] = real
        edges[rows, parent, v] = real
    return DenseGraphs(nodes, edges, mask)
