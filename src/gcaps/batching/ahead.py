"""Batches prepared in the background while the network works on the one before."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")


def ahead(prepare: Callable[[S], T], items: Iterable[S], depth: int = 2) -> Iterator[T]:
    """``map(prepare, items)`` with up to ``depth`` results ready before they are asked for, made by one thread.

    Order and results are those of ``map``; an exception comes up where its result would have.
    """
    ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(entry: tuple[T | None, BaseException | None]) -> None:
        while not stopped.is_set():
            try:
                ready.put(entry, timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                if stopped.is_set():
                    return
                put((prepare(item), None))
            put((None, StopIteration()))
        except BaseException as error:
            put((None, error))

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while True:
            result, error = ready.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield result  # type: ignore[misc]
    finally:
        stopped.set()
        worker.join()
