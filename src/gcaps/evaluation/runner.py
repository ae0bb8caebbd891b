"""Cross-validation: every fold once, in this process or in several, one result for all protocols."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import Manager
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from gcaps.data.catalog import load
from gcaps.errors import ConfigError
from gcaps.evaluation.folds import Fold, folds_of
from gcaps.evaluation.methods import METHODS
from gcaps.evaluation.protocols import rule_of, summarise
from gcaps.evaluation.result import FoldResult, Result, about, now, versions
from gcaps.training import Epoch
from gcaps.training.progress import Report


def evaluate(
    graphs: Any,
    method: str = "gcaps",
    protocol: str = "honest",
    folds: int = 10,
    *,
    splits: str | Path | Sequence[Fold] | None = None,
    seed: int = 0,
    config: Any = None,
    jobs: int | None = None,
    report: Report | None = None,
    command: str | None = None,
) -> Result:
    """Cross-validate a method on a data set.

    Args:
        graphs: a GraphSet or anything :func:`gcaps.load` takes.
        method: a name in ``gcaps.evaluation.METHODS``.
        protocol: the rule behind ``result.accuracy``: honest, last, gin or best; the result holds all four.
        folds: stratified folds drawn with ``seed``, unless ``splits`` names a file of folds.
        splits: JSON file of folds, or the folds themselves.
        seed: decides folds and training; the same seed gives the same predictions, whatever ``jobs`` is.
        config: the method's configuration or a dictionary of its settings: :class:`gcaps.Config` for gcaps, those in
            ``gcaps.models.CONFIGS`` for other networks, in ``gcaps.kernels.CONFIGS`` for kernels.
        jobs: processes; by default as many as there are CPUs and folds. Each trains with ``config.threads`` threads.
        report: told of each epoch of each fold.
        command: how to make the result again; by default this call.
    """
    if method not in METHODS:
        raise ConfigError(f"there is no method {method!r}; there are {', '.join(METHODS)}")
    if protocol not in ("honest", "last", "gin", "best"):
        raise ConfigError(f"there is no protocol {protocol!r}; there are honest, last, gin, best")
    data = load(graphs)
    config = METHODS[method].config.of(config)
    if protocol != "honest" and rule_of(config) in ("inner", "fixed"):
        raise ConfigError(f"{method} has no epochs: only the protocol honest applies to it")
    runs = METHODS[method].prepared(data, config)
    parts, origin = folds_of(data, folds, splits, seed)
    jobs = min(jobs or available_cpus(), len(parts))
    run = partial(runs, data, config=config, seed=seed)
    results = _in_turn(run, parts, report) if jobs == 1 else _in_processes(run, parts, report, jobs)
    return Result(
        method=method,
        data=about(data),
        folds=results,
        protocols=summarise(results, rule_of(config)),
        config=config.to_dict(),
        seed=seed,
        splits=origin,
        command=command or _call(data.name, method, folds, splits, seed, config),
        versions=versions(),
        created=now(),
        protocol=protocol,
    )


def _call(
    name: str, method: str, folds: int, splits: str | Path | Sequence[Fold] | None, seed: int, config: Any
) -> str:
    """The evaluation as a call from Python; settings that have their default are left out."""
    changed = {
        key: value for key, value in config.model_dump().items() if value != type(config).model_fields[key].default
    }
    settings = ", ".join(f"{key!r}: {value!r}" for key, value in changed.items())
    file = str(splits) if isinstance(splits, str | Path) else "…"
    where = f"folds={folds}" if splits is None else f"splits={file!r}"
    given = f", config={{{settings}}}" if changed else ""
    return f"gcaps.evaluate({name!r}, {method!r}, {where}, seed={seed}{given})"


def available_cpus() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_turn(run: Any, parts: list[Fold], report: Report | None) -> list[FoldResult]:
    def tell(number: int, epoch: Epoch) -> None:
        if report is not None:
            report(number, epoch)

    return [run(fold, number, on_epoch=partial(tell, number)) for number, fold in enumerate(parts)]


def _in_processes(run: Any, parts: list[Fold], report: Report | None, jobs: int) -> list[FoldResult]:
    with _listening(report) as mailbox:
        # joblib's processes: they survive a main module without a guard, and hand large arrays over by mapping
        work = (delayed(_one)(run, fold, number, mailbox) for number, fold in enumerate(parts))
        results: list[FoldResult] = Parallel(n_jobs=jobs, inner_max_num_threads=1)(work)
    return results


def _one(run: Any, fold: Fold, number: int, mailbox: Any) -> FoldResult:
    def tell(epoch: Epoch) -> None:
        if mailbox is not None:
            mailbox.put((number, epoch))

    result: FoldResult = run(fold, number, on_epoch=tell)
    return result


@contextmanager
def _listening(report: Report | None) -> Iterator[Any]:
    """Yield a queue into which worker processes put word of their epochs; a thread passes it on to ``report``."""
    if report is None:
        yield None
        return
    with Manager() as manager:
        mailbox: queue.Queue[tuple[int, Epoch] | None] = manager.Queue()

        def pass_on() -> None:
            while (word := mailbox.get()) is not None:
                report(*word)

        listener = threading.Thread(target=pass_on, daemon=True)
        listener.start()
        try:
            yield mailbox
        finally:
            mailbox.put(None)
            listener.join()
