"""Searches of settings whose journal was altered, and spaces of settings that mean nothing."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.faults.runner import Request

Lines = list[dict[str, Any]]
VALUES: list[Any] = [None, "[/b]", -1, 2**40, 10**40, math.nan, math.inf, [], {}, True, 0.5, "x" * 100_000]
SPACES: dict[str, str] = {
    "empty": "",
    "no method": "hidden = [4]",
    "another method": "[wl]\nC = [1]",
    "unknown setting": "[deepsets]\nx = [1]",
    "no values": "[deepsets]\nhidden = []",
    "many values": f"[deepsets]\nhidden = {list(range(1, 2000))}",
    "text": '[deepsets]\nhidden = ["x"]',
    "nested": "[deepsets]\nhidden = [[4]]",
    "table": "[deepsets]\nhidden = [{}]",
    "low above high": "[deepsets]\nhidden = { low = 9, high = 1 }",
    "NaN": "[deepsets]\nlr = { low = nan, high = 1.0 }",
    "infinite": "[deepsets]\nlr = { low = 0.1, high = inf }",
    "log of 0": "[deepsets]\nlr = { low = 0.0, high = 1.0, log = true }",
    "log of minus": "[deepsets]\nlr = { low = -1.0, high = 1.0, log = true }",
    "huge": f"[deepsets]\nhidden = {{ low = 1, high = {2**62} }}",
    "very huge": f"[deepsets]\nhidden = {{ low = 1, high = {10**40} }}",
    "without high": "[deepsets]\nhidden = { low = 1 }",
    "more": "[deepsets]\nhidden = { low = 1, high = 2, step = 1 }",
    "booleans": "[deepsets]\nhidden = { low = true, high = 2 }",
    "twice": "[deepsets]\nhidden = [4]\nhidden = [8]",
    "equal values": "[deepsets]\nhidden = [4, 4]",
    "a number": "[deepsets]\nhidden = 4",
    "no table": "deepsets = 4",
    "list of tables": "[[deepsets]]\nhidden = [4]",
    "class weights": '[deepsets]\nclass_weight = [{ "0" = 1e300 }]',
    "out of range": "[deepsets]\nhidden = [-1, 0]",
}
MAY_BE_READ = ("equal values", "class weights", "a number", "huge")


def broken_studies(bases: Path, folder: Path) -> Iterator[Request]:
    """Every field of every kind of line altered; lines left out, repeated, turned round, or of other studies."""
    sound = [json.loads(line) for line in (bases / "study" / "journal.log").read_text().splitlines()]
    for number, (title, lines) in enumerate(_journals(sound)):
        goal = folder / str(number) / "study"
        shutil.copytree(bases / "study", goal)
        (goal / "journal.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
        yield {"do": "read", "name": f"journal: {title}"[:90], "path": str(goal), "wrong": False}
    for number, (title, text) in enumerate(SPACES.items()):
        path = folder / f"space{number}" / "space.toml"
        path.parent.mkdir(parents=True)
        path.write_text(text + "\n")
        yield {"do": "read", "name": f"space: {title}", "path": str(path), "wrong": title not in MAY_BE_READ}


def _journals(sound: Lines) -> Iterator[tuple[str, Lines]]:
    first = {line["op_code"]: at for at, line in reversed(list(enumerate(sound)))}
    for code, at in first.items():
        for place in _fields(sound[at]):
            for value in VALUES:
                yield f"{code} {'.'.join(place)} {str(value)[:20]}", _changed(sound, at, _setting(place, value))
            yield f"{code} {'.'.join(place)} left out", _changed(sound, at, _removing(place))
        for other in range(12):
            yield f"{code} is {other}", _changed(sound, at, lambda line, other=other: line.update(op_code=other))
    for at in range(len(sound)):
        yield f"without line {at}", sound[:at] + sound[at + 1 :]
        yield f"line {at} twice", sound[: at + 1] + sound[at:]
        yield f"{at} lines", sound[:at]
    yield "turned round", sound[::-1]
    yield "twice", sound + sound
    yield "1,000 times", sound * 1000
    begins = sound[first[4]]
    yield "20,000 trials", sound[: first[4]] + [begins] * 20_000
    deep = "[" * 50_000
    spaces = dict.fromkeys(begins.get("distributions", {"x": ""}), deep)
    yield "deep distributions", _changed(sound, first[4], lambda line: line.update(distributions=spaces))
    many = json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": list(range(10_000))}})
    spaces = {f"x{i}": many for i in range(100)}
    yield "many distributions", _changed(sound, first[4], lambda line: line.update(distributions=spaces))


def _fields(line: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, value in line.items():
        yield (key,)
        for below in value if isinstance(value, dict) else ():
            yield (key, below)


def _changed(sound: Lines, at: int, change: Callable[[dict[str, Any]], object]) -> Lines:
    line = json.loads(json.dumps(sound[at]))
    change(line)
    return [*sound[:at], line, *sound[at + 1 :]]


def _setting(place: tuple[str, ...], value: Any) -> Callable[[dict[str, Any]], object]:
    def change(line: dict[str, Any]) -> None:
        for key in place[:-1]:
            line = line[key]
        line[place[-1]] = value

    return change


def _removing(place: tuple[str, ...]) -> Callable[[dict[str, Any]], object]:
    def change(line: dict[str, Any]) -> None:
        for key in place[:-1]:
            line = line[key]
        del line[place[-1]]

    return change
