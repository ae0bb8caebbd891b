"""``gcaps.tune``: search the settings of a method on inner folds of a set, in a folder from which it is continued."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from gcaps.config.limits import seconds_of
from gcaps.config.spaces import Pruning, Space, search_space
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Task, has_target, resolve_task
from gcaps.documents import STRICT, Count, Digest, Name, Seed, read_json, validated
from gcaps.errors import ConfigError, GcapsError
from gcaps.escaping import csv_cell
from gcaps.estimators.base import GraphEstimator
from gcaps.estimators.problem import targets_of
from gcaps.estimators.registry import METHODS, config_class, make_estimator
from gcaps.evaluation.experiments import free_space
from gcaps.evaluation.inner import InnerScore, inner_folds
from gcaps.evaluation.metrics import Metric, metric_for
from gcaps.evaluation.outcome import digest
from gcaps.evaluation.result import now, versions
from gcaps.evaluation.splits import DEFAULT_SPLIT, Split, groups_of
from gcaps.files import exists, write_json, write_text
from gcaps.tuning.journal import FILE as JOURNAL
from gcaps.tuning.journal import LOCK, check, opened, replayed
from gcaps.tuning.search import MAX_TRIALS, Search, Trial, require_optuna
from gcaps.tuning.workers import fold_workers

FORMAT = 1
FILE = "study.json"
BEST = "best.toml"
TABLE = "trials.csv"
MAX_JOBS = 1024
TRIALS = 50
"""Trials where neither a number nor a time limit is given."""


@dataclass(frozen=True)
class StudyPlan:
    """What a search is a function of, as ``study.json`` has it."""

    __pydantic_config__ = STRICT

    data: Name
    """The set's name."""
    fingerprint: Digest
    """Of the graphs with a target."""
    graphs: Count
    method: Name
    task: Task
    metric: Name
    split: Name
    folds: Annotated[int, Field(ge=1, le=1000)]
    inner: Digest
    """Of the inner folds."""
    seed: Seed
    pruner: Pruning
    settings: dict[Name, Any]
    """The settings that trials begin with; those that are not searched are fixed."""
    space: Space
    command: str = ""
    """How to continue it."""
    created: Name = ""
    versions: dict[Name, Name] = field(default_factory=dict)
    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT

    def difference(self, other: StudyPlan) -> str:
        """Name what two searches differ in; empty where they are the same."""
        ignored = ("command", "created", "versions", "inner")
        names = [name for name in asdict(self) if name not in ignored]
        changed = [name for name in [*names, "inner"] if getattr(self, name) != getattr(other, name)]
        words = {"fingerprint": "graphs", "inner": "inner folds", "space": "search space"}
        return words.get(changed[0], changed[0]) if changed else ""


@dataclass(frozen=True)
class TuningStudy:
    """A search and its trials.

    Attributes:
        plan: what was searched, and how.
        trials: all trials, in the order in which they began; the first has the default settings.
    """

    plan: StudyPlan
    trials: list[Trial]

    @property
    def metric(self) -> Metric:
        """The metric that decides."""
        return metric_for(self.plan.task, self.plan.metric)

    @property
    def done(self) -> list[Trial]:
        """Trials whose inner folds are all done."""
        return [trial for trial in self.trials if trial.state == "done" and trial.value is not None]

    @property
    def default(self) -> Trial | None:
        """The trial of the default settings, once it is done."""
        return next((trial for trial in self.done if trial.number == 0), None)

    @property
    def best(self) -> Trial:
        """The trial with the best value, the first of equals.

        Raises:
            GcapsError: none is done.
        """
        if not self.done:
            raise GcapsError("no trial of the search is done yet; run the same command again")
        return max(self.done, key=lambda trial: (self.metric.sign * (trial.value or 0.0), -trial.number))

    @property
    def best_settings(self) -> dict[str, Any]:
        """The settings of the best trial that differ from the method's default."""
        return changed_settings(self.plan.method, {**self.plan.settings, **self.best.changes})

    def estimator(self, random_state: int = 0) -> GraphEstimator:
        """Return an estimator with the best settings, not fitted."""
        return make_estimator(self.plan.method, self.best_settings, random_state, self.plan.task)

    @classmethod
    def read(cls, folder: str | Path) -> TuningStudy:
        """Read the folder of a search; it is not changed.

        Raises:
            GcapsError: it is no such folder, or damaged.
        """
        folder = Path(folder)
        plan = read_plan(folder)
        if not check(folder / JOURNAL):
            return cls(plan, [])
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        require_optuna()
        with replayed(folder / JOURNAL):
            storage = JournalStorage(JournalFileBackend(str(folder / JOURNAL)))
            return cls(plan, _search(plan, storage).trials())


