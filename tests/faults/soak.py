"""A server under sound and broken requests while its workers are killed: right answers, level memory, a clean end."""

from __future__ import annotations

import http.client
import json
import random
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.faults.bases import SMILES
from tests.faults.processes import Forked, Row, below, left
from tests.faults.runner import mutated

GROWTH = 64.0
"""MiB by which the most that the processes of a server have together may grow from the first half to the second."""
Answer = tuple[int, bytes]


class Client:
    """Sends requests to a server, each over a connection of its own."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, method: str, path: str, body: bytes = b"", cut: int | None = None) -> Answer | None:
        """Return status and body of the answer; None if the request is cut off after so many bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            if cut is None:
                connection.request(method, path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                return answer.status, answer.read()
            connection.putrequest(method, path)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body[:cut])
            return None
        finally:
            connection.close()


def sound_requests(bases: Path) -> list[tuple[str, str, bytes]]:
    """Return one request of every kind."""
    table = (bases / "classes.csv").read_bytes()
    return [
        ("GET", "/health", b""),
        ("GET", "/model", b""),
        ("POST", "/predict", json.dumps({"smiles": "CCO"}).encode()),
        ("POST", "/predict", json.dumps({"smiles": list(SMILES), "neighbors": 2}).encode()),
        ("POST", "/predict/file?name=x.csv", table),
        ("POST", "/explain", json.dumps({"smiles": "CC(=O)O"}).encode()),
        ("POST", "/explain", json.dumps({"smiles": "O"}).encode()),
        ("POST", "/explain/file?name=x.csv&row=3", table),
    ]


def soak(folder: Path, short: bool) -> Row:
    """Sound requests have the same answers all along, broken ones are refused, and killed workers are replaced."""
    requests, rng = 300 if short else 6000, random.Random(0)
    process = Forked("serve", folder / "bases" / "molecules.model", "--port", 0, "--workers", 2)
    problems: list[str] = []
    client = Client(_port_of(process))
    sound = sound_requests(folder / "bases")
    expected = [client.ask(*request) for request in sound]
    problems += [f"{request}: {answer}"[:600] for request, answer in zip(sound, expected, strict=True)
                 if answer is None or answer[0] != 200]  # fmt: skip
    counts = {"sound": 0, "broken": 0, "cut off": 0}
    kills = crashed = 0
    memory: list[float] = []
    for number in range(requests):
        kind = rng.choices(list(counts), (6, 3, 1))[0]
        place = rng.randrange(2, len(sound)) if kind != "sound" else rng.randrange(len(sound))
        method, path, body = sound[place]
        if kind == "broken":
            body = mutated(body, rng)
        try:
            answer = client.ask(method, path, body, cut=len(body) // 2 if kind == "cut off" else None)
        except OSError as error:
            problems.append(f"{kind} {path}: {error!r}")
            continue
        counts[kind] += 1
        if answer is not None and answer[0] == 500 and b'"crashed"' in answer[1] and crashed < kills:
            crashed += 1  # its worker was killed meanwhile
        elif kind == "sound" and place != 0 and answer != expected[place]:
            problems.append(f"another answer to {path}: {answer}"[:600])
        elif answer is not None and (answer[0] >= 500 or not answer[1]):
            problems.append(f"{kind} {path} {body[:200]!r}: {answer}"[:600])
        if number % (requests // 60) == 0:  # the most counts: a worker that was just started has little
            memory.append(_memory(process))
        if number % (requests // 10) == requests // 20:
            kills += _kill_worker(process, rng)
    grown = max(memory[len(memory) // 2 :]) - max(memory[: len(memory) // 2])
    if grown > GROWTH:
        problems.append(f"grew by {grown:.0f} MiB")
    others = below(process.pid)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    lost = left(others, 10.0)
    if process.returncode != 0 or lost or "Traceback" in said:
        problems.append(f"exit {process.returncode}, {lost} left: {said[-1000:]}")
    for problem in problems[:20]:
        print(f"  soak: {problem}", file=sys.stderr, flush=True)
    told = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    text = f"requests: {told}; {kills} workers killed, {crashed} requests lost with them; {grown:+.0f} MiB"
    return Row("soak of the server", f"{text}; {len(problems)} wrong", len(problems))


def _port_of(process: Forked) -> int:
    """Wait until the server says where it listens."""
    until = time.monotonic() + 300
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"http://127\.0\.0\.1:(\d+)", process.said())
        if found:
            return int(found.group(1))
        time.sleep(0.05)
    raise RuntimeError(f"no server: {process.communicate(timeout=1)[1]}")


def _memory(process: Forked) -> float:
    """Return the MiB that the processes of a server have for themselves or in part."""
    total = 0
    for one in [psutil.Process(process.pid), *below(process.pid)]:
        with suppress(psutil.Error):
            total += one.memory_full_info().pss
    return total / 2**20


def _kill_worker(process: Forked, rng: random.Random) -> int:
    """Kill one of the processes that predict: the server started the one that listens first."""
    workers = sorted(below(process.pid), key=lambda one: (one.create_time(), one.pid))[1:]
    if not workers:
        return 0
    rng.choice(workers).kill()
    return 1
