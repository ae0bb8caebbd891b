"""The matrix X of node features that enters the first layer, and with it features of edges and of whole graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import torch

from gcaps.config import BaselineConfig, FeatureConfig
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ModelError
from gcaps.features.edges import EdgeFeatures
from gcaps.features.graph_features import GraphFeatures
from gcaps.features.return_probabilities import ReturnProbabilityFeatures
from gcaps.features.structural import (
    AttributeFeatures,
    ConstantFeatures,
    DegreeFeatures,
    LabelFeatures,
    NodeMatrix,
    OneHotFeatures,
    Unseen,
)

if TYPE_CHECKING:
    from gcaps.features.fgsd import FGSD

SAMPLE = 5_000
"""Graphs of a memory-mapped set that FGSD's bins are fitted to."""


class NodeFeature(Protocol):
    """One kind of node features."""

    @property
    def num_features(self) -> int:
        """Number of columns."""
        ...

    def fit(self, graphs: GraphSet) -> Self:
        """Fit to training graphs."""
        ...

    def transform(self, graphs: GraphSet) -> Floats:
        """[N, ·] float32 features."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        ...

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore a fitted object."""
        ...


STRUCTURAL: dict[
    str, type[LabelFeatures | AttributeFeatures | DegreeFeatures | ConstantFeatures | ReturnProbabilityFeatures]
] = {
    "labels": LabelFeatures,
    "attributes": AttributeFeatures,
    "degree": DegreeFeatures,
    "constant": ConstantFeatures,
    "return_probabilities": ReturnProbabilityFeatures,
}
PARTS = (*STRUCTURAL, "fgsd")
"""Names of the node features."""
BESIDES = ("edges", "graphs")
"""Names of what is no node feature in the fitted state."""


