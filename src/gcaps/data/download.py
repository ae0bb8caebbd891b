"""Fetching a zip of the TU collection: bounded in size and time, checked before it is kept, recorded beside it."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from gcaps.data.archive import Files
from gcaps.data.connection import Guard, opener
from gcaps.errors import DataError, DownloadError
from gcaps.files import replacing, write_json

TU_URL = "https://www.chrsmrrs.com/graphkerneldatasets"
"""Where the TU collection lies; the environment variable GCAPS_TU_URL names another place."""
LIMIT = 2 << 30
"""Bytes that a data set may have."""

_BLOCK = 1 << 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Progress = Callable[[int, int | None], None]
"""Told the bytes so far and, where the server says it, how many there will be."""


def download(
    name: str,
    folder: str | Path,
    base_url: str | None = None,
    *,
    limit: int = LIMIT,
    timeout: float = 30.0,
    slowest: float = 4096.0,
    deadline: float = 4 * 3600.0,
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Fetch ``NAME.zip`` into ``folder`` and write ``NAME.zip.json`` (url, bytes, sha256, date) beside it.

    The file appears there only when it is whole and sound; after any failure everything is as it was. A file that is
    there and agrees with its record is not fetched again.

    Args:
        name: the data set's name in the TU collection.
        folder: where the zip goes.
        base_url: where the collection is; by default ``GCAPS_TU_URL``, else :data:`TU_URL`.
        limit: more bytes than this are refused.
        timeout: seconds the server may be silent.
        slowest: bytes a second that must arrive on average over each stretch of ``timeout`` seconds.
        deadline: seconds for everything.
        force: fetch even what is there, and take it even if it is not what was recorded before.
        progress: called after every block.

    Raises:
        DownloadError: in one line, with the remedy.
    """
    if not _NAME.fullmatch(name):
        raise DownloadError(f"{name!r} is not a data set's name; names are letters, digits and . _ - only")
    goal = Path(folder) / f"{name}.zip"
    record = goal.with_name(goal.name + ".json")
    known = _recorded(record)
    if not force and goal.exists():
        if known is None:
            raise DownloadError(f"{goal} is there and was not fetched by gcaps; --force replaces it")
        if _sha256(goal) == known["sha256"]:
            return goal
    url = f"{(base_url or os.environ.get('GCAPS_TU_URL') or TU_URL).rstrip('/')}/{name}.zip"
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url} is neither http nor https; correct GCAPS_TU_URL")
    with replacing(goal) as draft:
        with Guard(timeout, slowest, deadline) as guard:
            size, checksum = _fetch(name, url, draft, limit, guard, progress)
        _require_sound(draft, name, url)
        if known is not None and known["sha256"] != checksum and not force:
            raise DownloadError(
                f"{url} has changed since {known['date']} (SHA-256 {checksum[:16]}…, then {known['sha256'][:16]}…); "
                "--force takes the new file"
            )
        # the record first: should the machine stop right here, the old zip disagrees with it and is fetched again
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(record, {"url": url, "bytes": size, "sha256": checksum, "date": now})
    return goal


def _fetch(name: str, url: str, draft: Path, limit: int, guard: Guard, progress: Progress | None) -> tuple[int, str]:
    """Stream the body to ``draft``; how many bytes, and their SHA-256."""
    request = urllib.request.Request(url, headers={"User-Agent": "gcaps", "Accept-Encoding": "identity"})
    try:
        with opener(guard).open(request, timeout=guard.timeout) as response:
            total = _announced(response.headers.get("Content-Length"))
            if total is not None:
                _require_room(name, total, limit, draft.parent)
            with draft.open("wb") as file:
                received, checksum = _copy(name, response, file, total, limit, guard, progress)
    except DownloadError:
        raise
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(name, url, error) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        if guard.verdict is not None:
            raise DownloadError(f"{url}: {guard.verdict}; try again later") from error
        reason = " ".join(str(getattr(error, "reason", None) or error).split())
        raise DownloadError(f"{url}: cannot be fetched ({reason}); check the connection and try again") from error
    if guard.verdict is not None:
        raise DownloadError(f"{url}: {guard.verdict}; try again later")
    if total is not None and received != total:
        raise DownloadError(f"{url}: broke off after {received:,} of {total:,} bytes; try again")
    return received, checksum


def _copy(
    name: str, response: Any, file: IO[bytes], total: int | None, limit: int, guard: Guard, progress: Progress | None
) -> tuple[int, str]:
    digest = hashlib.sha256()
    received = 0
    # read1 hands over what is there; read would wait for a full block, and a slow server could make it wait for ever
    while block := response.read1(_BLOCK):
        received += len(block)
        guard.received = received
        if received > limit:
            raise DownloadError(f"{name}: the server sends more than the limit of {limit:,} bytes; given up")
        digest.update(block)
        try:
            file.write(block)
        except OSError as error:
            raise DownloadError(f"{name}: cannot be written ({error.strerror}); make room or choose --to") from error
        if progress is not None:
            progress(received, total)
    return received, digest.hexdigest()


def _announced(header: str | None) -> int | None:
    return int(header) if header is not None and header.strip().isdecimal() else None


def _require_room(name: str, total: int, limit: int, folder: Path) -> None:
    if total > limit:
        raise DownloadError(f"{name} has {total:,} bytes, more than the limit of {limit:,}")
    if total > (free := shutil.disk_usage(folder).free):
        raise DownloadError(f"{name} has {total:,} bytes and the disk only {free:,} left; make room or choose --to")


def _refused(name: str, url: str, error: urllib.error.HTTPError) -> DownloadError:
    if error.code == 404:
        return DownloadError(
            f"{url}: there is no {name} (404); names are listed at https://chrsmrrs.github.io/datasets"
        )
    reason = " ".join(str(error.reason).split())
    return DownloadError(f"{url}: the server answers {error.code} {reason}; try again later")


def _require_sound(path: Path, name: str, url: str) -> None:
    """Open the zip as the reader would, and read every member to its end, which checks its CRC."""
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
        raise DownloadError(f"{url}: what arrived {error.problem}") from error


def _recorded(record: Path) -> dict[str, Any] | None:
    """The record of an earlier download, or None; one that cannot be read counts as none."""
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
        return {"sha256": str(found["sha256"]), "date": str(found["date"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
