"""Edge features: edge labels as relations, edge attributes standardised; fitted to training graphs only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.documents import Label, Page, validated
from gcaps.errors import DataError, ModelError
from gcaps.features.structural import Fittable, Standardized, Unseen, positions, unseen_values

MAX_RELATIONS = 32
"""Of more different edge labels the rarer ones share one relation, so that the layers do not grow without bound."""


@dataclass(frozen=True, slots=True)
class EdgeMatrix:
    """Encoded edge features of all arcs, in the order of ``GraphSet.col``."""

    relation: Ints | None
    """[E] relation of each arc, −1 for a label that the training graphs lack; None if all are of one relation."""
    attr: Floats | None
    """[E, d] float32 standardised attributes; None if there are none."""
    shape: dict[str, int]
    """``num_relations`` and ``edge_dim`` of :class:`gcaps.nn.GraphCapsuleConv`, where they are not its defaults."""

    def take(self, arcs: Array) -> EdgeMatrix:
        """Return the rows of some arcs."""
        relation = None if self.relation is None else self.relation[arcs]
        return EdgeMatrix(relation, None if self.attr is None else self.attr[arcs], self.shape)


class Relations(Fittable):
    """Relations 0 … R−1: the combinations of edge labels of the training graphs, one for each combination.

    Beyond :data:`MAX_RELATIONS` combinations the last relation takes the rarest ones and those that the training graphs
    lack; otherwise these have the number −1.
    """

    def fit_pieces(self, pieces: Iterable[GraphSet]) -> Self:
        """Count the combinations of labels of all pieces."""
        found = [np.unique(_labels(piece), axis=0, return_counts=True) for piece in pieces if len(piece.col)]
        if not found:
            return self._of(np.empty((0, 1), dtype=np.int64), 0)
        rows, at = np.unique(np.concatenate([row for row, _ in found]), axis=0, return_inverse=True)
        counts = np.bincount(at.ravel(), np.concatenate([count for _, count in found]), len(rows))
        if len(rows) <= MAX_RELATIONS:
            return self._of(rows, len(rows))
        frequent = np.sort(np.argsort(-counts, kind="stable")[: MAX_RELATIONS - 1])
        rest = np.setdiff1d(np.arange(len(rows)), frequent)
        return self._of(rows[np.concatenate([frequent, rest])], MAX_RELATIONS)

    def _of(self, rows: Array, relations: int) -> Self:
        """Set the state from the combinations [·, columns]: row r is relation r, or the last relation."""
        self.rows_, self.num_relations = np.asarray(rows, dtype=np.int64), relations
        self._values = [np.unique(column) for column in self.rows_.T]
        self._pairs: list[Array] = []
        code = self._codes(self.rows_, fitting=True)
        self._relation = np.empty(len(self.rows_), dtype=np.int64)
        self._relation[code] = np.minimum(np.arange(len(self.rows_)), max(relations - 1, 0))
        return self

    def _codes(self, labels: Array, fitting: bool = False) -> Array:
        """Number of each row among the sorted combinations; −1 if it is not among them."""
        code = positions(self._values[0], labels[:, 0])
        for number in range(1, labels.shape[1]):
            at = positions(self._values[number], labels[:, number])
            key = np.where((code < 0) | (at < 0), -1, code * len(self._values[number]) + at)
            if fitting:
                self._pairs.append(np.unique(key))
            code = positions(self._pairs[number - 1], key)
        return code

    def transform(self, graphs: GraphSet) -> Ints:
        """[E] relation of each arc."""
        if not len(graphs.col):
            return np.empty(0, dtype=np.int64)
        labels = self._checked(graphs)
        code = self._codes(labels)
        return np.append(self._relation, self._other)[code]

    def table(self) -> tuple[Array, Array, int]:
        """Return the combinations [·, columns], the relation of each, and that of any other combination."""
        return self.rows_, np.minimum(np.arange(len(self.rows_)), max(self.num_relations - 1, 0)), self._other

    @property
    def _other(self) -> int:
        """Relation of labels that the training graphs lack."""
        return -1 if len(self.rows_) <= MAX_RELATIONS else self.num_relations - 1

    def unseen(self, graphs: GraphSet) -> list[Unseen]:
        """Edge labels that the training graphs lack, and how many graphs have them."""
        if not len(graphs.col):
            return []
        labels, graph = self._checked(graphs), np.repeat(np.arange(len(graphs)), graphs.arc_counts)
        return [
            entry
            for number, values in enumerate(self._values)
            for entry in unseen_values("edge label", values, labels[:, number], graph, graphs, number)
        ]

    def _checked(self, graphs: GraphSet) -> Array:
        labels = _labels(graphs)
        if labels.shape[1] != self.rows_.shape[1]:
            raise DataError(
                f"{graphs.name} has {labels.shape[1]} columns of edge labels, expected {self.rows_.shape[1]}"
            )
        return labels

    def state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        return {"rows": self.rows_.tolist(), "columns": self.rows_.shape[1], "relations": self.num_relations}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore a fitted object.

        Raises:
            ModelError: the state is not one that :meth:`state` returns.
        """
        found = validated(RelationState, state, "the state of the edge labels is damaged", ModelError)
        return cls()._of(np.asarray(found.rows, np.int64).reshape(-1, found.columns), found.relations)


