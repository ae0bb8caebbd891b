"""A worker process: answers batches of requests until it is killed or its socket is closed."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Sequence

from gcaps.data.molecules.parsing import end_with
from gcaps.serve.handler import Handler, Job, Reply, error_reply
from gcaps.serve.messages import packed, receive

UNPACKED = 16
"""Largest size of an unpacked upload, as a multiple of the largest body."""


def work(handler: Handler, connection: socket.socket, parent: int, close: Sequence[Callable[[], object]]) -> None:
    """Answer batches of requests until the socket is closed.

    Args:
        handler: answers requests; its model is shared with the process that forked this one.
        connection: to the process that listens.
        parent: process identifier of the parent; the worker ends when it does.
        close: functions that close inherited sockets of other processes.
    """
    as_child(parent)
    for each in close:
        each()
    os.environ["GCAPS_MAX_BYTES"] = str(UNPACKED * handler.limits.max_bytes)
    os.environ["GCAPS_JOBS"] = "1"
    while (message := receive(connection)) is not None:
        heads, bodies = message
        jobs = [Job(kind, options, body) for (kind, options), body in zip(heads, bodies, strict=True)]
        connection.sendall(_answer(handler, jobs))


def _answer(handler: Handler, jobs: Sequence[Job]) -> bytes:
    replies: Sequence[Reply]
    try:
        replies = handler.handle(jobs)
    except MemoryError:
        replies = [error_reply(413, "too_large", "the request needs more memory than there is")] * len(jobs)
    return packed([[reply.status, reply.graphs] for reply in replies], [reply.body for reply in replies])


def as_child(parent: int) -> None:
    """Restore the default handling of signals in a forked process, and end it when the parent ends."""
    signal.set_wakeup_fd(-1)
    for name in ("SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent handles it
    end_with(parent)
