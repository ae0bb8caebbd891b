"""A data set's files, in a folder or in a zip that is checked before anything of it is read."""

from __future__ import annotations

import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from gcaps.errors import DataError

MAX_UNPACKED = 1 << 36
"""Bytes a zip may unpack to (64 GiB); members are read as streams, never written to disk."""
MAX_RATIO = 1100
"""Deflate cannot honestly pack text more than about 1,000 times; a zip that claims more is a bomb."""

_MANY = 0xFFFF
"""What an archive's last record says where the number of members does not fit."""
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)
"""What zipfile raises on archives that are broken, or packed in a way it does not know."""


class Files:
    """The files of one data set by name, from a folder or a zip.

    Members of a zip that lie in folders go by their last name; two of the same name are an error.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._zip: zipfile.ZipFile | None = None
        if self.path.is_dir():
            self._places = {p.name: str(p) for p in sorted(self.path.iterdir()) if p.is_file()}
        else:
            try:
                self._places = self._checked_members()
            except DataError:
                self.close()
                raise

    @property
    def names(self) -> list[str]:
        """The files' names, sorted."""
        return sorted(self._places)

    def place(self, name: str) -> str:
        """How errors call the file ``name``."""
        if self._zip is None:
            return str(self.path / name)
        return f"{self.path}/{self._places.get(name, name)}"

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """The file's bytes as a stream; damage found on the way is a DataError."""
        try:
            if self._zip is None:
                with Path(self._places[name]).open("rb") as stream:
                    yield stream
            else:
                with self._zip.open(self._places[name]) as stream:
                    yield stream
        except _DAMAGE as error:
            raise DataError(f"the archive is damaged ({error}); fetch it again", self.place(name)) from error
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror or error})", self.place(name)) from error

    def close(self) -> None:
        """Let go of the archive."""
        if self._zip is not None:
            self._zip.close()

    def _promised(self) -> int:
        """How many members the archive's last record counts, which zipfile does not compare with what it finds."""
        assert self._zip is not None
        with self.path.open("rb") as stream:
            stream.seek(-22 - len(self._zip.comment), os.SEEK_END)
            return int.from_bytes(stream.read(12)[10:], "little")

    def _checked_members(self) -> dict[str, str]:
        file = str(self.path)
        try:
            self._zip = zipfile.ZipFile(self.path)
        except FileNotFoundError as error:
            raise DataError("does not exist", file) from error
        except (*_DAMAGE, ValueError) as error:
            raise DataError(f"is not a whole zip archive ({error}); fetch it again", file) from error
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror or error})", file) from error
        if self._promised() not in (len(self._zip.infolist()), _MANY):
            raise DataError("the archive is damaged (its directory has lost files); fetch it again", file)
        places: dict[str, str] = {}
        total = 0
        for member in self._zip.infolist():
            path = PurePosixPath(member.filename.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or (path.parts and ":" in path.parts[0]):
                raise DataError(f"member {member.filename!r} leaves the archive; refused", file)
            if member.is_dir() or path.parts[:1] == ("__MACOSX",):  # macOS puts a shadow of every file there
                continue
            if member.flag_bits & 1:
                raise DataError(f"member {member.filename!r} is encrypted; unpack it first", file)
            if member.file_size > MAX_RATIO * max(member.compress_size, 1024):
                raise DataError(f"member {member.filename!r} unpacks more than {MAX_RATIO} times; refused", file)
            total += member.file_size
            if path.name in places:
                raise DataError(f"holds two files called {path.name!r}; unpack the one you mean", file)
            places[path.name] = member.filename
            try:
                # reads the member's own header: a name that is damaged in the directory must not make a file vanish
                self._zip.open(member).close()
            except (*_DAMAGE, OSError) as error:
                raise DataError(f"the archive is damaged ({error}); fetch it again", file) from error
        if total > MAX_UNPACKED:
            raise DataError(f"unpacks to {total:,} bytes, more than the limit of {MAX_UNPACKED:,}", file)
        return places
