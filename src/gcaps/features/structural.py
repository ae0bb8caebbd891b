"""Node features that need no distance: labels, attributes, degree, a constant. Each is fitted on training graphs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gcaps.data.arrays import Array, Floats
from gcaps.data.graphset import GraphSet
from gcaps.errors import DataError

MAX_DEGREE = 127
"""Degrees above this share one column."""


def one_hot(position: Array, width: int) -> Floats:
    """[n, width] with a one at each position; a negative position gives a row of zeros."""
    out = np.zeros((len(position), width), dtype=np.float32)
    known = np.flatnonzero(position >= 0)
    out[known, position[known]] = 1
    return out


class LabelFeatures:
    """One column for each node label of the training graphs; a label never seen there gives zeros."""

    def fit(self, graphs: GraphSet) -> Self:
        """Collect the labels."""
        self.values_ = [np.unique(column) for column in _labels(graphs).T]
        return self

    def transform(self, graphs: GraphSet) -> Floats:
        """[N, labels]"""
        labels = _labels(graphs)
        if labels.shape[1] != len(self.values_):
            raise DataError(f"{graphs.name} has {labels.shape[1]} columns of node labels, expected {len(self.values_)}")
        parts = []
        for column, values in zip(labels.T, self.values_, strict=True):
            at = np.minimum(np.searchsorted(values, column), len(values) - 1)
            parts.append(one_hot(np.where(values[at] == column, at, -1), len(values)))
        return np.concatenate(parts, axis=1)

    def state(self) -> dict[str, Any]:
        """JSON values for :meth:`from_state`."""
        return {"values": [values.tolist() for values in self.values_]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The fitted transformer again."""
        made = cls()
        made.values_ = [np.asarray(values, dtype=np.int64) for values in state["values"]]
        return made


class AttributeFeatures:
    """Continuous attributes, standardised by mean and deviation of the training nodes; 0/1 columns stay as they are."""

    def fit(self, graphs: GraphSet) -> Self:
        """Measure mean and deviation."""
        values = _attributes(graphs).astype(np.float64)
        binary = ((values == 0) | (values == 1)).all(axis=0)
        deviation = values.std(axis=0)
        self.mean_ = np.where(binary, 0.0, values.mean(axis=0))
        self.deviation_ = np.where(binary | (deviation == 0), 1.0, deviation)
        return self

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


class DegreeFeatures:
    """One column for each degree 0..m, m the largest of the training graphs (at most 127); larger ones count as m."""

    def fit(self, graphs: GraphSet) -> Self:
        """Take the largest degree."""
        self.largest_ = min(int(graphs.degrees.max(initial=0)), MAX_DEGREE)
        return self

    def transform(self, graphs: GraphSet) -> Floats:
        """[N, m + 1]"""
        return one_hot(np.minimum(graphs.degrees, self.largest_), self.largest_ + 1)

    def state(self) -> dict[str, Any]:
        """JSON values for :meth:`from_state`."""
        return {"largest": self.largest_}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The fitted transformer again."""
        made = cls()
        made.largest_ = int(state["largest"])
        return made


class ConstantFeatures:
    """A single column of ones: only the structure speaks."""

    def fit(self, graphs: GraphSet) -> Self:
        """Nothing to learn."""
        return self

    def transform(self, graphs: GraphSet) -> Floats:
        """[N, 1]"""
        return np.ones((graphs.num_nodes, 1), dtype=np.float32)

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
    if graphs.node_attributes is None:
        raise DataError(f"{graphs.name} has no node attributes; choose other features")
    return graphs.node_attributes
