"""Trials of whole processes: signals, kills and resumes, full disks, two processes on one folder, lost workers.

Each trial returns a line for the table and the number of its failures.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

LONG = ("--method", "deepsets", "--epochs", "1000000", "--hidden", "16")
SVM = ("--method", "mlg")
LIMIT = 2.0
"""Seconds in which a signal ends a verb."""


class Row(NamedTuple):
    """A row of the table."""

    trial: str
    outcome: str
    failures: int


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a trial's processes: one thread each."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    return os.environ | threads | more


def start(*arguments: object, **more: str) -> subprocess.Popen[str]:
    """Start a verb that accepts interrupts, which jobs in the background of a script do not."""
    return subprocess.Popen(
        [sys.executable, "-m", "gcaps", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**more),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
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


def signals(folder: Path, short: bool) -> Row:
    """Every verb ends on every signal: exit code, one line, time, nothing left."""
    tu = folder / "bases" / "tu"
    table = folder / "many.csv"
    table.write_text("smiles,y\n" + "".join(f"{'C' * (1 + i % 90)}O,{i % 2}\n" for i in range(400_000)))
    verbs: dict[str, list[object]] = {
        "train": ["train", tu, "-o", folder / "signal.model", *LONG],
        "train, SVM": ["train", "families", "-o", folder / "svm.model", *SVM],
        "evaluate": ["evaluate", "families", *LONG, "--jobs", 2],
        "evaluate, one process": ["evaluate", "families", *SVM, "--jobs", 1],
        "compare": ["compare", "families", "--methods", "mlg,ecc", "-o", folder / "signal.run", "--jobs", 2],
        "predict": ["predict", folder / "bases" / "network.model", table],
        "convert, worker processes": ["data", "convert", table, folder / "signal.gset"],
        "data check": ["data", "check", table],
        "explain": ["explain", folder / "bases" / "molecules.model", table, "-o", folder / "signal.html"],
        "report": ["report", folder / "bases" / "run", "-o", folder / "signal-report.html"],
    }
    began = time.perf_counter()
    start(*verbs["report"]).communicate()
    brief = {"report": time.perf_counter() - began}  # it has nothing to do for seconds: the signal comes on its way
    slowest, wrong, orphans, count = 0.0, [], 0, 0
    kinds = {"SIGTERM": 143, "SIGINT": 130, "SIGHUP": 129}
    for number, (name, arguments) in enumerate(verbs.items()):
        for title, code in list(kinds.items())[number % 3 :][:1] if short else kinds.items():
            for attempt in range(5):
                process = start(*arguments, GCAPS_JOBS="2", GCAPS_CACHE=str(folder / "cache"))
                wait = random.Random(f"{name}{title}").uniform(4, 9)
                time.sleep(brief[name] * 0.6 * 0.8**attempt if name in brief else wait)
                if process.poll() is None:
                    break
            else:
                wrong.append(f"{name} ended before {title}: {process.communicate()[1][-200:]}")
                continue
            others, began = below(process.pid), time.perf_counter()
            process.send_signal(getattr(signal, title))
            try:
                _, said = process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                said = process.communicate()[1]
            seconds = time.perf_counter() - began
            count, slowest, lost = count + 1, max(slowest, seconds), left(others)
            orphans += lost
            lines = [line for line in said.splitlines() if line.startswith("stopped by")]
            if process.returncode != code or lines != [line for line in lines if title in line][:1] or not lines:
                wrong.append(f"{name}, {title}: exit {process.returncode}, {said[-200:]!r}")
            elif seconds > LIMIT or "Traceback" in said or lost:
                wrong.append(f"{name}, {title}: {seconds:.1f} s, {lost} left, {said[-200:]!r}")
    for line in wrong:
        print(f"  {line}", file=sys.stderr)
    return Row("signals", f"{count} sent, slowest end {slowest:.2f} s, processes left {orphans}", len(wrong))


def orphans(folder: Path, short: bool) -> Row:
    """SIGKILL of a verb takes its children along."""
    found = total = 0
    for _ in range(1 if short else 4):
        process = start("evaluate", "families", *LONG, "--jobs", 2)
        until = time.monotonic() + 60
        while len(below(process.pid)) < 2 and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(1)
        others = below(process.pid)
        process.kill()
        process.communicate()
        total, found = total + len(others), found + left(others)
    return Row("children of killed verbs", f"{found} of {total} left", found + (total == 0))


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


def kills(folder: Path, verb: str, arguments: list[object], trials: int) -> Row:
    """SIGKILL at a random moment, the same command again: the same bytes as without, and nothing left beside them."""
    name = "result.json" if verb == "evaluate" else "result"
    whole = folder / "kills" / f"{verb}-whole" / name
    whole.parent.mkdir(parents=True)
    began = time.perf_counter()
    process = start(*arguments, whole)
    said = process.communicate()[1]
    assert process.returncode == 0, said
    expected, seconds = digest(whole), time.perf_counter() - began
    rng, same, killed = random.Random(verb), 0, 0
    for number in range(trials):
        goal = folder / "kills" / f"{verb}-{number}" / name
        share = rng.uniform(0.3, 1.0)
        for _ in range(10):  # sooner, if it had ended: the first process may have had to compile
            shutil.rmtree(goal.parent, ignore_errors=True)
            goal.parent.mkdir(parents=True)
            process = start(*arguments, goal)
            with suppress(subprocess.TimeoutExpired):
                process.wait(share * seconds)
            others, alive, share = below(process.pid), process.poll() is None, 0.7 * share
            process.kill()
            process.communicate()
            left(others)
            if alive:
                killed += 1
                break
        process = start(*arguments, goal)
        said = process.communicate()[1]
        rest = [p.name for p in goal.parent.iterdir() if p.name not in (goal.name, "result.npz") and not _unlocked(p)]
        equal = process.returncode == 0 and goal.exists() and digest(goal) == expected and not rest
        if not equal:
            print(f"  {verb} {number}: exit {process.returncode}, {rest}, {said[-300:]!r}", file=sys.stderr)
        same += equal
    return Row(
        f"kills and resumes: {verb}", f"{killed} killed, {same} of {trials} identical", 2 * trials - same - killed
    )


def _unlocked(path: Path) -> bool:
    """Whether this is the temporary folder of a writer that was killed before it locked it, which a later one removes.

    It stays for an hour, as its writer may be alive.
    """
    return path.name.startswith(".result") and {p.name for p in path.iterdir()} <= {"lock.new"}


def kills_train(folder: Path, short: bool) -> Row:
    """Of a network."""
    return kills(folder, "train", ["train", "families", "--method", "gcaps", "--epochs", 8, "-o"], 1 if short else 13)


def kills_evaluate(folder: Path, short: bool) -> Row:
    """Of an evaluation, which begins anew."""
    given = ["evaluate", "families", "--method", "deepsets", "--epochs", 40, "--folds", 3, "--jobs", 2, "-o"]
    return kills(folder, "evaluate", given, 1 if short else 12)


def kills_compare(folder: Path, short: bool) -> Row:
    """Of a comparison, whose cells are kept."""
    grid = folder / "kill.toml"
    grid.write_text("[deepsets]\nepochs = 60\n[gin]\nepochs = 20\n")
    given = ["compare", "families", "--methods", "deepsets,gin,fgsd", "--folds", 3, "--grid", grid, "-o"]
    return kills(folder, "compare", given, 1 if short else 12)


def kills_ensemble(folder: Path, short: bool) -> Row:
    """Of an ensemble, whose fits on inner folds are kept."""
    given = ["train", folder / "bases" / "tu", "--method", "ensemble", "--methods", "wl,fgsd,deepsets", "-o"]
    return kills(folder, "ensemble", given, 1 if short else 13)


@contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[Path | None]:
    """A file system of so many KiB, where this user may mount one; else None."""
    place = folder / "small"
    place.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def full_disks(folder: Path, short: bool) -> Row:
    """A disk that is full is one line with exit code 9, and nothing is left there."""
    bases, wrong, count = folder / "bases", [], 0
    with small_disk(folder, 8) as place:
        if place is None:
            return Row("full disks", "skipped: no file system can be mounted here", 0)
        (place / "fill").write_bytes(b"x" * 4096)
        verbs: dict[str, list[object]] = {
            "train": ["train", bases / "tu", "-o", place / "model", "--method", "deepsets", "--epochs", "1"],
            "predict": ["predict", bases / "network.model", folder / "bases" / "tu", "-o", place / "p.csv"],
            "predict to a full screen": ["predict", bases / "network.model", bases / "tu"],
            "evaluate": ["evaluate", bases / "tu", "-o", place / "r.json", "--method", "wl", "--folds", 2, "--jobs", 1],
            "compare": ["compare", bases / "tu", "--methods", "wl", "--folds", 2, "-o", place / "run", "--jobs", 1],
            "report": ["report", bases / "run", "-o", place / "report.html"],
            "convert": ["data", "convert", bases / "tu", place / "x.gset"],
        }
        for name, arguments in verbs.items():
            (place / "more").unlink(missing_ok=True)
            with suppress(OSError), (place / "more").open("wb", 0) as filling:
                while filling.write(b"x" * 4096) == 4096:
                    pass
            command = [sys.executable, "-m", "gcaps", *map(str, arguments)]
            screen = Path("/dev/full").open("w") if "screen" in name else subprocess.DEVNULL  # noqa: SIM115
            done = subprocess.run(
                command, stdout=screen, stderr=subprocess.PIPE, text=True, env=environment(), check=False
            )
            count += 1
            lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
            there = [p.name for p in place.iterdir() if p.name not in ("fill", "more", "run")]  # a run is continued
            if done.returncode != 9 or len(lines) != 1 or "Traceback" in done.stderr or there:
                wrong.append(f"{name}: exit {done.returncode}, {there}, {done.stderr[-300:]!r}")
            for name_ in (*there, "run"):
                shutil.rmtree(place / name_, ignore_errors=True)
    for line in wrong:
        print(f"  full disk: {line}", file=sys.stderr)
    return Row("full disks", f"{count - len(wrong)} of {count} verbs end with one line", len(wrong))


def two_at_once(folder: Path, short: bool) -> Row:
    """Two processes write the same model and the same run: each is whole, and as if one had."""
    wrong = 0
    for name, arguments in {
        "train": [
            "train",
            folder / "bases" / "tu",
            "--method",
            "deepsets",
            "--epochs",
            "5",
            "-o",
            folder / "both.model",
        ],
        "compare": [
            "compare",
            folder / "bases" / "tu",
            "--methods",
            "deepsets,wl",
            "--folds",
            "2",
            "-o",
            folder / "both.run",
        ],
    }.items():
        one, two = start(*arguments), start(*arguments)
        said = [p.communicate(timeout=300)[1] for p in (one, two)]
        alone = folder / "alone" / Path(str(arguments[-1])).name
        alone.parent.mkdir(exist_ok=True)
        process = start(*arguments[:-1], alone)
        process.communicate()
        if {one.returncode, two.returncode} != {0} or digest(Path(str(arguments[-1]))) != digest(alone):
            wrong += 1
            print(f"  two at once, {name}: {one.returncode} {two.returncode} {said}", file=sys.stderr)
    return Row("two processes on one folder", f"{2 - wrong} of 2 whole and identical", wrong)


def lost_worker(folder: Path, short: bool) -> Row:
    """A Dask worker is killed: its cells are computed by another; a stopped client's cells are given up."""
    port = _free_port()
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-dashboard",
    ]
    scheduler = subprocess.Popen(dask, env=environment(), **quiet)
    worker = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        address,
        "--nthreads",
        "1",
        "--no-nanny",
        "--no-dashboard",
    ]
    workers = [
        subprocess.Popen([*worker, "--local-directory", str(folder)], env=environment(), **quiet) for _ in range(2)
    ]
    try:
        time.sleep(6)
        command = ["compare", "families", "--methods", "deepsets,gin", "--folds", "4", "-o", folder / "lost.run"]
        process = start(*command, "--cluster", address)
        cells = folder / "lost.run" / "cells"
        until = time.monotonic() + 240
        while not any(cells.glob("*/*/*.json")) and time.monotonic() < until and process.poll() is None:
            time.sleep(0.2)
        children = below(workers[0].pid)
        workers[0].kill()
        said = process.communicate(timeout=400)[1]
        found, orphaned = len(list(cells.glob("*/*/*.json"))), left(children)
        endless = ["compare", "families", "--methods", "ecc", "--folds", "4", "-o", folder / "stopped.run"]
        process = start(*endless, "--cluster", address)
        until = time.monotonic() + 120
        while not below(workers[1].pid) and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(2)
        began = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        seconds = time.perf_counter() - began
        time.sleep(5)
        busy = sum(p.cpu_percent(1.0) > 50 for p in below(workers[1].pid))
        wrong = (found != 8) + orphaned + (process.returncode != 143) + (seconds > LIMIT) + busy
        if wrong:
            print(
                f"  Dask: {found} cells, exit {process.returncode}, {seconds:.1f} s, {busy} busy {said[-300:]}",
                file=sys.stderr,
            )
        text = f"{found} of 8 cells after a lost worker; stopped in {seconds:.2f} s, {orphaned + busy} processes left"
        return Row("Dask", text, wrong)
    finally:
        for one in (*workers, scheduler):
            one.kill()
            one.wait()


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        number: int = made.getsockname()[1]
    return number


