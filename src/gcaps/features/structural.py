"""Node features that need no distance: labels, attributes, degree, a constant. Each is fitted on training graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from gcaps.data.arrays import Array, Floats
from gcaps.data.graphset import GraphSet
from gcaps.errors import DataError
from gcaps.features.matrix import NodeMatrix

MAX_DEGREE = 127
"""Degrees above this share one column."""


class Fittable:
    """What is learned from a set as a whole or, where it is too large, piece by piece."""

    def fit_pieces(self, pieces: Iterable[GraphSet]) -> Self:
        """Learn from the pieces of a set."""
        raise NotImplementedError

    def fit(self, graphs: GraphSet) -> Self:
        """Learn from training graphs."""
        return self.fit_pieces([graphs])


class OneHotFeatures(Fittable):
    """Features with a known number of ones in each row and zeros elsewhere."""

    @property
    def num_features(self) -> int:
        """Columns."""
        raise NotImplementedError

    def one_hot_index(self, graphs: GraphSet) -> Array:
        """[N, c] the columns in which the ones stand; −1 where there is none."""
        raise NotImplementedError

    def encode(self, graphs: GraphSet) -> NodeMatrix:
        """The features as column numbers."""
        empty = np.empty((graphs.num_nodes, 0), dtype=np.float32)
        return NodeMatrix(self.one_hot_index(graphs).astype(np.int32), self.num_features, empty)

    def transform(self, graphs: GraphSet) -> Floats:
        """[N, num_features] float32: the ones and zeros themselves."""
        return self.encode(graphs).toarray()


class LabelFeatures(OneHotFeatures):
    """One column for each node label of the training graphs; a label never seen there gives zeros."""

    def fit_pieces(self, pieces: Iterable[GraphSet]) -> Self:
        """Collect the labels of all pieces of a set."""
        found: list[list[Array]] = []
        for piece in pieces:
            columns = [np.unique(column) for column in _labels(piece).T]
            found = [[c] for c in columns] if not found else [[*f, c] for f, c in zip(found, columns, strict=True)]
        self.values_ = [np.unique(np.concatenate(column)) for column in found]
        return self

    @property
    def num_features(self) -> int:
        """Labels seen, over all columns of labels."""
        return sum(map(len, self.values_))

    def one_hot_index(self, graphs: GraphSet) -> Array:
        """[N, columns of labels]"""
        labels = _labels(graphs)
        if labels.shape[1] != len(self.values_):
            raise DataError(f"{graphs.name} has {labels.shape[1]} columns of node labels, expected {len(self.values_)}")
        found, first = np.empty(labels.shape, dtype=np.int32), 0
        for number, values in enumerate(self.values_):
            at = np.minimum(np.searchsorted(values, labels[:, number]), len(values) - 1)
            found[:, number] = np.where(values[at] == labels[:, number], at + first, -1)
            first += len(values)
        return found

    def state(self) -> dict[str, Any]:
        """JSON values for :meth:`from_state`."""
        return {"values": [values.tolist() for values in self.values_]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The fitted transformer again."""
        made = cls()
        made.values_ = [np.asarray(values, dtype=np.int64) for values in state["values"]]
        return made


class AttributeFeatures(Fittable):
    """Continuous attributes, standardised by mean and deviation of the training nodes; 0/1 columns stay as they are."""

    def fit_pieces(self, pieces: Iterable[GraphSet]) -> Self:
        """Measure mean and deviation over all pieces of a set, with Chan's formula."""
        count, mean, squares, binary = 0, np.zeros(1), np.zeros(1), np.ones(1, dtype=bool)
        for piece in pieces:
            values = _attributes(piece).astype(np.float64)
            n, own = len(values), values.mean(axis=0)
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
        """Attributes of a node."""
        return len(self.mean_)

    def transform(self, graphs: GraphSet) -> Floats:
        """[N, attributes]"""
        values = _attributes(graphs)
        if values.shape[1] != len(self.mean_):
            raise DataError(f"{graphs.name} has {values.shape[1]} node attributes, expected {len(self.mean_)}")
        scaled: Floats = ((values - self.mean_) / self.deviation_).astype(np.float32)
        return scaled

    def state(self) -> dict[str, Any]:
        """JSON values for :meth:`from_state`."""
        return {"mean": self.mean_.tolist(), "deviation": self.deviation_.tolist()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The fitted transformer again."""
        made = cls()
        made.mean_, made.deviation_ = (np.asarray(state[key], dtype=np.float64) for key in ("mean", "deviation"))
        return made


class DegreeFeatures(OneHotFeatures):
    """One column for each degree 0..m, m the largest of the training graphs (at most 127); larger ones count as m."""

    def fit_pieces(self, pieces: Iterable[GraphSet]) -> Self:
        """Take the largest degree of all pieces of a set."""
        self.largest_ = min(max(int(piece.degrees.max(initial=0)) for piece in pieces), MAX_DEGREE)
        return self

    @property
    def num_features(self) -> int:
        """m + 1"""
        return self.largest_ + 1

    def one_hot_index(self, graphs: GraphSet) -> Array:
        """[N, 1]"""
        return np.minimum(graphs.degrees, self.largest_)[:, None]

    def state(self) -> dict[str, Any]:
        """JSON values for :meth:`from_state`."""
        return {"largest": self.largest_}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The fitted transformer again."""
        made = cls()
        made.largest_ = int(state["largest"])
        return made


class ConstantFeatures(OneHotFeatures):
    """A single column of ones: only the structure speaks."""

    def fit_pieces(self, pieces: Iterable[GraphSet]) -> Self:
        """Nothing to learn."""
        return self

    @property
    def num_features(self) -> int:
        """1"""
        return 1

    def one_hot_index(self, graphs: GraphSet) -> Array:
        """[N, 1] zeros: the only column there is."""
        return np.zeros((graphs.num_nodes, 1), dtype=np.int32)

    def state(self) -> dict[str, Any]:
        """JSON values for :meth:`from_state`."""
        return {}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The transformer again."""
        return cls()


def _labels(graphs: GraphSet) -> Array:
    if graphs.node_labels is None:
        raise DataError(f"{graphs.name} has no node labels; choose other features, for example degree,fgsd")
    return graphs.node_labels


def _attributes(graphs: GraphSet) -> Array:
    if graphs.x is None:
        raise DataError(f"{graphs.name} has no node attributes; choose other features")
    return graphs.x
