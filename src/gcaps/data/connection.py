"""HTTP that cannot be made to wait for ever: a guard that watches the clock and hangs up."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import suppress
from typing import Any, Self

from gcaps.errors import DownloadError


class Guard:
    """Watches a transfer from a thread of its own and cuts the connection when it is too slow.

    A socket's timeout starts anew with every byte, so a server that drips one byte a second passes it for ever,
    already in its headers. The guard asks for ``slowest`` bytes a second over each stretch of ``timeout`` seconds, and
    for an end before ``deadline``.
    """

    def __init__(self, timeout: float, slowest: float, deadline: float) -> None:
        self.timeout, self.slowest, self.deadline = timeout, slowest, deadline
        self.received = 0
        self.verdict: str | None = None
        self._sockets: list[socket.socket] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="download guard", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def watch_over(self, connected: socket.socket) -> None:
        """Hang up this connection too, should it come to that."""
        self._sockets.append(connected)
        if self.verdict is not None:
            self._hang_up()

    def _watch(self) -> None:
        begun = time.monotonic()
        before = 0
        while not self._done.wait(min(self.timeout, max(0.0, begun + self.deadline - time.monotonic()))):
            if time.monotonic() >= begun + self.deadline:
                self.verdict = f"not done after {self.deadline:g} seconds, given up"
            elif self.received - before < self.slowest * self.timeout:
                arrived = self.received - before
                self.verdict = f"only {arrived:,} bytes in {self.timeout:g} seconds, given up"
            before = self.received
            if self.verdict is not None:
                self._hang_up()
                return

    def _hang_up(self) -> None:
        for connected in self._sockets:
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)


def opener(guard: Guard) -> urllib.request.OpenerDirector:
    """An opener that knows http and https and nothing else, and whose connections the guard watches over."""
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        _guarded_handler(guard),
        urllib.request.HTTPDefaultErrorHandler(),
        _Redirects(),
        urllib.request.HTTPErrorProcessor(),
    ):
        made.add_handler(handler)
    return made


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects that stay with http and https, and never from https down to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        before, after = req.type, urllib.parse.urlsplit(newurl).scheme
        if after not in ("http", "https") or (before == "https" and after == "http"):
            raise DownloadError(f"{req.full_url}: redirects to {newurl[:200]}, refused; check GCAPS_TU_URL")
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    def http_error_302(self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any) -> Any:
        """urllib refuses other schemes itself, but as an answer of the server's; ours says what happened."""
        goal = headers.get("location") or headers.get("uri")
        if goal is not None and urllib.parse.urlsplit(goal).scheme not in ("", "http", "https"):
            fp.close()
            raise DownloadError(f"{req.full_url}: redirects to {goal[:200]}, refused; check GCAPS_TU_URL")
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _guarded_handler(guard: Guard) -> urllib.request.BaseHandler:
    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            guard.watch_over(self.sock)

    class Secure(http.client.HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            guard.watch_over(self.sock)

    class Handler(urllib.request.HTTPSHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Plain, req)

        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Secure, req)

        http_request = urllib.request.AbstractHTTPHandler.do_request_

    return Handler()
