"""Explanation of one prediction as JSON values, with its drawing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gcaps.data.graphset import GraphSet
from gcaps.estimators.base import GraphEstimator
from gcaps.explain import explain
from gcaps.report import explanation as pages
from gcaps.serve.answers import DIGITS
from gcaps.serve.limits import RefusedError

SIZE = (420.0, 320.0)
"""Width and height of a drawing in CSS pixels."""
_STYLE = re.compile(r' style="[^"]*"')


def explanation_of(model: GraphEstimator, graphs: GraphSet, name: str, target: str | None = None) -> dict[str, Any]:
    """Return a :class:`gcaps.serve.schema.ExplainResponse` of the only graph of a set."""
    require_molecules(graphs)
    found: Any = explain(model, graphs, target)
    nodes = getattr(found, "nodes", None) or found.contributions
    if found.atoms is not None:
        one = found.atoms[0]
        values = np.bincount(one.atom, weights=nodes[0], minlength=one.molecule.GetNumAtoms())
        names = [atom.GetSymbol() for atom in one.molecule.GetAtoms()]
    else:
        values, names = nodes[0], _labels(found.graphs)
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    picture = pages._molecule(
        model.target_, found, 0, values.astype(np.float64), float(np.abs(values).max()) or 1.0
    ).picture
    output = found.output
    decoded = model.target_.decode(found.scores[:1]).reshape(-1).tolist()
    return {
        "id": name,
        "output": output.words,
        "value": round(output.of_row(found.scores[:1], 0), DIGITS),
        "prediction": decoded[output.target],
        "method": getattr(found, "method", "occlusion"),
        "nodes": [{"node": i, "name": names[i], "contribution": round(float(values[i]), DIGITS)} for i in order],
        # the page allows no style attributes; its style sheet sets the size
        "svg": None if picture is None else _STYLE.sub("", str(picture)),
    }


def _labels(graphs: GraphSet) -> list[str]:
    """Name each node by its label."""
    labels = graphs.node_labels
    if labels is None:
        return ["node"] * graphs.num_nodes
    return [" ".join(graphs.label_names.get(code, str(code)) for code in row) for row in labels.tolist()]


def require_molecules(graphs: GraphSet) -> None:
    """Raise a RefusedError for graphs that are no molecules."""
    if "smiles" not in graphs.columns:
        raise RefusedError(422, "invalid", "explains molecules only")
