"""Support vector classifier on Gram matrices; kernel and C are chosen by cross-validation on the training graphs.

The solver is LIBSVM's algorithm (Fan, Chen and Lin, 2005: second-order working set selection, shrinking and the same
stopping criterion), compiled, on a Gram matrix in float32. LIBSVM copies the matrix and reads each entry through a
function call, which dominates its time; here a step is two passes over rows of the matrix, and the solution for one C
is the starting point for the next larger one. On Weisfeiler-Lehman Gram matrices, choosing C from seven values in five
folds is 7 times faster than with scikit-learn's SVC on PTC (344 graphs), 3.5 times on PROTEINS (1,113) and 2.5 times on
NCI1 (4,110), with the same predictions (``benchmarks/svm.py``).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np
from numba import njit
from scipy.special import expit, softmax
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from gcaps.data.arrays import LARGEST, Array, Floats, Ints
from gcaps.errors import DataError

TOLERANCE = 1e-3
"""Largest violation of the optimality conditions at which the solver stops: LIBSVM's default."""
MAX_STEPS = 200_000
"""Steps after which the solver stops, as happens for large C and nearly constant kernels."""
_SHRINKING_PERIOD = 1000
"""Steps between two attempts to remove variables that will stay at 0 or at C."""
_LARGE = 1e30
"""Larger than any gradient."""


@dataclass(frozen=True)
class SVM:
    """Fitted one-vs-one classifiers: scikit-learn's ``SVC(kernel="precomputed")`` from the solver below."""

    classes_: Ints
    """[c] classes of the training graphs, ascending."""
    pairs: Ints
    """[p, 2] positions of the two classes of each classifier."""
    coefficients: Floats
    """[p, n] dual coefficients β of each classifier, 0 for graphs of other classes."""
    intercepts: Floats
    """[p]"""

    @property
    def support(self) -> Ints:
        """[s] positions of the support vectors: training graphs with a nonzero coefficient."""
        return np.flatnonzero((self.coefficients != 0).any(axis=0))

    def restrict(self, positions: Array) -> SVM:
        """Return the classifiers on the training graphs at ``positions`` alone, which must include ``support``."""
        own = np.ascontiguousarray(self.coefficients[:, positions])  # products round as those of a machine from disk
        return replace(self, coefficients=own)

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name."""
        return asdict(self)

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array]) -> SVM:
        """Restore what :meth:`arrays` returned; other names are ignored."""
        return SVM(**{field.name: arrays[field.name] for field in fields(SVM)})

    def pair_values(self, K: Floats) -> Floats:
        """Return the decision value of each classifier, [m, p], positive for the second class; K as below."""
        value: Floats = K @ self.coefficients.T + self.intercepts
        return value

    def decision_function(self, K: Floats) -> Floats:
        """Return decision values: [m], positive for the second class, or [m, c] for more than two classes.

        With more than two classes they are the votes of the one-vs-one classifiers, with ties broken by their decision
        values, as in scikit-learn.

        Args:
            K: [m, n] kernel values of graphs and training graphs.
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
        """Return the predicted classes, [m]."""
        value = self.decision_function(K)
        chosen: Ints = self.classes_[(value > 0).astype(int) if value.ndim == 1 else value.argmax(axis=1)]
        return chosen


def class_scores(svm: SVM, K: Floats, classes: int) -> Floats:
    """Return decision values as rows that sum to one, [m, classes]; their order is right, but they are uncalibrated.

    They are the logistic function of the decision value for two classes, the softmax of the decision values for more,
    and 0 for classes without training graphs. The largest value of a row belongs to the predicted class.

    Args:
        svm: fitted on classes that are numbers 0..classes−1.
        K: [m, n] kernel values of graphs and training graphs.
        classes: number of classes.
    """
    value = svm.decision_function(K)
    share = np.stack([expit(-value), expit(value)], axis=1) if value.ndim == 1 else softmax(value, axis=1)
    out = np.zeros((len(K), classes))
    out[:, svm.classes_] = share
    return out


