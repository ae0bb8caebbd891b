"""Occlusion: change of a prediction when nodes, edges or columns of features are hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints, strides
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import neighbors_of_set
from gcaps.explain.atoms import AtomsOf, smiles_with_hidden_atoms, smiles_without_bond
from gcaps.explain.edges import EdgesOf, keeping_arcs, without_edges
from gcaps.explain.feature_names import hidden_columns, largest_first
from gcaps.explain.output import Output

HIDDEN = -(2**30)
"""Label that no graph has: networks encode it like a label that is unknown from training, and no kernel matches it."""
NODES = 1 << 16
"""Most nodes of all copies that are predicted together."""
MAX_WORK = 1 << 26
"""Nodes of all copies of one graph beyond which its edges are not hidden one by one."""

How = Literal["features", "edges"]
"""Part of a node that is hidden: its labels and attributes, or its edges."""
Report = Callable[[int], None]
"""Callback for the number of nodes that have been predicted."""


class Scorer(Protocol):
    """Anything with predictions."""

    def scores(self, graphs: GraphSet, /) -> Floats:
        """[G, ·]"""
        ...


class Occlusion:
    """Predictions for copies of graphs with something hidden.

    A hidden node has a label that no training graph has and the mean attributes of the training graphs; its edges stay.
    Where that changes nothing, because the graph has neither labels nor attributes or the model does not use them, the
    edges of a hidden node are removed instead. For methods that read SMILES, a hidden atom is a wildcard.

    Args:
        model: the model.
        graphs: the graphs that are explained.
        output: the output that is explained.
        atoms: the molecules of the graphs, prepared as the model's.
        report: called after each batch of copies.
    """

    def __init__(
        self,
        model: Scorer,
        graphs: GraphSet,
        output: Output,
        atoms: Sequence[AtomsOf] | None = None,
        report: Report | None = None,
    ) -> None:
        self.model, self.graphs, self.output, self.atoms, self.report = model, graphs, output, atoms, report
        self.neutral = neutral_attributes(model, graphs)
        self.whole = output.of(model.scores(graphs))
        self._how: dict[int, How] = {}

    def how(self, graph: int) -> How:
        """Return how nodes of a graph are hidden: by their features if hiding those of all nodes changes anything."""
        if graph not in self._how:
            given = self.graphs
            self._how[graph] = "edges"
            if given.node_labels is not None or given.x is not None or self.atoms is not None:
                every = [np.arange(given.sizes[graph])]
                hidden = self._hidden([graph], every, "features")
                if abs(hidden[0] - self.whole[graph]) > 1e-9 or self._nodes(graph, "features").any():
                    self._how[graph] = "features"
        return self._how[graph]

    def nodes(self, graph: int) -> Floats:
        """[n] prediction minus the prediction with each node hidden."""
        return self._nodes(graph, self.how(graph))

    def _nodes(self, graph: int, how: How) -> Floats:
        each = [np.array([node]) for node in range(int(self.graphs.sizes[graph]))]
        found: Floats = self.whole[graph] - self._hidden([graph] * len(each), each, how)
        return found

    def sets(self, graph: int, sets: Sequence[Ints]) -> Floats:
        """[s] prediction minus the prediction with all nodes of each set hidden."""
        found: Floats = self.whole[graph] - self.hidden(graph, sets)
        return found

    def hidden(self, graph: int, sets: Sequence[Ints]) -> Floats:
        """[s] prediction for a graph with the nodes of each set hidden."""
        return self._hidden([graph] * len(sets), sets, self.how(graph))

    def edges(self, graph: int, edges: EdgesOf) -> Floats:
        """[m] prediction minus the prediction with each edge removed; NaN for a graph that is too large."""
        count, size = len(edges.ends), int(self.graphs.sizes[graph])
        if count * size > MAX_WORK:
            return np.full(count, np.nan)
        found: Floats = np.empty(count)
        for first, last in strides(np.full(count, size), NODES):
            copies = without_edges(
                self.graphs.subset(np.full(last - first, graph)), edges.forward[first:last], edges.back[first:last]
            )
            if self.atoms is not None:
                ends = edges.ends[first:last].tolist()
                copies = _with_smiles(copies, [smiles_without_bond(self.atoms[graph], u, v) for u, v in ends])
            found[first:last] = self.whole[graph] - self._predicted(copies, graph)
        return found

    def features(self, graph: int) -> dict[str, float]:
        """Return for each column of labels or attributes the prediction minus that with the column hidden everywhere.

        Hidden attributes are their mean over the training graphs, hidden edge labels a label unknown from training.
        """
        single, found = self.graphs.subset([graph]), {}
        for name, (kind, column) in hidden_columns(single):
            labels, x = single.node_labels, single.x
            if kind == 0 and labels is not None:
                labels = labels.copy()
                labels[:, column] = HIDDEN
            elif x is not None and self.neutral is not None:
                x = x.copy()
                x[:, column] = self.neutral[graph, column]
            copy = replace(single, node_labels=labels, x=x)
            found[name] = float(self.whole[graph] - self._predicted(copy, graph)[0])
        if single.edge_labels is not None:
            copy = replace(single, edge_labels=np.full_like(single.edge_labels, HIDDEN))
            found["edge labels"] = float(self.whole[graph] - self._predicted(copy, graph)[0])
        return largest_first({name: value for name, value in found.items() if value})

    def _hidden(self, owner: Sequence[int], sets: Sequence[Ints], how: How) -> Floats:
        """[s] predictions for copies of the graphs ``owner`` with a set of nodes of each hidden."""
        found: Floats = np.empty(len(sets))
        for first, last in strides(self.graphs.sizes[list(owner)], NODES):
            some, part = np.asarray(owner[first:last]), sets[first:last]
            copies = self.graphs.subset(some)
            rows = np.concatenate([start + nodes for start, nodes in zip(copies.ptr[:-1], part, strict=True)])
            neutral = (
                None if self.neutral is None else np.repeat(self.neutral[some], [len(own) for own in part], axis=0)
            )
            copies = with_hidden_nodes(copies, rows.astype(np.int64), neutral, how)
            if self.atoms is not None and how == "features":
                pairs = zip(some.tolist(), part, strict=True)
                copies = _with_smiles(copies, [smiles_with_hidden_atoms(self.atoms[g], nodes) for g, nodes in pairs])
            found[first:last] = self._predicted(copies, some)
        return found

    def _predicted(self, copies: GraphSet, owner: int | Ints) -> Floats:
        column = np.broadcast_to(self.output.column[owner], len(copies))
        found = self.output._replace(column=column).of(self.model.scores(copies))
        if self.report is not None:
            self.report(copies.num_nodes)
        return found


def _with_smiles(graphs: GraphSet, texts: Sequence[str]) -> GraphSet:
    """Return the graphs with other SMILES, of molecules that are prepared already."""
    columns = {**graphs.columns, "smiles": np.array(texts, dtype=np.str_)}
    return replace(graphs, columns=columns, preparation=None)


def with_hidden_nodes(graphs: GraphSet, rows: Ints, neutral: Array | None, how: How = "features") -> GraphSet:
    """Return the graphs with some nodes hidden.

    Args:
        graphs: the graphs.
        rows: the nodes, numbered over the whole set.
        neutral: [·] or [rows, ·] attributes that hidden nodes have; None without attributes.
        how: hide their features, or remove their edges.
    """
    if how == "edges":
        cut = np.zeros(graphs.num_nodes, dtype=bool)
        cut[rows] = True
        return keeping_arcs(graphs, ~(np.repeat(cut, graphs.degrees) | cut[neighbors_of_set(graphs)]))
    labels, x = graphs.node_labels, graphs.x
    if labels is not None:
        labels = labels.copy()
        labels[rows] = HIDDEN
    if x is not None and neutral is not None:
        x = x.copy()
        x[rows] = neutral
    return replace(graphs, node_labels=labels, x=x)


def models_of(model: Any) -> Iterator[Any]:
    """Yield a model and all members of an ensemble."""
    yield model
    for member in getattr(model, "estimators_", ()):
        yield from models_of(member)


def neutral_attributes(model: Any, graphs: GraphSet) -> Array | None:
    """Return attributes [G, ·] that a hidden node of each graph has; None for graphs without attributes.

    They are the mean over the training graphs of a network; of an ensemble, of its first network, as all members were
    trained on the same graphs. Other methods do not keep it, and the mean of the graph itself is taken.
    """
    if graphs.x is None:
        return None
    for member in models_of(model):
        fitted = getattr(member, "fitted_", None)
        known = None if fitted is None else fitted.features.parts.get("attributes")
        if known is not None:
            return np.tile(np.asarray(known.mean_, graphs.x.dtype), (len(graphs), 1))
    sums = np.add.reduceat(graphs.x.astype(np.float64), graphs.ptr[:-1], axis=0)
    return np.asarray(sums / graphs.sizes[:, None], graphs.x.dtype)
