"""Inner folds: scores of settings on training graphs alone, by which settings are chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gcaps.data.arrays import Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Task
from gcaps.errors import DataError
from gcaps.evaluation.metrics import metric_for
from gcaps.evaluation.splits import Fold, folds_of
from gcaps.tuning.search import Search, Tuning
from gcaps.tuning.workers import fold_workers

if TYPE_CHECKING:
    from gcaps.evaluation.worker import Worker


def inner_folds(
    graphs: GraphSet,
    train: Ints,
    count: int,
    seed: int,
    task: Task,
    *,
    split: str | None = None,
    groups: Ints | None = None,
    validation: Ints | None = None,
) -> list[Fold]:
    """Divide training graphs into folds; other graphs are not used.

    Args:
        graphs: the whole set.
        train: positions of the training graphs.
        count: number of folds; 1: a tenth of the graphs is held back.
        seed: of the folds.
        task: what is predicted.
        split: see :func:`gcaps.evaluation.splits.folds_of`.
        groups: [G] groups that are not divided, instead of ``split``.
        validation: validation graphs of the data set, if any, which are then the only fold.

    Raises:
        DataError: no fold has training graphs of two classes.
    """
    if validation is not None:
        folds = [Fold(np.setdiff1d(train, validation), validation)]
    else:
        own = graphs.subset(train)
        if groups is not None:
            own, split = replace(own, columns={"groups": groups[train]}), "group:groups"
            count = min(count, len(np.unique(groups[train])))
        found = folds_of(own, min(count, len(train)), split, seed, task)
        folds = [Fold(train[one.train], train[one.test]) for one in found]
    assert graphs.y is not None
    if task == "classification":
        folds = [fold for fold in folds if len(np.unique(graphs.y[fold.train])) > 1]
    if not folds:
        raise DataError("has too few graphs, or too few classes, for inner folds", graphs.name)
    return folds


@dataclass
class InnerScore:
    """The metric of settings on inner folds, as a function of both.

    Computations that the folds of a trial share, such as Gram matrices, are kept until the settings change.
    """

    graphs: GraphSet
    method: str
    seed: int
    task: Task
    metric: str
    folds: list[Fold]
    groups: Ints | None = None

    def __post_init__(self) -> None:
        self._worker: tuple[dict[str, Any], Worker] | None = None

    def __call__(self, settings: dict[str, Any], number: int) -> float:
        """Return the metric of a method with ``settings`` on inner fold ``number``."""
        from gcaps.evaluation.worker import Worker

        if self._worker is None or self._worker[0] != settings:
            self._worker = None
            prepared = PreparedSet(self.graphs)
            worker = Worker(prepared, self.method, [settings], self.seed, None, self.task, self.metric, self.groups)
            self._worker = dict(settings), worker
        return self._worker[1].value(settings, self.folds[number], number)


def search_settings(
    worker: Worker, tuning: Tuning, fold: Fold, number: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Search settings on the training graphs of a fold of ``worker``; its test graphs are not used.

    Returns:
        The best settings, and all trials with their inner metric, None for those that did not finish.
    """
    from gcaps.evaluation.worker import fold_seed

    assert worker.method is not None
    seed, task, (base,) = fold_seed(worker.seed, number), worker.target.task, worker.configs
    folds = inner_folds(
        *(worker.graphs, fold.train, tuning.folds, seed, task), groups=worker.groups, validation=fold.validation
    )
    metric = metric_for(task, worker.metric.name)
    score = InnerScore(worker.graphs, worker.method, seed, task, metric.name, folds, worker.groups)
    search = Search(tuning.space, base, len(folds), metric.greater_is_better, seed, tuning.pruner)
    with fold_workers(score) as workers:
        search.run(workers, tuning.trials)
    trials, best = search.trials(), search.best
    assert best is not None, "the first trial is done, or its exception was raised"
    return search.settings(best), [
        {"config": search.settings(one), "inner": one.value if one.state == "done" else None} for one in trials
    ]
