"""A search over the settings of a method and its folder: plan, trials, best settings and table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from gcaps.config.spaces import Pruning, Space, search_space
from gcaps.data.targets import Task
from gcaps.documents import STRICT, Count, Digest, Name, Seed, read_json, validated
from gcaps.errors import GcapsError
from gcaps.escaping import csv_cell
from gcaps.estimators.registry import METHODS, config_class, make_estimator
from gcaps.evaluation.metrics import Metric, metric_for
from gcaps.files import exists, write_text
from gcaps.tuning.journal import FILE as JOURNAL
from gcaps.tuning.journal import LOCK, check, replayed
from gcaps.tuning.search import Search, Trial, require_optuna

if TYPE_CHECKING:
    from gcaps.estimators.base import GraphEstimator

FORMAT = 1
FILE = "study.json"
BEST = "best.toml"
TABLE = "trials.csv"


@dataclass(frozen=True)
class StudyPlan:
    """All inputs of a search, saved as ``study.json``."""

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
    """Initial settings; those outside ``space`` are fixed."""
    space: Space
    command: str = ""
    """Command that continues it."""
    created: Name = ""
    versions: dict[Name, Name] = field(default_factory=dict)
    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT

    def difference(self, other: StudyPlan) -> str:
        """Return the name of an input in which two searches differ; empty if they are the same."""
        ignored = ("command", "created", "versions", "inner")
        names = [name for name in asdict(self) if name not in ignored]
        changed = [name for name in [*names, "inner"] if getattr(self, name) != getattr(other, name)]
        words = {"fingerprint": "graphs", "inner": "inner folds", "space": "search space"}
        return words.get(changed[0], changed[0]) if changed else ""


@dataclass(frozen=True)
class TuningStudy:
    """A search and its trials.

    Attributes:
        plan: inputs of the search.
        trials: all trials, in the order in which they began; the first has the default settings.
    """

    plan: StudyPlan
    trials: list[Trial]

    @property
    def metric(self) -> Metric:
        """The metric of the search."""
        return metric_for(self.plan.task, self.plan.metric)

    @property
    def done(self) -> list[Trial]:
        """Trials that finished all inner folds."""
        return [trial for trial in self.trials if trial.state == "done" and trial.value is not None]

    @property
    def default(self) -> Trial | None:
        """The trial of the default settings, if it is finished."""
        return next((trial for trial in self.done if trial.number == 0), None)

    @property
    def best(self) -> Trial:
        """The trial with the best value, the first of equals.

        Raises:
            GcapsError: no trial is finished.
        """
        if not self.done:
            raise GcapsError("no trial of the search is done yet; run the same command again")
        return max(self.done, key=lambda trial: (self.metric.sign * (trial.value or 0.0), -trial.number))

    @property
    def best_settings(self) -> dict[str, Any]:
        """The settings of the best trial that differ from the method's default."""
        return changed_settings(self.plan.method, {**self.plan.settings, **self.best.changes})

    def estimator(self, random_state: int = 0) -> GraphEstimator:
        """Return an unfitted estimator with the best settings."""
        return make_estimator(self.plan.method, self.best_settings, random_state, self.plan.task)

    @classmethod
    def read(cls, folder: str | Path) -> TuningStudy:
        """Read the folder of a search without changing it.

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
            return cls(plan, search_of(plan, storage).trials())


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
    """Whether a folder is empty or holds only the files that a search writes first."""
    begun = {LOCK, JOURNAL, f"{JOURNAL}.lock", FILE}
    return folder.is_dir() and all(
        entry.name in begun or entry.name.startswith(f".{FILE}.") for entry in folder.iterdir()
    )


def search_of(plan: StudyPlan, storage: Any) -> Search:
    """Return the search of a plan, with the trials of its storage."""
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
    """Replace line breaks and unprintable characters of a text."""
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


def write_outputs(study: TuningStudy, folder: Path) -> None:
    """Write the best settings and the table of trials, each atomically."""
    write_text(folder / TABLE, trials_csv(study))
    if study.done:
        write_text(folder / BEST, settings_toml(study))
