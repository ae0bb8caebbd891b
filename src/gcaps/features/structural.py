"""Node features without distances: labels, attributes, degree, a constant; each is fitted to training graphs.

One-hot features are stored as column indices in a :class:`NodeMatrix`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from gcaps.data.arrays import LARGEST, Array, Floats
from gcaps.data.graphset import GraphSet
from gcaps.documents import Labels, Number, Page, validated
from gcaps.errors import DataError, ModelError

if TYPE_CHECKING:
    from gcaps.features.edges import EdgeMatrix

MAX_DEGREE = 127
"""Degrees above this share one column."""
MAX_DEVIATIONS = 100.0
"""Attributes are clipped to so many standard deviations from their mean, so that a single absurd value does no harm."""


@dataclass(frozen=True, slots=True)
class NodeMatrix:
    """X [N, d] = [one-hot columns | dense columns], with one-hot columns stored as indices.

    A label or a degree is one number, however many columns its one-hot encoding has: X takes a fraction of the memory,
    and its product with a weight matrix is a selection of rows.
    """

    one_hot_index: Array
    """[N, c] int32 columns that are 1, c for each node; −1 for none."""
    one_hot: int
    """Number of one-hot columns."""
    dense: Floats
    """[N, d − one_hot] float32."""
    edges: EdgeMatrix | None = None
    """Edge features of the same graphs, if there are any; rows selected by :meth:`__getitem__` have none."""
    graphs: Floats | None = None
    """[G, ·] float32 features of the graphs themselves, if there are any; selected rows have none."""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, d)."""
        return len(self.dense), self.one_hot + self.dense.shape[1]

    def __len__(self) -> int:
        return len(self.dense)

    def __getitem__(self, nodes: Array) -> NodeMatrix:
        return NodeMatrix(self.one_hot_index[nodes], self.one_hot, self.dense[nodes])

    def toarray(self) -> Floats:
        """Return X as a dense array."""
        out = np.zeros(self.shape, dtype=np.float32)
        for column in self.one_hot_index.T:
            known = np.flatnonzero(column >= 0)
            out[known, column[known]] = 1
        out[:, self.one_hot :] = self.dense
        return out

    @staticmethod
    def stack(parts: list[NodeMatrix]) -> NodeMatrix:
        """Concatenate matrices with the same rows; one-hot columns come first."""
        offsets = np.cumsum([0, *(part.one_hot for part in parts)])
        one_hot_index = [
            np.where(part.one_hot_index >= 0, part.one_hot_index + offset, -1)
            for part, offset in zip(parts, offsets[:-1], strict=True)
        ]
        return NodeMatrix(
            np.concatenate(one_hot_index, axis=1).astype(np.int32),
            int(offsets[-1]),
            np.concatenate([part.dense for part in parts], axis=1),
        )