def fit_svm(K: Floats, y: Array, C: float, weight: Floats | None = None) -> SVM:
    """Fit a classifier to the Gram matrix K [n, n], the classes y [n] and the graphs' weights [n]."""
    return next(svm_path(K, y, [C], weight))


def svm_path(K: Floats, y: Array, C: Iterable[float], weight: Floats | None = None) -> Iterator[SVM]:
    """Fit one classifier for each of several penalties in ascending order.

    Args:
        K: [n, n] Gram matrix.
        y: [n] classes.
        C: penalties; each solution is the starting point for the next.
        weight: [n] factors of the penalty of each graph; None: 1.
    """
    require_finite(K)
    classes = np.unique(y)
    pairs = list(combinations(range(len(classes)), 2))
    members = [np.flatnonzero((y == classes[a]) | (y == classes[b])) for a, b in pairs]
    grams = [np.asarray(K if len(own) == len(y) else cut(K, own, own), np.float32, order="C") for own in members]
    signs = [np.where(y[own] == classes[b], 1.0, -1.0) for own, (_, b) in zip(members, pairs, strict=True)]
    states = [(np.zeros(len(sign)), -sign) for sign in signs]
    scale = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
    for penalty in C:
        coefficients, intercepts = np.zeros((len(pairs), len(y))), np.zeros(len(pairs))
        for p, (own, gram, sign, (beta, g)) in enumerate(zip(members, grams, signs, states, strict=True)):
            limits = float(penalty) * scale[own]
            solve(gram, sign, sign, limits, TOLERANCE, MAX_STEPS, beta, g)
            coefficients[p, own], intercepts[p] = beta, intercept(sign, limits, beta, g)
        yield SVM(classes, np.array(pairs, dtype=np.int64).reshape(-1, 2), coefficients, intercepts)


def require_finite(K: Floats) -> None:
    """Raise a DataError for a Gram matrix with NaN, infinity or numbers that a float32 cannot hold."""
    if K.size and not max(-float(K.min()), float(K.max())) <= LARGEST:  # not true for NaN
        raise DataError(
            "a Gram matrix must be finite, in float32; normalize the kernel, or scale attributes and weights"
        )


class Choice(NamedTuple):
    """Result of :func:`choose`."""

    kernel: int
    """Position of the Gram matrix."""
    C: float
    score: float
    """Mean over the inner folds: accuracy, or what :class:`Fit` says of its task."""


class Fit(Protocol):
    """Fits to training graphs for several penalties in ascending order and scores them on validation graphs."""

    def __call__(self, K: Floats, across: Floats, train: Ints, validation: Ints, C: Sequence[float]) -> list[float]:
        """Return the score of each penalty.

        Args:
            K: [n, n] Gram matrix of the training graphs.
            across: [m, n] kernel values of validation and training graphs.
            train: [n] their positions.
            validation: [m] their positions.
            C: penalties, ascending.
        """
        ...


def accuracy_of(y: Array, weight: Floats | None = None) -> Fit:
    """Fit classifiers to the classes ``y`` and score their accuracy, weighted where graphs have weights."""

    def scores(K: Floats, across: Floats, train: Ints, validation: Ints, C: Sequence[float]) -> list[float]:
        own = None if weight is None else weight[train]
        counts = None if weight is None or not weight[validation].any() else weight[validation]
        path = svm_path(K, y[train], C, own)
        return [float(np.average(svm.predict(across) == y[validation], weights=counts)) for svm in path]

    return scores


