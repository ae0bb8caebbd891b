"""``gcaps.tune``: resumable search over the settings of a method on inner folds of a set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from gcaps.config.limits import seconds_of
from gcaps.config.spaces import Pruning, Space, search_space
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Task, has_target, resolve_task
from gcaps.errors import ConfigError, GcapsError
from gcaps.estimators.problem import targets_of
from gcaps.estimators.registry import config_class, make_estimator
from gcaps.evaluation.experiments import free_space
from gcaps.evaluation.inner import InnerScore, inner_folds
from gcaps.evaluation.metrics import metric_for
from gcaps.evaluation.outcome import digest
from gcaps.evaluation.result import now, versions
from gcaps.evaluation.splits import DEFAULT_SPLIT, Split, groups_of
from gcaps.evaluation.tuning_study import (
    FILE,
    StudyPlan,
    TuningStudy,
    is_begun,
    is_study,
    read_plan,
    search_of,
    write_outputs,
)
from gcaps.files import exists, write_json
from gcaps.tuning.journal import FILE as JOURNAL
from gcaps.tuning.journal import opened, replayed
from gcaps.tuning.search import MAX_TRIALS, Trial, require_optuna
from gcaps.tuning.workers import fold_workers

MAX_JOBS = 1024
TRIALS = 50
"""Default number of trials without a time limit."""


def tune(
    graphs: Any,
    method: str = "gcaps",
    folder: str | Path | None = None,
    *,
    trials: int | None = None,
    time_limit: str | float | None = None,
    config: Any = None,
    space: str | Path | Mapping[str, Any] | None = None,
    metric: str | None = None,
    split: str | None = None,
    folds: int = 5,
    pruner: Pruning = "median",
    seed: int = 0,
    jobs: int = 1,
    task: str = "auto",
    reading: Mapping[str, Any] | None = None,
    command: str = "",
    on_trial: Callable[[TuningStudy, Trial], object] | None = None,
    on_fold: Callable[[Trial], object] | None = None,
) -> TuningStudy:
    """Search the settings of a method on inner folds of a set.

    The value of the best trial is the best of several and so optimistically biased; ``gcaps.evaluate(…, tune=20)``
    searches inside each fold and estimates the performance of tuned settings on new graphs.

    Args:
        graphs: a GraphSet or anything :func:`gcaps.load` takes.
        method: name of the method.
        folder: for the journal, the best settings and the table of trials. The same call continues an interrupted
            search. None: nothing is written.
        trials: number of trials, including the default settings; by default 50, or as many as time allows.
        time_limit: ``"30m"`` or seconds, after which no trial begins.
        config: initial settings; those that differ from their default are not searched.
        space: settings to search instead of the method's space: a TOML file, or a dictionary.
        metric: by default accuracy, ROC AUC or RMSE, by task.
        split: how inner folds are made, see :func:`gcaps.compare`: stratified, random, scaffold, group:COLUMN, ….
        folds: number of inner folds; 1 holds a tenth of the graphs back.
        pruner: rule by which trials are pruned after their first inner folds: median, hyperband or none.
        seed: of inner folds, trials and training. With one job, the same seed gives the same trials.
        jobs: processes that compute inner folds.
        task: ``"auto"``, ``"classification"``, ``"multilabel"`` or ``"regression"``.
        reading: further arguments of :func:`gcaps.load`.
        command: command to continue the search, shown on the page; by default this call.
        on_trial: called with the search and each finished trial.
        on_fold: called with a trial after each inner fold.
    """
    require_optuna()
    if not 1 <= jobs <= MAX_JOBS or folds < 1:
        raise ConfigError(f"folds is 1 or more, jobs is 1 to {MAX_JOBS:,}")
    count = trials if trials is not None else TRIALS if time_limit is None else MAX_TRIALS
    if not 1 <= count <= MAX_TRIALS:
        raise ConfigError(f"trials is 1 to {MAX_TRIALS:,}")
    if pruner not in ("median", "hyperband", "none"):
        raise ConfigError(f"there is no pruner {pruner!r}; there are median, hyperband and none")
    limit = seconds_of(time_limit)
    base = config_class(method).of(config).to_dict()
    own = free_space(method, base, search_space(method, space))
    given = load(graphs, **(reading or {}))
    known = given if has_target(targets_of(given)).all() else given[has_target(targets_of(given))]
    plan, score = _planned(known, method, base, own, metric, split, folds, pruner, seed, task, command)
    if folder is None:
        return _run(plan, score, None, None, count, limit, jobs, on_trial, on_fold)
    place = Path(folder)
    if exists(place) and not is_study(place) and not is_begun(place):
        raise GcapsError(f"{place}: holds other files than those of a search; choose a new folder")
    with opened(place) as storage:
        if is_study(place):
            before = read_plan(place)
            if what := before.difference(plan):
                raise ConfigError(f"{place}: holds another search (not the same {what}); choose a new folder")
            plan = before
        else:
            write_json(place / FILE, asdict(plan))
        with replayed(place / JOURNAL):
            search_of(plan, storage).trials()
        return _run(plan, score, storage, place, count, limit, jobs, on_trial, on_fold)


def _planned(
    graphs: GraphSet,
    method: str,
    base: dict[str, Any],
    space: Space,
    metric: str | None,
    split: str | None,
    folds: int,
    pruner: Pruning,
    seed: int,
    task: str,
    command: str,
) -> tuple[StudyPlan, InnerScore]:
    posed: Task = resolve_task(targets_of(graphs), task, graphs.name).task
    targets = targets_of(graphs)
    classes = len(np.unique(targets)) if posed == "classification" else 2
    headline = metric_for(posed, metric, classes).name
    make_estimator(method, base, seed, posed)  # settings that the task does not have are refused here
    how = split or DEFAULT_SPLIT[posed]
    if Split.parse(how).is_file or Split.parse(how).single:
        raise ConfigError(
            f"inner folds are drawn: stratified, random, scaffold, group:COLUMN or time:COLUMN, not {how}"
        )
    parts = inner_folds(graphs, np.arange(len(graphs)), folds, seed, posed, split=how)
    groups = groups_of(graphs, how) if Split.parse(how).grouped else None
    plan = StudyPlan(
        data=graphs.name,
        fingerprint=graphs.fingerprint(),
        graphs=len(graphs),
        method=method,
        task=posed,
        metric=headline,
        split=how,
        folds=len(parts),
        inner=digest([[part.train.tolist(), part.test.tolist()] for part in parts]),
        seed=seed,
        pruner=pruner,
        settings=base,
        space=space,
        command=command or f"gcaps.tune({graphs.name!r}, {method!r}, seed={seed})",
        created=now(),
        versions=versions(),
    )
    return plan, InnerScore(graphs, method, seed, posed, headline, parts, groups)


def _run(
    plan: StudyPlan,
    score: InnerScore,
    storage: Any,
    folder: Path | None,
    count: int,
    limit: float | None,
    jobs: int,
    on_trial: Callable[[TuningStudy, Trial], object] | None,
    on_fold: Callable[[Trial], object] | None,
) -> TuningStudy:
    search = search_of(plan, storage)

    def tell(trial: Trial) -> None:
        study = TuningStudy(plan, search.trials())
        if folder is not None:
            write_outputs(study, folder)
        if on_trial is not None:
            on_trial(study, trial)

    with fold_workers(score, jobs) as workers:
        search.run(workers, count, time_limit=limit, on_trial=tell, on_fold=on_fold)
    study = TuningStudy(plan, search.trials())
    if folder is not None:
        write_outputs(study, folder)
    return study
