"""Prepare batches in the background while the network works on the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")


def prefetch(prepare: Callable[[S], T], items: Iterable[S], depth: int = 2) -> Iterator[T]:
    """Yield ``prepare(item)`` for each item in order, computed by one thread up to ``depth`` results ahead.

    An exception is raised where its result would have been yielded.
    """
    ahead: deque[Future[T]] = deque()
    with ThreadPoolExecutor(1) as pool:
        try:
            for item in items:
                ahead.append(pool.submit(prepare, item))
                if len(ahead) > depth:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()