def lost_rank(folder: Path, short: bool) -> Row:
    """A process of torchrun is killed: the other ends with one line, and nothing is saved or left."""
    goal = folder / "torchrun.model"
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--standalone",
        "-m",
        "gcaps",
        "train",
    ]
    more = [str(folder / "bases" / "tu"), "-o", str(goal), "--method", "deepsets", "--epochs", "1000000"]
    process = subprocess.Popen(
        [*command, *more], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 180
    while not goal.with_name("torchrun.model.checkpoint").exists() and time.monotonic() < until:
        time.sleep(0.2)
    ranks = below(process.pid)
    ours = [p for p in ranks if "gcaps" in " ".join(p.cmdline()) and "train" in p.cmdline()]
    if ours:
        ours[-1].kill()
    began = time.perf_counter()
    said = process.communicate(timeout=120)[1]
    seconds, lost = time.perf_counter() - began, left(ranks)
    told = len(re.findall("another process of this training has ended", said))
    wrong = (process.returncode == 0) + (not told) + lost + goal.exists() + (not ours)
    if wrong:
        print(f"  torchrun: exit {process.returncode}, {said[-500:]!r}", file=sys.stderr)
    return Row("torchrun", f"a killed rank ends the others in {seconds:.0f} s, processes left {lost}", wrong)


TRIALS = (
    *(signals, orphans, kills_train, kills_evaluate, kills_compare, kills_ensemble),
    *(full_disks, two_at_once, lost_worker, lost_rank),
)
