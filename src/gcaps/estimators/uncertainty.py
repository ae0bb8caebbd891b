"""Uncertainty of a model: calibrated probabilities, conformal sets and intervals, and its applicability domain.

It is measured on graphs that the model was not fitted on, and saved with any estimator as small arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from pydantic import Field

from gcaps.data.arrays import Array, Floats
from gcaps.data.targets import Target
from gcaps.documents import Count, Page, validated
from gcaps.errors import ConfigError, DataError, ModelError
from gcaps.estimators.conformal import (
    Nonconformity,
    interval_widths,
    nonconformity,
    prediction_sets,
    require_coverage,
    thresholds,
)
from gcaps.estimators.novelty import Domain
from gcaps.estimators.stacking import Calibration, Truth, calibrate
from gcaps.kernels.base import State, require_array

How = Literal["cross", "split"]
"""Source of the scores: inner folds of the training graphs, or graphs that were held out of the fit."""
HOWS: tuple[How, ...] = get_args(How)
Slope = Annotated[float, Field(gt=0, allow_inf_nan=False)]
DAMAGED = "the calibration of the model is damaged"


class UncertaintyState(Page):
    """JSON values of an :class:`Uncertainty`."""

    how: How
    graphs: Count
    spread: bool
    slope: Annotated[list[Slope], Field(min_length=1, max_length=1 << 20)]
    offset: Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=1, max_length=1 << 20)]
    domain: dict[str, Any]


@dataclass(frozen=True)
class Uncertainty:
    """Calibration of a model, nonconformity scores, and the graphs that new ones are compared with."""

    target: Target
    how: How
    graphs: int
    """Number of graphs that it was measured on."""
    calibration: Calibration
    """A temperature for classes; slope and offset for each of several binary targets."""
    scores: Nonconformity
    spread: bool
    """Whether errors are divided by the spread of an ensemble's members."""
    domain: Domain

    @classmethod
    def measured(
        cls, target: Target, how: How, scores: Floats, y: Array, spread: Floats | None, domain: Domain
    ) -> Self:
        """Measure the errors of predictions.

        Args:
            target: what is predicted.
            how: source of the predictions.
            scores: [n, ·] probabilities, or standardised values.
            y: [n] or [n, T] encoded targets.
            spread: [n, T] standard deviation of the standardised values of an ensemble, if any.
            domain: applicability domain.
        """
        found = nonconformity(target.task, scores, y, spread)
        if not len(found.values):
            raise DataError("no graph to calibrate on has a target")
        own = calibrate(Truth(target.task, y), scores)
        return cls(target, how, len(y), own, found, spread is not None, domain)

    def probabilities(self, scores: Floats) -> Floats:
        """Return calibrated probabilities [n, C] or [n, T]."""
        return self.calibration.apply(self.target.task, scores)

    def sets(self, scores: Floats, coverage: float, *, by_class: bool = False) -> Array:
        """Return which classes are in each graph's set: [n, C], or [n, T, 2] for several binary targets."""
        target = self.target
        if target.classes is None:
            raise ConfigError("sets are of classes; a regressor has intervals")
        limits = thresholds(self.scores, coverage, len(target.names), len(target.classes), by_class=by_class)
        return prediction_sets(target.task, scores, limits)

    def intervals(self, values: Floats, coverage: float, spread: Floats | None) -> Floats:
        """Return the interval [n, T, 2] of each value.

        Args:
            values: [n, T] in the units of the target.
            coverage: probability that an interval contains the true value.
            spread: [n, T] standard deviation over the members of an ensemble, in the same units, if any.
        """
        target = self.target
        if target.scale is None:
            raise ConfigError("intervals are of values; a classifier has sets")
        require_coverage(coverage)
        limits = thresholds(self.scores, coverage, len(target.names), 1)
        scaled = None
        if self.spread:
            scaled = np.zeros(values.shape) if spread is None else spread / target.scale
        half = interval_widths(limits, len(values), scaled) * target.scale
        return np.stack([values - half, values + half], axis=2)

    def state(self) -> State:
        """Return arrays and JSON values."""
        arrays, values = self.domain.state()
        found = self.scores
        own = {"values": found.values, "columns": found.columns, "classes": found.classes}
        return {**{f"domain.{name}": array for name, array in arrays.items()}, **own}, {
            "how": self.how,
            "graphs": self.graphs,
            "spread": self.spread,
            **self.calibration.to_dict(),
            "domain": values,
        }

    @classmethod
    def restored(cls, target: Target, arrays: dict[str, Array], values: Any) -> Self:
        """Restore the uncertainty from the values that :meth:`state` returned.

        Raises:
            ModelError: it is damaged, or belongs to other targets.
        """
        found = validated(UncertaintyState, values, DAMAGED, ModelError)
        errors = require_array(arrays, "values", "f", (None,))
        columns, classes = (require_array(arrays, name, "i", (len(errors),)) for name in ("columns", "classes"))
        width = len(target.names) if target.task == "multilabel" else 1
        if {len(found.slope), len(found.offset)} - {1, width} or not len(errors):
            raise ModelError(f"{DAMAGED} (it is of another number of targets)")
        if (errors < 0).any() or (columns < 0).any() or (columns >= len(target.names)).any():
            raise ModelError(f"{DAMAGED} (its scores are of targets that there are not)")
        part = {name.removeprefix("domain."): array for name, array in arrays.items() if name.startswith("domain.")}
        calibration = Calibration(np.asarray(found.slope), np.asarray(found.offset))
        scores = Nonconformity(errors.astype(np.float64), columns.astype(np.int64), classes.astype(np.int64))
        domain = Domain.restored(part, found.domain)
        return cls(target, found.how, found.graphs, calibration, scores, found.spread, domain)
