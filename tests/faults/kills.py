"""Kills and resumes: SIGKILL at a random moment, and the same command again gives the bytes of an undisturbed run.

Of six kills one comes at any moment from the start, one as soon as the result is being written, and four while the
computation runs and has kept something to resume from. A kill counts only if the process was running. The processes
are forks of this one, so that most of their time is the verb's own; the bytes to compare with come from ``python -m
gcaps``. A third of the evaluations and comparisons compute in worker processes when they are killed.
"""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired

from tests.faults.processes import Forked, Row, below, digest, left, start, wait_until

KEPT: dict[str, Callable[[Path], bool]] = {
    "train": lambda goal: (goal.with_name("result.checkpoint") / "checkpoint.state").exists(),
    "ensemble": lambda goal: any(goal.with_name("result.checkpoint").glob("*.npz")),
    "compare": lambda goal: any(goal.glob("cells/*/*/*.json")),
    "tune": lambda goal: b"intermediate_value" in content_of(goal / "journal.log"),
}
"""What each verb keeps to resume from; an evaluation keeps nothing."""
GROWING = ("compare", "tune")
"""Verbs whose result is a folder that grows."""
WRITTEN: dict[str, Callable[[Path], bool]] = {
    "compare": Path.exists,
    "tune": lambda goal: (goal / "best.toml").exists(),
}
"""When they have begun to write their result; the others write a draft beside it."""


