"""Writing files so that a reader never sees half of one: write beside the goal, then rename."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gcaps.errors import GcapsError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success it takes ``path``'s place, on any failure it vanishes.

    What is written may be a file or a folder. An existing file of that name is replaced in one step, an existing
    folder is moved aside first and removed once the new one stands.
    """
    goal = Path(path)
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        shelf = Path(tempfile.mkdtemp(prefix=f".{goal.name}.", dir=goal.parent))
    except OSError as error:
        raise GcapsError(f"{goal}: cannot be written ({error.strerror}); choose another place") from error
    draft = shelf / goal.name
    try:
        yield draft
        if goal.is_dir() and not goal.is_symlink():
            if not draft.is_dir():
                raise GcapsError(f"{goal}: is a folder; choose another name for the file")
            goal.replace(shelf / "before")
        draft.replace(goal)
    finally:
        shutil.rmtree(shelf, ignore_errors=True)


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` to ``path`` atomically, as UTF-8."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` to ``path`` atomically, as JSON that a person can read. NaN and infinity are refused."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
