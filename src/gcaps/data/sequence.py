"""Values on the nodes of a graph over time, and their JSON files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field

from gcaps.data.arrays import Array, Ints
from gcaps.documents import Count, Name, Number, Page, read_json, validated
from gcaps.errors import DataError


class Edges(NamedTuple):
    """Edges of a graph at one time."""

    edge_index: Ints
    """[2, e] source and target."""
    edge_weight: Array | None = None
    """[e] weights, not negative, or None if every edge has weight 1."""


@dataclass(frozen=True)
class GraphSequence:
    """T steps of values on the n nodes of a graph, whose edges are fixed or change with every step.

    Args:
        name: of the data set.
        values: [T, n] finite values.
        edges: one :class:`Edges`, or one for each step.
    """

    name: str
    values: Array
    edges: tuple[Edges, ...]

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or not self.values.size:
            raise DataError(f"{self.name}: values have the shape {self.values.shape}; expected [steps, nodes]")
        if not np.isfinite(self.values).all():
            raise DataError(f"{self.name}: has values that are not finite; fill or remove them first")
        if len(self.edges) not in (1, len(self.values)):
            raise DataError(
                f"{self.name}: has edges for {len(self.edges)} steps; expected one list, or one for each of the "
                f"{len(self.values)} steps"
            )
        for step, (index, weight) in enumerate(self.edges):
            if index.ndim != 2 or len(index) != 2:
                raise DataError(f"{self.name}: edges of step {step} have the shape {index.shape}; expected [2, edges]")
            if index.size and not (index.min() >= 0 and index.max() < self.num_nodes):
                raise DataError(f"{self.name}: an edge of step {step} ends outside of the {self.num_nodes} nodes")
            if weight is not None and weight.shape != index.shape[1:]:
                raise DataError(f"{self.name}: step {step} has {index.shape[1]} edges and {weight.size} weights")
            if weight is not None and not (np.isfinite(weight).all() and (weight >= 0).all()):
                raise DataError(f"{self.name}: weights of step {step} are negative or not finite")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def num_nodes(self) -> int:
        """n."""
        return int(self.values.shape[1])

    def edges_at(self, step: int) -> Edges:
        """Edges of one step."""
        return self.edges[0 if len(self.edges) == 1 else step]

    def until(self, steps: int) -> GraphSequence:
        """The first steps alone."""
        return GraphSequence(self.name, self.values[:steps], self.edges[:steps])


class _Page(Page):
    """A file of PyTorch Geometric Temporal with fixed edges: values are X, or FX."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    edges: list[tuple[Count, Count]]
    weights: list[Number] | None = None
    X: list[list[Number]] | None = None
    FX: list[list[Number]] | None = None


class _EdgesOverTime(Page):
    """Edges and weights of every step, by its number as a string."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    edge_index: dict[Name, list[tuple[Count, Count]]]
    edge_weight: dict[Name, list[Number]]


class _DynamicPage(Page):
    """A file of PyTorch Geometric Temporal with edges for every step."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    edge_mapping: _EdgesOverTime
    y: list[list[Number]] = Field(min_length=1)


def read_sequence(path: str | Path) -> GraphSequence:
    """Read a sequence in the JSON format of PyTorch Geometric Temporal (chickenpox, pedalme_london, england_covid).

    Raises:
        DataError: it cannot be read, or is not of that format.
    """
    content: Any = read_json(path)
    name, place = Path(path).stem, f"{path}: is no graph sequence"
    if isinstance(content, dict) and "edge_mapping" in content:
        dynamic = validated(_DynamicPage, content, place, DataError)
        by_step = dynamic.edge_mapping
        steps = [str(number) for number in range(len(dynamic.y))]
        if missing := [step for step in steps if step not in by_step.edge_index or step not in by_step.edge_weight]:
            raise DataError(f"has no edges for step {missing[0]}", str(path))
        edges = tuple(_edges(by_step.edge_index[step], by_step.edge_weight[step]) for step in steps)
        return GraphSequence(name, _values(dynamic.y, path), edges)
    page = validated(_Page, content, place, DataError)
    values = page.X if page.X is not None else page.FX
    if values is None:
        raise DataError("has neither X nor FX, the values of the nodes", str(path))
    return GraphSequence(name, _values(values, path), (_edges(page.edges, page.weights),))


def _edges(pairs: list[tuple[int, int]], weights: list[float] | None) -> Edges:
    index = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Edges(index, None if weights is None else np.array(weights, dtype=np.float64))


def _values(rows: list[list[float]], path: str | Path) -> Array:
    if not rows or not rows[0]:
        raise DataError("has no values", str(path))
    if len({len(row) for row in rows}) != 1:
        raise DataError("has steps with different numbers of nodes", str(path))
    return np.array(rows, dtype=np.float64)
