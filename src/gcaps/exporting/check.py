"""Comparison of an exported file with its model, on given graphs or on made-up ones with the same features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gcaps.data.arrays import Array, Floats, pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Target
from gcaps.errors import ModelError
from gcaps.estimators.base import GraphEstimator
from gcaps.exporting.arrays import Input, arrays_of
from gcaps.features.nodes import NodeFeatures
from gcaps.features.structural import AttributeFeatures, LabelFeatures

GRAPHS = 1000
"""Graphs that a file is compared on."""
TOLERANCE = 1e-5
"""Largest difference: of probabilities, or of values relative to themselves or the targets' standard deviation."""
TOGETHER = 64
"""Graphs of one batch; the first of each are also computed alone."""
LARGEST = 24
"""Nodes of the largest graph that is made up."""
UNSEEN = 0.02
"""Share of nodes and edges whose labels are made to be unknown to the model."""
FRAGMENTS = (
    *("C", "CC", "C(C)(C)", "N", "O", "S", "C(=O)", "C(=O)N", "C(=O)O", "C=C", "C#C", "C(F)", "C(Cl)"),
    *("c1ccc(cc1)", "c1ccc(O)c(c1)", "c1cnc(nc1)", "C1CCC(CC1)", "N1CCN(CC1)", "S(=O)(=O)", "C(O)", "[C@H](N)"),
)
"""Parts of molecules with two free bonds; any sequence is a molecule."""

Run = Callable[[dict[str, Array]], Floats]
"""Function of an exported file, from arrays to outputs."""


def largest_difference(
    run: Run, estimator: GraphEstimator, features: NodeFeatures, inputs: list[Input], graphs: GraphSet
) -> float:
    """Return the largest difference between an exported file and its model, over batches and single graphs."""
    expected, worst = estimator.scores(graphs), 0.0
    for first in range(0, len(graphs), TOGETHER):
        for last in (first + 1, min(first + TOGETHER, len(graphs))):
            rows = np.arange(first, last)
            found = np.asarray(run(arrays_of(graphs.subset(rows), features, inputs)))
            worst = max(worst, difference(found, expected[rows], estimator.target_))
    return worst


def difference(found: Floats, expected: Floats, target: Target) -> float:
    """Return the largest difference, see :data:`TOLERANCE`; infinity where shapes differ or a number is not finite."""
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    apart = np.abs(found.astype(np.float64) - expected)
    if target.scale is not None:
        apart = apart / np.maximum(np.abs(expected), target.scale)
    return float(apart.max(initial=0.0))


def require_close(worst: float, graphs: GraphSet) -> None:
    """Raise a ModelError where the difference is above :data:`TOLERANCE`."""
    if worst > TOLERANCE:
        raise ModelError(
            f"the exported network differs from the model by {worst:.1e} on {len(graphs):,} graphs ({graphs.name}), "
            f"more than {TOLERANCE:.0e}, and was not written; sums of float32 round differently where numbers are far "
            "from those of the training: give graphs like those to be predicted (--check DATA)"
        )


def synthetic_graphs(
    estimator: GraphEstimator, features: NodeFeatures, count: int = GRAPHS, *, weighted: bool = False, seed: int = 0
) -> GraphSet:
    """Make up graphs with the features that a model takes; molecules for a model of molecules.

    Among them are graphs of one node, without edges, paths, stars, trees and denser ones; some labels are unknown to
    the model.
    """
    rng = np.random.default_rng(seed)
    if estimator.preparation_ is not None or features.graphs.parts:
        chains = [rng.choice(FRAGMENTS, rng.integers(1, 7)) for _ in range(count)]
        prepared: dict[str, Any] = {} if estimator.preparation_ is None else estimator.preparation_.to_dict()
        return load(["".join(chain) for chain in chains], labelled=False, **prepared)
    kinds = [_edges(number % 6, rng) for number in range(count)]
    ptr = pointer(np.array([n for n, _ in kinds]))
    ends = np.concatenate([edges + first for (_, edges), first in zip(kinds, ptr[:-1], strict=True)])
    rows = EdgeRows(
        ends[:, 0],
        ends[:, 1],
        _edge_labels(features, len(ends), rng),
        _edge_attributes(features, len(ends), rng),
        rng.uniform(0.5, 2.0, len(ends)) if weighted else None,
    )
    labels, attributes = features.parts.get("labels"), features.parts.get("attributes")
    return assemble(
        "made-up graphs",
        ptr,
        rows,
        node_labels=_node_labels(labels, int(ptr[-1]), rng) if isinstance(labels, LabelFeatures) else None,
        x=_normal(attributes, int(ptr[-1]), rng) if isinstance(attributes, AttributeFeatures) else None,
    )


def _edges(kind: int, rng: np.random.Generator) -> tuple[int, Array]:
    """(nodes, edges [e, 2]) of one graph."""
    n = 1 if kind == 0 else int(rng.integers(3, LARGEST + 1))
    i = np.arange(1, n)
    if kind == 1:
        return n, np.zeros((0, 2), np.int64)
    if kind in (0, 2):  # no edge where there is one node
        return n, np.stack([i - 1, i], axis=1)
    tree = np.stack([np.zeros_like(i) if kind == 3 else rng.integers(0, i), i], axis=1)
    more = rng.integers(0, n, (n // 2 if kind == 5 else 2, 2))
    return n, np.unique(np.concatenate([tree, more[more[:, 0] < more[:, 1]]]), axis=0)


def _node_labels(part: LabelFeatures, nodes: int, rng: np.random.Generator) -> Array:
    columns = [np.append(values, values.max() + 1) for values in part.values_]
    return np.stack([rng.choice(own, nodes, p=_shares(len(own))) for own in columns], axis=1)


def _edge_labels(features: NodeFeatures, edges: int, rng: np.random.Generator) -> Array | None:
    if features.edges.relations is None:
        return None
    known = features.edges.relations.rows_
    rows = np.concatenate([known, known.max(axis=0, keepdims=True, initial=0) + 1])
    chosen: Array = rows[rng.choice(len(rows), edges, p=_shares(len(rows)))]
    return chosen


def _shares(count: int) -> Floats:
    """[count] probabilities, the last of which is :data:`UNSEEN`."""
    found = np.full(count, (1 - UNSEEN) / max(count - 1, 1))
    found[-1] = 1 - found[:-1].sum()
    return found


def _edge_attributes(features: NodeFeatures, edges: int, rng: np.random.Generator) -> Floats | None:
    return None if features.edges.attributes is None else _normal(features.edges.attributes, edges, rng)


def _normal(part: Any, rows: int, rng: np.random.Generator) -> Floats:
    """[rows, ·] float32 attributes with the mean and deviation of the training graphs."""
    values: Floats = (part.mean_ + part.deviation_ * rng.standard_normal((rows, len(part.mean_)))).astype(np.float32)
    return values
