"""Training data of an estimator: graphs with targets, their encoding, and weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gcaps.config import ClassConfig
from gcaps.data.arrays import LARGEST, Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Target, Task, has_target, target_array
from gcaps.errors import ConfigError, DataError


class Problem(NamedTuple):
    """Training data of an estimator."""

    target: Target
    train: Ints
    """Positions of the training graphs, without those of unknown target or of weight 0."""
    y: Array
    """Encoded targets of all graphs of the set (:meth:`gcaps.data.targets.Target.encode`)."""
    weight: Floats | None
    """[G] or [G, T] weights of all graphs, those of their classes included; None: all count the same."""

    def training_weight(self) -> Floats | None:
        """Return the weights of the training graphs."""
        return None if self.weight is None else self.weight[self.train]


def posed(
    graphs: GraphSet, train: Ints, task_of: Callable[[Array], Task], class_weight: Any, sample_weight: Floats | None
) -> Problem:
    """Return what is fitted to the training graphs that have a target and a weight.

    Args:
        graphs: the whole set.
        train: positions of the training graphs.
        task_of: tells the task from the targets.
        class_weight: as the caller gave it.
        sample_weight: [G] weights of all graphs; None: all count the same.

    Raises:
        DataError: fewer than two training graphs are left.
        ConfigError: ``class_weight`` is none, or names a class that there is not.
    """
    train, y = np.asarray(train, np.int64), targets_of(graphs)
    kept = has_target(y[train])
    if sample_weight is not None:
        kept &= sample_weight[train] > 0
    if not kept.any():
        raise DataError("no training graph has a target", graphs.name)
    train = train[kept]
    if len(train) < 2:
        raise DataError("has one training graph; at least two are needed", graphs.name)
    target = Target.of(y[train], task_of(y), graphs.target_names, graphs.name)
    encoded, by_class = target.encode(y), ClassConfig.parse({"class_weight": class_weight}).class_weight
    return Problem(target, train, encoded, _with_class_weight(by_class, target, encoded, train, sample_weight))


def targets_of(graphs: GraphSet) -> Array:
    """Return ``graphs.y``.

    Raises:
        DataError: there is none.
    """
    if graphs.y is None:
        raise DataError(f"{graphs.name} has no targets; pass y, or read a source that has them")
    return graphs.y


def with_targets(graphs: GraphSet, y: Any) -> GraphSet:
    """Return graphs with targets y, where some are given."""
    if y is None:
        return graphs
    names = tuple(str(name) for name in getattr(y, "columns", ()))
    return replace(graphs, y=given_targets(y, len(graphs)), target_names=names)


def given_targets(y: Any, graphs: int) -> Array:
    """Return targets [G] or [G, T] that a caller gave as an array of strings, booleans, integers or floats.

    Raises:
        DataError: there is not a row for each graph, or no value at all.
    """
    values = np.asarray(y)
    if values.ndim not in (1, 2) or len(values) != graphs:
        raise DataError(f"y must hold {graphs} targets, one row for each graph; given {values.dtype} {values.shape}")
    if values.dtype.kind in "Ubf":
        return values if values.dtype.kind != "f" else values.astype(np.float64)
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    found = target_array([row.tolist() if isinstance(row, np.ndarray) else row for row in values])
    if found is None:
        raise DataError("y contains no value: all targets are missing")
    return found


def sample_weights(sample_weight: Any, graphs: int) -> Floats | None:
    """Return weights [G] that a caller gave.

    Raises:
        DataError: there is not one for each graph, or they are negative, not finite, or all 0.
    """
    if sample_weight is None:
        return None
    values = np.asarray(sample_weight, dtype=np.float64)
    with np.errstate(over="ignore"):
        total = values.sum()
    if values.shape != (graphs,) or not (np.isfinite(values) & (values >= 0)).all() or not 0 < total <= LARGEST:
        raise DataError(
            f"sample_weight must hold {graphs} finite weights of 0 or more, not all of them 0 and not beyond float32"
        )
    return values


def _with_class_weight(given: Any, target: Target, y: Array, train: Ints, weight: Floats | None) -> Floats | None:
    """Return weights [G] or [G, T] of all graphs times those of their classes; None if all are 1."""
    if given is None or target.classes is None:
        return weight
    names = [str(value) for value in target.classes.tolist()]
    table = y[:, None] if y.ndim == 1 else y
    known = table >= 0  # −1 and NaN are no class
    codes = np.where(known, table, 0).astype(np.int64)
    factors = np.ones((table.shape[1], len(names)))
    for t in range(table.shape[1]):
        if given == "balanced":
            own = train[known[train, t]]
            counts = np.bincount(codes[own, t], minlength=len(names))
            factors[t] = counts.sum() / (len(names) * np.maximum(counts, 1))
        else:
            factors[t] = [given.get(name, 1.0) for name in names]
    if given != "balanced" and (unknown := set(given) - set(names)):
        raise ConfigError(f"class_weight: there is no class {min(unknown)}; there are {', '.join(names)}")
    found = factors[np.arange(table.shape[1]), codes]
    found = found[:, 0] if y.ndim == 1 else found
    if weight is None:
        return found
    return found * (weight if y.ndim == 1 else weight[:, None])
