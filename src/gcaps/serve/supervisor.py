"""Load a model once, fork the listening process and the workers, and replace workers that die.

A forked process shares the memory pages of its parent until it writes to them: weights, training graphs and compiled
code are in memory once. The parent predicts nothing after its warm-up and has one thread, so that it can fork safely at
any time.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from gcaps.errors import ConfigError, GcapsError
from gcaps.estimators.base import GraphEstimator
from gcaps.persistence import load_estimator
from gcaps.serve.facts import facts_of
from gcaps.serve.handler import Handler
from gcaps.serve.limits import Limits, ServerSettings
from gcaps.serve.pool import OverSocket, Pool
from gcaps.serve.reading import remove_uploads
from gcaps.serve.worker import as_child, work

DRAIN = 1
"""Seconds in which open requests are answered when the server stops."""
SHORT = 1.0
"""A worker that lived for fewer seconds is replaced after a pause."""
LONGEST_PAUSE = 2.0
BACKLOG = 1024
KEEP_ALIVE = 30
"""Seconds that an idle connection stays open."""


def serve(path: str | Path, settings: ServerSettings, limits: Limits, say: Callable[[str], None]) -> None:
    """Serve a saved model until a signal ends this process.

    Args:
        path: folder of the model.
        settings: of the server.
        limits: of a request.
        say: called with the address when the server is ready.

    Raises:
        ConfigError: the address cannot be listened at, or the system cannot fork.
        GcapsError: the listening process ended unexpectedly.
    """
    if not hasattr(os, "fork"):
        raise ConfigError("gcaps serve needs a system that can fork (Linux, macOS, WSL); there is gcaps.serve.make_app")
    listening = listener(settings)
    with listening, one_thread():
        model = load_estimator(path)
        without_threads(model)
        name = Path(path).resolve().name
        settings = settings.model_copy(update={"port": listening.getsockname()[1]})
        handler = Handler(model, name, limits, settings.coverage)
        facts = facts_of(handler, settings)
        gc.collect()
        gc.freeze()  # a collection would write to the pages that are shared
        _Supervisor(handler, facts, settings, limits, listening).run(lambda: say(address_of(settings)))


def address_of(settings: ServerSettings) -> str:
    """Return the address of the page."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def listener(settings: ServerSettings) -> socket.socket:
    """Return a listening socket.

    Raises:
        ConfigError: the address is in use, or is none of this machine.
    """
    place = f"{settings.host}:{settings.port}"
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"{place}: is no address of this machine ({error.strerror or error})") from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        reason = error.strerror or error
        raise ConfigError(f"{place}: cannot be listened at ({reason}); choose another --port or --host") from error
    return made


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: a fork does not have the threads of its parent and would wait for them forever."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def without_threads(model: GraphEstimator) -> None:
    """Let a model and all members of an ensemble predict with one thread."""
    fitted: Any = getattr(model, "fitted_", None)
    config = getattr(fitted, "config", None)
    if getattr(config, "threads", 1) != 1 and config is not None:
        model.fitted_ = replace(fitted, config=config.model_copy(update={"threads": 1}))
    for member in getattr(model, "estimators_", ()):
        if isinstance(member, GraphEstimator):
            without_threads(member)


