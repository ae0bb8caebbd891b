"""Trials of work that several processes share: Dask workers and schedulers, and the processes of torchrun."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.faults.processes import Row, below, digest, environment, left, start, wait_until

CELLS = "cells/*/*/*.json"
COMPARE = ("compare", "families", "--methods", "deepsets,gin", "--folds", "4")
"""A comparison of eight cells."""
RUN = "cluster.run"
"""The name of a run is that of its folder."""
STOP = 15.0
"""Seconds in which a client that is told to stop ends, on a busy machine too; the table says how many it took."""


class Cluster:
    """A Dask scheduler and two workers, each a process of its own without a nanny."""

    def __init__(self, folder: Path) -> None:
        port = _free_port()
        self.address = f"tcp://127.0.0.1:{port}"
        scheduler = ["dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        worker = ["dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        self.scheduler = _run(scheduler)
        self.workers = [_run([*worker, "--local-directory", str(folder / f"dask{port}-{i}")]) for i in range(2)]

    def wait(self) -> None:
        """Wait until both workers have found the scheduler."""
        from distributed import Client

        with Client(self.address, timeout=120) as client:
            client.wait_for_workers(2, timeout=120)

    def children(self) -> list[psutil.Process]:
        """Return the processes that compute cells for the workers."""
        return [process for worker in self.workers for process in below(worker.pid)]

    def end(self) -> None:
        """Kill all that is left of it."""
        left(self.children(), 0.0)
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster that is up."""
    made = Cluster(folder)
    try:
        made.wait()
        yield made
    finally:
        made.end()


