"""Explanation of one prediction as JSON values, with its drawing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.estimators.base import GraphEstimator
from gcaps.explain import Explanation, explain
from gcaps.explain.contributions import chosen_method
from gcaps.explain.predictor import predictor_of
from gcaps.report.explanation_drawing import drawing
from gcaps.serve.answers import DIGITS

SIZE = (420.0, 320.0)
"""Width and height of a drawing in CSS pixels."""
_STYLE = re.compile(r' style="[^"]*"')


def explanation_of(
    model: GraphEstimator, graphs: GraphSet, name: str, target: str | None = None, method: str = "auto"
) -> dict[str, Any]:
    """Return a :class:`gcaps.serve.schema.ExplainResponse` of the only graph of a set.

    Args:
        model: a fitted estimator.
        graphs: one graph.
        name: of the graph.
        target: one of several targets.
        method: of :func:`gcaps.explain.explain`; ``"auto"`` is occlusion for networks, too: integrated
            gradients take ten times as long.
    """
    if method == "auto" and chosen_method(predictor_of(model)) == "integrated-gradients":
        method = "occlusion"
    found = explain(model, graphs, target, method=method)
    if found.atoms is not None:
        one = found.atoms[0]
        values = _of_atoms(one.atom, found.nodes[0], one.molecule.GetNumAtoms())
        names = [atom.GetSymbol() for atom in one.molecule.GetAtoms()]
    else:
        values, names = found.nodes[0], _labels(found.graphs)
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    picture = drawing(found, 0, size=SIZE)
    decoded = model.target_.decode(found.scores[:1]).reshape(-1).tolist()
    return {
        "id": name,
        "output": found.output.words,
        "value": round(float(found.values[0]), DIGITS),
        "prediction": decoded[found.output.target],
        "method": found.method,
        "nodes": [{"node": i, "name": names[i], "contribution": round(float(values[i]), DIGITS)} for i in order],
        "edges": _edges(found),
        # the page allows no style attributes; its style sheet sets the size
        "svg": None if picture is None else _STYLE.sub("", str(picture)),
    }


def _of_atoms(atom: Ints, contributions: Floats, count: int) -> Floats:
    """[count] summed contributions of the nodes of each atom."""
    found: Floats = np.bincount(atom, weights=contributions, minlength=count).astype(np.float64)
    return found


def _edges(found: Explanation) -> list[dict[str, Any]] | None:
    """Return the contributions of edges; None for molecules, whose nodes are not those of the request."""
    if found.edges is None or found.atoms is not None:
        return None
    pairs = zip(found.edge_ends[0].tolist(), found.edges[0].tolist(), strict=True)
    return [{"nodes": ends, "contribution": round(value, DIGITS)} for ends, value in pairs if np.isfinite(value)]


def _labels(graphs: GraphSet) -> list[str]:
    """Return a name for each node, made of its labels."""
    labels = graphs.node_labels
    if labels is None:
        return ["node"] * graphs.num_nodes
    return [" ".join(graphs.label_names.get(code, str(code)) for code in row) for row in labels.tolist()]
