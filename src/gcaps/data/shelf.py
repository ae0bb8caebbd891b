"""Where a folder grows before it takes its place, and how the leavings of a killed run are told from a living one's."""

from __future__ import annotations

import glob
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gcaps.files import replacing

LOCK = "lock"


@contextmanager
def shelved(goal: Path) -> Iterator[Path]:
    """As :func:`gcaps.files.replacing`, for writings that take long: what dead writers of ``goal`` left is removed.

    A writer holds a lock on a file of its temporary folder, which the system releases however the writer ends.
    """
    _sweep(goal)
    with replacing(goal) as draft:
        fresh = draft.parent / f"{LOCK}.new"
        with fresh.open("w") as held:
            _locked(held.fileno())
            fresh.rename(draft.parent / LOCK)  # nobody sees the file before it is locked
            yield draft


def _sweep(goal: Path) -> None:
    for shelf in goal.parent.glob(f".{glob.escape(goal.name)}.*"):
        try:
            with (shelf / LOCK).open("r+") as file:
                dead = _locked(file.fileno())
        except OSError:  # not a shelf of this kind, or somebody else's
            continue
        if dead:
            shutil.rmtree(shelf, ignore_errors=True)


def _locked(file: int) -> bool:
    """Whether the file could be locked, until it is closed; never where the system knows no such lock."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
