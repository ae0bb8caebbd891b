"""Description of a served model, and example graphs that it can predict, for the page and the warm-up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from gcaps.data.arrays import Ints
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet
from gcaps.errors import GcapsError
from gcaps.estimators.base import GraphEstimator
from gcaps.exporting.check import synthetic_graphs
from gcaps.predictions import unseen_labels
from gcaps.serve.handler import Handler
from gcaps.serve.limits import ServerSettings
from gcaps.serve.schema import EXAMPLE_SMILES
from gcaps.version import __version__

RING = 6
"""Nodes of the generated graph for methods that do not list their features."""
EXAMPLE_NODES = 12
"""Preferred number of nodes of an example."""
COLUMNS = 4
"""Numbers of label columns that are tried for such methods, starting at 0."""


def facts_of(handler: Handler, settings: ServerSettings) -> dict[str, Any]:
    """Return a :class:`gcaps.serve.schema.ModelResponse`; the example has been predicted and explained once."""
    model = handler.model
    target, example = model.target_, example_request(model)
    classes = None if target.classes is None else target.classes.tolist()
    data = getattr(model, "data_", {})
    return {
        "name": handler.name,
        "describes": model.describes,
        "method": model.method,
        "task": target.task,
        "targets": [{"name": one, "classes": classes} for one in target.names],
        "trained_on": str(data.get("name", "")),
        "training_graphs": int(data.get("graphs", 0)),
        "molecules": model.preparation_ is not None,
        "calibrated": handler.calibrated,
        "coverage": settings.coverage,
        "explains": handler.warm_up(example),
        "limits": handler.limits.model_dump(),
        "example": example,
        "version": __version__,
    }


def example_request(model: GraphEstimator) -> dict[str, Any]:
    """Return a request for ``/predict`` that the model can answer; an empty one if none is found."""
    if model.preparation_ is not None:
        return {"smiles": EXAMPLE_SMILES}
    graphs = example_graphs(model)
    return {} if graphs is None else {"graphs": [node_link(graph, i) for i, graph in enumerate(graphs.to_networkx())]}


def node_link(graph: Any, number: int) -> dict[str, Any]:
    """Return a NetworkX graph as JSON values."""
    nodes = [{"id": node, **_plain(values)} for node, values in graph.nodes(data=True)]
    links = [{"source": u, "target": v, **_plain(values)} for u, v, values in graph.edges(data=True)]
    return {"id": f"example {number + 1}", "nodes": nodes, "links": links}


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value).round(4).tolist() for name, value in values.items()}


def example_graphs(model: GraphEstimator, count: int = 3) -> GraphSet | None:
    """Generate graphs with the features that a model expects; None if it accepts none of the candidates."""
    for graphs in _candidates(model):
        with suppress(GcapsError, ValueError, IndexError, TypeError):
            some = graphs.subset(np.sort(_usual(model, graphs)[:count]))
            model.scores(some)
            if (uncertainty := getattr(model, "uncertainty_", None)) is not None:
                uncertainty.domain.compare(some)
            return some
    return None


def _usual(model: GraphEstimator, graphs: GraphSet) -> Ints:
    """Order graphs: known labels first, then connected ones, then sizes close to :data:`EXAMPLE_NODES`."""
    strange = np.array([bool(unseen_labels(model, graphs.subset([i]))) for i in range(len(graphs))])
    sparse = graphs.arc_counts < 2 * (graphs.sizes - 1)
    far = np.abs(graphs.sizes - EXAMPLE_NODES)
    order: Ints = np.lexsort((far, sparse, graphs.sizes == 1, strange))
    return order


def _candidates(model: GraphEstimator) -> Iterator[GraphSet]:
    features = getattr(getattr(model, "fitted_", None), "features", None)
    if features is not None:
        with suppress(GcapsError, ValueError):
            yield synthetic_graphs(model, features, count=24)
    ring = np.arange(RING)
    compared = getattr(model, "uncertainty_", None)  # with all attributes, whatever the method uses
    width = max(1, 0 if compared is None else len(compared.domain.kernel.deciles_))
    for x in (False, True):
        for labels in range(COLUMNS):
            for edge_labels in range(COLUMNS):
                rows = EdgeRows(
                    ring, (ring + 1) % RING, np.zeros((RING, edge_labels), np.int64) if edge_labels else None
                )
                yield assemble(
                    "made-up graphs",
                    np.array([0, RING]),
                    rows,
                    node_labels=np.zeros((RING, labels), np.int64) if labels else None,
                    x=np.zeros((RING, width)) if x else None,
                )
