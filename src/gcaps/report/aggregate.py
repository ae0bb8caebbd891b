"""What a report says about a result beyond what the result says itself: baseline, confusion, confident mistakes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcaps.evaluation.result import FoldResult, Result


@dataclass(frozen=True)
class Baseline:
    """The rule that looks at no graph: always answer the most frequent class."""

    name: str
    """That class, as the source calls it."""
    share: float
    """How often the answer is right."""


@dataclass(frozen=True)
class Mistake:
    """A tested graph that was put into the wrong class."""

    graph: int
    """Counted from 0 in the set's order."""
    fold: int
    truth: str
    prediction: str
    probability: float
    """What the model gave the class it chose."""
    truth_probability: float
    """What it gave the right one."""


def class_names(result: Result) -> list[str]:
    """What each class is called in the source, by number; a class that has no name there keeps its number."""
    names = [str(name) for name in result.data.get("classes", [])]
    seen = [number for fold in result.folds for number in (*fold.labels, *fold.predictions)]
    return names + [str(number) for number in range(len(names), max(seen, default=-1) + 1)]


def baseline(result: Result) -> Baseline:
    """The accuracy of the most frequent class, from the labels of the tested graphs."""
    counts = Counter(label for fold in result.folds for label in fold.labels)
    number, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return Baseline(class_names(result)[number], count / counts.total())


def confusion(result: Result) -> NDArray[np.int64]:
    """[true class, predicted class] how many tested graphs, all folds together, under the honest rule."""
    return confusion_of(result.folds, len(class_names(result)))


def confusion_of(folds: Iterable[FoldResult], classes: int) -> NDArray[np.int64]:
    """[true class, predicted class] how many of the folds' tested graphs."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    for fold in folds:
        np.add.at(counts, (fold.labels, fold.predictions), 1)
    return counts


def has_scores(result: Result) -> bool:
    """Whether the method gave probabilities with its answers."""
    return all(len(fold.scores) == len(fold.labels) and all(fold.scores) for fold in result.folds)


def winners(result: Result) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """For every tested graph, the probability of the class the model chose and whether that class is right."""
    pairs = [
        (scores[prediction], prediction == label)
        for fold in result.folds
        for scores, prediction, label in zip(fold.scores, fold.predictions, fold.labels, strict=True)
    ]
    probabilities = np.array([probability for probability, _ in pairs], dtype=np.float64)
    return probabilities, np.array([right for _, right in pairs], dtype=np.bool_)


def confident_mistakes(result: Result, limit: int = 10) -> list[Mistake]:
    """The wrong answers that the model was surest of: where to look for hard graphs and for wrong labels."""
    names = class_names(result)
    mistakes = [
        Mistake(graph, fold.fold, names[label], names[prediction], scores[prediction], scores[label])
        for fold in result.folds
        for graph, label, prediction, scores in zip(fold.test, fold.labels, fold.predictions, fold.scores, strict=True)
        if label != prediction
    ]
    return sorted(mistakes, key=lambda m: (-m.probability, m.graph, m.fold))[:limit]


def percent(mean: float, std: float | None = None, digits: int = 2) -> str:
    """A share of one as ``66.01`` or, with its standard deviation, as ``66.01 ± 5.91``."""
    return f"{100 * mean:.{digits}f}" + ("" if std is None else f" ± {100 * std:.{digits}f}")


def points(difference: float, digits: int = 2) -> str:
    """A difference of two shares in percentage points, with its sign; ``0.00`` has none."""
    text = f"{100 * difference:+.{digits}f}".replace("-", "−")
    return text[1:] if float(text[1:]) == 0 else text


def shown(value: Any) -> str:
    """A setting as one would type it."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ",".join(shown(item) for item in value)
    return json.dumps(value, ensure_ascii=False, default=str)
