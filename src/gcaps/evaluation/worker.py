"""The work of a cell: choose a configuration on the training graphs, fit it on all of them, predict the test graphs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Target, Task
from gcaps.errors import DivergenceError, GcapsError
from gcaps.estimators.base import GraphEstimator
from gcaps.estimators.registry import METHODS, estimator_class, make_estimator
from gcaps.evaluation.learning_curve import nested_fold
from gcaps.evaluation.metrics import compute_metrics, encoded_metrics, mean_over_targets, metric_for
from gcaps.evaluation.result import FoldResult, as_lists
from gcaps.evaluation.splits import Fold
from gcaps.training import Curves, Epoch
from gcaps.training.loop import inner_split
from gcaps.tuning.search import Tuning

INNER_SHARE = 0.1
"""Share of a fold's training graphs that chooses among configurations, where the splits file sets none aside."""

OnEpoch = Callable[[Epoch], None]


@dataclass(frozen=True)
class CellResult:
    """Result of computing a cell."""

    config: dict[str, Any]
    """The configuration that was tested."""
    result: FoldResult
    candidates: list[dict[str, Any]]
    embedding: list[list[float]] | None


class Worker:
    """A method with its configurations on one set, ready to run any fold.

    Args:
        prepared: the whole set, with what its folds share.
        method: a name in the registry, or None for ``estimator``.
        configs: the configurations to choose from.
        seed: decides training and the inner split.
        estimator: an estimator of the caller's; each fold fits a clone.
        task: what is predicted.
        metric: by which configurations are chosen.
        groups: [G] groups, such as scaffolds, that inner validation and inner folds keep whole.
        tuning: search the settings of each fold on its training graphs, beginning with the only configuration.
    """

    def __init__(
        self,
        prepared: PreparedSet,
        method: str | None,
        configs: Sequence[dict[str, Any]],
        seed: int,
        estimator: Any = None,
        task: Task = "classification",
        metric: str | None = None,
        groups: Ints | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self.prepared, self.graphs = prepared, prepared.graphs
        self.method, self.configs, self.seed, self.estimator = method, list(configs), seed, estimator
        assert self.graphs.y is not None
        self.y: Array = self.graphs.y
        # classes and shape of all graphs, for the results; estimators find theirs on the training graphs
        self.target = Target.of(self.y, task, self.graphs.target_names, self.graphs.name)
        self.metric = metric_for(task, metric)
        self.groups, self.tuning = groups, tuning

    def prepare(self) -> None:
        """Compute what the folds share, such as Gram matrices, if the method declares it."""
        if self.method is not None and self.tuning is None and estimator_class(self.method).shares_folds:
            for config in self.configs:
                make_estimator(self.method, config, self.seed, self.target.task).prepare(self.prepared)

    def run(
        self, fold: Fold, number: int, on_epoch: OnEpoch | None = None, train_size: int | None = None
    ) -> CellResult:
        """Run fold ``number``: what is predicted for its test graphs, and how that was chosen.

        Args:
            fold: the fold.
            number: its number.
            on_epoch: called after each epoch.
            train_size: train on so many of its training graphs; None: on all of them.
        """
        if train_size is not None:
            fold = nested_fold(fold, self.target.encode(self.y), train_size, fold_seed(self.seed, number))
        if self.method is None:
            return self._run_own(fold, number)
        if self._constant(fold.train) is not None:
            began = time.perf_counter()
            scores = self._constant_scores(fold)
            return CellResult(self.configs[0], self._result(fold, number, scores, began), [], None)
        config, tried = self._chosen(fold, number)
        began = time.perf_counter()
        estimator = self._estimator(config, number)
        estimator.fit_prepared(
            *(self.prepared, fold.train),
            validation=fold.validation,
            groups=self.groups,
            watch=fold.test,
            on_epoch=on_epoch,
        )
        result = self._result(
            *(fold, number, self._scores(estimator, fold.test), began),
            epoch=estimator.epoch_,
            curves=estimator.curves_,
            chosen={name: value for name, value in estimator.chosen_.items() if name not in ("n_jobs", "verbose")},
            resolved=dict(estimator.resolved_),
            resolution=[str(found) for found in estimator.resolution_],
        )
        return CellResult(config, result, tried, self._embedding(estimator, number))

    def _chosen(self, fold: Fold, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Choose a configuration on the training graphs; returns it and what was tried, with the inner metric."""
        if self.tuning is not None:
            from gcaps.evaluation.inner import search_settings

            return search_settings(self, self.tuning, fold, number)
        if len(self.configs) == 1:
            return self.configs[0], []
        inner = [self._inner_value(config, fold, number) for config in self.configs]
        ranked = [-math.inf if math.isnan(value) else self.metric.sign * value for value in inner]
        tried = [
            {"config": config, "inner": None if math.isnan(value) else value}
            for config, value in zip(self.configs, inner, strict=True)
        ]
        return self.configs[int(np.argmax(ranked))], tried  # the first of equals

    def _result(
        self,
        fold: Fold,
        number: int,
        scores: Floats,
        began: float,
        *,
        predictions: Array | None = None,
        epoch: int = 1,
        curves: Curves | None = None,
        **known: Any,
    ) -> FoldResult:
        """The result of a fold from scores as ``scores_prepared`` returns them.

        Args:
            fold: the fold.
            number: its number.
            scores: [n, C] for all classes of the set, or [n, T].
            began: when fitting began.
            predictions: encoded like ``y``, where they are not those of the scores.
            epoch: that predicts.
            curves: of the training.
            known: further fields of the result.
        """
        losses = [] if curves is None else curves.loss
        if not np.isfinite([*losses, *np.ravel(scores)]).all():
            raise DivergenceError("loss or predictions are no finite numbers any more; a smaller lr helps")
        task, y = self.target.task, self.y[fold.test]
        if task == "classification":
            truth: Array = self.target.encode(y)
            answers = scores.argmax(axis=1) if predictions is None else predictions
        elif task == "multilabel":
            truth = self.target.encode(y)
            answers = (scores > 0.5).astype(np.int64) if predictions is None else predictions
        else:
            truth, answers = y.astype(np.float64).reshape(len(y), -1), scores
        targets = encoded_metrics(task, truth, answers, None if task == "regression" else scores)
        one = task == "regression" and truth.shape[1] == 1
        return FoldResult(
            fold=number,
            test=fold.test.tolist(),
            y=as_lists(truth[:, 0] if one else truth),
            predictions=as_lists(answers[:, 0] if one else answers),
            scores=[] if task == "regression" else np.round(scores, 6).tolist(),
            epoch=epoch,
            train_loss=losses,
            train_score=[] if curves is None else curves.score,
            test_score=[] if curves is None else curves.watched,
            validation_score=[] if curves is None else curves.validation,
            seconds=time.perf_counter() - began,
            task=task,
            train_size=len(fold.train),
            metrics=mean_over_targets(targets),
            targets=targets if len(targets) > 1 else [],
            **known,
        )

    def _estimator(self, config: dict[str, Any], number: int) -> GraphEstimator:
        """The estimator of a fold; those that share work across folds share their seed, too."""
        assert self.method is not None
        shares = estimator_class(self.method).shares_folds
        seed = self.seed if shares else fold_seed(self.seed, number)
        return make_estimator(self.method, config, seed, self.target.task)

    def _scores(self, estimator: GraphEstimator, indices: Ints) -> Floats:
        scores = estimator.scores_prepared(self.prepared, indices)
        return self._all_classes(scores, getattr(estimator, "classes_", None))

    def _inner_value(self, config: dict[str, Any], fold: Fold, number: int) -> float:
        """The metric of a configuration on held-back training graphs; the fold's test graphs are not used."""
        inner = inner_fold(self.target.encode(self.y), fold, fold_seed(self.seed, number), self.groups)
        return self.value(config, inner, number)

    def value(self, config: dict[str, Any], inner: Fold, number: int) -> float:
        """The metric of a configuration fitted on ``inner.train``, for ``inner.test``; NaN where it is not defined."""
        if self._constant(inner.train) is not None:
            return math.nan
        estimator = self._estimator(config, number).fit_prepared(self.prepared, inner.train, groups=self.groups)
        found = compute_metrics(self.target, self.y[inner.test], self._scores(estimator, inner.test))
        return found.get(self.metric.name, math.nan)

    def _constant(self, train: Ints) -> int | None:
        """The class of the training graphs, where all have the same: there is nothing to learn then."""
        if self.target.task != "classification":
            return None
        classes = np.unique(self.target.encode(self.y[train]))
        return int(classes[0]) if len(classes) == 1 else None

    def _constant_scores(self, fold: Fold) -> Floats:
        scores = np.zeros((len(fold.test), self.target.outputs))
        scores[:, self._constant(fold.train)] = 1.0
        return scores

    def _run_own(self, fold: Fold, number: int) -> CellResult:
        """Run an estimator of the caller's, which knows nothing but ``fit`` and ``predict``."""
        began = time.perf_counter()
        estimator = seeded_clone(self.estimator, fold_seed(self.seed, number))
        test = self.graphs.subset(fold.test)
        estimator.fit(self.graphs.subset(fold.train), self.y[fold.train])
        answers = np.asarray(estimator.predict(test))
        if self.target.task == "regression":
            values = answers.astype(np.float64).reshape(len(answers), -1)
            return CellResult(self.configs[0], self._result(fold, number, values, began), [], None)
        predictions = self.target.encode(answers)
        unknown = np.isnan(predictions) if self.target.task == "multilabel" else predictions < 0
        if unknown.any():
            raise GcapsError(f"it predicts {answers[unknown][0]!r}, which is no class of {self.graphs.name}")
        if self.target.task == "multilabel":
            scores = _second_class(estimator, test) if hasattr(estimator, "predict_proba") else predictions
        elif hasattr(estimator, "predict_proba"):
            known = getattr(estimator, "classes_", np.unique(self.y[fold.train]))
            scores = self._all_classes(np.asarray(estimator.predict_proba(test)), known)
        else:
            scores = np.eye(self.target.outputs)[predictions]
        result = self._result(fold, number, scores, began, predictions=predictions.astype(np.int64))
        return CellResult(self.configs[0], result, [], self._embedding(estimator, number))

    def _all_classes(self, scores: Floats, known: Array | None) -> Floats:
        """[m, C] scores for all classes of the set; a class without training graphs has 0."""
        if self.target.task != "classification" or known is None:
            return np.asarray(scores, dtype=np.float64)
        out = np.zeros((len(scores), self.target.outputs))
        out[:, self.target.encode(known)] = scores
        return out

    def _embedding(self, estimator: Any, number: int) -> list[list[float]] | None:
        costly = self.method is not None and METHODS[self.method].family in ("kernel", "features")
        if number or costly or not hasattr(estimator, "transform"):
            return None
        vectors = np.asarray(estimator.transform(self.graphs))
        if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":  # such as a sparse matrix
            return None
        found: list[list[float]] = plane(vectors).round(4).tolist()
        return found


def fold_seed(seed: int, number: int) -> int:
    """The seed of a fold, the same whichever process runs it."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def seeded_clone(estimator: Any, seed: int) -> Any:
    """A clone in which every ``random_state`` that is None, nested ones included, is ``seed``."""
    from sklearn.base import clone

    found = clone(estimator)
    names = [
        name
        for name, value in found.get_params(deep=True).items()
        if value is None and name.rpartition("__")[2] == "random_state"
    ]
    return found.set_params(**dict.fromkeys(names, seed))


def inner_fold(y: Array, fold: Fold, seed: int, groups: Ints | None = None) -> Fold:
    """The training graphs of ``fold`` as a fold of their own; its test graphs are the validation graphs of the fold, or
    a share of them: whole ``groups`` [G], or stratified if ``y`` [G] are class numbers."""
    if fold.validation is not None:
        return Fold(np.setdiff1d(fold.train, fold.validation), fold.validation)
    own = None if groups is None else groups[fold.train]
    training, held = inner_split(y[fold.train], INNER_SHARE, seed, own)
    return Fold(fold.train[training], fold.train[held])


def _second_class(estimator: Any, graphs: GraphSet) -> Floats:
    """[n, T] probabilities of the second class: of an estimator that gives them so, or a [n, 2] array a target."""
    found = estimator.predict_proba(graphs)
    if isinstance(found, list):  # scikit-learn's forests and MultiOutputClassifier
        return np.stack([p[:, -1] if p.shape[1] > 1 else np.zeros(len(p)) for p in found], axis=1)
    return np.asarray(found, dtype=np.float64)


def plane(vectors: Floats) -> Floats:
    """[G, 2] the vectors [G, d] on their first two principal components, with fixed signs."""
    from sklearn.decomposition import PCA

    x = np.asarray(vectors, dtype=np.float64)
    kept = min(2, *x.shape)
    with np.errstate(all="ignore"):  # the share of a variance that is zero
        found = PCA(kept, random_state=0).fit_transform(x)
    return np.pad(found, ((0, 0), (0, 2 - kept))) + 0.0  # no negative zeros
