"""``gcaps.compare`` and ``gcaps.evaluate``: from their arguments to a plan, and from outcomes to a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcaps.errors import ConfigError, GcapsError
from gcaps.estimators.registry import config_class
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.experiments import (
    Evaluation,
    Experiment,
    Grid,
    Methods,
    named_methods,
    read_experiment,
    rows_of,
    tuning_for,
)
from gcaps.evaluation.plan import FILE, InMemory, Limits, Plan
from gcaps.evaluation.planning import Row, make_plan, write_inputs
from gcaps.evaluation.protocols import PROTOCOLS
from gcaps.evaluation.result import Result
from gcaps.evaluation.runner import OnEpoch, Report, Runner
from gcaps.evaluation.splits import Fold, Split

if TYPE_CHECKING:
    from gcaps.training import Epoch

MAX_SEED = 2**32 - 1
"""Largest seed that numpy's and torch's generators take."""
MAX_REPEATS = 10_000


def compare(
    data: Any = None,
    methods: Methods = "all",
    *,
    run: str | Path | None = None,
    experiment: Experiment | str | None = None,
    folds: int = 10,
    split: str | Path | Sequence[Fold] | None = None,
    seeds: Sequence[int] = (0,),
    repeats: int | None = None,
    task: str = "auto",
    metric: str | None = None,
    reading: Mapping[str, Any] | None = None,
    train_sizes: int | Sequence[int] = (),
    grid: Grid | str | Path | None = None,
    splits: str | Path | Sequence[Fold] | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    time_limit: str | float | None = None,
    memory_limit: str | float | None = None,
    retry: bool = False,
    reuse: Sequence[str | Path] = (),
    report: Report | None = None,
    on_epoch: OnEpoch | None = None,
    command: str | None = None,
) -> Comparison:
    """Cross-validate methods on data sets.

    Args:
        data: one or a list of whatever :func:`gcaps.load` takes; None continues with the plan in ``run``, and only the
            arguments from ``jobs`` on count then.
        methods: names of methods, as a list or joined with commas, ``"all"`` (those for molecules where graphs
            are); scikit-learn estimators or pipelines on graphs; or ``{label: name | (name, settings) | estimator}``.
        run: the folder that holds the plan and a file for each cell; what it holds already is not computed again. On a
            cluster all workers must see it. None keeps everything in memory.
        experiment: a TOML file or the name of an experiment, in place of ``data`` and the arguments up to ``grid``.
        folds: number of folds; 1 is a single division into 80 % training, 10 % validation and 10 % test graphs.
        split: ``"stratified"`` (default for classification), ``"random"`` (default otherwise), ``"scaffold"``,
            ``"scaffold-balanced"``, ``"group:COLUMN"``, ``"time:COLUMN"``, ``"column:COLUMN"`` (says train, validation
            or test), a file of folds, a folder with ``NAME.json`` for each set, or the folds themselves.
        seeds: each decides folds and training.
        repeats: repeat everything with so many seeds, counted from the first of ``seeds``.
        task: ``"auto"``, ``"classification"``, ``"multilabel"`` or ``"regression"``.
        metric: by which methods are compared, see :mod:`gcaps.evaluation.metrics`; by default accuracy, ROC AUC or
            RMSE, by task.
        reading: further arguments of :func:`gcaps.load`, such as ``{"target": "Class"}``.
        train_sizes: learning curves: also train on nested parts of each fold's training graphs of these sizes; a number
            k is k points, each with half as many graphs as the next, the last with all of them.
        grid: for each method the settings to choose from on inner validation, ``{"gin": {"hidden": [16, 32]}}``; a
            TOML file of such tables; or ``"default"``. A value that is no list is fixed.
        splits: another name of ``split``.
        jobs: processes; by default as many as there are CPUs for the threads that configurations ask for. With one
            process and no limits, everything runs in this process.
        cluster: the address of a Dask scheduler whose workers run the cells.
        time_limit: of a cell, ``"30m"`` or seconds; exceeding it is recorded as its outcome.
        memory_limit: of a cell's process, ``"4G"`` or bytes; exceeding it is recorded as its outcome.
        retry: run cells again that failed or exceeded a limit.
        reuse: records (:meth:`Comparison.save`); cells that they hold are taken from them instead of being run.
        report: told of each cell.
        on_epoch: called with the cell and the epoch after each epoch, except on a cluster.
        command: how to continue or repeat the comparison; by default this call.
    """
    limits = Limits.of(time_limit, memory_limit)
    if reuse and run is None:
        raise ConfigError("cells of records are taken into the folder of a run; give run")
    if data is None and experiment is None:
        if run is None:
            raise ConfigError("give data to compare on, or the folder of a comparison to continue")
        plan, memory = Plan.read(run), InMemory()
        plan = replace(plan, limits=plan.limits if limits == Limits() else limits)
        runner = Runner(plan, memory, {}, jobs, cluster, report, on_epoch, reuse=reuse)
        return runner.in_folder(Path(run), retry=retry)
    own: dict[str, Any] = {}
    if experiment is not None:
        found = read_experiment(experiment) if isinstance(experiment, str) else experiment
        rows = found.rows()
        limits = Limits.of(time_limit or found.time_limit, memory_limit or found.memory_limit)
    else:
        named = named_methods(methods, grid)
        how = Evaluation(
            *(folds, split if splits is None else splits, repeated(seeds, repeats), task, metric),
            *(reading or {}, train_sizes),
        )
        rows = rows_of(data, named, how, optional=isinstance(methods, str) and methods == "all")
        own = {label: estimator for label, (_, _, estimator) in named.items() if estimator is not None}
    if run is not None and not _is_usable(Path(run)):
        raise GcapsError(f"{run}: is not the folder of a comparison; choose a new one")
    plan, memory = make_plan(rows, limits, command, "comparison" if run is None else Path(run).resolve().name)
    if run is None:
        return Runner(plan, memory, own, jobs, cluster, report, on_epoch).in_memory()
    plan = write_inputs(plan, memory, Path(run))
    plan.save(run)
    runner = Runner(plan, memory, own, jobs, cluster, report, on_epoch, reuse=reuse)
    return runner.in_folder(Path(run), retry=retry)


def repeated(seeds: Sequence[int], repeats: int | None) -> tuple[int, ...]:
    """The seeds of an evaluation: as given, or ``repeats`` seeds counted from the first."""
    require_seeds(seeds)
    if repeats is None:
        return tuple(seeds)
    if not 1 <= repeats <= MAX_REPEATS or len(seeds) != 1 or seeds[0] + repeats > MAX_SEED:
        raise ConfigError(f"repeats is 1 to {MAX_REPEATS:,}, and counts from one seed; give seeds or repeats")
    return tuple(range(seeds[0], seeds[0] + repeats))


def require_seeds(seeds: Sequence[Any]) -> None:
    """Require whole numbers that every generator takes.

    Raises:
        ConfigError: there is another one.
    """
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= MAX_SEED:
            raise ConfigError(f"seed {seed!r}: seeds are whole numbers from 0 to {MAX_SEED}")


def _is_usable(folder: Path) -> bool:
    """Whether it is new, empty, the folder of a run, or holds only what planning writes before the plan, and its draft.

    Another process may be writing there, or may have been killed while it did.
    """
    try:
        folder.resolve()
    except (OSError, RuntimeError):  # links that lead in a circle
        return False
    if folder.is_symlink() and not folder.exists():
        return False
    if not folder.exists() or (folder / FILE).exists():
        return True
    if not folder.is_dir():
        return False
    names = {entry.name for entry in folder.iterdir()}
    return all(name in ("data", "splits", FILE) or name.startswith(f".{FILE}.") for name in names)


def evaluate(
    graphs: Any,
    method: Any = "gcaps",
    protocol: str = "honest",
    folds: int = 10,
    *,
    split: str | Path | Sequence[Fold] | None = None,
    seed: int = 0,
    repeats: int = 1,
    task: str = "auto",
    metric: str | None = None,
    reading: Mapping[str, Any] | None = None,
    train_sizes: int | Sequence[int] = (),
    config: Any = None,
    tune: int | None = None,
    tune_folds: int = 5,
    space: str | Path | Mapping[str, Any] | None = None,
    splits: str | Path | Sequence[Fold] | None = None,
    jobs: int | None = None,
    report: Callable[[int, Epoch], None] | None = None,
    command: str | None = None,
) -> Result:
    """Cross-validate one method on one data set: a comparison with a single row, kept in memory.

    Args:
        graphs: a GraphSet or anything :func:`gcaps.load` takes.
        method: the name of a method, or a scikit-learn estimator or pipeline on graphs.
        protocol: the rule behind ``result.score``: honest, last, gin or best; the result holds all four.
        folds: number of folds; 1 is a single division into 80 % training, 10 % validation and 10 % test graphs.
        split: how folds are made, see :func:`gcaps.compare`.
        seed: decides folds and training; the same seed gives the same predictions, whatever ``jobs`` is.
        repeats: repeat everything with so many seeds, counted from ``seed``; the result joins them.
        task: ``"auto"``, ``"classification"``, ``"multilabel"`` or ``"regression"``.
        metric: the headline metric; by default accuracy, ROC AUC or RMSE, by task. The result holds all metrics.
        reading: further arguments of :func:`gcaps.load`, such as ``{"target": "Class"}``.
        train_sizes: a learning curve, see :func:`gcaps.compare`: ``result.learning_curve`` has its points.
        config: settings of a method given by name: a dictionary, or its class in ``gcaps.config.CONFIGS``.
        tune: search the settings in so many trials on inner folds of each fold's training graphs (:func:`gcaps.tune`);
            nothing of the test graphs decides. What was chosen is in each fold's ``chosen``.
        tune_folds: inner folds of that search.
        space: settings to search instead of the method's space: a TOML file, or a dictionary.
        splits: another name of ``split``.
        jobs: processes; by default as many as there are CPUs and folds.
        report: called with the fold and the epoch after each epoch.
        command: how to repeat the evaluation; by default this call.

    Raises:
        GcapsError: a fold failed; with ``jobs=1`` its own exception is raised.
    """
    if protocol not in PROTOCOLS:
        raise ConfigError(f"there is no protocol {protocol!r}; there are {', '.join(PROTOCOLS)}")
    if config is not None and not isinstance(method, str):
        raise ConfigError("config goes with a method's name; set the parameters of the estimator instead")
    named = named_methods({method: (method, config)} if isinstance(method, str) else [method])
    ((label, (name, (settings, *_), estimator)),) = named.items()
    if protocol != "honest" and not _has_epochs(name, settings):
        raise ConfigError(f"{label} has no epochs: only the protocol honest applies to it")
    how = Evaluation(
        *(folds, split if splits is None else splits, repeated([seed], repeats), task, metric),
        *(reading or {}, train_sizes),
    )
    rows = rows_of(graphs, named, how)
    if tune is not None:
        rows = [tuned_row(row, tune, tune_folds, space) for row in rows]
    if len(rows) > 1:
        raise ConfigError("evaluate takes one data set; gcaps.compare takes several")
    call = command or _call(rows[0], label, settings)
    on_epoch = None if report is None else lambda cell, epoch: report(cell.fold, epoch)
    plan, memory = make_plan(rows, Limits(), call)
    found = Runner(plan, memory, {label: estimator}, jobs, on_epoch=on_epoch, strict=True).in_memory()
    result = Result.joined(found.results())
    if protocol not in result.protocols:
        raise ConfigError(f"the protocol {protocol} is for accuracy; {result.metric} has only honest")
    return replace(result, protocol=protocol)


def tuned_row(row: Row, trials: int, folds: int, space: str | Path | Mapping[str, Any] | None = None) -> Row:
    """Return a row whose settings are searched on the training graphs of each fold, see :func:`tuning_for`."""
    return replace(row, tuning=tuning_for(row.method, row.configs, trials, folds, space=space))


def _has_epochs(method: str | None, settings: dict[str, Any]) -> bool:
    if method is None:
        return False
    return config_class(method).parse(settings).selection in ("last", "validation")  # type: ignore[attr-defined]


def _call(row: Row, label: str, settings: dict[str, Any]) -> str:
    """The evaluation as a call from Python; settings that have their default are left out."""
    name = row.source if isinstance(row.source, str | Path) else row.source.name
    given: dict[str, Any] = {"folds": row.folds}
    if isinstance(row.split, tuple):
        given = {"split": "…"}
    elif row.split is not None:
        given = ({} if Split.parse(row.split).is_file else given) | {"split": str(row.split)}
    given["seed"] = row.seeds[0]
    if len(row.seeds) > 1:
        given["repeats"] = len(row.seeds)
    given |= {"task": row.task} if row.task != "auto" else {}
    given |= {"metric": row.metric} if row.metric is not None else {}
    given |= {"reading": dict(row.reading)} if row.reading else {}
    given |= {"train_sizes": row.train_sizes} if row.train_sizes != () else {}
    if row.tuning is not None:
        given |= {"tune": row.tuning.trials, "tune_folds": row.tuning.folds}
    how = ", ".join(f"{key}={value!r}" for key, value in given.items())
    if row.method is None:
        return f"gcaps.evaluate({str(name)!r}, {settings['estimator']}, {how})"
    config = config_class(row.method).parse(settings)
    changed = {n: v for n, v in config.model_dump().items() if v != type(config).model_fields[n].default}
    return f"gcaps.evaluate({str(name)!r}, {label!r}, {how}" + (f", config={changed!r})" if changed else ")")