class Unseen(NamedTuple):
    """A label that the training graphs lack."""

    kind: str
    """``"node label"`` or ``"edge label"``."""
    value: int
    name: str
    """The label in the source's words."""
    graphs: int
    """Number of graphs that have it."""
    column: int = 0
    """Column of labels that it is in."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name} in {self.graphs} graph{'s' if self.graphs > 1 else ''}"


def positions(values: Array, given: Array) -> Array:
    """Position of each given value among the sorted ``values``; −1 where it is not among them."""
    if not len(values):
        return np.full(len(given), -1)
    at = np.minimum(np.searchsorted(values, given), len(values) - 1)
    return np.where(values[at] == given, at, -1)


def unseen_values(
    kind: str, values: Array, given: Array, graph: Array, graphs: GraphSet, column: int = 0
) -> list[Unseen]:
    """Those of the ``given`` values, at the graphs ``graph``, that are not among the sorted ``values``."""
    missing = positions(values, given) < 0
    if not missing.any():
        return []
    names = getattr(graphs, "label_names", {})
    pairs = np.unique(np.stack([given[missing], graph[missing]]), axis=1)[0]
    return [
        Unseen(kind, int(value), str(names.get(int(value), value)), int(count), column)
        for value, count in zip(*np.unique(pairs, return_counts=True), strict=True)
    ]


class Fittable:
    """Features that are fitted to a whole set or, if it is too large, piece by piece."""

    def fit_pieces(self, pieces: Iterable[GraphSet]) -> Self:
        """Fit to the pieces of a set."""
        raise NotImplementedError

    def fit(self, graphs: GraphSet) -> Self:
        """Fit to training graphs."""
        return self.fit_pieces([graphs])


class OneHotFeatures(Fittable):
    """Features with a fixed number of ones in each row and zeros elsewhere."""

    @property
    def num_features(self) -> int:
        """Number of columns."""
        raise NotImplementedError

    def one_hot_index(self, graphs: GraphSet) -> Array:
        """[N, c] columns that are 1; −1 for none."""
        raise NotImplementedError

    def encode(self, graphs: GraphSet) -> NodeMatrix:
        """Return the features as a matrix of indices."""
        empty = np.empty((graphs.num_nodes, 0), dtype=np.float32)
        return NodeMatrix(self.one_hot_index(graphs).astype(np.int32), self.num_features, empty)

    def transform(self, graphs: GraphSet) -> Floats:
        """[N, num_features] float32 ones and zeros."""
        return self.encode(graphs).toarray()


class LabelState(Page):
    """Fitted :class:`LabelFeatures`: for each column of labels its labels, and the rare ones among them."""

    values: Annotated[list[Annotated[Labels, Field(min_length=1)]], Field(min_length=1)]
    rare: list[Labels] | None = None

    @model_validator(mode="after")
    def _rare_are_among_them(self) -> Self:
        if self.rare is not None and len(self.rare) != len(self.values):
            raise ValueError("there should be rare labels of each column")
        if any(set(few) - set(every) for few, every in zip(self.rare or [], self.values, strict=False)):
            raise ValueError("a rare label should be a label")
        return self


class StandardizedState(Page):
    """Fitted :class:`Standardized`: mean and deviation of each column."""

    mean: list[Number]
    deviation: list[Annotated[Number, Field(gt=0)]]

    @model_validator(mode="after")
    def _of_one_length(self) -> Self:
        if len(self.mean) != len(self.deviation):
            raise ValueError("mean and deviation should have the same length")
        return self


class DegreeState(Page):
    """Fitted :class:`DegreeFeatures`."""

    largest: Annotated[int, Field(ge=0, le=MAX_DEGREE)]


class LabelFeatures(OneHotFeatures):
    """One column for each node label of the training graphs; zeros for a label that does not occur there.

    Labels that fewer than ``rare`` training graphs have share one column, the last one of their column of labels. Where
    there are such labels, those that do not occur in training get this column too: its weights were learned from
    labels that are as unexpected.

    Args:
        rare: number of training graphs; 0: every label has a column of its own.
    """

    def __init__(self, rare: int = 0) -> None:
        self.rare = rare

    def fit_pieces(self, pieces: Iterable[GraphSet]) -> Self:
        """Collect the labels of all pieces, and count the graphs that have each."""
        found: list[list[tuple[Array, Array]]] = []
        for piece in pieces:
            graph = np.repeat(np.arange(len(piece)), piece.sizes) if self.rare else None
            columns = [_graphs_with(column, graph) for column in _labels(piece).T]
            found = [[c] for c in columns] if not found else [[*f, c] for f, c in zip(found, columns, strict=True)]
        values, rare = [], []
        for column in found:
            every, at = np.unique(np.concatenate([labels for labels, _ in column]), return_inverse=True)
            counts = np.bincount(at, np.concatenate([count for _, count in column]), len(every))
            values.append(every)
            rare.append(every[counts < self.rare])
        return self._of(values, rare)

    def _of(self, values: list[Array], rare: list[Array]) -> Self:
        """Set the state from the labels of each column of labels, and those of them that are rare."""
        self.values_, self.rare_ = values, rare  # and ``frequent``: labels with a column of their own
        self.frequent = [np.setdiff1d(every, few) for every, few in zip(values, rare, strict=True)]
        self._widths = [len(own) + (len(few) > 0) for own, few in zip(self.frequent, rare, strict=True)]
        return self

    @property
    def num_features(self) -> int:
        """Number of distinct labels, over all columns of labels; rare ones of a column count as one."""
        return sum(self._widths)

    def one_hot_index(self, graphs: GraphSet) -> Array:
        """[N, columns of labels]"""
        labels = _labels(graphs)
        if labels.shape[1] != len(self.values_):
            raise DataError(f"{graphs.name} has {labels.shape[1]} columns of node labels, expected {len(self.values_)}")
        found, first = np.empty(labels.shape, dtype=np.int32), 0
        for number, (values, width) in enumerate(zip(self.frequent, self._widths, strict=True)):
            at = positions(values, labels[:, number])
            other = first + len(values) if width > len(values) else -1
            found[:, number] = np.where(at >= 0, at + first, other)
            first += width
        return found

    def unseen(self, graphs: GraphSet) -> list[Unseen]:
        """Labels of ``graphs`` that the training graphs lack, and how many graphs have them."""
        labels, graph = _labels(graphs), np.repeat(np.arange(len(graphs)), graphs.sizes)
        return [
            entry
            for number, values in enumerate(self.values_)
            for entry in unseen_values("node label", values, labels[:, number], graph, graphs, number)
        ]

    def state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        state = {"values": [values.tolist() for values in self.values_]}
        if any(map(len, self.rare_)):
            state["rare"] = [values.tolist() for values in self.rare_]
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore a fitted object.

        Raises:
            ModelError: the state is not one that :meth:`state` returns.
        """
        found = validated(LabelState, state, "the state of the node labels is damaged", ModelError)
        rare = found.rare if found.rare is not None else [[]] * len(found.values)
        return cls()._of(*([np.asarray(column, dtype=np.int64) for column in table] for table in (found.values, rare)))


