"""Write files and folders atomically (to a temporary path beside the goal, then rename); limits on what is read."""

from __future__ import annotations

import glob
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gcaps.disk import storage_error, writing
from gcaps.errors import ConfigError, DataError, GcapsError

LOCK = "lock"
MAX_BYTES = 1 << 36
"""Size of the largest file that is read, and of what a compressed one may unpack to (64 GiB); ``GCAPS_MAX_BYTES``."""
MAX_PARSED_BYTES = 1 << 32
"""The same for formats that are parsed as a whole: JSON, GraphML, NPZ, parquet (4 GiB)."""
_SPECIAL = {
    stat.S_IFIFO: "a named pipe, which may never end",
    stat.S_IFCHR: "a device, which may never end",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket, which may never end",
}


def max_bytes(default: int = MAX_BYTES) -> int:
    """Largest number of bytes that may be read from a file: the environment variable ``GCAPS_MAX_BYTES``."""
    own = os.environ.get("GCAPS_MAX_BYTES", "")
    if own and not own.isdecimal():
        raise ConfigError(f"GCAPS_MAX_BYTES is {own!r}; it should be a number of bytes")
    return int(own) if own else default


def cache_folder() -> Path:
    """Folder of downloads and of results that are kept: ``GCAPS_CACHE``, by default ``gcaps`` in the user's cache."""
    if own := os.environ.get("GCAPS_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gcaps"


def require_file(path: Path, limit: int = MAX_BYTES) -> None:
    """Raise a DataError unless ``path`` is a regular file of at most ``limit`` bytes, or as GCAPS_MAX_BYTES says."""
    try:
        found = path.stat()
    except FileNotFoundError as error:
        raise DataError("does not exist", str(path)) from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", str(path)) from error
    kind = stat.S_IFMT(found.st_mode)
    if kind in _SPECIAL:
        raise DataError(f"is {_SPECIAL[kind]}; write the data to a file first", str(path))
    if kind == stat.S_IFDIR:
        raise DataError("is a folder where a file is expected", str(path))
    if found.st_size > max_bytes(limit):
        raise DataError(too_large(found.st_size, limit), str(path))


def too_large(size: int, limit: int = MAX_BYTES) -> str:
    """Return the message for a file of more bytes than the limit."""
    return f"has {size:,} bytes, more than the limit of {max_bytes(limit):,}; split it, or set GCAPS_MAX_BYTES"


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``, which replaces ``path`` on success and is removed on any failure.

    The caller creates a file or a folder there. An existing file is replaced in one step; an existing folder is moved
    aside first and removed when the new one is in place.
    """
    goal = Path(path)
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{goal.name}.", dir=goal.parent))
    except OSError as error:
        if (full := storage_error(error, goal)) is not None:
            raise full from error
        raise GcapsError(f"{goal}: cannot be written ({error.strerror}); choose another path") from error
    draft = temporary / goal.name
    try:
        with writing(goal, temporary):
            yield draft
            if goal.is_dir() and not goal.is_symlink():
                if not draft.is_dir():
                    raise GcapsError(f"{goal}: is a folder; choose another name for the file")
                goal.replace(temporary / "before")
            draft.replace(goal)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def locked_draft(goal: Path) -> Iterator[Path]:
    """Like :func:`replacing`, for long writes: also remove temporary folders of writers of ``goal`` that died.

    A writer locks a file in its temporary folder; the operating system releases the lock when the process ends.
    """
    _remove_abandoned(goal)
    with replacing(goal) as draft:
        unlocked = draft.parent / f"{LOCK}.new"
        with unlocked.open("w") as held:
            _lock(held.fileno())
            unlocked.rename(draft.parent / LOCK)  # only a locked file ever has this name
            yield draft


def _remove_abandoned(goal: Path) -> None:
    for temporary in goal.parent.glob(f".{glob.escape(goal.name)}.*"):
        try:
            with (temporary / LOCK).open("r+") as file:
                abandoned = _lock(file.fileno())
        except OSError:  # not a folder of this kind, or another user's
            continue
        if abandoned:
            shutil.rmtree(temporary, ignore_errors=True)


def _lock(file: int) -> bool:
    """Lock a file until it is closed; False if another process holds the lock or the system has no such locks."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` to ``path`` atomically, as UTF-8."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` to ``path`` atomically, as indented JSON. NaN and infinity are refused."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