def _run(arguments: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.{arguments[0]}", *arguments[1:]]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        number: int = made.getsockname()[1]
    return number


def undisturbed(folder: Path) -> str:
    """Return the digest of the comparison computed in this machine's processes, once."""
    run = folder / "undisturbed" / RUN
    if not run.exists():
        process = start(*COMPARE, "-o", run)
        said = process.communicate()[1]
        assert process.returncode == 0, said
    return digest(run)


def busy(processes: list[psutil.Process]) -> int:
    """Return how many of some processes compute, as opposed to waiting for work."""
    before = {process: _spent(process) for process in processes}
    time.sleep(3.0)
    return sum(_spent(process) - seconds > 0.5 for process, seconds in before.items())


def _spent(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        had = process.cpu_times()
        return float(had.user + had.system)
    return 0.0


def lost_worker(folder: Path, short: bool) -> Row:
    """A Dask worker is killed while it computes: another one computes its cells, and nothing of it is left."""
    expected, run = undisturbed(folder), folder / "lost" / RUN
    problems, orphans = [], 0
    times = 1 if short else 3
    for _ in range(times):
        shutil.rmtree(run, ignore_errors=True)
        with cluster(folder) as dask:
            process = start(*COMPARE, "-o", run, "--cluster", dask.address)
            wait_until(lambda: any(run.glob(CELLS)) and below(dask.workers[0].pid), process)
            children, running = below(dask.workers[0].pid), process.poll() is None
            dask.workers[0].kill()
            said = process.communicate(timeout=600)[1]
            lost = left(children, 20.0)
            orphans += lost
            same = process.returncode == 0 and digest(run) == expected
            if not (running and children and same) or lost:
                problems.append(f"{running=}, {len(children)} children, {lost} left, {same=}: {said[-400:]!r}")
    return told("Dask: a killed worker", f"{{}} of {times} complete and identical, processes left {orphans}", problems)


def dead_scheduler(folder: Path, short: bool) -> Row:
    """A Dask scheduler is killed: one line and an exit code; the same command without it computes what is missing."""
    expected, run = undisturbed(folder), folder / "scheduler" / RUN
    problems, slowest = [], 0.0
    times = 1 if short else 3
    for _ in range(times):
        shutil.rmtree(run, ignore_errors=True)
        with cluster(folder) as dask:
            process = start(*COMPARE, "-o", run, "--cluster", dask.address)
            wait_until(lambda run=run: any(run.glob(CELLS)), process)
            running, began = process.poll() is None, time.perf_counter()
            dask.scheduler.kill()
            said = process.communicate(timeout=600)[1]
            slowest = max(slowest, time.perf_counter() - began)
            lines = [line for line in said.splitlines() if line.startswith("error:")]
            if not running or process.returncode != 1 or len(lines) != 1 or "Traceback" in said:
                problems.append(f"{running=}, exit {process.returncode}: {said[-400:]!r}")
        before = len(list(run.glob(CELLS)))
        process = start(*COMPARE, "-o", run)
        said = process.communicate(timeout=600)[1]
        if process.returncode or digest(run) != expected:
            problems.append(f"another run after {before} cells, exit {process.returncode}: {said[-400:]!r}")
    process = start(*COMPARE, "-o", folder / "nobody.run", "--cluster", f"tcp://127.0.0.1:{_free_port()}")
    said = process.communicate(timeout=600)[1]
    if process.returncode != 1 or "no Dask scheduler answers there" not in said or "Traceback" in said:
        problems.append(f"no scheduler at all: exit {process.returncode}, {said[-400:]!r}")
    text = f"{{}} of {times + 1} end with one line within {slowest:.0f} s and are continued to the same bytes"
    return told("Dask: a dead scheduler", text, problems)


def stopped_client(folder: Path, short: bool) -> Row:
    """A client that is told to stop does so, and the workers give its cells up."""
    problems, slowest, orphans = [], 0.0, 0
    kinds = {"SIGTERM": 143} if short else {"SIGTERM": 143, "SIGINT": 130, "SIGHUP": 129}
    endless = ["compare", "families", "--methods", "ecc", "--folds", "4"]
    (folder / "endless.toml").write_text("[ecc]\nepochs = 1000000\n")
    with cluster(folder) as dask:
        for name, code in kinds.items():
            goal = folder / f"stopped-{name}.run"
            given = [*endless, "--grid", folder / "endless.toml", "-o", goal]
            process = start(*given, "--cluster", dask.address)
            wait_until(lambda: len(dask.children()) >= 2, process)
            time.sleep(5)
            computing, began = busy(dask.children()), time.perf_counter()
            process.send_signal(getattr(signal, name))
            said = process.communicate(timeout=120)[1]
            seconds = time.perf_counter() - began
            wait_until(lambda: not dask.children(), dask.scheduler, 30.0)  # type: ignore[arg-type]
            lost = busy(dask.children())
            slowest, orphans = max(slowest, seconds), orphans + lost
            if (
                not computing
                or process.returncode != code
                or f"stopped by {name}" not in said
                or lost
                or seconds > STOP
            ):
                problems.append(
                    f"{name}: {computing=}, exit {process.returncode}, {seconds:.1f} s, {lost} {said[-400:]!r}"
                )
    text = f"{{}} of {len(kinds)} signals end it, slowest {slowest:.2f} s, cells computed on {orphans}"
    return told("Dask: a stopped client", text, problems)


def lost_rank(folder: Path, short: bool) -> Row:
    """A process of torchrun is killed: the other ends with one line, no model appears, and nothing is left.

    The same command again resumes the training from its checkpoint.
    """
    problems, slowest, orphans = [], 0.0, 0
    times = 1 if short else 4
    for number in range(times):
        goal = folder / "torchrun.model"
        kept = goal.with_name("torchrun.model.checkpoint")
        shutil.rmtree(kept, ignore_errors=True)
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
        given = ["train", str(folder / "bases" / "tu"), "-o", str(goal), "--method", "deepsets", "--epochs", "1000000"]
        process = subprocess.Popen(
            [*command, "-m", "gcaps", *given],
            env=environment(GCAPS_CHECKPOINT_SECONDS="1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda kept=kept: (kept / "checkpoint.state").exists(), process)
        started = below(process.pid)
        ranks = [p for p in started if "gcaps" in (line := _command_of(p)) and "train" in line]
        began = time.perf_counter()
        if ranks:
            ranks[number % len(ranks)].kill()
        said = process.communicate(timeout=300)[1]
        seconds, lost = time.perf_counter() - began, left(started, 20.0)
        slowest, orphans = max(slowest, seconds), orphans + lost
        line = re.search("another process of this training has ended", said)
        whole = (kept / "checkpoint.state").exists() and not goal.exists()
        if len(ranks) != 2 or process.returncode == 0 or not line or lost or not whole:
            problems.append(f"{len(ranks)} ranks, exit {process.returncode}, {lost} left, {whole=}: {said[-600:]!r}")
    text = f"{{}} of {times} killed ranks end the others with a line in {slowest:.0f} s, processes left {orphans}"
    return told("torchrun", text, problems)


def _command_of(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        found: list[str] = process.cmdline()
        return found
    return []


def told(trial: str, text: str, problems: list[str]) -> Row:
    """Return the row of a trial; ``{}`` in its text is what went well of the first number after it."""
    for problem in problems:
        print(f"  {trial}: {problem}", file=sys.stderr, flush=True)
    total = int(re.search(r"\{\} of (\d+)", text).group(1))  # type: ignore[union-attr]
    return Row(trial, text.format(max(0, total - len(problems))), len(problems))


CLUSTERS = (lost_worker, dead_scheduler, stopped_client, lost_rank)
