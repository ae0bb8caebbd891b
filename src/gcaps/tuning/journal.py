"""The journal of a search: the file of Optuna's JournalStorage, one JSON object a line, checked before it is opened.

Optuna replays the journal without pickle or evaluation of code. Here every line is parsed within the limits of
:mod:`gcaps.documents` and its fields are checked first; a last line that a killed process left unfinished is removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from gcaps.documents import MAX_PAGE_BYTES, Count, Name, Number, Page, parse_json, validated
from gcaps.errors import GcapsError
from gcaps.files import exists, locked, read_bytes

FILE = "journal.log"
LOCK = ".lock"
NAME = "gcaps"
"""Name of the search in its journal."""
CREATE, DELETE, OPERATIONS = 0, 1, 10
"""Codes of the operations that create and delete a search, and the largest code."""
_State = Annotated[int, Field(ge=0, le=4)]


class Line(Page):
    """An operation of the journal; unknown fields of other versions of Optuna are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    op_code: Annotated[int, Field(ge=0, le=OPERATIONS)]
    worker_id: Name
    study_name: Name = ""
    directions: Annotated[list[Annotated[int, Field(ge=0, le=2)]], Field(max_length=1)] = Field([])
    study_id: Count = 0
    trial_id: Count = 0
    state: _State = 0
    values: Annotated[list[Number], Field(max_length=1)] | None = None
    value: Number | None = None
    step: Count = 0
    intermediate_value: Number = 0.0
    datetime_start: Name | None = None
    datetime_complete: Name | None = None
    distributions: dict[Name, Annotated[str, Field(max_length=1 << 18)]] = Field({})
    params: dict[Name, Number | None] = Field({})
    user_attr: dict[Name, Any] = Field({})
    user_attrs: dict[Name, Any] = Field({})


@contextmanager
def opened(folder: Path) -> Iterator[Any]:
    """Lock and open the journal of a folder; yield Optuna's storage.

    Raises:
        GcapsError: another process has it open, or it is damaged.
    """
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    path = folder / FILE
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / LOCK, f"{folder}: another process is searching there; wait for it or stop it"):
        check(path, mend=True)
        lock = Path(f"{path}.lock")
        lock.unlink(missing_ok=True)  # of a process that was killed while it wrote
        with replayed(path):
            storage = JournalStorage(JournalFileBackend(str(path), JournalFileOpenLock(str(path))))
        yield storage


@contextmanager
def replayed(path: Path) -> Iterator[None]:
    """Turn errors of Optuna about an inconsistent journal into a GcapsError of one line."""
    try:
        yield
    except (GcapsError, OSError, MemoryError):
        raise
    except Exception as error:
        raise GcapsError(f"{path}: is not the journal of a search ({type(error).__name__}: {error})") from error


def check(path: Path, *, mend: bool = False) -> int:
    """Validate every line of a journal, if there is one, and that it holds exactly one search.

    Args:
        path: the file.
        mend: remove an unfinished last line.

    Returns:
        The number of lines.

    Raises:
        GcapsError: it is damaged.
    """
    if not exists(path):
        return 0
    content = read_bytes(path, MAX_PAGE_BYTES)
    end = content.rfind(b"\n") + 1
    lines = content[:end].split(b"\n")[:-1]
    if content.count(b'"op_code"', end) > 1:
        raise GcapsError(f"{path}: its last line holds several operations; it is not the journal of a search")
    for number, line in enumerate(lines, 1):
        raw = parse_json(line, str(path), number)
        problem = f"{path}, line {number}: is not an operation of a journal"
        operation = validated(Line, raw, problem)
        code, creates = operation.op_code, operation.op_code == CREATE
        if (number == 1 and not creates) or (creates and operation.study_name != NAME) or code == DELETE:
            raise GcapsError(f"{problem} of one search")
    if mend and end < len(content):
        os.truncate(path, end)
    return len(lines)
