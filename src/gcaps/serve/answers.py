"""Predictions of graphs as JSON values in the form of :mod:`gcaps.serve.schema`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gcaps.data.arrays import Floats
from gcaps.data.graphset import GraphSet
from gcaps.estimators.base import GraphEstimator
from gcaps.predictions import Doubt, decoded, unseen_in_words, unseen_labels
from gcaps.serve.limits import for_clients
from gcaps.serve.reading import Rows

DIGITS = 6
"""Decimals of probabilities, and significant digits of values, as ``gcaps predict`` writes them."""


class Asked(NamedTuple):
    """Options of a request for predictions."""

    coverage: float
    by_class: bool = False
    threshold: float | None = None
    neighbors: int = 0


def predictions_of(
    model: GraphEstimator, rows: Rows, scores: Floats, doubt: Doubt | None, asked: Asked, smiles: bool = False
) -> list[dict[str, Any]]:
    """Return a :class:`gcaps.serve.schema.GraphPrediction` for each row.

    Args:
        model: the model that made the predictions.
        rows: of the request.
        scores: [n, ·] of its graphs.
        doubt: their uncertainty; None for a model that is not calibrated.
        asked: options of the request.
        smiles: include the SMILES of each molecule, for files.
    """
    graphs = rows.graphs
    by_row: dict[int, dict[str, Any]] = {}
    if graphs is not None:
        near = _neighbors(model, graphs, asked.neighbors)
        unseen = _unseen(model, graphs)
        targets = _targets(model, scores, doubt, asked)
        texts = graphs.columns["smiles"].tolist() if smiles and "smiles" in graphs.columns else None
        counts = zip(graphs.sizes.tolist(), (graphs.arc_counts // 2).tolist(), strict=True)
        for i, (row, (nodes, edges)) in enumerate(zip(rows.kept, counts, strict=True)):
            found: dict[str, Any] = {"nodes": nodes, "edges": edges, "targets": targets[i], "unseen": unseen[i]}
            if texts is not None:
                found["smiles"] = texts[i]
            if doubt is not None:
                novelty = doubt.novelty
                found |= {
                    "similarity": round(float(novelty.similarity[i]), DIGITS),
                    "nearest": str(novelty.nearest[i]),
                    "novel": bool(novelty.novel[i]),
                }
            if near is not None:
                found["neighbors"] = near[i]
            by_row[row] = found
    return [
        {"row": row, "id": name, **({"error": rows.problems[row]} if row in rows.problems else by_row[row])}
        for row, name in enumerate(rows.names)
    ]


def _targets(model: GraphEstimator, scores: Floats, doubt: Doubt | None, asked: Asked) -> list[list[dict[str, Any]]]:
    """[n] predictions of all targets of each graph."""
    target = model.target_
    chosen = decoded(target, scores, asked.threshold).reshape(len(scores), -1).tolist()
    found: list[list[dict[str, Any]]] = []
    if target.classes is None:
        for i, values in enumerate(chosen):
            row = [{"name": name, "value": _value(value)} for name, value in zip(target.names, values, strict=True)]
            if doubt is not None and doubt.intervals is not None:
                for cells, ends in zip(row, doubt.intervals[i].tolist(), strict=True):
                    cells["interval"] = [_value(end) if math.isfinite(end) else None for end in ends]
            found.append(row)
        return found
    classes = target.classes.tolist()
    shares = _by_class(target.task, scores)
    calibrated = None if doubt is None or doubt.calibrated is None else _by_class(target.task, doubt.calibrated)
    for i, values in enumerate(chosen):
        row = []
        for t, (name, value) in enumerate(zip(target.names, values, strict=True)):
            one: dict[str, Any] = {"name": name, "value": value, "probabilities": _shares(classes, shares[i, t])}
            if calibrated is not None and doubt is not None and doubt.sets is not None:
                one["calibrated"] = _shares(classes, calibrated[i, t])
                one["set"] = [c for c, inside in zip(classes, doubt.sets[i, t].tolist(), strict=True) if inside]
            row.append(one)
        found.append(row)
    return found


def _by_class(task: str, scores: Floats) -> Floats:
    """[n, T, C] probabilities of classes."""
    return scores[:, None, :] if task == "classification" else np.stack([1 - scores, scores], axis=2)


def _shares(classes: list[Any], values: Floats) -> dict[str, float]:
    return {str(name): round(value, DIGITS) for name, value in zip(classes, values.tolist(), strict=True)}


def _value(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _neighbors(model: GraphEstimator, graphs: GraphSet, count: int) -> list[list[dict[str, Any]]] | None:
    found = getattr(model, "uncertainty_", None)
    if not count or found is None:
        return None
    return [
        [{"id": name, "similarity": round(similarity, DIGITS)} for name, similarity in near]
        for near in found.domain.neighbors(graphs, count)
    ]


def _unseen(model: GraphEstimator, graphs: GraphSet) -> list[list[str]]:
    """[n] labels of each graph that no training graph had."""
    if not unseen_labels(model, graphs):
        return [[] for _ in range(len(graphs))]
    molecules = model.preparation_ is not None
    each = (unseen_labels(model, graphs.subset([i])) for i in range(len(graphs)))
    words = ([unseen_in_words(one, molecules=molecules) for one in found] for found in each)
    return [[for_clients(f"{one.kind} {one.name}") for one in found] for found in words]
