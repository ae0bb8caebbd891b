"""Trials of whole processes: signals, full disks, two processes on one folder.

Each trial returns a line for the table and the number of its failures. What is asserted are outcomes; seconds are
reported, and have limits that a busy machine does not reach.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.faults.clusters import CLUSTERS
from tests.faults.kills import KILLS
from tests.faults.processes import Forked, Row, below, digest, handles_signals, left, wait_until

LONG = ("--method", "deepsets", "--epochs", "1000000", "--hidden", "16")
SVM = ("--method", "mlg")
LIMIT = 10.0
"""Seconds in which a signal ends a verb on a machine that is busy; on a quiet one two suffice."""


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
    slowest, wrong, orphans, count = 0.0, [], 0, 0
    kinds = {"SIGTERM": 143, "SIGINT": 130, "SIGHUP": 129}
    for number, (name, arguments) in enumerate(verbs.items()):
        for title, code in list(kinds.items())[number % 3 :][:1] if short else kinds.items():
            # what computes for long is stopped while it does; a report is done soon, and is stopped on its way
            seconds = random.Random(f"{name}{title}").uniform(0, 0.5) if name == "report" else 8.0
            for _ in range(6):
                process = Forked(*arguments, GCAPS_JOBS="2", GCAPS_CACHE=str(folder / "cache"))
                wait_until(lambda process=process: handles_signals(process.pid), process)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(seconds)
                if process.poll() is None:
                    break
                process.communicate()
                seconds = 0.4 * seconds if seconds > 0.05 else 0.0
            else:
                wrong.append(f"{name} ended before {title}: {process.returncode}")
                continue
            others, began = below(process.pid), time.perf_counter()
            process.send_signal(getattr(signal, title))
            try:
                _, said = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                said = process.communicate()[1]
            seconds = time.perf_counter() - began
            count, slowest, lost = count + 1, max(slowest, seconds), left(others, 10.0)
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
        process = Forked("evaluate", "families", *LONG, "--jobs", 2)
        until = time.monotonic() + 60
        while len(below(process.pid)) < 2 and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(1)
        others = below(process.pid)
        process.kill()
        process.communicate()
        total, found = total + len(others), found + left(others, 10.0)
    return Row("children of killed verbs", f"{found} of {total} left", found + (total == 0))


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
            process = Forked(*arguments, screen="/dev/full" if "screen" in name else "/dev/null")
            said = process.communicate()[1]
            count += 1
            lines = [line for line in said.splitlines() if line.startswith("error:")]
            there = [p.name for p in place.iterdir() if p.name not in ("fill", "more", "run")]  # a run is continued
            if process.returncode != 9 or len(lines) != 1 or "Traceback" in said or there:
                wrong.append(f"{name}: exit {process.returncode}, {there}, {said[-300:]!r}")
            for name_ in (*there, "run"):
                shutil.rmtree(place / name_, ignore_errors=True)
    for line in wrong:
        print(f"  full disk: {line}", file=sys.stderr)
    return Row("full disks", f"{count - len(wrong)} of {count} verbs end with one line", len(wrong))


def two_at_once(folder: Path, short: bool) -> Row:
    """Two processes write the same model and the same run: each is whole, and as if one had."""
    tu = folder / "bases" / "tu"
    verbs: dict[str, list[object]] = {
        "train": ["train", tu, "--method", "deepsets", "--epochs", "200"],
        "compare": ["compare", tu, "--methods", "deepsets,wl", "--folds", "3"],
        "convert": ["data", "convert", tu],
    }
    times, wrong = 1 if short else 4, 0
    for name, arguments in verbs.items():
        output = [] if name == "convert" else ["-o"]
        alone, suffix = folder / "alone" / name, ".gset" if name == "convert" else ""
        alone.parent.mkdir(exist_ok=True)
        process = Forked(*arguments, *output, f"{alone}{suffix}")
        assert process.communicate()[0] is not None
        assert process.returncode == 0
        expected = digest(Path(f"{alone}{suffix}"))
        for number in range(times):
            goal = folder / "both" / f"{name}-{number}{suffix}"
            goal.parent.mkdir(exist_ok=True)
            both = [Forked(*arguments, *output, goal, GCAPS_CHECKPOINT_SECONDS="0") for _ in range(2)]
            said = [process.communicate(timeout=600)[1] for process in both]
            beside = [p.name for p in goal.parent.iterdir() if p.name != goal.name]
            if any(process.returncode for process in both) or digest(goal) != expected or beside:
                wrong += 1
                codes = [process.returncode for process in both]
                print(f"  two at once, {name}: {codes}, {beside}, {[s[-400:] for s in said]}", file=sys.stderr)
            shutil.rmtree(goal.parent)
    total = times * len(verbs)
    return Row("two processes on one folder", f"{total - wrong} of {total} whole and identical", wrong)


TRIALS = (signals, orphans, full_disks, two_at_once, *CLUSTERS, *KILLS)
