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
from statistics import median

from tests.faults.clusters import CLUSTERS
from tests.faults.kills import KILLS
from tests.faults.processes import Forked, Row, below, digest, handles_signals, left, wait_until
from tests.faults.soak import soak

LONG = ("--method", "deepsets", "--epochs", "1000000", "--hidden", "16")
SVM = ("--method", "mlg")
SOON = ("report", "export")
"""Verbs that are soon done."""
TUNE = ("--method", "deepsets", "--epochs", 20, "--trials", 3, "--folds", 2)
CONTINUED = ("run", "study")
"""Folders that are not drafts: the same command continues what is there."""
KINDS = {"SIGTERM": 143, "SIGINT": 130, "SIGHUP": 129}
"""Signals and the exit codes that a shell gives them."""


def signals(folder: Path, short: bool) -> Row:
    """Every verb ends on every signal: exit code, one line, nothing left."""
    bases, table = folder / "bases", folder / "many.csv"
    table.write_text("smiles,y\n" + "".join(f"{'C' * (1 + i % 90)}O,{i % 2}\n" for i in range(400_000)))
    verbs: dict[str, list[object]] = {
        "train": ["train", bases / "tu", "-o", folder / "signal.model", *LONG],
        "train, SVM": ["train", "families", "-o", folder / "svm.model", *SVM],
        "evaluate": ["evaluate", "families", *LONG, "--jobs", 2],
        "evaluate, one process": ["evaluate", "families", *SVM, "--jobs", 1],
        "compare": ["compare", "families", "--methods", "mlg,ecc", "-o", folder / "signal.run", "--jobs", 2],
        "tune": ["tune", "families", "-o", folder / "signal.study", *LONG],
        "tune, worker processes": ["tune", "families", "-o", folder / "signal2.study", *LONG, "--jobs", 2],
        "predict": ["predict", bases / "network.model", table],
        "embed": ["embed", bases / "molecules.model", table, "-o", folder / "signal.npz"],
        "convert, worker processes": ["data", "convert", table, folder / "signal.gset"],
        "data check": ["data", "check", table],
        "explain": ["explain", bases / "molecules.model", table, "-o", folder / "signal.html"],
        "serve": ["serve", bases / "network.model", "--port", 0],
        "export": ["export", bases / "network.model", "-o", folder / "signal.onnx"],
        "report": ["report", bases / "run", "-o", folder / "signal-report.html"],
    }
    ends, wrong, orphans = [], [], 0
    for number, (name, arguments) in enumerate(verbs.items()):
        for title in list(KINDS)[number % 3 :][:1] if short else KINDS:
            process = at_work(name, arguments, title, folder)
            if process is None:
                wrong.append(f"{name} ended before {title}")
                continue
            code = 0 if (name, title) == ("serve", "SIGTERM") else KINDS[title]  # so does a service end that is stopped
            others, began = below(process.pid), time.perf_counter()
            process.send_signal(getattr(signal, title))
            try:
                _, said = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                said = process.communicate()[1]
            ends.append(time.perf_counter() - began)
            lost = left(others, 10.0)
            orphans += lost
            lines = [line for line in said.splitlines() if line.startswith("stopped by")]
            if process.returncode != code or len(lines) != 1 or title not in lines[0] or "Traceback" in said or lost:
                wrong.append(
                    f"{name}, {title}: exit {process.returncode}, {ends[-1]:.1f} s, {lost} left, {said[-300:]!r}"
                )
    for line in wrong:
        print(f"  {line}", file=sys.stderr)
    times = f"median end {median(ends):.2f} s, slowest {max(ends):.2f} s"
    return Row("signals", f"{len(ends)} sent to {len(verbs)} verbs, {times}, processes left {orphans}", len(wrong))


def at_work(name: str, arguments: list[object], title: str, folder: Path) -> Forked | None:
    """Start a verb and return it while it works: for seconds already, or on its way if it is soon done."""
    seconds = random.Random(f"{name}{title}").uniform(0, 0.5) if name in SOON else 8.0
    for _ in range(6):
        process = Forked(*arguments, GCAPS_JOBS="2", GCAPS_CACHE=str(folder / "cache"))
        wait_until(lambda process=process: handles_signals(process.pid), process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        if process.poll() is None:
            return process
        process.communicate()
        seconds = 0.4 * seconds if seconds > 0.05 else 0.0
    return None


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
            "tune": ["tune", bases / "tu", "-o", place / "study", *TUNE],
            "embed": ["embed", bases / "network.model", bases / "tu", "-o", place / "vectors.npz"],
            "embed, CSV": ["embed", bases / "network.model", bases / "tu", "-o", place / "vectors.csv"],
            "map": ["embed", bases / "network.model", bases / "tu", "-o", place / "map.html"],
            "explain": ["explain", bases / "network.model", bases / "tu", "-o", place / "explanation.html"],
            "export": ["export", bases / "network.model", "-o", place / "model.onnx"],
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
            there = [p.name for p in place.iterdir() if p.name not in ("fill", "more", *CONTINUED)]
            if process.returncode != 9 or len(lines) != 1 or "Traceback" in said or there:
                wrong.append(f"{name}: exit {process.returncode}, {there}, {said[-300:]!r}")
            for rest in (*there, *CONTINUED):
                shutil.rmtree(place / rest, ignore_errors=True)
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
        title = f"{name}.gset" if name == "convert" else name  # a run is called as its folder is
        alone = folder / "alone" / title
        alone.parent.mkdir(exist_ok=True)
        process = Forked(*arguments, *output, alone)
        said = process.communicate()[1]
        assert process.returncode == 0, said
        expected = digest(alone)
        for _ in range(times):
            goal = folder / "both" / title
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


TRIALS = (signals, orphans, full_disks, two_at_once, *CLUSTERS, *KILLS, soak)
