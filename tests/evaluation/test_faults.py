"""Killed runs and lost workers; two of the tests are the short forms of the trials in benchmarks/compare.py."""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.faults.processes import accept_signals

TRIALS = Path(__file__).parents[2] / "benchmarks" / "compare.py"
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("trial", "signs"),
    [
        ("kill", ["kill 1:", "20 cells are equal"]),
        ("cluster", ["a worker was killed after", "20 cells are there once and equal"]),
    ],
)
def test_nothing_is_lost(trial, signs, tmp_path):
    found = subprocess.run(
        [sys.executable, TRIALS, trial, "--short", "--to", tmp_path], capture_output=True, text=True, timeout=900
    )
    assert found.returncode == 0, found.stdout + found.stderr
    for sign in signs:
        assert sign in found.stdout


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=accept_signals,
    )


def endless(folder, *options):
    """A comparison that has begun and never ends."""
    (folder / "grid.toml").write_text("[deepsets]\nepochs = 10000000\n")
    process = start("gcaps", "compare", "families", "--methods", "deepsets", "--folds", 2, "-o", folder / "run",
                    "--grid", folder / "grid.toml", *options)  # fmt: skip
    assert "cells to run" in process.stderr.readline()
    return process


def computing(process):
    """The processes below one that compute cells, once there are any."""
    for _ in range(3000):
        found = []
        for child in process.children(recursive=True):
            with suppress(psutil.Error):
                if "gcaps.evaluation.child" in child.cmdline():
                    found.append(child)
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("nothing computes")


def test_an_interrupt_ends_all_processes(tmp_path):
    process = endless(tmp_path, "--jobs", 2)
    below = computing(psutil.Process(process.pid))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    _, alive = psutil.wait_procs(below, timeout=60)
    assert alive == []


def test_a_killed_run_leaves_nothing_running(tmp_path):
    process = endless(tmp_path, "--jobs", 2)
    below = computing(psutil.Process(process.pid))
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(below, timeout=60)
    assert alive == []


def test_a_scheduler_that_goes_is_one_line(tmp_path):
    file = tmp_path / "scheduler.json"
    staff = [start("dask", "scheduler", "--port", 0, "--no-dashboard", "--scheduler-file", file)]
    try:
        while not file.exists():
            assert staff[0].poll() is None
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        staff.append(start("dask", "worker", address, "--nthreads", 1, "--no-nanny", "--no-dashboard"))
        process = endless(tmp_path, "--cluster", address)
        staff.append(process)
        below = computing(psutil.Process(staff[1].pid))
        staff[0].kill()
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 1
        assert "the scheduler is gone; the same command continues" in said.splitlines()[-1]
    finally:
        for one in staff:
            one.kill()
            one.wait()
            one.stderr.close()
    _, alive = psutil.wait_procs(below, timeout=60)
    assert alive == []
