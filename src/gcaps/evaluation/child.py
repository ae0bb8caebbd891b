"""The process that computes cells, started and watched by :mod:`gcaps.evaluation.supervise`.

It reads one request a line from its standard input and writes events, one a line, both as JSON. A request is the work
of one row, data set and seed: the fields of :meth:`~gcaps.evaluation.session.Session.work`, the planned data, and for
an estimator of the caller's its pickle, which only ever comes through this pipe. Events are those of ``Session.work``,
with the epochs of about a fifth of a second in one ``epochs`` event, and ``end`` after the last.
"""

from __future__ import annotations

import base64
import json
import os
import pickle  # nosec B403  # see answer
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcaps.evaluation.session import Event, Session

EPOCH_INTERVAL = 0.2
"""Seconds between two messages about epochs."""


def main(lifeline: str) -> None:
    """Answer requests until there are no more, or the process at the other end of the pipe ``lifeline`` is gone."""
    die_with(int(lifeline))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not be taken for an event
    from gcaps.evaluation.session import Session  # takes seconds, in which the parent may die

    def tell(event: Event) -> None:
        answers.write(json.dumps(event) + "\n")
        answers.flush()

    session = Session()
    for line in sys.stdin:
        answer(json.loads(line), tell, session)


def die_with(lifeline: int) -> None:
    """End this process at once, whatever it is doing, when the last writing end of the pipe ``lifeline`` closes.

    The system sends a signal then, which ends even compiled code; where it cannot (some sandboxes and network file
    systems have no such signals), a thread that waits for the same does.
    """
    threading.Thread(target=_die_at_end, args=(lifeline,), daemon=True, name="lifeline").start()
    try:
        import fcntl
    except ImportError:  # Windows: it ends when its standard input does
        return
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    with suppress(OSError):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # it closed before the signal was set up
        os._exit(1)


def _die_at_end(lifeline: int) -> None:
    select.select([lifeline], [], [])  # nothing is ever written: it is readable when it has ended
    os._exit(1)


def answer(request: dict[str, Any], tell: Callable[[Event], None], session: Session) -> None:
    """Do the work of a request."""
    from gcaps.evaluation.plan import PlannedData
    from gcaps.evaluation.session import failure

    try:
        pickled = request["estimator"]  # from the process that started this one, through its pipe, never from a file
        estimator = None if pickled is None else pickle.loads(base64.b64decode(pickled))  # nosec B301
    except Exception as error:
        tell({"event": "failed", "fold": None, **failure(error)})
    else:
        session.work(PlannedData(**request["data"]), request, estimator, _Epochs(tell), epochs=request["epochs"])
    tell({"event": "end"})


class _Epochs:
    """Passes events on, epochs at most every :data:`EPOCH_INTERVAL` seconds and before any other event."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell, self._sent = tell, 0.0
        self._waiting: list[tuple[Any, ...]] = []
        self._fold = 0

    def __call__(self, event: Event) -> None:
        if event["event"] != "epoch":
            self._send()
            self._tell(event)
            return
        self._fold = event["fold"]
        self._waiting.append(astuple(event["epoch"]))
        if time.monotonic() - self._sent >= EPOCH_INTERVAL:
            self._send()

    def _send(self) -> None:
        if self._waiting:
            self._tell({"event": "epochs", "fold": self._fold, "epochs": self._waiting})
            self._waiting, self._sent = [], time.monotonic()


if __name__ == "__main__":
    main(sys.argv[1])
