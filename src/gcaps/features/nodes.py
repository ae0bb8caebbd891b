"""The matrix X that enters the first layer: the chosen node features side by side."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np

from gcaps.config import FeatureConfig
from gcaps.data.arrays import Floats
from gcaps.data.graphset import GraphSet
from gcaps.features.fgsd import FGSD
from gcaps.features.structural import AttributeFeatures, ConstantFeatures, DegreeFeatures, LabelFeatures


class NodeFeature(Protocol):
    """What every part offers: learn from training graphs, describe nodes, be written down and come back."""

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


PARTS: dict[str, type[NodeFeature]] = {
    "labels": LabelFeatures,
    "attributes": AttributeFeatures,
    "degree": DegreeFeatures,
    "constant": ConstantFeatures,
    "fgsd": FGSD,
}


def resolve(config: FeatureConfig, graphs: GraphSet) -> tuple[str, ...]:
    """The features that ``auto`` stands for on this set: its labels; where it has none, degree and FGSD.

    As in the paper, FGSD stands in where node labels are missing. Attributes count only when asked for, since the
    paper's tables rest on labels alone.
    """
    if config.features != "auto":
        return config.features
    return ("labels",) if graphs.node_labels is not None else ("degree", "fgsd")


class NodeFeatures:
    """The chosen parts, fitted on training graphs, side by side in one matrix."""

    def __init__(self, parts: dict[str, NodeFeature]) -> None:
        self.parts = parts

    @classmethod
    def fit(cls, config: FeatureConfig, graphs: GraphSet) -> NodeFeatures:
        """Fit the configured parts on ``graphs``, the training graphs and no others."""
        parts: dict[str, NodeFeature] = {}
        for name in resolve(config, graphs):
            part = FGSD(config.fgsd_bins) if name == "fgsd" else PARTS[name]()
            parts[name] = part.fit(graphs)
        return cls(parts)

    def transform(self, graphs: GraphSet) -> Floats:
        """X [N, d] float32."""
        return np.concatenate([part.transform(graphs) for part in self.parts.values()], axis=1)

    def state(self) -> dict[str, Any]:
        """JSON values for :meth:`from_state`."""
        return {name: part.state() for name, part in self.parts.items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> NodeFeatures:
        """The fitted features again."""
        return cls({name: PARTS[name].from_state(part) for name, part in state.items()})
