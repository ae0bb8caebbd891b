"""Errors of writing as one line, and removal of temporary files of a process that has to end."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gcaps.errors import GcapsError

FAILURES = {
    errno.ENOSPC: "no space is left on the disk",
    errno.EDQUOT: "your quota of the disk is used up",
    errno.EIO: "the disk reports an input/output error",
    errno.EFBIG: "the file would be larger than this system or its limits allow",
    errno.EROFS: "the disk is read-only",
}
"""Errors of a disk, whatever is written."""
_TEMPORARY: set[Path] = set()
"""Folders of writes under way."""


class StorageError(GcapsError):
    """Something could not be written: the disk is full, read-only or broken."""

    exit_code = 9


def storage_error(error: BaseException, goal: str | Path) -> StorageError | None:
    """Return the error of a disk that an exception tells of, or None.

    The exception may be an OSError, that of ``numpy.tofile``, which has no number, or one of a compiled library
    (safetensors, torch), which puts the number into its text.
    """
    number = error.errno if isinstance(error, OSError) else None
    text = str(error)
    if number is None and (told := re.search(r"os error (\d+)", text)) is not None:
        number = int(told[1])
    if number is None and (isinstance(error, OSError) and " requested and " in text):
        number = errno.ENOSPC
    if number is None and re.search(r"no space left|disk quota exceeded|PytorchStreamWriter failed", text, re.I):
        number = errno.ENOSPC
    if number not in FAILURES:
        return None
    return StorageError(f"{goal}: cannot be written: {FAILURES[number]}; nothing was changed there")


@contextmanager
def writing(goal: str | Path, temporary: str | Path | None = None) -> Iterator[None]:
    """Raise a StorageError where the disk fails inside the block.

    Args:
        goal: what is written.
        temporary: folder that :func:`remove_temporary` removes if the process has to end inside the block.
    """
    folder = None if temporary is None else Path(temporary)
    if folder is not None:
        _TEMPORARY.add(folder)
    try:
        yield
    except Exception as error:
        if (found := storage_error(error, goal)) is not None:
            raise found from error
        raise
    finally:
        if folder is not None:
            _TEMPORARY.discard(folder)


def remove_temporary() -> None:
    """Remove the temporary folders of all writes under way, for a process that ends without unwinding."""
    for folder in tuple(_TEMPORARY):
        shutil.rmtree(folder, ignore_errors=True)
