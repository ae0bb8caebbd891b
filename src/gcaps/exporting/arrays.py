"""The arrays that an exported network takes: what each is, and how they are cut out of a GraphSet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.errors import DataError
from gcaps.features.fingerprints import fingerprint, fingerprint_columns
from gcaps.features.nodes import NodeFeatures
from gcaps.features.return_probabilities import STEPS, return_probabilities

NODES, EDGES, GRAPHS = "nodes", "edges", "graphs"
"""Names of the dimensions whose lengths are free."""


class Input(NamedTuple):
    """One array that an exported network takes."""

    name: str
    dtype: str
    """Of NumPy: ``int64``, ``float32`` or ``float64``."""
    shape: tuple[int | str, ...]
    """Lengths, or names of dimensions whose lengths are free."""
    about: str
    columns: tuple[str, ...] = ()
    """Names of the columns, where they have names."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        found = {"name": self.name, "dtype": self.dtype, "shape": list(self.shape), "about": self.about}
        return found | ({"columns": list(self.columns)} if self.columns else {})


def inputs_of(features: NodeFeatures, *, weighted: bool = False) -> list[Input]:
    """Return the arrays that a network on these fitted features takes, in their order.

    Args:
        features: fitted features of nodes, edges and graphs.
        weighted: whether edges have weights.
    """
    found = [
        Input("edge_index", "int64", (2, EDGES), "both directions of every edge, each once; nodes are counted from 0"),
        Input("batch", "int64", (NODES,), "the graph of each node, counted from 0"),
    ]
    for name in features.parts:
        found += _of_nodes(name, features)
    if weighted:
        found.append(Input("edge_weight", "float32", (EDGES,), "positive weight of each edge"))
    shape = features.edges.shape
    if features.edges.relations is not None and "num_relations" in shape:
        columns = features.edges.relations.rows_.shape[1]
        found.append(Input("edge_labels", "int64", (EDGES, columns), "labels of each edge, as in the source"))
    if "edge_dim" in shape:
        about = "attributes of each edge, as in the source"
        found.append(Input("edge_attr", "float32", (EDGES, shape["edge_dim"]), about))
    for fingerprint_name, part in features.graphs.parts.items():
        about = f"{fingerprint_name} of each molecule as gcaps.features.fingerprint returns them, only these columns"
        names = tuple(part.columns_)
        found.append(Input(fingerprint_name, "float32", (GRAPHS, len(names)), about, names))
    return found


def _of_nodes(name: str, features: NodeFeatures) -> list[Input]:
    part: Any = features.parts[name]
    if name == "labels":
        about = "labels of each node, as in the source; those that the training graphs lack are allowed"
        return [Input("node_labels", "int64", (NODES, len(part.values_)), about)]
    if name == "attributes":
        return [Input("x", "float32", (NODES, part.num_features), "attributes of each node, as in the source")]
    if name == "return_probabilities":
        about = "computed outside: gcaps.features.return_probabilities"
        return [Input(name, "float64", (NODES, STEPS), about)]
    if name == "fgsd":
        about = "computed outside: histograms of harmonic distances, gcaps.features.FGSD with the state in `fgsd`"
        return [Input(name, "float32", (NODES, part.num_features), about)]
    return []  # degree and constant follow from the edges


def arrays_of(graphs: GraphSet, features: NodeFeatures, inputs: list[Input]) -> dict[str, Array]:
    """Return the arrays of some graphs, as one batch.

    Raises:
        DataError: the graphs lack what the network needs.
    """
    arcs = np.diff(graphs.rowptr)
    first = np.repeat(graphs.ptr[:-1], graphs.arc_counts)
    makers: dict[str, Callable[[], Array]] = {
        "edge_index": lambda: np.stack([np.repeat(np.arange(graphs.num_nodes), arcs), graphs.col + first]),
        "batch": lambda: np.repeat(np.arange(len(graphs)), graphs.sizes),
        "node_labels": lambda: _given(graphs, "node_labels", "node labels"),
        "x": lambda: _given(graphs, "x", "node attributes"),
        "return_probabilities": lambda: return_probabilities(graphs, STEPS),
        "fgsd": lambda: features.parts["fgsd"].transform(graphs),
        "edge_weight": lambda: np.ones(len(graphs.col)) if graphs.edge_weight is None else graphs.edge_weight,
        "edge_labels": lambda: _given(graphs, "edge_labels", "edge labels"),
        "edge_attr": lambda: _given(graphs, "edge_attr", "edge attributes"),
    }
    found = {}
    for one in inputs:
        array = makers[one.name]() if one.name in makers else _fingerprint(graphs, one)
        shape = tuple(n if isinstance(n, int) else length for n, length in zip(one.shape, array.shape, strict=True))
        if array.shape != shape:
            raise DataError(
                f"has {array.shape[-1]} columns of {one.name}, the model takes {one.shape[-1]}", graphs.name
            )
        found[one.name] = np.ascontiguousarray(array, dtype=one.dtype)
    return found


def _given(graphs: GraphSet, name: str, what: str) -> Array:
    array: Array | None = getattr(graphs, name)
    if array is None:
        raise DataError(f"has no {what}, which the model uses", graphs.name)
    return array


def _fingerprint(graphs: GraphSet, one: Input) -> Array:
    name: Any = one.name
    number = {column: i for i, column in enumerate(fingerprint_columns(name))}
    if missing := [column for column in one.columns if column not in number]:
        raise DataError(f"the model was trained with {missing[0]}, which this RDKit does not have", graphs.name)
    return fingerprint(graphs, name)[:, np.array([number[column] for column in one.columns], dtype=np.int64)]
