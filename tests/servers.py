"""Small models, and ``gcaps serve`` as a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil

import gcaps


def chains(count: int = 40) -> list[str]:
    """SMILES of chains, every other one with an oxygen at its end."""
    return ["C" * (n // 2 + 5) + ("O" if n % 2 else "") for n in range(count)]


def save_alcohols(path: Path) -> Path:
    """A calibrated classifier of molecules with an oxygen."""
    texts = chains()
    model = gcaps.estimators.make_estimator("ecfp", {"n_estimators": 5})
    model.fit_calibrated(texts, ["yes" if "O" in text else "no" for text in texts], folds=2).save(path)
    return path


def save_mutag(path: Path) -> Path:
    """A network on graphs that are no molecules, without calibration."""
    gcaps.estimators.make_estimator("deepsets", {"epochs": 1}).fit(gcaps.load("MUTAG")[:60]).save(path)
    return path


class Server:
    """``gcaps serve`` until the end of a with statement.

    Args:
        model: folder of a saved model.
        options: of the command.
        token: sent with every request.
    """

    def __init__(self, model: Path, *options: str, token: str = "", code: str = "") -> None:
        command = ["-c", code] if code else ["-m", "gcaps"]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "GCAPS_TOKEN": token}
        self.token = token
        self.process = subprocess.Popen(
            [sys.executable, *command, "serve", str(model), "--port", "0", *options],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> Server:
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r"at (http://\S+?:(\d+))", line):
                self.url, self.port, self.said = found[1], int(found[2]), "".join(said)
                self.wait_until(lambda: self.health()["status"] == "ok")
                return self
        self.process.wait()
        self.process.stderr.close()
        raise AssertionError(f"the server did not start: {''.join(said)}")

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, float]:
        """End it with a signal; return the exit code, what it says, and the seconds that it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        try:
            _, said = self.process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, said, time.monotonic() - began

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return status and answer of a request, as JSON where it is."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        try:
            with urlopen(Request(self.url + path, data, headers), timeout=60) as answer:
                status, found = answer.status, answer.read()
        except HTTPError as error:
            with error:
                status, found = error.code, error.read()
        try:
            return status, json.loads(found)
        except ValueError:
            return status, found.decode()

    def health(self) -> dict[str, Any]:
        """What ``/health`` answers."""
        found: dict[str, Any] = self.ask("/health")[1]
        return found

    def children(self) -> list[psutil.Process]:
        """The process that listens, and the workers."""
        return psutil.Process(self.process.pid).children()

    def wait_until(self, condition: Any, seconds: float = 20) -> None:
        """Wait for something to happen."""
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "it did not happen"
            time.sleep(0.02)