def choose(grams: Iterable[Floats], fit: Fit, C: Sequence[float], splits: Sequence[tuple[Ints, Ints]]) -> Choice:
    """Return the kernel and the C with the best mean score; ties go to the first kernel and the smallest C.

    Args:
        grams: for each kernel the Gram matrix [n, n] of the training graphs.
        fit: such as :func:`accuracy_of` their classes.
        C: penalties to choose from.
        splits: (train, validation) positions among the training graphs; if empty, the first kernel and the smallest C
            are chosen.
    """
    best = Choice(0, min(C), -np.inf)
    if not splits:
        return best._replace(score=0.0)
    for number, gram in enumerate(grams):
        K = gram.astype(np.float32)  # the solver's type; half the memory traffic of float64
        scores = np.array(
            [fit(cut(K, train, train), cut(K, held, train), train, held, sorted(C)) for train, held in splits]
        )
        mean = scores.mean(axis=0)
        if mean.max() > best.score:
            best = Choice(number, sorted(C)[int(mean.argmax())], float(mean.max()))
    return best


def inner_splits(y: Array, folds: int, random_state: int, groups: Array | None = None) -> list[tuple[Ints, Ints]]:
    """Return stratified folds of the training graphs; empty if no class has two graphs.

    There are fewer folds, but at least two, if a class has fewer graphs than ``folds``. Groups [n] are kept whole.
    """
    counts = np.unique(y, return_counts=True)[1]
    if counts.max() < 2:
        return []
    number = max(2, min(folds, int(counts.min())))
    if groups is not None and (found := grouped_splits(y, groups, number, random_state)):
        return found
    parts = StratifiedKFold(number, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with a single graph
        return list(parts.split(np.zeros(len(y)), y))


def grouped_splits(y: Array, groups: Array, folds: int, random_state: int) -> list[tuple[Ints, Ints]]:
    """Return folds that keep groups [n] whole and have about the class proportions of ``y`` [n].

    A fold without which only one class would be left to learn from is left out. Empty where there is no usable fold,
    for example because all graphs are of one group.
    """
    number = min(folds, len(np.unique(groups)))
    if number < 2:
        return []
    parts = StratifiedGroupKFold(number, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer graphs than folds
        found = list(parts.split(np.zeros(len(y)), y, groups))
    least = min(2, len(np.unique(y)))
    return [(learn, check) for learn, check in found if len(check) and len(np.unique(y[learn])) >= least]


@njit(cache=True, nogil=True, error_model="numpy")
def solve(
    K: Array, sign: Array, target: Array, C: Array, tolerance: float, max_steps: int, beta: Array, g: Array
) -> int:
    """Minimise ½ βᵀKβ − βᵀt subject to Σ β = 0 and 0 ≤ s_i β_i ≤ C_i.

    Args:
        K: [n, n] float32.
        sign: [n] float64, s: +1 or −1.
        target: [n] float64, t; for classification the signs.
        C: [n] float64, penalty of each graph.
        tolerance: largest violation of the optimality conditions.
        max_steps: steps after which the solver stops.
        beta: [n] float64, a feasible starting point; overwritten with the solution.
        g: [n] float64, gradient Kβ − t at the starting point; overwritten with that at the solution.

    Returns:
        Number of steps.
    """
    steps, active, part = 0, np.arange(len(K)), K
    while True:
        b, gradient, own, limit = beta[active], g[active], sign[active], C[active]
        period = min(max_steps - steps, _SHRINKING_PERIOD)
        taken, least, most = _descend(part, own, limit, tolerance, period, b, gradient)
        for k in range(len(active)):
            beta[active[k]], g[active[k]] = b[k], gradient[k]
        steps += taken
        if most - least < tolerance or steps >= max_steps:
            if len(active) == len(K):
                return steps
            _update_gradient(K, target, beta, active, g)
            active, part = np.arange(len(K)), K
            if steps >= max_steps:
                return steps
            continue  # returns in the next pass if the removed variables are optimal too
        kept, count = np.empty(len(active), np.bool_), 0
        for k in range(len(active)):
            upper = limit[k] if own[k] > 0 else 0.0
            grows, shrinks = b[k] < upper, b[k] > upper - limit[k]
            kept[k] = (grows and gradient[k] < most) or (shrinks and gradient[k] > least)
            count += kept[k]
        if count < 0.8 * len(active):
            active = active[kept]
            part = cut(K, active, active)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz", "contract"})
def _descend(
    K: Array, sign: Array, C: Array, tolerance: float, max_steps: int, beta: Array, g: Array
) -> tuple[int, float, float]:
    """Take at most ``max_steps`` steps on two variables each.

    Returns:
        Number of steps, smallest gradient of a variable that may grow, largest gradient of one that may shrink.
    """
    n = len(K)
    diagonal, gains = np.empty(n, np.float32), np.empty(n, np.float32)
    grow, shrink = np.empty(n), np.empty(n)  # 0 if β may grow or shrink, else so large that it is never selected
    for k in range(n):
        upper = C[k] if sign[k] > 0 else 0.0
        diagonal[k] = K[k, k]
        grow[k] = 0.0 if beta[k] < upper else _LARGE
        shrink[k] = 0.0 if beta[k] > upper - C[k] else _LARGE
    tiny, zero = np.float32(1e-12), np.float32(0)
    step = 0
    while True:
        least, most = _LARGE, -_LARGE
        for k in range(n):
            least = min(least, g[k] + grow[k])
            most = max(most, g[k] - shrink[k])
        if step == max_steps or most - least < tolerance:
            return step, least, most
        step += 1
        i = 0
        while g[i] + grow[i] != least:
            i += 1
        row, own, best = K[i], diagonal[i], zero
        for k in range(n):
            gap = max(np.float32(g[k] - shrink[k] - least), zero)
            gains[k] = gap * gap / max(own + diagonal[k] - row[k] - row[k], tiny)
            best = max(best, gains[k])
        j = 0
        while gains[j] != best:
            j += 1
        upper, lower = (C[i] if sign[i] > 0 else 0.0), (0.0 if sign[j] > 0 else -C[j])
        room_i, room_j = upper - beta[i], beta[j] - lower
        curvature = max(np.float64(own) + diagonal[j] - 2 * np.float64(row[j]), 1e-12)
        t = min((g[j] - least) / curvature, room_i, room_j)
        beta[i] = upper if t == room_i else beta[i] + t
        beta[j] = lower if t == room_j else beta[j] - t
        grow[i], shrink[i] = _LARGE if t == room_i else 0.0, 0.0
        grow[j], shrink[j] = 0.0, _LARGE if t == room_j else 0.0
        other = K[j]
        for k in range(n):
            g[k] += t * (row[k] - other[k])


@njit(cache=True, nogil=True)
def _update_gradient(K: Array, target: Array, beta: Array, known: Array, g: Array) -> None:
    """Compute g = Kβ − t for all variables but the known ones."""
    missing = np.ones(len(K), np.bool_)
    for k in known:
        missing[k] = False
    support = np.flatnonzero(beta)
    for k in range(len(K)):
        if not missing[k]:
            continue
        row, total = K[k], 0.0
        for j in support:
            total += row[j] * beta[j]
        g[k] = total - target[k]


@njit(cache=True, nogil=True)
def cut(K: Array, rows: Array, columns: Array) -> Array:
    """Return ``K[np.ix_(rows, columns)]``, without an index matrix."""
    out = np.empty((len(rows), len(columns)), K.dtype)
    for a in range(len(rows)):
        row, to = K[rows[a]], out[a]
        for b in range(len(columns)):
            to[b] = row[columns[b]]
    return out


@njit(cache=True, nogil=True)
def intercept(sign: Array, C: Array, beta: Array, g: Array) -> float:
    """Return b of f(x) = Σ_j β_j k(x, x_j) + b.

    It is the mean of −g over 0 < s_i β_i < C_i, or the middle of the feasible interval if there are none.
    """
    total, free, least, most = 0.0, 0, -np.inf, np.inf
    for k in range(len(g)):
        upper = C[k] if sign[k] > 0 else 0.0
        if upper - C[k] < beta[k] < upper:
            total += g[k]
            free += 1
        elif beta[k] < upper:
            most = min(most, g[k])
        else:
            least = max(least, g[k])
    return -total / free if free else -(most + least) / 2
