"""Execution of the tasks of a comparison in one process, with the events that report their progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.documents import validated
from gcaps.errors import GcapsError, MemoryLimitError
from gcaps.evaluation.outcome import digest
from gcaps.evaluation.plan import InMemory, PlannedData
from gcaps.evaluation.splits import Fold
from gcaps.evaluation.worker import Worker
from gcaps.training import Epoch
from gcaps.tuning.search import Tuning

Event = dict[str, Any]


class Session:
    """Runs tasks one after the other in this process, and keeps the last set.

    Args:
        memory: graphs and folds that need not be loaded.
        catch: report exceptions as events; otherwise they are raised.
    """

    def __init__(self, memory: InMemory | None = None, *, catch: bool = True) -> None:
        self._memory, self._catch = memory or InMemory(), catch
        self._graphs: tuple[str, GraphSet] | None = None
        self._prepared: tuple[tuple[str, str], PreparedSet] | None = None

    def work(
        self, data: PlannedData, request: dict[str, Any], estimator: Any, tell: Callable[[Event], None], *, epochs: bool
    ) -> None:
        """Run folds of one row and seed, and report each step.

        Events: ``load``, ``prepare``, ``fold`` (it begins), ``epoch``, and ``done`` or ``failed`` (of one fold, or of
        all folds where ``fold`` is None).

        Args:
            data: the set.
            request: ``method``, ``configs``, ``tuning``, ``seed``, ``train_size`` and the numbers of the ``folds``.
            estimator: of the caller's, where there is no method.
            tell: called with each event.
            epochs: whether to report epochs.
        """
        numbers: list[int] = request["folds"]
        try:
            tell({"event": "load"})
            prepared = self._prepared_set(data, digest([request["method"], request["configs"]]))
            tell({"event": "prepare"})
            began = time.perf_counter()
            worker = Worker(
                *(prepared, request["method"], request["configs"], request["seed"], estimator),
                *(data.task, data.metric, data.groups(prepared), tuning_of(request["tuning"])),
            )
            worker.prepare()
            shared = (time.perf_counter() - began) / len(numbers)
        except Exception as error:
            if not self._catch:
                raise
            tell({"event": "failed", "fold": None, **failure(error)})
            return
        for number in numbers:
            tell({"event": "fold", "fold": number})
            began = time.perf_counter()

            def on_epoch(epoch: Epoch, number: int = number) -> None:
                tell({"event": "epoch", "fold": number, "epoch": epoch})

            try:
                fold = self._fold(data, prepared, request["seed"], number)
                found = worker.run(fold, number, on_epoch if epochs else None, request["train_size"])
            except Exception as error:
                if not self._catch:
                    raise
                tell({"event": "failed", "fold": number, **failure(error)})
                continue
            seconds = shared + time.perf_counter() - began
            tell({"event": "done", "fold": number, "seconds": seconds, **asdict(found)})

    def _prepared_set(self, data: PlannedData, settings: str) -> PreparedSet:
        """Return the set with earlier computations for the same method and settings; others are dropped."""
        key = (data.fingerprint, settings)
        if self._prepared is None or self._prepared[0] != key:
            self._prepared = None
            self._prepared = key, PreparedSet(self._load(data))
        return self._prepared[1]

    def _load(self, data: PlannedData) -> GraphSet:
        if data.name in self._memory.graphs:
            return self._memory.graphs[data.name]
        if self._graphs is None or self._graphs[0] != data.fingerprint:
            self._graphs = None
            self._graphs = data.fingerprint, data.load()
        return self._graphs[1]

    def _fold(self, data: PlannedData, graphs: PreparedSet, seed: int, number: int) -> Fold:
        if data.name in self._memory.folds:
            return self._memory.folds[data.name][number]
        return data.fold(graphs, seed, number)


def tuning_of(request: dict[str, Any] | None) -> Tuning | None:
    """Return the search of a request, from the values of ``dataclasses.asdict``."""
    return None if request is None else validated(Tuning, request, "is no search of settings")


def failure(error: Exception) -> dict[str, str]:
    """Return the record of an exception: one line, and whether memory ran out."""
    text = " ".join(str(error).split())
    if not isinstance(error, GcapsError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    # torch reports a failed allocation as a RuntimeError
    short = isinstance(error, MemoryError | MemoryLimitError) or "can't allocate memory" in text
    return {"status": "memory" if short else "failed", "error": text}
