"""Write files and folders atomically: write to a temporary path beside the goal, then rename."""

from __future__ import annotations

import glob
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gcaps.errors import GcapsError

LOCK = "lock"


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
        raise GcapsError(f"{goal}: cannot be written ({error.strerror}); choose another path") from error
    draft = temporary / goal.name
    try:
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
