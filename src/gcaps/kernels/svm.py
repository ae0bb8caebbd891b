"""A support vector machine on Gram matrices; kernel and C are chosen by cross-validation inside the training graphs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax
from sklearn.model_selection import StratifiedKFold

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.kernels.smo import cut, intercept, solve

TOLERANCE = 1e-3
"""How far the conditions of optimality may be violated: LIBSVM's default."""
MAX_STEPS = 200_000
"""Steps of the solver; where large C and near-constant kernels need more, the solution found so far counts."""


@dataclass(frozen=True)
class SVM:
    """A machine for each pair of classes; scikit-learn's ``SVC(kernel="precomputed")``, from its own solver."""

    classes_: Ints
    """[c] the classes of the training graphs."""
    pairs: Ints
    """[p, 2] positions of two classes each."""
    coefficients: Floats
    """[p, n] β of each pair's machine, 0 for graphs of other classes."""
    intercepts: Floats
    """[p]"""

    def pair_values(self, K: Floats) -> Floats:
        """[m, p] what each pair's machine says of new graphs, above 0 for the second class; K [m, n]."""
        value: Floats = K @ self.coefficients.T + self.intercepts
        return value

    def decision_function(self, K: Floats) -> Floats:
        """[m] for two classes, above 0 for the second; else [m, c] votes of the pairs, ties broken by their values.

        Args:
            K: [m, n] new graphs against the training graphs.
        """
        value = self.pair_values(K)
        if len(self.classes_) == 2:
            return value[:, 0]
        first, second = (np.eye(len(self.classes_))[self.pairs[:, end]] for end in (0, 1))
        votes: Floats = np.where(value > 0, 1.0, 0.0) @ second + np.where(value > 0, 0.0, 1.0) @ first
        confidence = value @ (second - first)
        votes += confidence / (3 * (np.abs(confidence) + 1))  # less than half a vote
        return votes

    def predict(self, K: Floats) -> Ints:
        """[m] classes."""
        value = self.decision_function(K)
        chosen: Ints = self.classes_[(value > 0).astype(int) if value.ndim == 1 else value.argmax(axis=1)]
        return chosen


def svm_path(K: Floats, y: Array, C: Iterable[float]) -> Iterator[SVM]:
    """The machines of ascending penalties on a Gram matrix [n, n]; each begins at the solution of the one before."""
    if not np.isfinite(K).all():
        raise ValueError("a Gram matrix must be finite")
    classes = np.unique(y)
    pairs = list(combinations(range(len(classes)), 2))
    members = [np.flatnonzero((y == classes[a]) | (y == classes[b])) for a, b in pairs]
    grams = [np.asarray(K if len(own) == len(y) else cut(K, own, own), np.float32, order="C") for own in members]
    signs = [np.where(y[own] == classes[b], 1.0, -1.0) for own, (_, b) in zip(members, pairs, strict=True)]
    states = [(np.zeros(len(sign)), -sign) for sign in signs]
    for penalty in C:
        coefficients, intercepts = np.zeros((len(pairs), len(y))), np.zeros(len(pairs))
        for p, (own, gram, sign, (beta, g)) in enumerate(zip(members, grams, signs, states, strict=True)):
            solve(gram, sign, float(penalty), TOLERANCE, MAX_STEPS, beta, g)
            coefficients[p, own], intercepts[p] = beta, intercept(sign, float(penalty), beta, g)
        yield SVM(classes, np.array(pairs, dtype=np.int64).reshape(-1, 2), coefficients, intercepts)


def fit_svm(K: Floats, y: Array, C: float) -> SVM:
    """The machine on a Gram matrix [n, n]."""
    return next(svm_path(K, y, [C]))


class Choice(NamedTuple):
    """What inner cross-validation chose."""

    kernel: int
    """Which of the Gram matrices."""
    C: float
    accuracy: float
    """Mean over the inner folds."""


def choose(grams: Iterable[Floats], y: Array, C: Sequence[float], splits: Sequence[tuple[Ints, Ints]]) -> Choice:
    """The kernel and the C with the best mean accuracy over the splits; ties go to the first kernel and smallest C.

    Args:
        grams: for each kernel the Gram matrix [n, n] of the training graphs.
        y: [n] their classes.
        C: penalties to choose from.
        splits: (learn, check) positions among the training graphs; without any the first kernel and smallest C are
            taken.
    """
    best = Choice(0, min(C), -1.0)
    if not splits:
        return best._replace(accuracy=0.0)
    for number, gram in enumerate(grams):
        K = gram.astype(np.float32)  # what the solver takes, and half as much to cut
        accuracy = np.zeros((len(splits), len(C)))
        for s, (learn, check) in enumerate(splits):
            inside, across = cut(K, learn, learn), cut(K, check, learn)
            for c, machine in enumerate(svm_path(inside, y[learn], sorted(C))):
                accuracy[s, c] = np.mean(machine.predict(across) == y[check])
        mean = accuracy.mean(axis=0)
        if mean.max() > best.accuracy:
            best = Choice(number, sorted(C)[int(mean.argmax())], float(mean.max()))
    return best


def inner_splits(y: Array, folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Stratified folds of the training graphs, fewer where a class has fewer graphs; at least two.

    None where no class has two graphs.
    """
    counts = np.bincount(y)[np.unique(y)]
    if counts.max() < 2:
        return []
    smallest = int(counts.min())
    parts = StratifiedKFold(max(2, min(folds, smallest)), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class of a single graph
        return [(learn, check) for learn, check in parts.split(np.zeros(len(y)), y)]


def class_scores(machine: SVM, K: Floats, classes: int) -> Floats:
    """[m, classes] decision values squeezed to rows that sum to one: not probabilities, but ordered like them.

    Two classes: the logistic function of the decision value. More: softmax of the one-against-rest values. A class
    without training graphs has 0. The largest of a row is the predicted class.
    """
    value = machine.decision_function(K)
    share = np.stack([expit(-value), expit(value)], axis=1) if value.ndim == 1 else softmax(value, axis=1)
    out = np.zeros((len(K), classes))
    out[:, machine.classes_] = share
    return out
