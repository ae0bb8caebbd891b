"""Download a zip of the TU collection: limited in size and time, checked before it is kept, recorded beside it.

pooch would save only the copying of bytes: the limits on size and time, the refused redirects and the record of what
was fetched before are not part of it.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated, Any, Self
from urllib.parse import urljoin, urlsplit

from pydantic import Field

from gcaps.data.io.archive import Files
from gcaps.documents import Count, Digest, Name, Page, read_json, validated
from gcaps.errors import DataError, DownloadError, GcapsError
from gcaps.files import opened, replacing, write_json

TU_URL = "https://www.chrsmrrs.com/graphkerneldatasets"
"""Address of the TU collection; the environment variable GCAPS_TU_URL overrides it."""
LIMIT = 2 << 30
"""Largest accepted number of bytes."""

_BLOCK = 1 << 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Progress = Callable[[int, int | None], None]
"""Called with the number of bytes received and, if the server announces it, the total."""


def download(
    name: str,
    folder: str | Path,
    base_url: str | None = None,
    *,
    limit: int = LIMIT,
    timeout: float = 30.0,
    min_speed: float = 4096.0,
    deadline: float = 4 * 3600.0,
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Download ``NAME.zip`` into ``folder`` and write ``NAME.zip.json`` (url, bytes, sha256, date) beside it.

    The file appears only when it is complete and has been checked; after a failure everything is as before. A file that
    matches its record is not downloaded again.

    Args:
        name: of the data set in the TU collection.
        folder: where the zip is written.
        base_url: address of the collection; by default ``GCAPS_TU_URL`` or :data:`TU_URL`.
        limit: largest accepted number of bytes.
        timeout: seconds without data after which the download fails.
        min_speed: bytes per second that must arrive on average over every ``timeout`` seconds.
        deadline: seconds for the whole download.
        force: download again, and accept a file that differs from the recorded one.
        progress: called after every block.

    Raises:
        DownloadError: with the reason and the remedy in one line.
    """
    if not _NAME.fullmatch(name):
        raise DownloadError(f"{name!r} is not a data set's name; names are letters, digits and . _ - only")
    goal = Path(folder) / f"{name}.zip"
    record = goal.with_name(goal.name + ".json")
    known = _recorded(record)
    if not force and goal.exists():
        if known is None:
            raise DownloadError(f"{goal} exists and was not downloaded by gcaps; --force replaces it")
        if _sha256(goal) == known["sha256"]:
            return goal
    url = f"{(base_url or os.environ.get('GCAPS_TU_URL') or TU_URL).rstrip('/')}/{name}.zip"
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url} is neither http nor https; correct GCAPS_TU_URL")
    with replacing(goal) as draft:
        with _Watchdog(timeout, min_speed, deadline) as watchdog:
            size, checksum = _fetch(name, url, draft, limit, watchdog, progress)
        _require_sound(draft, name, url)
        if known is not None and known["sha256"] != checksum and not force:
            raise DownloadError(
                f"{url} has changed since {known['date']} (SHA-256 {checksum[:16]}…, then {known['sha256'][:16]}…); "
                "--force accepts the new file"
            )
        # the record first: after a crash right here, the old zip does not match it and is downloaded again
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(record, {"url": url, "bytes": size, "sha256": checksum, "date": now})
    return goal


def _fetch(
    name: str, url: str, draft: Path, limit: int, watchdog: _Watchdog, progress: Progress | None
) -> tuple[int, str]:
    """Write the body to ``draft``; return its number of bytes and SHA-256."""
    request = urllib.request.Request(url, headers={"User-Agent": "gcaps", "Accept-Encoding": "identity"})
    try:
        with _opener(watchdog).open(request, timeout=watchdog.timeout) as response:
            announced = str(response.headers.get("Content-Length")).strip()
            total = int(announced) if announced.isdecimal() else None
            if total is not None:
                _require_room(name, total, limit, draft.parent)
            with draft.open("wb") as file:
                received, checksum = _copy(name, response, file, total, limit, watchdog, progress)
    except DownloadError:
        raise
    except urllib.error.HTTPError as error:
        with error:
            raise _http_error(name, url, error) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        watchdog.require_in_time(url)
        reason = " ".join(str(getattr(error, "reason", None) or error).split())
        raise DownloadError(f"{url}: cannot be fetched ({reason}); check the connection and try again") from error
    watchdog.require_in_time(url)
    if total is not None and received != total:
        raise DownloadError(f"{url}: ended after {received:,} of {total:,} bytes; try again")
    return received, checksum


def _copy(
    name: str,
    response: Any,
    file: IO[bytes],
    total: int | None,
    limit: int,
    watchdog: _Watchdog,
    progress: Progress | None,
) -> tuple[int, str]:
    digest = hashlib.sha256()
    received = 0
    # read1 returns what has arrived; read would wait for a full block, which a slow server can delay without limit
    while block := response.read1(_BLOCK):
        received += len(block)
        watchdog.received = received
        if received > limit:
            raise DownloadError(f"{name}: the server sends more than the limit of {limit:,} bytes; stopped")
        digest.update(block)
        try:
            file.write(block)
        except OSError as error:
            raise DownloadError(f"{name}: cannot be written ({error.strerror}); make room or choose --to") from error
        if progress is not None:
            progress(received, total)
    return received, digest.hexdigest()


