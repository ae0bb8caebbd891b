"""Explanations of predictions, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.explain.atoms import AtomsOf
from gcaps.explain.output import Output


class Substructure(NamedTuple):
    """A substructure that a kernel counts, in one graph."""

    hash: int
    """Equal for equal substructures of all graphs."""
    words: str
    contribution: float
    """Of all its occurrences in the graph."""
    occurrences: int
    """Number of occurrences in the graph."""
    nodes: Ints
    """Nodes of one occurrence."""


class Group(NamedTuple):
    """A functional group of a molecule."""

    name: str
    nodes: Ints
    """Nodes of the group, ascending."""
    contribution: float


@dataclass(frozen=True, repr=False)
class Explanation:
    """Predictions for graphs, and the contributions of their nodes, edges and features."""

    graphs: GraphSet
    scores: Floats
    """[G, ·] of the model."""
    output: Output
    """The output that is explained."""
    method: str
    """``"occlusion"``, ``"integrated-gradients"``, ``"saliency"``, ``"gradient-x-input"``, ``"substructures"``, or
    ``"own"`` for an estimator that explains itself."""
    values: Floats
    """[G] the number that is explained: a column of the scores, or for ``"substructures"`` a decision value."""
    baselines: Floats
    """[G] value of the baseline: it and the contributions of the nodes add up to ``values``; NaN for methods whose
    contributions do not add up."""
    nodes: list[Floats]
    """[n] for each graph: contributions of its nodes."""
    edges: list[Floats] | None
    """[m] for each graph: contributions of its undirected edges; NaN where it was not computed because the graph is
    too large. None for a method that does not explain edges."""
    edge_ends: list[Ints]
    """[m, 2] for each graph: nodes of each undirected edge, the smaller number first."""
    features: list[dict[str, float]]
    """For each graph the contribution of each kind of node feature, by name; the largest first."""
    atoms: list[AtomsOf] | None = None
    """The molecule of each graph; None for other graphs."""
    groups: list[list[Group]] | None = None
    """Functional groups of each molecule, by occlusion; the largest contribution first."""
    substructures: list[list[Substructure]] | None = None
    """All substructures of each graph, of ``"substructures"``; the largest contribution first."""
    hidden: str = ""
    """How nodes are hidden in occlusion: ``"features"``, or ``"edges"`` where the model uses no node features."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Remarks by topic, such as ``"edges"``: how contributions of edges were computed."""

    def __len__(self) -> int:
        return len(self.graphs)

    def __repr__(self) -> str:
        """Return what is explained of how many graphs, and by which method; the arrays would fill pages."""
        return f"Explanation({self.graphs.name!r}, graphs={len(self)}, {self.output.words}, method={self.method!r})"

    @property
    def contributions(self) -> list[Floats]:
        """Contributions of the nodes, by their earlier name."""
        return self.nodes