def content_of(file: Path) -> bytes:
    """Return the content of a file, which may not be there yet."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


class Undisturbed:
    """Times of a run that nobody kills, in seconds.

    Args:
        verb: name of the trial, and of the folder.
        arguments: of the verb, without the output at their end.
    """

    def __init__(self, folder: Path, verb: str, arguments: list[object]) -> None:
        goal = new_goal(folder, verb, "undisturbed")
        kept = KEPT.get(verb)
        began = time.monotonic()
        process = launch(arguments, goal)
        wait_until(lambda: kept is not None and kept(goal), process)
        self.first = time.monotonic() - began if kept is not None else 0.0
        """Until there is something to resume from."""
        said = process.communicate()[1]
        assert process.returncode == 0, said
        self.whole = time.monotonic() - began


def expected_digest(folder: Path, verb: str, arguments: list[object]) -> str:
    """Return the digest of what the verb writes in a process of its own."""
    goal = new_goal(folder, verb, "expected")
    process = start(*arguments, goal)
    said = process.communicate()[1]
    assert process.returncode == 0, said
    return digest(goal)


def new_goal(folder: Path, verb: str, name: object) -> Path:
    """Return the path of a result in an empty folder."""
    goal = folder / "kills" / f"{verb}-{name}" / ("result.json" if verb == "evaluate" else "result")
    shutil.rmtree(goal.parent, ignore_errors=True)
    goal.parent.mkdir(parents=True)
    return goal


def launch(arguments: list[object], goal: Path) -> Forked:
    """Start a verb that saves its state as often as it can."""
    return Forked(*arguments, goal, GCAPS_CHECKPOINT_SECONDS="0")


def kills(folder: Path, verb: str, arguments: list[object], trials: int) -> Row:
    """Kill a verb and run it again, so many times; the outcome has to be that of an undisturbed run.

    Args:
        verb: name of the trial; one that keeps something to resume from is in :data:`KEPT`.
        arguments: of the verb, without the output at their end.
    """
    wanted = expected_digest(folder, verb, arguments)
    usual, rng = Undisturbed(folder, verb, arguments), random.Random(verb)
    identical = killed = resumable = 0
    for number in range(trials):
        goal = new_goal(folder, verb, number)
        share, problems = rng.random(), []
        for _ in range(10):  # sooner, if it had ended
            several = verb in ("evaluate", "compare") and number % 3 == 0
            process = launch([*arguments[:-1], "--jobs", 2, "-o"] if several else arguments, goal)
            if several:
                wait_until(lambda process=process: len(below(process.pid)) >= 2, process)
            wait_for_moment(number % 6, share, verb, goal, usual, process)
            others, running = below(process.pid), process.poll() is None
            process.kill()
            process.communicate()
            left(others, 10.0)
            if running:
                killed += 1
                resumable += verb in KEPT and KEPT[verb](goal)
                break
            goal, share = new_goal(folder, verb, number), 0.7 * share
        if verb not in GROWING and goal.exists() and digest(goal) != wanted:
            problems.append("a result that is not whole after the kill")
        process = launch(arguments, goal)
        said = process.communicate()[1]
        problems += [f"left: {p.name}" for p in sorted(goal.parent.iterdir()) if not expected(p, goal)]
        if process.returncode or not goal.exists() or digest(goal) != wanted:
            problems.append(f"another result, exit code {process.returncode}: {said[-500:]!r}")
        for problem in problems:
            print(f"  {verb} {number}: {problem}", file=sys.stderr, flush=True)
        identical += not problems
    kept = f", {resumable} of them with something to resume from" if verb in KEPT else ""
    text = f"{killed} killed{kept}; {identical} of {trials} identical afterwards"
    return Row(f"kills and resumes: {verb}", text, 2 * trials - identical - killed)


def wait_for_moment(kind: int, share: float, verb: str, goal: Path, usual: Undisturbed, process: Forked) -> None:
    """Wait for the moment of a kill, or for the end of the process."""
    began = time.monotonic()
    if kind == 5:
        draft, limit = f".{goal.name}.*", 2 * usual.whole + 60
        writes = WRITTEN.get(verb, lambda goal: any(goal.parent.glob(draft)))
        if wait_until(lambda: writes(goal), process, limit):
            time.sleep(0.03 * share)
            return
    seconds = share * usual.whole
    if kind and verb in KEPT:
        wait_until(lambda: KEPT[verb](goal), process)
        began, seconds = time.monotonic(), share * (usual.whole - usual.first)
    with suppress(TimeoutExpired):
        process.wait(max(0.0, seconds + began - time.monotonic()))


def expected(path: Path, goal: Path) -> bool:
    """Whether a path beside a result belongs to it, or is the folder of a writer that was killed before it locked it.

    Such a folder stays for an hour, as its writer may be alive.
    """
    if path.name in (goal.name, "result.npz"):
        return True
    return path.name.startswith(".result") and {p.name for p in path.iterdir()} <= {"lock.new"}


def kills_train(folder: Path, short: bool) -> Row:
    """Of a training of networks."""
    given = ["train", "families", "--method", "gcaps", "--epochs", 150, "-o"]
    return kills(folder, "train", given, 1 if short else 10)


def kills_evaluate(folder: Path, short: bool) -> Row:
    """Of an evaluation, which begins anew."""
    given = ["evaluate", folder / "bases" / "tu", "--method", "deepsets", "--epochs", 300, "--folds", 3]
    return kills(folder, "evaluate", [*given, "--jobs", 1, "-o"], 1 if short else 10)


def kills_compare(folder: Path, short: bool) -> Row:
    """Of a comparison, whose cells are kept."""
    grid = folder / "kill.toml"
    grid.write_text("[deepsets]\nepochs = 200\n[gin]\nepochs = 100\n")
    given = ["compare", folder / "bases" / "tu", "--methods", "deepsets,gin,wl", "--folds", 4, "--grid", grid]
    return kills(folder, "compare", [*given, "--jobs", 1, "-o"], 1 if short else 10)


def kills_ensemble(folder: Path, short: bool) -> Row:
    """Of an ensemble, whose fits on inner folds are kept."""
    given = ["train", folder / "bases" / "tu", "--method", "ensemble", "--methods", "wl,fgsd,deepsets", "-o"]
    return kills(folder, "ensemble", given, 1 if short else 10)


def kills_tune(folder: Path, short: bool) -> Row:
    """Of a search of settings, whose inner folds are kept."""
    given = ["tune", folder / "bases" / "tu", "--method", "deepsets", "--epochs", 100, "--trials", 4, "--folds", 3]
    return kills(folder, "tune", [*given, "-o"], 1 if short else 10)


KILLS = (kills_train, kills_evaluate, kills_compare, kills_tune, kills_ensemble)
