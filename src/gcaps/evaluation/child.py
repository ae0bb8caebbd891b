"""The process that computes cells, so that whatever befalls it befalls one cell: started by :mod:`.supervise`.

It reads a request a line from its standard input and answers with events, one a line, both as JSON. A request is the
work of one data set, method and seed: ``{"data", "method", "configs", "seed", "folds"}``. Events: ``load``,
``prepare``, ``fold`` (it begins), ``done`` or ``failed`` (of a fold, or of all that are left), ``end``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gcaps.errors import GcapsError, MemoryLimitError

if TYPE_CHECKING:
    from gcaps.data.graphset import GraphSet

Event = dict[str, Any]

_held: dict[str, GraphSet] = {}
"""The set of the last request, by its fingerprint: the next one is most often about the same."""


def main(lifeline: str) -> None:
    """Answer requests until there are no more, or the process that holds the other end of ``lifeline`` is gone."""
    die_with(int(lifeline))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not look like an answer
    for line in sys.stdin:
        for event in answer(json.loads(line)):
            answers.write(json.dumps(event, allow_nan=False) + "\n")
            answers.flush()


def die_with(lifeline: int) -> None:
    """End this process at once, whatever it is doing, when the last writing end of the pipe ``lifeline`` closes."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where it ends once its standard input does
        return
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    os.set_blocking(lifeline, False)
    try:
        if os.read(lifeline, 1) == b"":  # it closed before we looked
            sys.exit(1)
    except BlockingIOError:
        pass


def answer(request: dict[str, Any]) -> Iterator[Event]:
    """Do the work of a request, event by event."""
    left: list[int] = request["folds"]
    try:
        yield {"event": "load"}
        from gcaps.evaluation.plan import PlannedData
        from gcaps.evaluation.work import Worker

        data = PlannedData(**request["data"])
        graphs = _graphs(data)
        yield {"event": "prepare"}
        began = time.perf_counter()
        worker = Worker(graphs, request["method"], request["configs"], request["seed"])
        shared = (time.perf_counter() - began) / len(left)
    except Exception as error:
        yield {"event": "failed", "fold": None, **_failure(error)}
    else:
        for number in left:
            yield {"event": "fold", "fold": number}
            began = time.perf_counter()
            try:
                worked = worker.run(data.fold(graphs, request["seed"], number), number)
            except Exception as error:
                yield {"event": "failed", "fold": number, **_failure(error)}
                continue
            seconds = shared + time.perf_counter() - began
            yield {"event": "done", "fold": number, "seconds": seconds, **asdict(worked)}
    yield {"event": "end"}


def _graphs(data: Any) -> GraphSet:
    if data.fingerprint not in _held:
        _held.clear()
        _held[data.fingerprint] = data.load()
    return _held[data.fingerprint]


def _failure(error: Exception) -> dict[str, str]:
    """What is recorded of an exception: one line, and whether it was for want of memory."""
    text = " ".join(str(error).split())
    if not isinstance(error, GcapsError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    # torch tells of a failed allocation by a RuntimeError
    short = isinstance(error, MemoryError | MemoryLimitError) or "can't allocate memory" in text
    return {"status": "memory" if short else "failed", "error": text}


if __name__ == "__main__":
    main(sys.argv[1])
