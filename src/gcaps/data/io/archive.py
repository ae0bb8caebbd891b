"""Files of a data set in a folder or in a zip, which is checked before anything is read from it."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from gcaps.data.npy import DAMAGE
from gcaps.errors import DataError
from gcaps.files import max_unpacked, open_file, opened, unpacks_to

MAX_RATIO = 1100
"""Largest accepted compression ratio; Deflate reaches about 1,000 on text, so a larger one indicates a zip bomb."""

_UNKNOWN_COUNT = 0xFFFF
"""Number of members in the last record of an archive with too many members for its 16-bit field."""


class Files:
    """Files of one data set by name, from a folder or a zip.

    Members of a zip that lie in folders are called by their last name; two of the same name are an error.

    Args:
        path: the folder or the zip.

    Raises:
        DataError: the zip is damaged, unsafe or ambiguous.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._zip: zipfile.ZipFile | None = None
        self._stream: IO[bytes] | None = None
        if self.path.is_dir():
            # a pipe or folder with the name of a part is no missing part: opening it is refused
            found = sorted(self.path.iterdir())
            self._members = {p.name: str(p) for p in found if p.suffix == ".txt" or p.is_file()}
        else:
            try:
                self._members = self._checked_members()
            except DataError:
                self.close()
                raise

    @property
    def names(self) -> list[str]:
        """Sorted names of the files."""
        return sorted(self._members)

    def place(self, name: str) -> str:
        """Return the path of the file ``name`` for error messages."""
        if self._zip is None:
            return str(self.path / name)
        return f"{self.path}/{self._members.get(name, name)}"

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file as a stream of bytes; damage found while reading it becomes a DataError."""
        try:
            if self._zip is None:
                with opened(self._members[name]) as stream:
                    yield stream
            else:
                with self._zip.open(self._members[name]) as stream:
                    yield stream
        except DAMAGE as error:
            raise DataError(f"the archive is damaged ({error}); fetch it again", self.place(name)) from error
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror or error})", self.place(name)) from error

    def close(self) -> None:
        """Close the archive."""
        if self._zip is not None:
            self._zip.close()
        if self._stream is not None:
            self._stream.close()

    def _recorded_count(self) -> int:
        """Number of members according to the archive's last record, which zipfile does not check."""
        assert self._zip is not None
        with opened(self.path) as stream:
            stream.seek(-22 - len(self._zip.comment), os.SEEK_END)
            return int.from_bytes(stream.read(12)[10:], "little")

    def _checked_members(self) -> dict[str, str]:
        """Open the zip and return its members by their last name."""
        file = str(self.path)
        try:
            self._stream = open_file(self.path)
            self._zip = zipfile.ZipFile(self._stream)
        except DataError:
            raise
        except (*DAMAGE, ValueError) as error:
            raise DataError(f"is not a complete zip archive ({error}); fetch it again", file) from error
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror or error})", file) from error
        if self._recorded_count() not in (len(self._zip.infolist()), _UNKNOWN_COUNT):
            raise DataError("the archive is damaged (files are missing from its directory); fetch it again", file)
        members: dict[str, str] = {}
        total = 0
        for member in self._zip.infolist():
            path = PurePosixPath(member.filename.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or (path.parts and ":" in path.parts[0]):
                raise DataError(f"member {member.filename!r} points outside the archive; refused", file)
            if member.is_dir() or path.parts[:1] == ("__MACOSX",):  # macOS adds a resource fork of every file there
                continue
            if member.flag_bits & 1:
                raise DataError(f"member {member.filename!r} is encrypted; unpack it first", file)
            if member.file_size > MAX_RATIO * max(member.compress_size, 1024):
                problem = f"member {member.filename!r} is compressed more than {MAX_RATIO} times; refused"
                raise DataError(problem, file)
            total += member.file_size
            if path.name in members:
                raise DataError(f"holds two files called {path.name!r}; unpack the one you mean", file)
            members[path.name] = member.filename
            try:
                # reads the member's own header, so that a name damaged in the directory does not hide a file
                self._zip.open(member).close()
            except (*DAMAGE, OSError) as error:
                raise DataError(f"the archive is damaged ({error}); fetch it again", file) from error
        packed = self.path.stat().st_size
        if total > max_unpacked(packed):
            raise DataError(unpacks_to(total, packed), file)
        return members