def _require_room(name: str, total: int, limit: int, folder: Path) -> None:
    if total > limit:
        raise DownloadError(f"{name} has {total:,} bytes, more than the limit of {limit:,}")
    if total > (free := shutil.disk_usage(folder).free):
        raise DownloadError(f"{name} has {total:,} bytes, the disk only {free:,} left; make room or choose --to")


def _http_error(name: str, url: str, error: urllib.error.HTTPError) -> DownloadError:
    if error.code == 404:
        return DownloadError(
            f"{url}: there is no {name} (404); names are listed at https://chrsmrrs.github.io/datasets"
        )
    reason = " ".join(str(error.reason).split())
    return DownloadError(f"{url}: the server answers {error.code} {reason}; try again later")


def _require_sound(path: Path, name: str, url: str) -> None:
    """Open the zip as the reader does, and read every member to its end, which checks its CRC."""
    try:
        files = Files(path)
        try:
            for needed in (f"{name}_A.txt", f"{name}_graph_indicator.txt"):
                if needed not in files.names:
                    raise DownloadError(f"{url}: is a zip without {needed}; it is not this data set")
            for member in files.names:
                with files.open(member) as stream:
                    while stream.read(1 << 20):
                        pass
        finally:
            files.close()
    except DataError as error:
        raise DownloadError(f"{url}: the downloaded file {error.problem}") from error


class DownloadRecord(Page):
    """Record of a download."""

    url: Name
    bytes: Count

    sha256: Digest
    date: Annotated[str, Field(max_length=64)]


def _recorded(record: Path) -> dict[str, Any] | None:
    """Return the record of an earlier download; None if there is none that can be read."""
    try:
        return validated(DownloadRecord, read_json(record), str(record)).model_dump()
    except GcapsError:
        return None


def _sha256(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Watchdog:
    """Thread that closes the connection of a transfer that is too slow.

    A socket's timeout starts again with every byte, so a server that sends one byte a second, even of its headers,
    never exceeds it. The watchdog demands ``min_speed`` bytes per second over every ``timeout`` seconds, and an end
    within ``deadline`` seconds.
    """

    def __init__(self, timeout: float, min_speed: float, deadline: float) -> None:
        self.timeout, self.min_speed, self.deadline = timeout, min_speed, deadline
        self.received = 0
        self.problem: str | None = None
        self._sockets: list[socket.socket] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="download watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def watch(self, connected: socket.socket) -> None:
        """Close this socket too when the transfer is too slow."""
        self._sockets.append(connected)
        if self.problem is not None:
            self._close()

    def require_in_time(self, url: str) -> None:
        """Raise a DownloadError if the transfer was too slow."""
        if self.problem is not None:
            raise DownloadError(f"{url}: {self.problem}; try again later")

    def _run(self) -> None:
        start = time.monotonic()
        before = 0
        while not self._done.wait(min(self.timeout, max(0.0, start + self.deadline - time.monotonic()))):
            if time.monotonic() >= start + self.deadline:
                self.problem = f"not finished after {self.deadline:g} seconds, stopped"
            elif self.received - before < self.min_speed * self.timeout:
                self.problem = f"only {self.received - before:,} bytes in {self.timeout:g} seconds, stopped"
            before = self.received
            if self.problem is not None:
                self._close()
                return

    def _close(self) -> None:
        for connected in self._sockets:
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)


def _opener(watchdog: _Watchdog) -> urllib.request.OpenerDirector:
    """Return an opener for http and https only, whose connections the watchdog watches."""

    def watched(kind: type[http.client.HTTPConnection]) -> Any:
        class Connection(kind):  # type: ignore[misc, valid-type]
            def connect(self) -> None:
                super().connect()
                watchdog.watch(self.sock)

        return Connection

    class Handler(urllib.request.HTTPSHandler):
        http_request = urllib.request.AbstractHTTPHandler.do_request_

        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(watched(http.client.HTTPConnection), req)

        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(watched(http.client.HTTPSConnection), req)

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        Handler(),
        urllib.request.HTTPDefaultErrorHandler(),
        _Redirects(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https, but not from https to http."""

    def http_error_302(self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any) -> Any:
        """Follow a redirect, or raise a DownloadError."""
        goal = urljoin(req.full_url, headers.get("location") or headers.get("uri") or "")
        if urlsplit(goal).scheme not in (("https",) if req.type == "https" else ("http", "https")):
            fp.close()
            raise DownloadError(f"{req.full_url}: redirects to {goal[:200]}, refused; check GCAPS_TU_URL")
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302
