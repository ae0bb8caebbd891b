"""The matrix X that enters the first layer: the chosen node features side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Self

import numpy as np
import torch

from gcaps.config import FeatureConfig
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.features.fgsd import FGSD
from gcaps.features.matrix import NodeMatrix
from gcaps.features.structural import (
    AttributeFeatures,
    ConstantFeatures,
    DegreeFeatures,
    LabelFeatures,
    OneHotFeatures,
)


class NodeFeature(Protocol):
    """What every part offers: learn from training graphs, describe nodes, be written down and come back."""

    @property
    def num_features(self) -> int:
        """Columns."""
        ...

    def fit(self, graphs: GraphSet) -> Self:
        """Learn from training graphs."""
        ...

    def transform(self, graphs: GraphSet) -> Floats:
        """[N, ·] float32."""
        ...

    def state(self) -> dict[str, Any]:
        """JSON values."""
        ...

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The fitted part again."""
        ...


STRUCTURAL: dict[str, type[LabelFeatures | AttributeFeatures | DegreeFeatures | ConstantFeatures]] = {
    "labels": LabelFeatures,
    "attributes": AttributeFeatures,
    "degree": DegreeFeatures,
    "constant": ConstantFeatures,
}
PARTS: dict[str, type[NodeFeature]] = {**STRUCTURAL, "fgsd": FGSD}

SAMPLE = 5_000
"""Graphs of a mapped set that FGSD's bins are taken from."""


def resolve(config: FeatureConfig, graphs: GraphSet) -> tuple[str, ...]:
    """The features that ``auto`` stands for on this set: its labels; where it has none, degrees.

    The paper takes FGSD where labels are missing. With it networks learn their training graphs by heart (see
    docs/results/accuracy.md), so it counts only when asked for; so do attributes, since the paper's tables rest on labels.
    """
    if config.features != "auto":
        return config.features
    return ("labels",) if graphs.node_labels is not None else ("degree",)


class NodeFeatures:
    """The chosen parts, fitted on training graphs, side by side in one matrix."""

    def __init__(self, parts: dict[str, NodeFeature]) -> None:
        self.parts = parts

    @classmethod
    def fit(cls, config: FeatureConfig, graphs: GraphSet, indices: Array | None = None) -> NodeFeatures:
        """Fit the configured parts on the graphs at ``indices`` (by default all): the training graphs and no others.

        A set that lies in files is read piece by piece, and FGSD takes its bins from a sample of the training graphs.
        """
        chosen = np.arange(len(graphs)) if indices is None else graphs.positions(indices)
        parts: dict[str, NodeFeature] = {}
        for name in resolve(config, graphs):
            if name == "fgsd":
                some = _sample(chosen) if graphs.mapped else chosen
                with keeping_threads():
                    parts[name] = FGSD(config.fgsd_bins).fit(graphs.subset(some))
            else:
                pieces = graphs.chunks(indices=chosen) if graphs.mapped else [graphs.subset(chosen)]
                parts[name] = STRUCTURAL[name]().fit_pieces(pieces)
        return cls(parts)

    @property
    def num_features(self) -> int:
        """d"""
        return sum(part.num_features for part in self.parts.values())

    def encode(self, graphs: GraphSet) -> NodeMatrix:
        """X [N, d], one-hot parts as column numbers; they come first."""
        return NodeMatrix.stack([_encoded(part, graphs) for part in self.parts.values()])

    def transform(self, graphs: GraphSet) -> Floats:
        """X [N, d] float32."""
        return self.encode(graphs).toarray()

    def state(self) -> dict[str, Any]:
        """JSON values for :meth:`from_state`."""
        return {name: part.state() for name, part in self.parts.items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> NodeFeatures:
        """The fitted features again."""
        return cls({name: PARTS[name].from_state(part) for name, part in state.items()})


@contextmanager
def keeping_threads() -> Iterator[None]:
    """Give torch back the number of threads it had: where numba's threads start, they reset it, and sums round anew."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _sample(chosen: Ints) -> Ints:
    """At most :data:`SAMPLE` of the graphs, the same for the same graphs."""
    if len(chosen) <= SAMPLE:
        return chosen
    return np.sort(np.random.default_rng(len(chosen)).choice(chosen, SAMPLE, replace=False))


def _encoded(part: NodeFeature, graphs: GraphSet) -> NodeMatrix:
    if isinstance(part, OneHotFeatures):
        return part.encode(graphs)
    with keeping_threads():
        dense = part.transform(graphs)
    return NodeMatrix(np.empty((graphs.num_nodes, 0), dtype=np.int32), 0, dense)
