"""A support vector machine on Gram matrices; kernel and C are chosen by cross-validation inside the training graphs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from gcaps.data.arrays import Array, Floats, Ints

MAX_ITERATIONS = 200_000
"""Steps of LIBSVM's solver; where large C and near-constant kernels need more, the solution found so far counts."""


class Choice(NamedTuple):
    """What inner cross-validation chose."""

    kernel: int
    """Which of the Gram matrices."""
    C: float
    accuracy: float
    """Mean over the inner folds."""


def fit_svm(K: Floats, y: Array, C: float) -> SVC:
    """LIBSVM on a Gram matrix [n, n]."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = SVC(C=C, kernel="precomputed", cache_size=500, max_iter=MAX_ITERATIONS, break_ties=True)
        return machine.fit(K, y)


def choose(grams: Iterable[Floats], y: Array, C: Sequence[float], splits: Sequence[tuple[Ints, Ints]]) -> Choice:
    """The kernel and the C with the best mean accuracy over the splits; ties go to the first kernel and smallest C.

    Args:
        grams: for each kernel the Gram matrix [n, n] of the training graphs.
        y: [n] their classes.
        C: penalties to choose from.
        splits: (learn, check) positions among the training graphs.
    """
    best = Choice(0, min(C), -1.0)
    for number, K in enumerate(grams):
        accuracy = np.zeros((len(splits), len(C)))
        for s, (learn, check) in enumerate(splits):
            inside, across = K[np.ix_(learn, learn)], K[np.ix_(check, learn)]
            for c, penalty in enumerate(sorted(C)):
                accuracy[s, c] = np.mean(fit_svm(inside, y[learn], penalty).predict(across) == y[check])
        mean = accuracy.mean(axis=0)
        if mean.max() > best.accuracy:
            best = Choice(number, sorted(C)[int(mean.argmax())], float(mean.max()))
    return best


def inner_splits(y: Array, folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Stratified folds of the training graphs, fewer where a class has fewer graphs; at least two."""
    smallest = int(np.bincount(y)[np.unique(y)].min())
    parts = StratifiedKFold(max(2, min(folds, smallest)), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class of a single graph
        return [(learn, check) for learn, check in parts.split(np.zeros(len(y)), y)]


def class_scores(machine: SVC, K: Floats, classes: int) -> Floats:
    """[m, classes] decision values squeezed to rows that sum to one: not probabilities, but ordered like them.

    Two classes: the logistic function of the decision value. More: softmax of the one-against-rest values. A class
    without training graphs has 0. The largest of a row is the predicted class.
    """
    value = machine.decision_function(K)
    share = np.stack([expit(-value), expit(value)], axis=1) if value.ndim == 1 else softmax(value, axis=1)
    out = np.zeros((len(K), classes))
    out[:, machine.classes_] = share
    return out