class _Supervisor:
    """Starts processes and replaces workers that end."""

    def __init__(
        self,
        handler: Handler,
        facts: dict[str, Any],
        settings: ServerSettings,
        limits: Limits,
        listening: socket.socket,
    ) -> None:
        self.handler, self.facts, self.settings, self.limits = handler, facts, settings, limits
        self.listening = listening
        self.context = multiprocessing.get_context("fork")
        self.control, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.workers: dict[int, tuple[BaseProcess, float]] = {}
        self.front: BaseProcess | None = None
        self.short = 0
        """Number of successive workers that lived for less than :data:`SHORT` seconds."""

    def run(self, ready: Callable[[], None]) -> None:
        """Start all processes and watch them until a signal arrives."""
        try:
            self.front = self._fork(listen, self.facts, self.settings, self.limits, self.listening, self.theirs)
            self.theirs.close()
            for _ in range(self.settings.workers):
                self._start()
            while True:
                self._watch(ready)
        finally:
            self._stop()

    def _fork(self, target: Callable[..., None], *arguments: Any) -> BaseProcess:
        process = self.context.Process(target=target, args=(*arguments, os.getpid()), daemon=True)
        process.start()
        return process

    def _start(self) -> None:
        """Fork a worker and send its socket to the listening process."""
        mine, other = socket.socketpair()
        close = (self.listening.close, self.control.close, mine.close)

        def target(parent: int) -> None:
            work(self.handler, other, parent, close)

        process = self._fork(target)
        assert process.pid is not None
        self.workers[process.pid] = (process, time.monotonic())
        with mine, other:
            socket.send_fds(self.control, [json.dumps({"worker": process.pid}).encode()], [mine.fileno()])

    def _watch(self, ready: Callable[[], None]) -> None:
        """Wait for the next events and handle them."""
        assert self.front is not None
        sentinels = {process.sentinel: process for process, _ in self.workers.values()}
        for event in wait([self.control, self.front.sentinel, *sentinels]):
            if event is self.control:
                self._told(json.loads(self.control.recv(4096)), ready)
            elif event == self.front.sentinel:
                self.front.join()
                raise GcapsError(f"the process that listens ended by itself (exit code {self.front.exitcode})")
            elif isinstance(event, int):
                self._ended(sentinels[event])

    def _told(self, message: dict[str, Any], ready: Callable[[], None]) -> None:
        if "ready" in message:
            ready()
        elif (found := self.workers.get(message.get("kill", 0))) is not None:
            found[0].kill()

    def _ended(self, process: BaseProcess) -> None:
        process.join()
        assert process.pid is not None
        _, began = self.workers.pop(process.pid)
        remove_uploads(process.pid)
        self.control.send(json.dumps({"lost": process.pid}).encode())
        self.short = self.short + 1 if time.monotonic() - began < SHORT else 0
        if self.short > 1:
            time.sleep(min(0.05 * 2.0**self.short, LONGEST_PAUSE))
        self._start()

    def _stop(self) -> None:
        """Let the listening process answer open requests, then end all processes."""
        self.listening.close()
        if self.front is not None:
            self.front.terminate()
            self.front.join(DRAIN + 0.3)
        others = [process for process, _ in self.workers.values()]
        for process in [*others, *([] if self.front is None else [self.front])]:
            with suppress(OSError):
                process.kill()
        for process in others:
            process.join()
            if process.pid is not None:
                remove_uploads(process.pid)
        self.control.close()


def listen(
    facts: dict[str, Any],
    settings: ServerSettings,
    limits: Limits,
    listening: socket.socket,
    control: socket.socket,
    parent: int,
) -> None:
    """Run the HTTP server until SIGTERM.

    Args:
        facts: answer to ``/model``.
        settings: of the server.
        limits: of a request.
        listening: socket.
        control: socket to the parent, which sends the sockets of workers and receives requests to kill some.
        parent: process identifier of the parent; this process ends when it does.
    """
    import uvicorn

    from gcaps.serve.app import application
    from gcaps.serve.connection import protocol_of

    as_child(parent)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # errors of clients are not logged

    @asynccontextmanager
    async def run(pool: Pool) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        control.setblocking(False)
        pending: set[asyncio.Task[None]] = set()

        async def take(pid: int, number: int) -> None:
            reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=number))
            pool.add(OverSocket(pid, reader, writer, kill))

        def kill(pid: int) -> None:
            control.send(json.dumps({"kill": pid}).encode())

        def told() -> None:
            content, numbers, *_ = socket.recv_fds(control, 4096, 1)
            message = json.loads(content)
            if "lost" in message:
                pool.lost(message["lost"])
            for number in numbers:
                task = asyncio.ensure_future(take(message["worker"], number))
                pending.add(task)
                task.add_done_callback(pending.discard)

        loop.add_reader(control, told)
        control.send(b'{"ready": true}')
        yield
        loop.remove_reader(control)

    config = uvicorn.Config(
        application(facts, settings, limits, run),
        http=protocol_of(min(KEEP_ALIVE, limits.max_seconds)),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=DRAIN,
    )
    uvicorn.Server(config).run(sockets=[listening])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
