"""Client connections with a timeout: closed if the next request does not arrive in time."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


def protocol_of(seconds: float) -> type[H11Protocol]:
    """Return a protocol that waits for the head of a request for at most some seconds."""

    class Timed(H11Protocol):
        waits: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if self.waits is not None:
                self.waits.cancel()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wait()

        def _wait(self) -> None:
            if self.waits is not None:
                self.waits.cancel()
            self.waits = self.loop.call_later(seconds, self._close_if_idle)

        def _close_if_idle(self) -> None:
            if self.cycle is None or self.cycle.response_complete:  # else the request is being answered
                self.transport.close()

    return Timed
