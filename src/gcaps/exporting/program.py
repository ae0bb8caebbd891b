"""The computation that is exported: from raw arrays through fitted features and the network to predictions."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from gcaps.batching import Batch
from gcaps.data.targets import Target
from gcaps.features.edges import Relations
from gcaps.features.fingerprints import COUNTS
from gcaps.features.graph_features import MAX_DEVIATIONS as MOST_OF_GRAPHS
from gcaps.features.graph_features import ScaledFingerprint
from gcaps.features.nodes import NodeFeatures
from gcaps.features.structural import MAX_DEVIATIONS, DegreeFeatures, LabelFeatures, OneHotFeatures, Standardized
from gcaps.models.losses import scores_of
from gcaps.models.network import Network
from gcaps.nn.readout import num_segments
from gcaps.nn.sparse import pointer


class Program(nn.Module):
    """Predictions for a batch of graphs, from the arrays that :func:`gcaps.exporting.inputs_of` lists.

    The outputs are those of :meth:`gcaps.estimators.GraphEstimator.scores`: probabilities, or values in the user's
    units. Edges may come in any order; self-loops count as absent.

    Args:
        features: fitted features, whose tables become constants.
        network: a trained network, which is copied.
        target: what it predicts.
    """

    def __init__(self, features: NodeFeatures, network: Network, target: Target) -> None:
        super().__init__()
        self.network, self.task = deepcopy(network).cpu().eval().requires_grad_(False), target.task
        # one-hot columns come first, as in gcaps.features.NodeMatrix
        parts = sorted(features.parts.items(), key=lambda item: not isinstance(item[1], OneHotFeatures))
        self.nodes = nn.ModuleDict({name: _columns(name, part) for name, part in parts})
        shape = features.edges.shape
        relations, attributes = features.edges.relations, features.edges.attributes
        self.relations = None if relations is None or "num_relations" not in shape else _Relation(relations)
        self.attributes = None if attributes is None or "edge_dim" not in shape else _Standard(attributes)
        self.graphs = nn.ModuleDict({name: _Fingerprint(part) for name, part in features.graphs.parts.items()})
        if target.mean is not None:
            self.register_buffer("mean", torch.from_numpy(target.mean))
            self.register_buffer("scale", torch.from_numpy(target.scale))

    def forward(
        self,
        edge_index: Tensor,
        batch: Tensor,
        node_labels: Tensor | None = None,
        x: Tensor | None = None,
        return_probabilities: Tensor | None = None,
        fgsd: Tensor | None = None,
        edge_weight: Tensor | None = None,
        edge_labels: Tensor | None = None,
        edge_attr: Tensor | None = None,
        morgan: Tensor | None = None,
        morgan_bits: Tensor | None = None,
        maccs: Tensor | None = None,
        atom_pairs: Tensor | None = None,
        descriptors: Tensor | None = None,
    ) -> Tensor:
        """[graphs, ·] probabilities or values; see :func:`gcaps.exporting.inputs_of`."""
        given = {name: value for name, value in locals().items() if isinstance(value, Tensor)}
        outputs = scores_of(self.task, self.network(self.encoded(given)))
        if self.task != "regression":
            return outputs
        return outputs.double() * self.get_buffer("scale") + self.get_buffer("mean")

    def encoded(self, arrays: dict[str, Tensor]) -> Batch:
        """Return the batch that the arrays describe."""
        graph, (row, col) = arrays["batch"], arrays["edge_index"].unbind(0)
        fingerprints = [scaled(arrays[name]) for name, scaled in self.graphs.items()]
        count = fingerprints[0].size(0) if fingerprints else num_segments(graph)
        keep = (row != col).float()
        given = {**arrays, "degree": row.new_zeros(graph.size(0)).index_add(0, row, keep.long())}
        given["constant"] = graph
        weight = arrays.get("edge_weight")
        return Batch(
            torch.cat([columns(given[_ARRAYS.get(name, name)]) for name, columns in self.nodes.items()], dim=1),
            pointer(row, graph.size(0)),
            col,
            keep if weight is None else keep * weight,
            pointer(graph, count),
            graph,
            None,
            edge_type=None if self.relations is None else self.relations(arrays["edge_labels"]),
            edge_attr=None if self.attributes is None else self.attributes(arrays["edge_attr"]),
            graph_attr=torch.cat(fingerprints, dim=1) if fingerprints else None,
            row=row,
        )


_ARRAYS = {"labels": "node_labels", "attributes": "x"}
"""Array that a node feature is made of, where it has another name."""


def _columns(name: str, part: Any) -> nn.Module:
    """Return the module that makes the columns of one node feature."""
    if isinstance(part, LabelFeatures):
        return _Labels(part)
    if isinstance(part, DegreeFeatures):
        return _Degree(part)
    if name == "constant":
        return _Ones()
    return _Standard(part) if isinstance(part, Standardized) else nn.Identity()


class _Ones(nn.Module):
    def forward(self, graph: Tensor) -> Tensor:
        return torch.ones_like(graph, dtype=torch.float32).unsqueeze(1)


class _Degree(nn.Module):
    def __init__(self, part: DegreeFeatures) -> None:
        super().__init__()
        self.register_buffer("values", torch.arange(part.num_features))

    def forward(self, degree: Tensor) -> Tensor:
        return (degree.clamp_max(self.values.size(0) - 1).unsqueeze(1) == self.values).float()

    values: Tensor


class _Labels(nn.Module):
    """One-hot columns of every column of labels; where labels are rare, a last column for all others."""

    def __init__(self, part: LabelFeatures) -> None:
        super().__init__()
        self.others = [len(few) > 0 for few in part.rare_]
        for number, values in enumerate(part.frequent):
            self.register_buffer(f"values{number}", torch.from_numpy(values))

    def forward(self, labels: Tensor) -> Tensor:
        parts = []
        for number, others in enumerate(self.others):
            same = labels[:, number : number + 1] == self.get_buffer(f"values{number}")
            parts.append(same.float())
            if others:
                parts.append(1 - parts[-1].sum(1, keepdim=True))
        return torch.cat(parts, dim=1)


class _Standard(nn.Module):
    """Standardised columns, clipped."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, part: Standardized) -> None:
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(part.mean_))
        self.register_buffer("deviation", torch.from_numpy(part.deviation_))

    def forward(self, values: Tensor) -> Tensor:
        scaled = (values.double() - self.mean) / self.deviation
        return scaled.clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS).float()


