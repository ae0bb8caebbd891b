"""Distribution of requests to workers: those that arrive within a few milliseconds are predicted together.

A worker that exceeds the time limit is killed and replaced. If its batch had several requests, each is tried once more
by itself, and only the slow one is refused. The requests of a worker that died are tried once more by themselves, too:
it may have died before it read them.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from gcaps.serve.handler import Handler, Job, Reply, error_reply
from gcaps.serve.limits import BATCH_BYTES, Limits, ServerSettings
from gcaps.serve.messages import packed, read_message
from gcaps.serve.metrics import Metrics

SHARE = 0.5
"""Time limit of a batch of several requests, as a share of the limit of one."""


class Worker(Protocol):
    """Interface of workers, which answer batches of requests."""

    pid: int

    async def ask(self, jobs: Sequence[Job]) -> list[Reply]:
        """Answer requests; raise ConnectionError or EOFError if the worker died."""

    def stop(self) -> None:
        """Kill the worker."""


class InThread:
    """Worker in a thread of this process, for tests and for servers that embed the app; it cannot be stopped."""

    pid = 0

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    async def ask(self, jobs: Sequence[Job]) -> list[Reply]:
        """Answer requests."""
        return await asyncio.to_thread(self.handler.handle, jobs)

    def stop(self) -> None:
        """Do nothing: a thread cannot be killed."""


class OverSocket:
    """Worker process at the other end of a socket.

    Args:
        pid: of the process.
        reader: of the socket.
        writer: of the socket.
        kill: kills the process.
    """

    def __init__(
        self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kill: Callable[[int], None]
    ) -> None:
        self.pid, self.reader, self.writer, self._kill = pid, reader, writer, kill

    async def ask(self, jobs: Sequence[Job]) -> list[Reply]:
        """Send requests and wait for the answers."""
        self.writer.write(packed([[job.kind, job.options] for job in jobs], [job.body for job in jobs]))
        await self.writer.drain()
        heads, bodies = await read_message(self.reader)
        return [Reply(status, body, graphs) for (status, graphs), body in zip(heads, bodies, strict=True)]

    def stop(self) -> None:
        """Kill the process."""
        self._kill(self.pid)
        self.writer.close()


@dataclass
class _Entry:
    """A waiting request."""

    job: Job
    answer: asyncio.Future[Reply]
    arrived: float
    alone: bool = field(default=False)

    @property
    def small(self) -> bool:
        return self.job.kind == "predict" and not self.alone and len(self.job.body) <= BATCH_BYTES


class Pool:
    """Queue of requests, and the workers that answer them.

    Args:
        settings: of the server.
        limits: of a request.
        metrics: counts batches, graphs, timeouts.
    """

    def __init__(self, settings: ServerSettings, limits: Limits, metrics: Metrics) -> None:
        self.settings, self.limits, self.metrics = settings, limits, metrics
        self.waiting: deque[_Entry] = deque()
        self.open = 0
        """Number of requests that wait or are being answered."""
        self.stopping = False
        self.workers: dict[int, Worker] = {}
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()
        self._arrived = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start to distribute requests; called in the running event loop."""
        self._spawn(self._dispatch())

    def add(self, worker: Worker) -> None:
        """Add a worker."""
        self.workers[worker.pid] = worker
        self._idle.put_nowait(worker)

    def lost(self, pid: int) -> None:
        """Remove a worker that died."""
        if self.workers.pop(pid, None) is not None:
            self.metrics.restarts += 1

    async def close(self) -> None:
        """Stop distributing requests, and refuse those that wait."""
        self.stopping = True
        for entry in self.waiting:
            if not entry.answer.done():
                entry.answer.set_result(error_reply(503, "stopping", "the server is stopping"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def run(self, job: Job) -> Reply:
        """Return the answer to a request."""
        if self.stopping:
            return error_reply(503, "stopping", "the server is stopping")
        if self.open >= self.settings.max_waiting:
            return error_reply(503, "busy", "too many requests are waiting; try again in a moment")
        entry = _Entry(job, asyncio.get_running_loop().create_future(), time.monotonic())
        self.waiting.append(entry)
        self._arrived.set()
        self.open += 1
        try:
            return await asyncio.wait_for(entry.answer, self.limits.max_seconds)
        except TimeoutError:
            self.metrics.timeouts += 1
            return too_slow(self.limits)
        finally:
            self.open -= 1

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dispatch(self) -> None:
        while True:
            worker = await self._idle.get()
            await self._some_wait()
            if worker.pid in self.workers:  # it may have died since
                self._spawn(self._work(worker, await self._next()))

    async def _some_wait(self) -> None:
        while True:
            while self.waiting and self.waiting[0].answer.done():  # timed out
                self.waiting.popleft()
            if self.waiting:
                return
            self._arrived.clear()
            await self._arrived.wait()

    async def _next(self) -> list[_Entry]:
        """Return the next batch: one request, or several small ones."""
        first = self.waiting[0]
        if not first.small:
            return [self.waiting.popleft()]
        left = first.arrived + self.settings.window - time.monotonic()
        if left > 0 and self.settings.max_batch > 1:
            await asyncio.sleep(left)
        chosen: list[_Entry] = []
        others: list[_Entry] = []
        while self.waiting and len(chosen) < self.settings.max_batch:
            entry = self.waiting.popleft()
            if not entry.answer.done():
                (chosen if entry.small else others).append(entry)
        self.waiting.extendleft(reversed(others))
        return chosen

    async def _work(self, worker: Worker, entries: list[_Entry]) -> None:
        """Let a worker answer a batch."""
        if not entries:
            self._idle.put_nowait(worker)
            return
        limit = self.limits.max_seconds
        left = min(entry.arrived for entry in entries) + limit - time.monotonic()
        if len(entries) > 1:
            left = min(left, SHARE * limit)
        self.metrics.batches.add(len(entries))
        try:
            replies = await asyncio.wait_for(worker.ask([entry.job for entry in entries]), max(left, 0.001))
        except TimeoutError:
            self._replace(worker)
            self._again(entries, too_slow(self.limits))
            return
        except (ConnectionError, EOFError, OSError):
            self._replace(worker)
            refusal = error_reply(500, "crashed", "the process that worked on this request ended")
            self._again(entries, refusal, died=True)
            return
        self._idle.put_nowait(worker)
        for entry, reply in zip(entries, replies, strict=True):
            self.metrics.graphs += reply.graphs
            if not entry.answer.done():
                entry.answer.set_result(reply)

    def _replace(self, worker: Worker) -> None:
        """Kill a worker; its parent replaces it."""
        self.lost(worker.pid)
        with suppress(OSError):
            worker.stop()

    def _again(self, entries: Sequence[_Entry], refusal: Reply, died: bool = False) -> None:
        """Queue each request of a failed batch again by itself; refuse one that was alone or failed twice."""
        for entry in reversed(entries):
            if entry.answer.done():
                continue
            if len(entries) == 1 and (entry.alone or not died):
                self.metrics.timeouts += refusal.status == 504
                entry.answer.set_result(refusal)
            else:
                entry.alone = True
                self.waiting.appendleft(entry)
        self._arrived.set()


def too_slow(limits: Limits) -> Reply:
    """Return the error of a request that took too long."""
    return error_reply(
        504, "too_slow", f"took longer than {limits.max_seconds:g} seconds; send fewer or smaller graphs"
    )