class Standardized(Fittable):
    """Columns of numbers standardised by mean and deviation of the training graphs; those of zeros and ones are kept.

    Values further than :data:`MAX_DEVIATIONS` from the mean are clipped to it.
    """

    what: ClassVar[str]

    @staticmethod
    def values(graphs: GraphSet) -> Array:
        """[·, columns] as in the source."""
        raise NotImplementedError

    def fit_pieces(self, pieces: Iterable[GraphSet]) -> Self:
        """Compute mean and deviation over all pieces."""
        return self.fit_values(self._finite(piece) for piece in pieces)

    def fit_values(self, pieces: Iterable[Array]) -> Self:
        """Compute mean and deviation over all rows of several matrices with Chan's formula."""
        count, mean, squares, binary = 0, np.zeros(1), np.zeros(1), np.ones(1, dtype=bool)
        for piece in pieces:
            values = piece.astype(np.float64)
            n = len(values)
            if not n:
                mean, squares, binary = (np.broadcast_to(a, values.shape[1:]) for a in (mean, squares, binary))
                continue
            own = values.mean(axis=0)
            squares = squares + ((values - own) ** 2).sum(axis=0) + (own - mean) ** 2 * (count * n / (count + n))
            mean = mean + (own - mean) * (n / (count + n))
            binary = binary & ((values == 0) | (values == 1)).all(axis=0)
            count += n
        deviation = np.sqrt(squares / max(count, 1))
        self.mean_ = np.where(binary, 0.0, mean)
        self.deviation_ = np.where(binary | (deviation == 0), 1.0, deviation)
        return self

    @property
    def num_features(self) -> int:
        """Number of columns."""
        return len(self.mean_)

    def transform(self, graphs: GraphSet) -> Floats:
        """[·, columns] float32."""
        values = self._finite(graphs)
        if values.shape[1] != len(self.mean_):
            raise DataError(f"{graphs.name} has {values.shape[1]} {self.what}, expected {len(self.mean_)}")
        return self.scaled(values)

    def scaled(self, values: Array) -> Floats:
        """[·, columns] float32 standardised values."""
        scaled = np.clip((values - self.mean_) / self.deviation_, -MAX_DEVIATIONS, MAX_DEVIATIONS)
        return np.asarray(scaled, dtype=np.float32)

    def _finite(self, graphs: GraphSet) -> Array:
        values = self.values(graphs)
        if not np.isfinite(values).all():
            column = int(np.flatnonzero(~np.isfinite(values).all(axis=0))[0])
            raise DataError(
                f"{graphs.name}: {self.what} are not all finite (column {column + 1} of {values.shape[1]}); replace "
                "missing values before training"
            )
        if values.size and max(-float(values.min()), float(values.max())) > LARGEST:
            column = int(np.flatnonzero((np.abs(values) > LARGEST).any(axis=0))[0])
            raise DataError(
                f"{graphs.name}: {self.what} hold {np.abs(values[:, column]).max():.3g} (column {column + 1} of "
                f"{values.shape[1]}), more than a float32 can; give them in larger units"
            )
        return values

    def state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        return {"mean": self.mean_.tolist(), "deviation": self.deviation_.tolist()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore a fitted object.

        Raises:
            ModelError: the state is not one that :meth:`state` returns.
        """
        found = validated(StandardizedState, state, f"the state of the {cls.what} is damaged", ModelError)
        made = cls()
        made.mean_, made.deviation_ = np.array(found.mean, np.float64), np.array(found.deviation, np.float64)
        return made


class AttributeFeatures(Standardized):
    """Node attributes, standardised."""

    what: ClassVar[str] = "node attributes"

    @staticmethod
    def values(graphs: GraphSet) -> Array:
        """[N, attributes]"""
        if graphs.x is None:
            raise DataError(f"{graphs.name} has no node attributes; choose other features")
        return graphs.x


class DegreeFeatures(OneHotFeatures):
    """One column for each degree 0..m, where m ≤ 127 is the largest of the training graphs; larger ones count as m."""

    def fit_pieces(self, pieces: Iterable[GraphSet]) -> Self:
        """Find the largest degree of all pieces."""
        self.largest_ = min(max(int(piece.degrees.max(initial=0)) for piece in pieces), MAX_DEGREE)
        return self

    @property
    def num_features(self) -> int:
        """m + 1."""
        return self.largest_ + 1

    def one_hot_index(self, graphs: GraphSet) -> Array:
        """[N, 1]"""
        return np.minimum(graphs.degrees, self.largest_)[:, None]

    def state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        return {"largest": self.largest_}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore a fitted object."""
        made = cls()
        made.largest_ = validated(DegreeState, state, "the state of the degrees is damaged", ModelError).largest
        return made


class ConstantFeatures(OneHotFeatures):
    """A single column of ones, for methods that use structure only."""

    def fit_pieces(self, pieces: Iterable[GraphSet]) -> Self:
        """Do nothing."""
        return self

    @property
    def num_features(self) -> int:
        """1."""
        return 1

    def one_hot_index(self, graphs: GraphSet) -> Array:
        """[N, 1] zeros, the index of the only column."""
        return np.zeros((graphs.num_nodes, 1), dtype=np.int32)

    def state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        return {}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the object."""
        return cls()


def _graphs_with(labels: Array, graph: Array | None) -> tuple[Array, Array]:
    """Return the distinct labels [n] and how many graphs have each, for the graph [n] of each; None: not counted."""
    if graph is None:
        values = np.unique(labels)
        return values, np.zeros(len(values))
    values, at = np.unique(labels, return_inverse=True)
    graphs = int(graph.max(initial=0)) + 1
    return values, np.bincount(np.unique(at * graphs + graph) // graphs, minlength=len(values))


def _labels(graphs: GraphSet) -> Array:
    if graphs.node_labels is None:
        raise DataError(f"{graphs.name} has no node labels; choose other features, for example degree,fgsd")
    return graphs.node_labels
