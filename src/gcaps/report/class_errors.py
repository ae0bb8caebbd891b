"""Errors of classifiers: confusion matrices, confident mistakes, calibration, recall of each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Ints
from gcaps.evaluation.diagnostics import Calibration, calibration
from gcaps.evaluation.result import FoldResult
from gcaps.report import figures
from gcaps.report.study import Entry, MethodName

MAX_MISTAKES = 10
"""Number of confident mistakes that are listed."""
MAX_CLASSES = 10
"""Confusion matrices of more classes are not shown."""


@dataclass(frozen=True)
class Mistake:
    """A test graph that was misclassified."""

    graph: int
    fold: int
    truth: str
    prediction: str
    probability: float
    """Probability of the predicted class."""
    truth_probability: float
    """Probability of the true class."""


@dataclass(frozen=True)
class MethodErrors:
    """Errors of one method, all folds together."""

    name: MethodName
    wrong: int
    tested: int
    confusion: list[list[tuple[int, float]]] | None
    """[true][predicted] number of graphs and share of the true class; None if there are too many classes."""
    calibration: Calibration | None
    """None if the method gives no scores."""
    reliability: Markup | None
    histogram: Markup | None
    """Only on the page of a single method."""
    mistakes: list[Mistake]
    """Wrong predictions with the highest probability."""


@dataclass(frozen=True)
class ClassRow:
    """A class, its number of tested graphs, and the share of them that each method classifies correctly."""

    name: str
    graphs: int
    share: float
    recall: list[float | None]


def confusion(folds: Iterable[FoldResult], classes: int) -> Ints:
    """Return [true class, predicted class], the number of test graphs of all folds."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    for fold in folds:
        np.add.at(counts, (fold.y, fold.predictions), 1)
    return counts


def confident_mistakes(folds: Iterable[FoldResult], classes: Sequence[str]) -> list[Mistake]:
    """Return the wrong predictions with the highest probability, each graph once."""
    found: dict[int, Mistake] = {}
    for fold in folds:
        for graph, true, guess, row in zip(fold.test, fold.y, fold.predictions, fold.scores, strict=True):
            if true != guess and (graph not in found or row[guess] > found[graph].probability):
                found[graph] = Mistake(graph, fold.fold, classes[true], classes[guess], row[guess], row[true])
    return sorted(found.values(), key=lambda m: (-m.probability, m.graph))[:MAX_MISTAKES]


def class_errors(entry: Entry, classes: list[str], *, detailed: bool) -> MethodErrors:
    """Collect the errors of a method, with larger charts where ``detailed``."""
    counts = confusion(entry.folds, len(classes))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    found = calibration(entry.folds)
    table = [list(zip(row.tolist(), share.tolist(), strict=True)) for row, share in zip(counts, shares, strict=True)]
    return MethodErrors(
        name=entry.name,
        wrong=int(counts.sum() - counts.trace()),
        tested=int(counts.sum()),
        confusion=table if len(classes) <= MAX_CLASSES else None,
        calibration=found,
        reliability=None if found is None else figures.reliability_plot(entry, found, 1.5 if detailed else 1.0),
        histogram=figures.probability_histogram(entry, len(classes)) if found is not None and detailed else None,
        mistakes=[] if found is None else confident_mistakes(entry.folds, classes),
    )


def class_rows(entries: list[Entry], truth: Mapping[int, int], classes: list[str]) -> list[ClassRow]:
    """Return a row for each class with the recall of every method."""
    counts = Counter(truth.values())
    tables = [confusion(entry.folds, len(classes)) for entry in entries]
    recalls = [table.diagonal() / np.maximum(table.sum(axis=1), 1) for table in tables]
    return [
        ClassRow(
            name=name,
            graphs=counts[number],
            share=counts[number] / max(counts.total(), 1),
            recall=[
                float(recall[number]) if table[number].sum() else None
                for table, recall in zip(tables, recalls, strict=True)
            ],
        )
        for number, name in enumerate(classes)
    ]
