"""Processes of the trials: how verbs are started, watched and cleared away."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil


class Row(NamedTuple):
    """A row of the table."""

    trial: str
    outcome: str
    failures: int


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a trial's processes: one thread each."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    return os.environ | threads | more


def accept_signals() -> None:
    """Accept the signals that a script's background and nohup ignore."""
    for name in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)


def start(*arguments: object, **more: str) -> subprocess.Popen[str]:
    """Start a verb that accepts all signals, which jobs in the background and below nohup do not."""
    return subprocess.Popen(
        [sys.executable, "-m", "gcaps", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**more),
        preexec_fn=accept_signals,
    )


def below(process: int) -> list[psutil.Process]:
    """Return the processes that descend from one."""
    with suppress(psutil.Error):
        return psutil.Process(process).children(recursive=True)
    return []


def left(processes: Sequence[psutil.Process], seconds: float = 2.0) -> int:
    """Return how many are alive after so many seconds, or fewer; the others are killed."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    alive = [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    return len(alive)


def digest(path: Path) -> str:
    """Return a digest of what a verb wrote; times, memory, dates and paths of records are left out."""
    found = hashlib.sha256()
    for file in sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]:
        content = file.read_bytes()
        if file.suffix == ".json":
            content = json.dumps(_plain(json.loads(content)), sort_keys=True).encode()
        found.update(str(file.relative_to(path)).encode() + b"\0" + content)
    return found.hexdigest()


TIMES = {"seconds", "fit_seconds", "predict_seconds", "created", "peak_mib", "versions", "command", "run", "sha256"}


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items() if key not in TIMES}
    return [_plain(entry) for entry in value] if isinstance(value, list) else value


def wait_until(condition: Callable[[], object], process: subprocess.Popen[str], seconds: float = 300.0) -> bool:
    """Look every few milliseconds until a condition holds; False if the process ends or the time is over before."""
    until = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def handles_signals(process: int) -> bool:
    """Whether a process has a handler for SIGTERM: a verb has begun."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False
