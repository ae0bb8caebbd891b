"""Histograms on disk, found by what they are of: one file each, checked when read, the oldest removed first."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from gcaps.data.arrays import Array
from gcaps.files import replacing

LIMIT = 4 << 30
"""Bytes that all files together may take."""
_DIGEST = 32


class ArrayCache:
    """Rows of arrays under a key made of JSON values and bytes.

    Args:
        folder: where the files lie; it is made when the first one is written.
        limit: bytes of all files together; beyond it those that were not used for the longest time go.
    """

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder, self.limit = folder, limit

    @staticmethod
    def key(structure: Array, parameters: dict[str, Any]) -> str:
        """SHA-256 of the structure's hashes and of the parameters."""
        digest = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode())
        digest.update(np.ascontiguousarray(structure).data)
        return digest.hexdigest()

    def load(self, key: str) -> list[Array] | None:
        """The arrays; None where there are none, or where the file is not what was written."""
        file = self.folder / f"{key}.fgsd"
        try:
            content = file.read_bytes()
            if _digest(key, content[:-_DIGEST]) != content[-_DIGEST:]:
                return None
            file.touch()
        except OSError:
            return None
        stream = io.BytesIO(content[:-_DIGEST])
        arrays = []
        while stream.tell() < len(content) - _DIGEST:
            arrays.append(np.load(stream, allow_pickle=False))
        return arrays

    def store(self, key: str, arrays: list[Array]) -> None:
        """Write the arrays; what was there before under this key is replaced in one step."""
        stream = io.BytesIO()
        for array in arrays:
            np.save(stream, array, allow_pickle=False)
        content = stream.getvalue()
        if len(content) > self.limit:
            return
        with replacing(self.folder / f"{key}.fgsd") as draft:
            draft.write_bytes(content + _digest(key, content))
        self._trim()

    def _trim(self) -> None:
        """Remove the files that were not used for the longest time until the rest fits."""
        found = []
        for file in self.folder.glob("*.fgsd"):
            try:
                facts = file.stat()
            except FileNotFoundError:  # another process was faster
                continue
            found.append((facts.st_mtime_ns, facts.st_size, file))
        total = sum(size for _, size, _ in found)
        for _, size, file in sorted(found):
            if total <= self.limit:
                break
            file.unlink(missing_ok=True)
            total -= size


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST, key=key.encode()[:64]).digest()
