"""Arrays in .npy files from outside: the header is checked against the file's size before anything is allocated."""

from __future__ import annotations

import io
import lzma
import math
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from gcaps.data.arrays import Array
from gcaps.errors import DataError
from gcaps.files import MAX_BYTES, MAX_PARSED_BYTES, max_bytes, opened, too_large

MAX_HEADER = 10_000
DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)
"""Exceptions of zipfile for archives that are broken or of an unknown compression method."""
_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(
    rb"\{'descr': '([<|])([biufU])(\d{1,6})', 'fortran_order': (True|False), "
    rb"'shape': \((\d{0,18}(?:, ?\d{1,18}){0,7},?)\),? *\} *\n?"
)
_OBJECTS = re.compile(rb"\{'descr': '\|O\d?'")


class Header(NamedTuple):
    """Header of an .npy file."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    fortran: bool
    offset: int
    """Offset of the array in the file."""

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes], size: int, place: str) -> Header:
    """Read the header of an .npy file of ``size`` bytes.

    Raises:
        DataError: it is no header of an array of numbers or strings, or the file has another size than it says.
    """
    start = stream.read(8)
    if start[:6] != _MAGIC or start[6:7] not in (b"\1", b"\2", b"\3"):
        raise DataError("is not an .npy file", place)
    width = 2 if start[6] == 1 else 4
    (length,) = struct.unpack("<H" if width == 2 else "<I", stream.read(width).ljust(width, b"\0"))
    text = stream.read(length) if length <= MAX_HEADER else b""
    found = _HEADER.fullmatch(text.rstrip(b" \n") if len(text) == length else b"")
    if found is None:
        if _OBJECTS.match(text):
            raise DataError("holds Python objects, which are not read; save numbers or strings", place)
        raise DataError("has a header that is not of an array of numbers or strings", place)
    order, kind, itemsize, fortran, dims = (part.decode() for part in found.groups())
    try:
        dtype = np.dtype(f"{order}{kind}{itemsize}")
    except TypeError as error:
        raise DataError(f"has a header with an unknown type {kind}{itemsize}", place) from error
    shape = tuple(int(part) for part in dims.split(",") if part.strip())
    header = Header(dtype, shape, fortran == "True", 8 + width + length)
    if header.offset + header.nbytes != size:
        raise DataError(f"has {size:,} bytes where its header says {header.offset + header.nbytes:,}", place)
    return header


def map_array(path: Path, dtype: str, shape: tuple[int, ...], limit: int = MAX_BYTES) -> Array:
    """Map an .npy file into memory, whose header must say this type and shape; an empty array is made anew.

    Raises:
        DataError: it is not that array.
    """
    with opened(path, limit) as stream:
        stream.seek(0, 2)
        size = stream.tell()
        stream.seek(0)
        header = read_header(stream, size, str(path))
        if header.fortran or header.dtype.str != dtype or header.shape != shape:
            raise DataError(f"is {header.dtype.str} {header.shape}, not {dtype} {shape} as listed", str(path))
        if not header.nbytes:
            return np.zeros(shape, dtype=header.dtype)
        try:
            mapped = np.memmap(stream, dtype=header.dtype, mode="r", offset=header.offset, shape=shape)
        except (OSError, ValueError) as error:
            raise DataError(f"cannot be mapped into memory ({error})", str(path)) from error
    return mapped.view(np.ndarray)


def read_npz(content: bytes, place: str, limit: int = MAX_PARSED_BYTES) -> dict[str, Array]:
    """Read all arrays of an .npz file, whose headers are checked against the sizes of its members.

    Raises:
        DataError: it is none, or unpacks to more than the limit.
    """
    arrays: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            if size > max_bytes(limit):
                raise DataError(too_large(size, limit), place)
            for member in members:
                name = member.filename.removesuffix(".npy")
                if name in arrays:
                    raise DataError(f"has two arrays called {name!r}", place)
                with archive.open(member) as stream:
                    header = read_header(stream, member.file_size, f"{place}/{member.filename}")
                    values = stream.read(header.nbytes + 1)
                if len(values) != header.nbytes:
                    raise DataError("is shorter or longer than its header says", f"{place}/{member.filename}")
                flat = np.frombuffer(bytearray(values), dtype=header.dtype) if values else np.zeros(0, header.dtype)
                flat = flat if header.nbytes else np.zeros(math.prod(header.shape), header.dtype)
                arrays[name] = flat.reshape(header.shape, order="F" if header.fortran else "C")
    except (*DAMAGE, RuntimeError, OSError, ValueError) as error:  # RuntimeError: a member is encrypted
        if isinstance(error, DataError):
            raise
        raise DataError(f"is not an .npz file ({error})", place) from error
    return arrays
