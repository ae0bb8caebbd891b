"""Windows of a graph sequence, and the network that forecasts from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gcaps.data.arrays import Array, Ints
from gcaps.data.sequence import Edges, GraphSequence
from gcaps.nn.filters import Filter, edge_filter
from gcaps.nn.recurrent import GraphCapsuleGRU

BATCH = 64
"""Number of windows in a batch."""


class ForecastNetwork(nn.Module):
    """A recurrent cell over the steps of a window, and a linear map of its last state to H corrections.

    Args:
        cell: the cell.
        num_nodes: n.
        embedding: columns of a learned vector of each node, part of the input of each step.
        horizons: H.
        dropout: of the state before the linear map.
        context: add the mean over all nodes to the input of each step.

    Shapes:
        - **input:** a window of values [W, m·n], m windows of n nodes, and a filter for each of the W steps.
        - **output:** [m·n, H], zeros before training.
    """

    def __init__(
        self, cell: GraphCapsuleGRU, num_nodes: int, embedding: int, horizons: int, dropout: float, context: bool
    ) -> None:
        super().__init__()
        self.cell, self.dropout, self.context = cell, nn.Dropout(dropout), context
        self.embedding = nn.Parameter(0.1 * torch.randn(num_nodes, embedding))
        self.head = nn.Linear(cell.out_channels * cell.capsule_size, horizons)
        self.reset_head()

    def reset_head(self) -> None:
        """Set all corrections to zero."""
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, values: Tensor, filters: Sequence[Filter]) -> Tensor:
        """Return the corrections of the forecasts [m·n, H]."""
        n = self.embedding.size(0)
        of_node = self.embedding.repeat(values.size(1) // n, 1)
        state: tuple[Tensor, ...] | None = None
        for row, M in zip(values, filters, strict=True):
            parts = [row.unsqueeze(1), of_node]
            if self.context:
                parts.append(row.view(-1, n).mean(dim=1).repeat_interleave(n).unsqueeze(1))
            state = self.cell(torch.cat(parts, dim=1), M, state)
        assert state is not None
        out: Tensor = self.head(self.dropout(state[0].flatten(1)))
        return out


class Windows(NamedTuple):
    """Input of the network for m origins: values [W, m·n] and the filter of each step."""

    values: Tensor
    filters: list[Filter]


class WindowSource:
    """Cut windows that end at given steps out of a sequence; filters of fixed edges are made once."""

    def __init__(self, sequence: GraphSequence, values: Array, window: int, filter_name: str, scale: float) -> None:
        self.sequence, self.values, self.window, self.filter, self.scale = sequence, values, window, filter_name, scale
        self._made: dict[tuple[int, ...], list[Filter]] = {}

    def take(self, origins: Ints) -> Windows:
        """Return the windows of steps origin − W + 1, …, origin."""
        steps = origins[None, :] - np.arange(self.window)[::-1, None]
        return Windows(torch.from_numpy(self.values[steps].reshape(self.window, -1)).float(), self._filters(steps))

    def _filters(self, steps: Ints) -> list[Filter]:
        fixed = len(self.sequence.edges) == 1
        key = (steps.shape[1],) if fixed else tuple(steps[-1].tolist())
        if key not in self._made:
            if not fixed and len(self._made) > BATCH:
                self._made.clear()
            rows = steps[:1] if fixed else steps
            self._made[key] = [self._filter(row) for row in rows] * (self.window if fixed else 1)
        return self._made[key]

    def _filter(self, row: Ints) -> Filter:
        """Filter of the graphs of several steps side by side."""
        n = self.sequence.num_nodes
        parts = [self.sequence.edges_at(int(step)) for step in row]
        index = np.concatenate([part.edge_index + number * n for number, part in enumerate(parts)], axis=1)
        weight = None
        if any(part.edge_weight is not None for part in parts):
            each = [np.ones(p.edge_index.shape[1]) if p.edge_weight is None else p.edge_weight for p in parts]
            weight = torch.from_numpy(np.concatenate(each) / self.scale).float()
        return edge_filter(self.filter, torch.from_numpy(index), weight, torch.zeros(len(row) * n, 1))


def consecutive(origins: Ints) -> Iterator[Ints]:
    """Yield batches of origins in their order."""
    for first in range(0, len(origins), BATCH):
        yield origins[first : first + BATCH]


def batches(origins: Ints, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield batches of origins in random order; in their own order if there is only one batch."""
    if len(origins) <= BATCH:
        yield origins
        return
    for chosen in consecutive(rng.permutation(origins)):
        yield np.sort(chosen)


def masked_error(found: Tensor, goal: Array) -> Tensor:
    """Mean squared difference of [m·n, H] where the goal [m, n, H] is known."""
    wanted = torch.from_numpy(goal.reshape(-1, goal.shape[2])).to(found.dtype)
    known = torch.isfinite(wanted)
    loss: Tensor = (found[known] - wanted[known]).square().mean()
    return loss


def mean_weight(edges: Sequence[Edges]) -> float:
    """Mean weight of edges between different nodes; 1 where there are none."""
    weights: list[Array] = [weight[index[0] != index[1]] for index, weight in edges if weight is not None]
    together = np.concatenate(weights) if weights else np.zeros(0)
    mean = float(together.mean()) if len(together) else 1.0
    return mean if mean > 0 else 1.0
