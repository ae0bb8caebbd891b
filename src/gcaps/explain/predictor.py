"""Models that can be explained: estimators of gcaps, and those of users with predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_regressor

from gcaps.data.arrays import Floats
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Target
from gcaps.errors import ConfigError
from gcaps.estimators.base import GraphEstimator


class OwnPredictor:
    """An estimator of the user, with ``predict_proba`` or, for regression, ``predict``, which takes a GraphSet.

    Args:
        model: fitted.

    Raises:
        ConfigError: it has neither.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.describes = model, type(model).__name__
        self.regression = bool(is_regressor(model)) if hasattr(model, "__sklearn_tags__") else False
        if not self.regression and not hasattr(model, "predict_proba"):
            raise ConfigError(
                f"{type(model).__name__} cannot be explained: it has no predict_proba, and is no estimator of gcaps"
            )

    def loaded(self, X: Any) -> GraphSet:
        """Return graphs to predict."""
        return load(X, labelled=False)

    def scores(self, X: Any) -> Floats:
        """Return probabilities [G, C], or values [G, T]."""
        predict = self.model.predict if self.regression else self.model.predict_proba
        found = np.asarray(predict(X), np.float64)
        found = found[:, None] if found.ndim == 1 else found
        if found.ndim != 2 or len(found) != len(X) or not np.isfinite(found).all():
            raise ConfigError(f"the predictions of {self.describes} are of shape {found.shape}, or not all finite")
        return found

    def target_of(self, scores: Floats) -> Target:
        """Return the target that the scores are predictions of."""
        columns = scores.shape[1]
        if self.regression:
            names = ("value",) if columns == 1 else tuple(f"value {i + 1}" for i in range(columns))
            return Target("regression", names, None, np.zeros(columns), np.ones(columns), columns=columns > 1)
        if columns < 2:
            raise ConfigError(f"predict_proba of {self.describes} has one column; it needs one for each class")
        classes = np.asarray(getattr(self.model, "classes_", np.arange(columns)))
        return Target("classification", ("y",), classes if len(classes) == columns else np.arange(columns))


Explained = GraphEstimator | OwnPredictor


def predictor_of(model: Any) -> Explained:
    """Return an estimator of gcaps as it is; wrap any other."""
    return model if isinstance(model, GraphEstimator) else OwnPredictor(model)


def target_of(model: Explained, scores: Floats) -> Target:
    """Return the target of a model."""
    return model.target_ if isinstance(model, GraphEstimator) else model.target_of(scores)
