"""Occlusion: how a prediction changes when the features of one node are hidden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints, strides
from gcaps.data.graphset import GraphSet
from gcaps.explain.output import Output

if TYPE_CHECKING:
    from gcaps.estimators.base import GraphEstimator

HIDDEN = -(2**30)
"""Node label that no graph has: networks encode it as they do a label that no training graph has, and kernels match it
with nothing."""
NODES = 1 << 16
"""Nodes of all copies that are predicted together."""


def occlusion(
    model: GraphEstimator, graphs: GraphSet, output: Output, smiles: Sequence[Sequence[str]] | None = None
) -> list[Floats]:
    """Return for each node the prediction as it is minus the prediction with the node's features hidden.

    Its labels become a label that no training graph has, its attributes their mean over the training graphs; edges stay
    as they are. A graph of n nodes is predicted n times.

    Args:
        model: a fitted estimator.
        graphs: what is explained.
        output: the number that is explained.
        smiles: for each node of each molecule the SMILES in which its atom is hidden, for methods that read SMILES;
            salts and charges are not prepared once more.

    Returns:
        [n] for each graph; positive where the node raises the prediction.
    """
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes)
    node = np.arange(graphs.num_nodes) - graphs.ptr[owner]
    neutral = neutral_attributes(model, graphs)
    texts = None if smiles is None else [text for own in smiles for text in own]
    hidden: Floats = np.empty(graphs.num_nodes)
    for first, last in strides(graphs.sizes[owner], NODES):
        part = slice(first, last)
        copies = with_hidden_nodes(graphs.subset(owner[part]), node[part], neutral)
        if texts is not None:
            columns = {**copies.columns, "smiles": np.array(texts[part], dtype=np.str_)}
            copies = replace(copies, columns=columns, preparation=None)  # these are prepared already
        hidden[part] = output._replace(column=output.column[owner[part]]).of(model.scores(copies))
    whole = output.of(model.scores(graphs))
    return np.split(whole[owner] - hidden, graphs.ptr[1:-1])


def with_hidden_nodes(graphs: GraphSet, node: Ints, neutral: Array | None) -> GraphSet:
    """Return the graphs with the features of one node of each hidden.

    Args:
        graphs: G graphs.
        node: [G] the node of each, numbered within its graph.
        neutral: [·] attributes that a hidden node has; None without attributes.
    """
    rows = graphs.ptr[:-1] + node
    labels, x = graphs.node_labels, graphs.x
    if labels is not None:
        labels = labels.copy()
        labels[rows] = HIDDEN
    if x is not None and neutral is not None:
        x = x.copy()
        x[rows] = neutral
    return replace(graphs, node_labels=labels, x=x)


def _models(model: Any) -> Iterator[Any]:
    """Yield a model and those that it is made of."""
    yield model
    for member in getattr(model, "estimators_", ()):
        yield from _models(member)


def neutral_attributes(model: Any, graphs: GraphSet) -> Array | None:
    """Return the mean [·] of the node attributes over the training graphs of a network; else over ``graphs``.

    Of an ensemble, that of its first network: all members were trained on the same graphs.
    """
    if graphs.x is None:
        return None
    for member in _models(model):
        fitted = getattr(member, "fitted_", None)
        known = None if fitted is None else fitted.features.parts.get("attributes")
        if known is not None:
            mean: Array = known.mean_
            return mean
    own: Array = graphs.x.mean(axis=0)
    return own
