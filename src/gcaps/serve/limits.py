"""Settings of a server, limits of a request, and the error of a refused one."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from gcaps.errors import GcapsError

BATCH_BYTES = 1 << 14
"""Requests with a longer body are predicted alone: one of them would delay all others of a batch."""


class Limits(BaseModel):
    """Limits of one request."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_bytes: Annotated[int, Field(ge=1 << 10, le=1 << 30)] = 10 << 20
    """Bytes of the body."""
    max_graphs: Annotated[int, Field(ge=1)] = 5_000
    """Graphs, rows that cannot be read included."""
    max_nodes: Annotated[int, Field(ge=1)] = 200_000
    """Nodes of all graphs of a request together."""
    max_edges: Annotated[int, Field(ge=0)] = 1_000_000
    """Undirected edges of all graphs of a request together."""
    max_seconds: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Seconds from the arrival of a request to its answer."""


class ServerSettings(BaseModel):
    """Settings of a server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """0: any free one."""
    token: str | None = None
    """Sent by clients as ``Authorization: Bearer TOKEN``; None: no token is required."""
    allow_hosts: tuple[str, ...] = ()
    """Further host names of the server; ``*``: any."""
    workers: Annotated[int, Field(ge=1, le=256)] = 2
    """Processes that predict."""
    window: Annotated[float, Field(ge=0, le=1)] = 0.003
    """Seconds that a request waits for others of the same batch."""
    max_batch: Annotated[int, Field(ge=1, le=4096)] = 64
    """Requests that are predicted together."""
    max_waiting: Annotated[int, Field(ge=1)] = 1_000
    """Requests that wait or are being answered; further ones are refused with 503."""
    coverage: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """Default coverage of sets and intervals."""


class RefusedError(GcapsError):
    """A request that is answered with an error.

    Args:
        status: HTTP status.
        code: one word for programs.
        message: one line for people.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code, self.message = status, code, message
        super().__init__(message)


def too_many(what: str, found: int, limit: int, option: str) -> RefusedError:
    """Return the error of a request that exceeds a limit."""
    return RefusedError(
        413, "too_large", f"the request has {found:,} {what}, more than the limit of {limit:,} ({option})"
    )


_REMEDY = re.compile(r"[;,]?\s*(?:[^;,]*,? or )?set GCAPS_\w+")


def for_clients(message: str, folder: str = "") -> str:
    """Return the message of an error without paths of the server and remedies for its operator.

    Args:
        message: one line.
        folder: of the upload.
    """
    if folder:
        message = message.replace(f"{folder}/", "").replace(folder, "")
    return " ".join(_REMEDY.sub("", message).split())[:2000]
