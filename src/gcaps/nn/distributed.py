"""Sums and statistics over the processes of a distributed training.

Values are exchanged by torch.distributed or, if all processes run on one host, through shared memory. A training step
has about a dozen small exchanges in sequence. Shared memory takes 13 µs for the statistics of one layer where gloo
takes 0.4 ms, and an epoch of two processes is about twice as fast (best of six: 1.05 s and 2.1 s on NCI1).
"""

from __future__ import annotations

import mmap
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from gcaps.data.arrays import Array


class Share(NamedTuple):
    """The graphs ``first`` … ``last`` − 1 of a batch of ``total``: those that this process has."""

    first: int
    last: int
    total: int


_share: Share | None = None
_exchange = True
_memory: SharedMemory | None = None


@contextmanager
def sharing(share: Share) -> Iterator[None]:
    """Set the value of :func:`current_share`."""
    global _share
    before, _share = _share, share
    try:
        yield
    finally:
        _share = before


def current_share() -> Share | None:
    """This process's share of the current batch, or None if it has the whole batch."""
    return _share


@contextmanager
def without_exchange() -> Iterator[None]:
    """Compute as a single process: :func:`is_distributed` is False inside."""
    global _exchange
    before, _exchange = _exchange, False
    try:
        yield
    finally:
        _exchange = before


def is_distributed() -> bool:
    """Whether several processes train one network."""
    return _exchange and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def is_first_process() -> bool:
    """Whether this is the process that writes files and prints."""
    return not is_distributed() or dist.get_rank() == 0


def sum_over_processes(values: Tensor) -> Tensor:
    """Sum of the ``values`` of all processes; ``values`` itself if there is only one."""
    if not is_distributed():
        return values
    if _memory is not None and values.device.type == "cpu":
        return torch.from_numpy(_memory.gather(values.numpy()).sum(axis=0))
    total = values.clone()
    dist.all_reduce(total)
    return total


def gather_from_processes(values: Tensor) -> Tensor:
    """[R, …] the ``values`` of all processes, which have one shape, by rank."""
    if _memory is not None and values.device.type == "cpu":
        return torch.from_numpy(_memory.gather(values.numpy()))
    every = [torch.empty_like(values) for _ in range(dist.get_world_size())]
    dist.all_gather(every, values.contiguous())
    return torch.stack(every)


def merged_statistics(statistics: Tensor, count: int) -> tuple[Tensor, Tensor, int]:
    """Mean, sum of squared deviations from it and number of the rows of all processes, in one exchange.

    Uses Chan's formula, Σ (x − μ)² = Σ_r [S_r + n_r (μ_r − μ)²].

    Args:
        statistics: [2, w] float64, mean and sum of squared deviations of this process's rows.
        count: number of these rows.
    """
    if not is_distributed():
        return statistics[0], statistics[1], count
    every = gather_from_processes(torch.cat([statistics.flatten(), statistics.new_tensor([count])]))
    means, squares = every[:, :-1].view(len(every), 2, -1).unbind(1)
    counts = every[:, -1:]
    total = counts.sum()
    mean = (counts * means).sum(0) / total
    return mean, (squares + counts * (means - mean) ** 2).sum(0), int(total)


@contextmanager
def shared_memory(timeout: float) -> Iterator[None]:
    """Exchange values through shared memory inside, if all processes run on this host and it is supported.

    Args:
        timeout: seconds to wait for the other processes in one exchange.
    """
    global _memory
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "0")) == dist.get_world_size()
    _memory = SharedMemory.create(timeout) if local and supports_shared_memory() else None
    try:
        yield
    finally:
        _memory = None


CAPACITY = 1 << 20
"""Bytes of one process in one exchange; longer arrays are exchanged in pieces."""
FOLDER = Path("/dev/shm")  # nosec B108  # shared memory, with names of our own
CACHE_LINE = 8
"""64-bit integers in a cache line. Each process writes to its own line."""
SPINS = 2_000
"""Number of checks after which a waiting process yields its core between two checks."""


def supports_shared_memory() -> bool:
    """Whether shared memory exists here and stores become visible to other cores in order (x86-64)."""
    return platform.system() == "Linux" and platform.machine() == "x86_64" and FOLDER.is_dir()


class SharedMemory:
    """All-gather of arrays between the processes 0 … R − 1 of one host.

    Exchange number t uses the half t mod 2 of the memory. A process that starts exchange t + 2 has seen all others
    start t + 1, so they have read what it wrote in t.

    Args:
        file: of :meth:`size` bytes, the same for all processes.
        rank: of this process.
        processes: their number R.
        timeout: seconds to wait for the other processes in one exchange.
    """

    def __init__(self, file: Path, rank: int, processes: int, timeout: float) -> None:
        self.rank, self.processes, self.timeout, self.number = rank, processes, timeout, 0
        with file.open("r+b") as opened:
            self.memory = mmap.mmap(opened.fileno(), self.size(processes))
        counters = processes * CACHE_LINE
        self.started = np.frombuffer(self.memory, np.int64, counters).reshape(processes, CACHE_LINE)[:, 0]
        """Number of exchanges that each process has started."""
        self.halves = np.frombuffer(self.memory, np.uint8, offset=8 * counters).reshape(2, processes, CAPACITY)

    @staticmethod
    def size(processes: int) -> int:
        """Bytes of the file."""
        return processes * (CACHE_LINE * 8 + 2 * CAPACITY)

    @staticmethod
    def create(timeout: float) -> SharedMemory | None:
        """Shared memory of the processes of torch.distributed, or None if it cannot be allocated.

        Its file is unlinked before this returns, so the system frees the memory when the processes end.
        """
        rank, processes = dist.get_rank(), dist.get_world_size()
        names = [_allocate(SharedMemory.size(processes)) if rank == 0 else ""]
        dist.broadcast_object_list(names, src=0)
        if not names[0]:
            return None
        memory = SharedMemory(Path(names[0]), rank, processes, timeout)
        dist.barrier()
        if rank == 0:
            Path(names[0]).unlink()
        return memory

    def gather(self, values: Array) -> Array:
        """[R, …] the ``values`` of all processes, which have one shape and type."""
        flat = np.ascontiguousarray(values).reshape(-1)
        step = CAPACITY // flat.itemsize
        pieces = [self._exchange(flat[first : first + step]) for first in range(0, len(flat), step)]
        whole = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)
        return whole.reshape(self.processes, *values.shape)

    def _exchange(self, piece: Array) -> Array:
        self.number += 1
        half, size = self.halves[self.number % 2], piece.nbytes
        half[self.rank, :size] = piece.view(np.uint8)
        self.started[self.rank] = self.number  # after the values: others see stores in this order
        for other in range(self.processes):
            self._wait(other)
        every: Array = half[:, :size].copy().view(piece.dtype)
        return every

    def _wait(self, other: int) -> None:
        started, number, checks, deadline = self.started, self.number, 0, 0.0
        while started[other] < number:
            checks += 1
            if checks < SPINS:
                continue
            os.sched_yield()
            now = time.monotonic()
            deadline = deadline or now + self.timeout
            if now > deadline:
                raise RuntimeError(f"process {other} did not answer for {self.timeout:.0f} s")


def _allocate(size: int) -> str:
    """Name of a new file of ``size`` zero bytes in shared memory; empty if there is no room for it."""
    try:
        with tempfile.NamedTemporaryFile(prefix="gcaps-", dir=FOLDER, delete=False) as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError:
                Path(file.name).unlink()
                return ""
            return file.name
    except OSError:
        return ""