class _Relation(nn.Module):
    """[e] relation of each edge by its labels, −1 where they are unknown."""

    rows: Tensor
    relation: Tensor

    def __init__(self, part: Relations) -> None:
        super().__init__()
        rows, relation, self.other = part.table()
        self.register_buffer("rows", torch.from_numpy(rows))
        self.register_buffer("relation", torch.from_numpy(relation) - self.other)

    def forward(self, labels: Tensor) -> Tensor:
        same = (labels[:, 0:1] == self.rows[:, 0]).long()
        for number in range(1, self.rows.size(1)):
            same = same * (labels[:, number : number + 1] == self.rows[:, number]).long()
        return (same * self.relation).sum(1) + self.other


class _Fingerprint(nn.Module):
    """Scaled columns of a fingerprint, see :class:`gcaps.features.graph_features.ScaledFingerprint`."""

    def __init__(self, part: ScaledFingerprint) -> None:
        super().__init__()
        self.counts, self.scaled = part.name in COUNTS, part.scaling_ is not None
        if part.scaling_ is not None:
            for name, values in zip(("mean", "deviation"), part.scaling_, strict=True):
                self.register_buffer(name, torch.from_numpy(values))

    def forward(self, values: Tensor) -> Tensor:
        if not self.scaled:
            return torch.log1p(values) if self.counts else values
        scaled = (values.double() - self.get_buffer("mean")) / self.get_buffer("deviation")
        bounded = scaled.clamp(-MOST_OF_GRAPHS, MOST_OF_GRAPHS)
        return torch.where(torch.isnan(scaled), 0.0, bounded).float()
