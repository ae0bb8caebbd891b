"""The one way to files: guarded reading of regular files within limits, atomic writing of files and folders.

Whatever is read from outside is opened by :func:`opened`: a named pipe, device, socket or folder, a file over the
limit, a loop of links, a missing permission or an impossible name each become one line. Writing goes to a temporary
path beside the goal, which is renamed when it is complete.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import json
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from gcaps.disk import storage_error, writing
from gcaps.errors import ConfigError, DataError, GcapsError

LOCK = "lock"
BEFORE = "before"
"""Name of the version that is being replaced, within the temporary folder."""
PATIENCE = 3600.0
"""Seconds after which a temporary folder without a lock is that of a killed writer."""
MAX_BYTES = 1 << 36
"""Size of the largest file that is read, and of what a compressed one may unpack to (64 GiB); ``GCAPS_MAX_BYTES``."""
MAX_PARSED_BYTES = 1 << 32
"""The same for formats that are parsed as a whole: JSON, GraphML, NPZ, parquet (4 GiB)."""
MAX_RATIO = 100
"""Largest unpacked size of a compressed file, as a multiple of its size; ``GCAPS_MAX_RATIO``."""
FREE_BYTES = 1 << 26
"""Unpacked size that is allowed for any compressed file (64 MiB)."""
MAX_LINE = 1 << 20
"""Characters of the longest line of a text (1 MiB); ``GCAPS_MAX_LINE``."""
_SPECIAL = {
    stat.S_IFIFO: "a named pipe, which may never end",
    stat.S_IFCHR: "a device, which may never end",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket, which may never end",
}
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_EXCHANGE = 2
"""Flag of renameat2(2): swap two paths in one step."""
_HERE = -100
"""AT_FDCWD: paths are relative to the working directory."""


def max_bytes(default: int = MAX_BYTES) -> int:
    """Largest number of bytes that may be read from a file: the environment variable ``GCAPS_MAX_BYTES``."""
    return limit_of("GCAPS_MAX_BYTES", default, "bytes")


def max_line() -> int:
    """Largest number of characters of a line: the environment variable ``GCAPS_MAX_LINE``."""
    return limit_of("GCAPS_MAX_LINE", MAX_LINE, "characters")


def max_unpacked(packed: int, limit: int = MAX_BYTES, free: int = FREE_BYTES) -> int:
    """Largest number of bytes that ``packed`` bytes may unpack to; the environment variable ``GCAPS_MAX_RATIO``."""
    return min(max_bytes(limit), max(free, packed * limit_of("GCAPS_MAX_RATIO", MAX_RATIO, "times")))


def unpacks_to(size: int | None, packed: int) -> str:
    """Return the message for a file that unpacks to more than :func:`max_unpacked`."""
    what = "more than that" if size is None else f"{size:,} bytes"
    remedy = "unpack it first, or set GCAPS_MAX_RATIO"
    return f"has {packed:,} bytes and unpacks to {what}, beyond the limit of {max_unpacked(packed):,}; {remedy}"


def limit_of(variable: str, default: int, what: str) -> int:
    """Return the whole number that an environment variable holds, or the default.

    Raises:
        ConfigError: it holds something else; ``what`` names the counted unit.
    """
    own = os.environ.get(variable, "")
    if own and not (own.isascii() and own.isdecimal() and len(own) < 19):
        raise ConfigError(f"{variable} is {own[:40]!r}; it should be a number of {what}")
    return int(own) if own else default


def cache_folder() -> Path:
    """Folder of downloads and of results that are kept: ``GCAPS_CACHE``, by default ``gcaps`` in the user's cache."""
    if own := os.environ.get("GCAPS_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gcaps"


def status(path: str | Path) -> os.stat_result | None:
    """Return the status of a path, following links; None if it does not exist.

    Raises:
        DataError: the path cannot be looked at: its name is too long or no name, links form a loop, a permission is
            missing.
    """
    try:
        return os.stat(path)  # noqa: PTH116 - also of what pathlib refuses
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise unreadable(path, error) from error
    except ValueError as error:  # a NUL, or half of a surrogate pair
        raise DataError("is not the name of a file", repr(str(path))[:200]) from error


def exists(path: str | Path) -> bool:
    """Whether something is at a path."""
    return status(path) is not None


def is_folder(path: str | Path) -> bool:
    """Whether a folder is at a path."""
    found = status(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def is_file(path: str | Path) -> bool:
    """Whether a regular file is at a path."""
    found = status(path)
    return found is not None and stat.S_ISREG(found.st_mode)


def unreadable(path: str | Path, error: OSError) -> DataError:
    """Return the one line for an error of the operating system on reading."""
    if error.errno in _ABSENT:
        return DataError("does not exist", str(path))
    reason = "links form a loop" if error.errno == errno.ELOOP else error.strerror or error
    name = str(path)
    return DataError(f"cannot be read ({reason})", name if len(name) <= 200 else f"{name[:200]}…")


def require_file(path: str | Path, limit: int = MAX_BYTES) -> None:
    """Raise a DataError unless ``path`` is a regular file of at most ``limit`` bytes, or as GCAPS_MAX_BYTES says."""
    found = status(path)
    if found is None:
        raise DataError("does not exist", str(path))
    _require_regular(path, found, limit)


def _require_regular(path: str | Path, found: os.stat_result, limit: int) -> None:
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


def open_file(path: str | Path, limit: int = MAX_BYTES) -> BufferedReader:
    """Open a regular file of at most ``limit`` bytes for reading; what is opened is what was checked.

    Raises:
        DataError: in one line, why it cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    require_file(path, limit)  # opening a device can already do something
    try:
        number = os.open(path, flags | getattr(os, "O_NOCTTY", 0))
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        _require_regular(path, os.fstat(number), limit)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


@contextmanager
def opened(path: str | Path, limit: int = MAX_BYTES) -> Iterator[BufferedReader]:
    """:func:`open_file` as a context; an error of the operating system while reading becomes a DataError too."""
    with open_file(path, limit) as stream:
        try:
            yield stream
        except OSError as error:
            raise unreadable(path, error) from error


def read_bytes(path: str | Path, limit: int = MAX_PARSED_BYTES) -> bytes:
    """Read a whole regular file of at most ``limit`` bytes."""
    with opened(path, limit) as stream:
        most = max_bytes(limit)
        size = os.fstat(stream.fileno()).st_size
        content = stream.read(min(most, size) + 1)  # the number of bytes asked for is allocated
        while size < len(content) <= most and (more := stream.read(1 << 20)):  # it has grown meanwhile
            content += more
    if len(content) > most:
        raise DataError(too_large(len(content), limit), str(path))
    return content


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``, which replaces ``path`` on success and is removed on any failure.

    The caller creates a file or a folder there. Only a regular file or a folder is replaced; a link is followed, and
    what it names is replaced. A file is replaced in one step, and a folder too where the system can exchange two paths
    (Linux); elsewhere the old folder is moved aside first, and between two renames nothing is at ``path``: the next
    writer puts the old one back.

    Temporary folders that killed writers of the same path left behind are removed first: a writer locks a file in its
    own, and the operating system releases the lock when the process ends.
    """
    goal = writable(path)
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(goal)
        temporary = Path(tempfile.mkdtemp(prefix=f".{goal.name}.", dir=goal.parent))
    except OSError as error:
        if (full := storage_error(error, goal)) is not None:
            raise full from error
        raise GcapsError(f"{goal}: cannot be written ({error.strerror}); choose another path") from error
    draft = temporary / goal.name
    try:
        unlocked = temporary / f"{LOCK}.new"
        with writing(goal, temporary), unlocked.open("w") as held:
            _lock(held.fileno())
            unlocked.rename(temporary / LOCK)  # only a locked file ever has this name
            yield draft
            _put(draft, goal, temporary / BEFORE)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def writable(path: str | Path) -> Path:
    """Return where a file or folder is written for ``path``: itself, or what it links to.

    Raises:
        GcapsError: something is there that must not be replaced, such as a device.
    """
    try:
        found = status(path)
        goal = Path(path)
        if goal.is_symlink():
            goal = goal.resolve()
    except DataError as error:
        raise GcapsError(f"{error.file}: cannot be written ({error.problem}); choose another path") from error
    except (OSError, RuntimeError) as error:  # resolve's word for a loop
        raise GcapsError(f"{path}: cannot be written ({error}); choose another path") from error
    if found is not None and not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        kind = _SPECIAL.get(stat.S_IFMT(found.st_mode), "no regular file").split(",")[0]
        raise GcapsError(f"{path}: is {kind} and is not replaced; choose another path")
    return goal


def _put(draft: Path, goal: Path, before: Path) -> None:
    """Rename a complete draft to its goal; a folder that was there is ``draft`` or ``before`` afterwards."""
    old = goal.is_dir()
    if old and not draft.is_dir():
        raise GcapsError(f"{goal}: is a folder; choose another name for the file")
    if old and exchange(draft, goal):
        return
    if old:
        goal.replace(before)
    try:
        draft.replace(goal)
    except BaseException:
        if old:
            before.replace(goal)
        raise


def exchange(one: Path, other: Path) -> bool:
    """Swap two paths of one file system in one step; False where the system cannot."""
    function = _renameat2()
    return function is not None and function(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0


@cache
def _renameat2() -> Any:
    """The C library's renameat2, or None; Python has no name for it."""
    if not sys.platform.startswith("linux"):
        return None
    with suppress(OSError, AttributeError):
        found = ctypes.CDLL(None, use_errno=True).renameat2
        found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
        return found
    return None


@contextmanager
def output_text(path: str | Path) -> Iterator[IO[str]]:
    """Open a text file for writing, which appears when it is complete; a named pipe or terminal is written to directly.

    Of what exists only regular files are replaced: block devices and sockets are refused.
    """
    try:
        found = status(path)
    except DataError as error:
        raise GcapsError(f"{error.file}: cannot be written ({error.problem}); choose another path") from error
    if found is not None and (stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode)):
        try:
            stream = Path(path).open("w", encoding="utf-8", newline="")  # noqa: SIM115 - closed below
        except OSError as error:
            raise GcapsError(f"{path}: cannot be written ({error.strerror}); choose another path") from error
        with stream:
            yield stream
        return
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise GcapsError(f"{path}: is a folder; choose another name for the file")
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as text:
        yield text


def _remove_abandoned(goal: Path) -> None:
    for temporary in goal.parent.glob(f".{glob.escape(goal.name)}.{'[!.]' * 8}"):  # as mkdtemp names them
        try:
            with (temporary / LOCK).open("r+") as file:
                abandoned = _lock(file.fileno())
                if abandoned and not goal.exists() and (temporary / BEFORE).is_dir():
                    (temporary / BEFORE).replace(goal)  # killed between two renames
        except FileNotFoundError:
            _remove_unlocked(temporary)
            continue
        except OSError:  # not a folder of this kind, or another user's
            continue
        if abandoned:
            shutil.rmtree(temporary, ignore_errors=True)


def _remove_unlocked(temporary: Path) -> None:
    """Remove the empty folder of a writer that was killed before it locked a file there, an hour ago or earlier."""
    with suppress(OSError):
        if time.time() - temporary.stat().st_mtime > PATIENCE:
            (temporary / f"{LOCK}.new").unlink(missing_ok=True)
            temporary.rmdir()  # fails where there is anything else


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


@contextmanager
def locked(path: str | Path, problem: str) -> Iterator[None]:
    """Hold a lock on a file, which is made if need be, as long as the context lasts and this process lives.

    Raises:
        GcapsError: another process holds it; ``problem`` is the message.
    """
    with Path(path).open("a+b") as file:
        if sys.platform != "win32" and not _lock(file.fileno()):
            raise GcapsError(problem)
        yield


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` to ``path`` atomically, as UTF-8."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` to ``path`` atomically, as indented JSON. NaN and infinity are refused."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
