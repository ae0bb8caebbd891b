"""Processes of the trials: how verbs are started, watched and cleared away."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

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


class Forked:
    """A verb in a forked copy of this process, which has imported everything: it begins at once.

    It has the methods of ``subprocess.Popen`` that trials call.

    Args:
        arguments: of ``gcaps``.
        screen: file that is its standard output.
        more: variables of its environment.
    """

    def __init__(self, *arguments: object, screen: str = os.devnull, **more: str) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        self.returncode: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            _run_here([str(argument) for argument in arguments], screen, self._said.fileno(), more)

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        if self.returncode is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float = 3600.0) -> int:
        """Wait for the end and return the exit code."""
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("gcaps", timeout)
            time.sleep(0.005)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless the process has ended."""
        self.send_signal(signal.SIGKILL)

    def said(self) -> str:
        """Return what it has said on standard error so far."""
        size = os.fstat(self._said.fileno()).st_size
        return os.pread(self._said.fileno(), size, 0).decode(errors="replace")

    def communicate(self, timeout: float = 3600.0) -> tuple[str, str]:
        """Wait for the end and return what it said on standard error."""
        self.wait(timeout)
        text = self.said()
        self._said.close()
        return "", text


def _run_here(arguments: list[str], screen: str, said: int, more: dict[str, str]) -> NoReturn:
    """Run a verb in this process, a fork, and end it."""
    code = 70
    try:
        for number, target in enumerate((os.open(os.devnull, os.O_RDONLY), os.open(screen, os.O_WRONLY), said)):
            os.dup2(target, number)
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
        os.environ.update(environment(**more))
        accept_signals()
        from gcaps.cli.app import main

        main(arguments)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def import_verbs() -> None:
    """Import what verbs need, so that forked ones begin at once."""
    import optuna  # noqa: F401

    from gcaps import estimators, report, training  # noqa: F401
    from gcaps.cli import compare, data, embed, evaluate, explain, export, predict, serve, train, tune  # noqa: F401
    from gcaps.evaluation import tuning_run  # noqa: F401


Process = subprocess.Popen[str] | Forked
"""What trials start, watch and kill."""


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
    """Return a digest of what a verb wrote; times, memory, dates and paths of records are left out.

    So are the journal of a search, which says when each line was written, and the page that is made from it.
    """
    found = hashlib.sha256()
    files = [f for f in path.rglob("*") if f.is_file() and f.name not in LOGS] if path.is_dir() else [path]
    for file in sorted(files):
        content = file.read_bytes()
        if file.suffix == ".json":
            content = json.dumps(_plain(json.loads(content)), sort_keys=True).encode()
        if file.name == "trials.csv":
            rows = csv.DictReader(io.StringIO(content.decode()))
            content = json.dumps([_plain(row) for row in rows]).encode()
        found.update(str(file.relative_to(path)).encode() + b"\0" + content)
    return found.hexdigest()


LOGS = {"journal.log", "report.html", ".lock"}
TIMES = {"seconds", "fit_seconds", "predict_seconds", "created", "peak_mib", "versions", "command", "run", "sha256"}


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items() if key not in TIMES}
    return [_plain(entry) for entry in value] if isinstance(value, list) else value


def wait_until(condition: Callable[[], object], process: Process, seconds: float = 300.0) -> bool:
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
