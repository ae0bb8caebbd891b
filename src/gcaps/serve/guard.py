"""ASGI middleware: checks host, origin, token and size of requests; adds headers to answers and counts them."""

from __future__ import annotations

import hmac
import ipaddress
import socket
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from gcaps.serve.handler import error_reply
from gcaps.serve.limits import Limits, ServerSettings
from gcaps.serve.metrics import Metrics

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PUBLIC = frozenset({"/", "/page.css", "/page.js", "/icon.svg", "/health"})
"""Paths that need no token: the page contains nothing of the model, and asks for the token."""
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """ASGI middleware.

    Args:
        app: the application.
        settings: of the server.
        limits: of a request.
        metrics: counts answers.
        paths: returns the paths of the application; others are counted together.
    """

    def __init__(
        self, app: App, settings: ServerSettings, limits: Limits, metrics: Metrics, paths: Callable[[], frozenset[str]]
    ) -> None:
        self.app, self.limits, self.metrics, self.paths = app, limits, metrics, paths
        self.token = None if settings.token is None else settings.token.encode()
        self.hosts = hosts_of(settings)
        self.proxies = frozenset(map(str.lower, settings.allow_hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with an error."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        path = scope["path"] if scope["path"] in self.paths() else "other"

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await respond(answer, *refusal)
            else:
                await self.app(scope, receive, answer)
        except Exception:
            traceback.print_exc()
            if not status:
                await respond(answer, 500, "internal", "the server failed on this request; its log says more")
        finally:
            self.metrics.answered(path, status or 499, time.perf_counter() - began)

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        """Return status, code and message for a request that is not passed on."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_known(host):
            return 421, "unknown_host", "the server is not known under this name; its owner can add --allow-host NAME"
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and not self._is_own(origin, host):
            return 403, "foreign_origin", "pages of other sites may not use the server"
        if scope["path"] not in PUBLIC and not self._is_allowed(headers.get(b"authorization", b"")):
            return 401, "no_token", "needs the header Authorization: Bearer TOKEN"
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self.limits.max_bytes:
            return 413, "too_large", too_long(self.limits)
        return None

    def _is_own(self, origin: str, host: str) -> bool:
        """Whether a browser's request comes from the server's own page, possibly behind a reverse proxy."""
        place = origin.partition("://")[2].lower()
        return bool(place) and (place == host.lower() or name_of(place) in self.proxies)

    def _is_known(self, host: str) -> bool:
        name = name_of(host)
        if "*" in self.hosts or name in self.hosts:
            return True
        return "any address" in self.hosts and is_address(name)

    def _is_allowed(self, given: bytes) -> bool:
        if self.token is None:
            return True
        kind, _, token = given.partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), self.token)


def name_of(host: str) -> str:
    """Return a host without its port."""
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return name.lower().rstrip(".")


def hosts_of(settings: ServerSettings) -> frozenset[str]:
    """Return the names under which clients may reach a server.

    Other names are refused: a foreign page could resolve its own name to this address (DNS rebinding).
    """
    own = {settings.host.lower(), f"[{settings.host.lower()}]", *map(str.lower, settings.allow_hosts)}
    if settings.host in ("0.0.0.0", "::", ""):  # nosec B104  # compared, not bound
        own |= {"any address", socket.gethostname().lower()}
    return frozenset(own | LOCAL)


def is_address(name: str) -> bool:
    """Whether a name is an IPv4 or IPv6 address, which cannot be rebound."""
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def too_long(limits: Limits) -> str:
    """Return the message for a body of too many bytes."""
    return f"the body has more than {limits.max_bytes:,} bytes, the limit (--max-bytes)"


async def respond(send: Send, status: int, code: str, message: str) -> None:
    """Send an error."""
    body = error_reply(status, code, message).body
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 413:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
