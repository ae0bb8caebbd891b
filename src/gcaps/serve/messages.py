"""Messages between the listening process and its workers: a JSON head and byte strings, without pickle."""

from __future__ import annotations

import json
import socket
import struct
from asyncio import StreamReader
from collections.abc import Sequence
from typing import Any

_LENGTH = struct.Struct(">I")


def packed(head: Any, blobs: Sequence[bytes]) -> bytes:
    """Return a message."""
    text = json.dumps([head, [len(blob) for blob in blobs]]).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *blobs])


async def read_message(stream: StreamReader) -> tuple[Any, list[bytes]]:
    """Read a message.

    Raises:
        asyncio.IncompleteReadError: the other side has closed.
    """
    (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
    head, lengths = json.loads(await stream.readexactly(length))
    return head, [await stream.readexactly(n) for n in lengths]


def receive(connection: socket.socket) -> tuple[Any, list[bytes]] | None:
    """Read a message; None if the other side has closed."""
    first = _exactly(connection, _LENGTH.size)
    if first is None:
        return None
    text = _exactly(connection, _LENGTH.unpack(first)[0])
    if text is None:
        return None
    head, lengths = json.loads(text)
    blobs = [_exactly(connection, n) for n in lengths]
    return None if any(blob is None for blob in blobs) else (head, [blob for blob in blobs if blob is not None])


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    found = bytearray(count)
    view, done = memoryview(found), 0
    while done < count:
        got = connection.recv_into(view[done:])
        if not got:
            return None
        done += got
    return bytes(found)