def read_plan(folder: Path) -> StudyPlan:
    """Read the description of a search.

    Raises:
        GcapsError: there is none, or it is damaged.
    """
    path = folder / FILE
    if not exists(path):
        raise GcapsError(f"{folder}: is not the folder of a search (it has no {FILE})")
    problem = f"{path}: is not the description of a search of this version of gcaps"
    plan = validated(StudyPlan, read_json(path), problem)
    if plan.method not in METHODS:
        raise GcapsError(f"{problem} (there is no method {plan.method!r})")
    metric_for(plan.task, plan.metric)
    config_class(plan.method).parse(plan.settings)
    search_space(plan.method, dict(plan.space))
    return plan


def is_study(folder: Path) -> bool:
    """Whether a folder is that of a search."""
    return exists(folder / FILE)


def is_begun(folder: Path) -> bool:
    """Whether a folder is empty, or holds only what a search writes before its description, or the draft of that."""
    begun = {LOCK, JOURNAL, f"{JOURNAL}.lock", FILE}
    return folder.is_dir() and all(
        entry.name in begun or entry.name.startswith(f".{FILE}.") for entry in folder.iterdir()
    )


def _search(plan: StudyPlan, storage: Any) -> Search:
    metric = metric_for(plan.task, plan.metric)
    folds = plan.folds
    return Search(plan.space, plan.settings, folds, metric.greater_is_better, plan.seed, plan.pruner, storage)


def changed_settings(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that differ from a method's default, as plain values."""
    found, default = config_class(method).parse(dict(settings)).to_dict(), config_class(method).parse({}).to_dict()
    return {name: value for name, value in found.items() if value != default[name]}


def settings_toml(study: TuningStudy) -> str:
    """Return the best settings as a TOML file for ``--config``."""
    best, metric = study.best, study.metric
    assert best.value is not None
    lines = [
        f"# The best of {len(study.trials)} trials on inner folds of {one_line(study.plan.data)}: trial {best.number},",
        f"# {metric.heading} {metric.text(best.value)} (the best of several is too optimistic an estimate).",
        "# gcaps train DATA --config THIS_FILE -o MODEL",
        f"method = {json.dumps(study.plan.method)}",
        *(f"{name} = {_toml(value)}" for name, value in study.best_settings.items()),
    ]
    return "\n".join(lines) + "\n"


def one_line(text: str) -> str:
    """Return a text without characters that end a line or cannot be printed."""
    return "".join(char if char.isprintable() else "�" for char in text)


def _toml(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return json.dumps(value)


def trials_csv(study: TuningStudy) -> str:
    """Return the trials as a table: number, state, mean, settings, folds, seconds and error."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    folds = [f"fold {number}" for number in range(study.plan.folds)]
    writer.writerow(["trial", "state", study.plan.metric, *study.plan.space, *folds, "seconds", "error"])
    for trial in study.trials:
        values = [f"{value:.6g}" for value in trial.folds]
        labels = [_cell(trial.changes.get(name, "")) for name in study.plan.space]
        mean = "" if trial.value is None else f"{trial.value:.6g}"
        cells = [trial.number, trial.state, mean, *labels, *values, *[""] * (len(folds) - len(values))]
        writer.writerow([csv_cell(str(cell)) for cell in [*cells, f"{trial.seconds:.3f}", trial.error]])
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return "+".join(map(str, value))
    return "none" if value is None else f"{value:.6g}" if isinstance(value, float) else value


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

    The value of the best trial is the best of several, so it is too optimistic; ``gcaps.evaluate(…, tune=20)`` searches
    inside each fold and estimates what tuning gives on new graphs.

    Args:
        graphs: a GraphSet or anything :func:`gcaps.load` takes.
        method: name of the method.
        folder: where the journal, the best settings and the table of trials are written. A search that was interrupted
            is continued by the same call. None: nothing is written.
        trials: number of settings to try, the default among them; by default 50, or as many as time allows.
        time_limit: ``"30m"`` or seconds, after which no trial begins.
        config: settings to begin with: those that differ from their default are not searched.
        space: settings to search instead of the method's space: a TOML file, or a dictionary.
        metric: by default accuracy, ROC AUC or RMSE, by task.
        split: how inner folds are made, see :func:`gcaps.compare`: stratified, random, scaffold, group:COLUMN, ….
        folds: number of inner folds; 1 holds a tenth of the graphs back.
        pruner: gives trials up whose first inner folds are worse than the median of others, or by Hyperband; or none.
        seed: decides inner folds, trials and training. With one job, the same seed gives the same trials.
        jobs: processes that compute inner folds.
        task: ``"auto"``, ``"classification"``, ``"multilabel"`` or ``"regression"``.
        reading: further arguments of :func:`gcaps.load`.
        command: how to continue, for the page; by default this call.
        on_trial: called with the search and each trial that ends.
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
            _search(plan, storage).trials()
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
    search = _search(plan, storage)

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


def write_outputs(study: TuningStudy, folder: Path) -> None:
    """Write the best settings and the table of trials, each atomically."""
    write_text(folder / TABLE, trials_csv(study))
    if study.done:
        write_text(folder / BEST, settings_toml(study))