class NodeFeatures:
    """Fitted features of nodes, side by side in one matrix, of edges and of graphs.

    Args:
        parts: fitted node features by name.
        edges: fitted edge features.
        graphs: fitted features of graphs.
    """

    def __init__(
        self, parts: dict[str, NodeFeature], edges: EdgeFeatures | None = None, graphs: GraphFeatures | None = None
    ) -> None:
        self.parts, self.edges, self.graphs = parts, edges or EdgeFeatures(), graphs or GraphFeatures()

    @classmethod
    def fit(cls, config: FeatureConfig, graphs: GraphSet | PreparedSet, indices: Array | None = None) -> NodeFeatures:
        """Fit the configured features to training graphs and no others.

        A memory-mapped set is read piece by piece, and FGSD's bins are fitted to a sample of its training graphs.

        Args:
            config: names of the features, without ``auto``.
            graphs: a set; a PreparedSet keeps distances and fingerprints for the next fold.
            indices: positions of the training graphs in the set; by default all.
        """
        prepared = graphs if isinstance(graphs, PreparedSet) else None
        graphs = graphs.graphs if isinstance(graphs, PreparedSet) else graphs
        chosen = np.arange(len(graphs)) if indices is None else graphs.positions(indices)
        parts: dict[str, NodeFeature] = {}
        assert config.features != "auto", "resolved by gcaps.estimators.auto"
        for name in config.features:
            if name == "fgsd":
                fgsd = _fgsd()(config.fgsd_bins)
                with keeping_threads():
                    if graphs.mapped or prepared is None:
                        parts[name] = fgsd.fit(graphs.subset(_sample(chosen) if graphs.mapped else chosen))
                    else:
                        parts[name] = fgsd.fit(prepared, indices=chosen)
            elif name == "return_probabilities" and prepared is not None and not graphs.mapped:
                parts[name] = ReturnProbabilityFeatures().fit_prepared(prepared, chosen)
            else:
                pieces = graphs.chunks(indices=chosen) if graphs.mapped else [graphs.subset(chosen)]
                rare = 0 if config.rare_labels == "auto" else config.rare_labels
                part = LabelFeatures(rare) if name == "labels" else STRUCTURAL[name]()
                parts[name] = part.fit_pieces(pieces)
        # networks other than capsules do without edge features, or encode their own
        encoded = config.edge_features != "auto" and not isinstance(config, BaselineConfig)
        edges = EdgeFeatures.fit(config.edge_features if encoded else (), graphs, chosen)
        extra = getattr(config, "extra_features", ())  # a setting of capsules only
        return cls(parts, edges, GraphFeatures.fit(extra, prepared or graphs, chosen))

    @property
    def num_features(self) -> int:
        """Number of columns d."""
        return sum(part.num_features for part in self.parts.values())

    @property
    def shape(self) -> dict[str, int]:
        """Arguments of a network about features of edges and graphs, where they are not its defaults."""
        columns = self.graphs.num_features
        return self.edges.shape | ({"graph_dim": columns} if columns else {})

    def encode(self, graphs: GraphSet | PreparedSet) -> NodeMatrix:
        """X [N, d] with one-hot columns as indices, which come first, and features of edges and graphs beside it."""
        x = NodeMatrix.stack([_encoded(part, graphs) for part in self.parts.values()])
        edges = self.edges.encode(graphs.graphs if isinstance(graphs, PreparedSet) else graphs)
        return replace(x, edges=edges, graphs=self.graphs.encode(graphs))

    def transform(self, graphs: GraphSet | PreparedSet) -> Floats:
        """X [N, d] float32."""
        return self.encode(graphs).toarray()

    def state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        nodes = {name: part.state() for name, part in self.parts.items()}
        besides = zip(BESIDES, (self.edges.state(), self.graphs.state()), strict=True)
        return nodes | {name: state for name, state in besides if state}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> NodeFeatures:
        """Restore fitted features."""
        if unknown := set(state) - set(PARTS) - set(BESIDES):
            raise ModelError(f"the state of the features is damaged (there is no feature {min(unknown)!r})")
        parts = {name: _class_of(name).from_state(part) for name, part in state.items() if name not in BESIDES}
        graphs = GraphFeatures.from_state(state.get("graphs", {}))
        return cls(parts, EdgeFeatures.from_state(state.get("edges", {})), graphs)

    def unseen(self, graphs: GraphSet) -> list[Unseen]:
        """Node and edge labels that the training graphs lack, and in how many of ``graphs`` each occurs.

        In the features, such a node label is a row of zeros, or the column of rare labels where there are any; an arc
        with such an edge label is divided among all relations.
        """
        labels = self.parts.get("labels")
        nodes = labels.unseen(graphs) if isinstance(labels, LabelFeatures) else []
        return nodes + self.edges.unseen(graphs)


def _fgsd() -> type[FGSD]:
    from gcaps.features.fgsd import FGSD  # imports scikit-learn, which the other features do without

    return FGSD


def _class_of(name: str) -> type[NodeFeature]:
    return _fgsd() if name == "fgsd" else STRUCTURAL[name]


@contextmanager
def keeping_threads() -> Iterator[None]:
    """Restore torch's number of threads, which numba resets when its threads start, so that sums round as before."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _sample(chosen: Ints) -> Ints:
    """Draw at most :data:`SAMPLE` of the graphs, always the same ones for the same graphs."""
    if len(chosen) <= SAMPLE:
        return chosen
    return np.sort(np.random.default_rng(len(chosen)).choice(chosen, SAMPLE, replace=False))


def _encoded(part: NodeFeature, graphs: GraphSet | PreparedSet) -> NodeMatrix:
    own = graphs.graphs if isinstance(graphs, PreparedSet) else graphs
    if isinstance(part, OneHotFeatures):
        return part.encode(own)
    with keeping_threads():
        is_structural = isinstance(part, AttributeFeatures | DegreeFeatures | ConstantFeatures)
        dense = part.transform(own if is_structural else graphs)  # type: ignore[arg-type]
    return NodeMatrix(np.empty((own.num_nodes, 0), dtype=np.int32), 0, dense)
