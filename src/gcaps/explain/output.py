"""The output of a model that is explained: a column of its scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Floats, Ints
from gcaps.data.targets import Target
from gcaps.errors import ConfigError


class Output(NamedTuple):
    """One column of the scores for each graph."""

    column: Ints
    """[G] column of :meth:`gcaps.estimators.base.GraphEstimator.scores`."""
    target: int
    """Number of the target."""
    words: str
    """Its description: ``"probability of class 1"``, or the name of a target."""
    is_probability: bool

    def of(self, scores: Floats) -> Floats:
        """Return the explained output [G] from scores [G, ·]."""
        chosen: Floats = scores[np.arange(len(scores)), self.column]
        return chosen


def explained_output(target: Target, scores: Floats, name: str | None = None) -> Output:
    """Choose the output that is explained.

    The value in regression; the probability of the second of two classes; of more classes, that of the predicted one.

    Args:
        target: what the model predicts.
        scores: [G, ·] of the graphs as they are.
        name: one of several targets; by default the first.

    Raises:
        ConfigError: the model has no target of that name.
    """
    if name is not None and name not in target.names:
        raise ConfigError(f"the model has no target {name!r}; it predicts {', '.join(target.names)}")
    number = 0 if name is None else target.names.index(name)
    same = np.zeros(len(scores), dtype=np.int64)
    if target.task != "classification":
        words = target.names[number]
        if target.classes is not None:
            words = f"probability that {words} is {target.classes[1]}"
        return Output(same + number, number, words, target.classes is not None)
    assert target.classes is not None
    if len(target.classes) == 2:
        return Output(same + 1, 0, f"probability of class {target.classes[1]}", True)
    return Output(scores.argmax(axis=1).astype(np.int64), 0, "probability of the predicted class", True)
