"""Exchange between the processes of one machine through memory that they share.

A training step of several processes has a dozen small exchanges, one after the other. Through sockets each costs about
as much as a layer of the network; through shared memory, a few microseconds.
"""

from __future__ import annotations

import mmap
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gcaps.data.arrays import Array

CAPACITY = 1 << 20
"""Bytes of each process that one exchange takes; more go in several."""
SHARED = Path("/dev/shm")
LINE = 8
"""Numbers of a line of the cache: two processes never write to the same."""
PATIENT_AFTER = 2_000
"""Looks after which a waiting process lets others have its core."""


class Channel:
    """Memory that processes 0 … R − 1 of one machine share.

    Exchange number t uses the half t mod 2 of the memory. A process that begins exchange t + 2 has seen all others
    begin t + 1, so they have read what it wrote in t.

    Args:
        file: of :func:`room` bytes, the same for all.
        rank: which process this is.
        processes: how many there are.
        patience: seconds to wait for the others.
    """

    def __init__(self, file: Path, rank: int, processes: int, patience: float) -> None:
        self.rank, self.processes, self.patience, self.number = rank, processes, patience, 0
        with file.open("r+b") as opened:
            self.memory = mmap.mmap(opened.fileno(), room(processes))
        ends = processes * LINE * 8
        self.begun = np.frombuffer(self.memory, np.int64, processes * LINE).reshape(processes, LINE)[:, 0]
        """How many exchanges each process has begun."""
        self.given = np.frombuffer(self.memory, np.uint8, offset=ends).reshape(2, processes, CAPACITY)

    def gather(self, values: Array) -> Array:
        """[R, …] the ``values`` of all processes, of one shape and type."""
        flat = np.ascontiguousarray(values).reshape(-1)
        step = CAPACITY // flat.itemsize
        pieces = [self._exchange(flat[first : first + step]) for first in range(0, len(flat), step)]
        together = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)
        return together.reshape(self.processes, *values.shape)

    def _exchange(self, piece: Array) -> Array:
        self.number += 1
        half, size = self.given[self.number % 2], piece.nbytes
        half[self.rank, :size] = piece.view(np.uint8)
        self.begun[self.rank] = self.number  # after the values: stores are seen in order (see can_share)
        for other in range(self.processes):
            self._wait(other)
        every: Array = half[:, :size].copy().view(piece.dtype)
        return every

    def _wait(self, other: int) -> None:
        begun, number, looks, deadline = self.begun, self.number, 0, 0.0
        while begun[other] < number:
            looks += 1
            if looks < PATIENT_AFTER:
                continue
            os.sched_yield()
            now = time.monotonic()
            deadline = deadline or now + self.patience
            if now > deadline:
                raise RuntimeError(f"process {other} did not answer for {self.patience:.0f} s")


def room(processes: int) -> int:
    """Bytes that a channel needs."""
    return processes * (LINE * 8 + 2 * CAPACITY)


def can_share() -> bool:
    """Whether this machine has such memory, and shows stores to other cores in the order in which they were made."""
    return platform.system() == "Linux" and platform.machine() == "x86_64" and SHARED.is_dir()


def opened(
    rank: int, processes: int, patience: float, tell: Callable[[str], str], everyone: Callable[[], None]
) -> Channel | None:
    """Open a channel; None where there is no room for it.

    Its file has no name any more when this returns, so the system removes it with the processes.

    Args:
        rank: which process this is.
        processes: how many there are.
        patience: seconds to wait for the others in one exchange.
        tell: gives what process 0 passes to it to all.
        everyone: returns when all processes have called it.
    """
    name = tell(_made(room(processes)) if rank == 0 else "")
    if not name:
        return None
    channel = Channel(Path(name), rank, processes, patience)
    everyone()
    if rank == 0:
        Path(name).unlink()
    return channel


def _made(size: int) -> str:
    """A new file of ``size`` zeros; an empty name where it cannot be made."""
    try:
        with tempfile.NamedTemporaryFile(prefix="gcaps-", dir=SHARED, delete=False) as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError:
                Path(file.name).unlink()
                return ""
            return file.name
    except OSError:
        return ""
