"""Data-parallel training by several processes that torchrun starts: joining them, and the error when one is lost."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType

import torch
import torch.distributed as dist

from gcaps.errors import GcapsError
from gcaps.nn.distributed import shared_memory

TIMEOUT = timedelta(seconds=45)
"""How long a process waits for the others in one collective."""


class LostProcessError(GcapsError):
    """Another process of this training has ended."""

    exit_code = 8


def started_by_torchrun() -> bool:
    """Return whether this process is one of several that torchrun has started."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def joined(advice: str) -> Iterator[None]:
    """Join the process group of torchrun for the duration of the block; a process that runs alone does nothing.

    Args:
        advice: what the error says to do if a process is lost.
    """
    if not started_by_torchrun():
        yield
        return
    message = f"another process of this training has ended; {advice}"

    def stop(number: int, frame: FrameType | None) -> None:
        print(f"error: {message}", file=sys.stderr, flush=True)
        os._exit(LostProcessError.exit_code)  # the collective under way would never return

    before = signal.signal(signal.SIGTERM, stop)  # torchrun ends the others when one is lost
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"  # statistics are summed up on the CPU
    dist.init_process_group(backend, timeout=TIMEOUT)
    try:
        with shared_memory(TIMEOUT.total_seconds()):
            yield
    except (RuntimeError, dist.DistError) as error:
        raise LostProcessError(f"{message} ({str(error).splitlines()[0]})") from error
    finally:
        signal.signal(signal.SIGTERM, before)
        dist.destroy_process_group()