class RelationState(Page):
    """Fitted :class:`Relations`: the combinations of labels in the order of their relations."""

    rows: list[list[Label]]
    columns: Annotated[int, Field(ge=1, le=1 << 20)]
    relations: Annotated[int, Field(ge=0, le=MAX_RELATIONS)]

    @model_validator(mode="after")
    def _different_rows(self) -> Self:
        if any(len(row) != self.columns for row in self.rows) or len(set(map(tuple, self.rows))) < len(self.rows):
            raise ValueError("rows should be different and have a label for each column")
        if self.relations != min(len(self.rows), MAX_RELATIONS):
            raise ValueError("relations should be as many as rows, up to a limit")
        return self


class EdgeAttributes(Standardized):
    """Edge attributes, standardised."""

    what: ClassVar[str] = "edge attributes"

    @staticmethod
    def values(graphs: GraphSet) -> Array:
        """[E, attributes]"""
        if graphs.edge_attr is None:
            raise DataError(f"{graphs.name} has no edge attributes, which the model uses or is to use (edge_features)")
        return graphs.edge_attr


class EdgeFeatures:
    """Fitted edge features.

    Args:
        relations: relations from edge labels, or None.
        attributes: edge attributes, or None.
    """

    def __init__(self, relations: Relations | None = None, attributes: EdgeAttributes | None = None) -> None:
        self.relations, self.attributes = relations, attributes

    @classmethod
    def fit(cls, names: Iterable[str], graphs: GraphSet, chosen: Ints) -> Self:
        """Fit the features ``names`` (labels, attributes) to the graphs at ``chosen`` and no others."""
        made: dict[str, Any] = {}
        for name in names:
            pieces = graphs.chunks(indices=chosen) if graphs.mapped else [graphs.subset(chosen)]
            made[name] = (Relations() if name == "labels" else EdgeAttributes()).fit_pieces(pieces)
        return cls(made.get("labels"), made.get("attributes"))

    @property
    def shape(self) -> dict[str, int]:
        """See :attr:`EdgeMatrix.shape`."""
        relations = 1 if self.relations is None else self.relations.num_relations
        columns = 0 if self.attributes is None else self.attributes.num_features
        return {name: n for name, n, least in (("num_relations", relations, 2), ("edge_dim", columns, 1)) if n >= least}

    def encode(self, graphs: GraphSet) -> EdgeMatrix | None:
        """Relations and attributes of all arcs; None if there are neither."""
        shape = self.shape
        relation = attr = None
        if "num_relations" in shape:
            assert self.relations is not None
            relation = self.relations.transform(graphs)
        if "edge_dim" in shape:
            assert self.attributes is not None
            empty = np.empty((0, shape["edge_dim"]), dtype=np.float32)
            attr = self.attributes.transform(graphs) if len(graphs.col) else empty
        return EdgeMatrix(relation, attr, shape) if shape else None

    def unseen(self, graphs: GraphSet) -> list[Unseen]:
        """Edge labels that the training graphs lack, and how many graphs have them."""
        return [] if self.relations is None else self.relations.unseen(graphs)

    def state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        parts = {"labels": self.relations, "attributes": self.attributes}
        return {name: part.state() for name, part in parts.items() if part is not None}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore fitted features."""
        relations = Relations.from_state(state["labels"]) if "labels" in state else None
        attributes = EdgeAttributes.from_state(state["attributes"]) if "attributes" in state else None
        return cls(relations, attributes)


def _labels(graphs: GraphSet) -> Array:
    if graphs.edge_labels is None:
        raise DataError(f"{graphs.name} has no edge labels, which the model uses or is to use (edge_features)")
    return graphs.edge_labels
