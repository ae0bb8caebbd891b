"""A server under load: requests a second, latency, errors, and the memory of its processes before and after.

    python benchmarks/serving.py MODEL [--seconds 60] [--clients 50] [--workers 2] [--soak 600] [--record FILE]

MODEL is a saved model of molecules. `gcaps serve MODEL` runs as a process of its own; the clients are connections of
this one, each of which sends a molecule, waits for the answer and sends the next. `--soak` repeats the load for that
many seconds and takes the memory again. Clients and server share the processors of this machine; where others do, too,
only the processor time of a request says what the server takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from gcaps.exporting.check import FRAGMENTS

MOLECULES = 2000
"""Different molecules that are sent."""


def molecules() -> list[bytes]:
    """Requests with one molecule of 3 to 6 fragments each."""
    rng = np.random.default_rng(0)
    texts = ("".join(rng.choice(FRAGMENTS, rng.integers(3, 7))) for _ in range(MOLECULES))
    return [json.dumps({"smiles": text}).encode() for text in texts]


class Server:
    """`gcaps serve` as a process."""

    def __init__(self, model: str, workers: int, more: list[str]) -> None:
        command = [sys.executable, "-m", "gcaps", "serve", model, "--port", "0", "--workers", str(workers), *more]
        began = time.monotonic()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"at http://127\.0\.0\.1:(\d+)", line):
                self.port, self.start_seconds = int(found[1]), time.monotonic() - began
                return
            print(line, end="", file=sys.stderr)
        raise SystemExit("the server did not start")

    def memory(self) -> dict[str, float]:
        """MiB of all processes together and of each: PSS counts shared pages in parts, USS only what is not shared."""
        root = psutil.Process(self.process.pid)
        found = [process.memory_full_info() for process in (root, *root.children())]
        own: dict[str, float] = {"processes": len(found)}
        for name in ("rss", "pss", "uss"):
            own[name] = round(sum(getattr(one, name) for one in found) / 2**20, 1)
        own["uss_of_workers"] = round(sum(one.uss for one in found[2:]) / max(len(found) - 2, 1) / 2**20, 1)
        own["rss_of_workers"] = round(sum(one.rss for one in found[2:]) / max(len(found) - 2, 1) / 2**20, 1)
        return own

    def processor_seconds(self) -> dict[str, float]:
        """Of the process that listens, and of the workers."""
        front, *workers = psutil.Process(self.process.pid).children()
        used = {one.pid: sum(one.cpu_times()[:2]) for one in (front, *workers)}
        return {"listening": used[front.pid], "workers": sum(used[one.pid] for one in workers)}

    def metrics(self) -> dict[str, float]:
        """Counters without labels."""
        from urllib.request import urlopen

        with urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            text = answer.read().decode()
        return {n: float(v) for n, v in re.findall(r"^(\w+) ([\d.e+]+)$", text, re.MULTILINE)}

    def stop(self) -> float:
        """Seconds from SIGTERM to the end."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)
        return time.monotonic() - began


async def client(
    port: int, bodies: list[bytes], first: int, step: int, until: float, found: list[tuple[float, int]]
) -> None:
    """Send one request after the other over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = first
    while time.monotonic() < until:
        body = bodies[number % len(bodies)]
        head = f"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        began = time.perf_counter()
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"content-length: (\d+)", answer)
        await reader.readexactly(int(length[1]) if length else 0)
        found.append((time.perf_counter() - began, int(answer[9:12])))
        number += step
    writer.close()


async def load(port: int, bodies: list[bytes], clients: int, seconds: float) -> dict[str, Any]:
    """Latencies and statuses of many clients."""
    found: list[tuple[float, int]] = []
    began = time.monotonic()
    until = began + seconds
    await asyncio.gather(*(client(port, bodies, i, clients, until, found) for i in range(clients)))
    took = time.monotonic() - began
    latency = 1e3 * np.array([one for one, _ in found])
    statuses = Counter(status for _, status in found)
    return {
        "clients": clients,
        "seconds": round(took, 1),
        "requests": len(found),
        "requests_per_second": round(len(found) / took, 1),
        **{f"p{q}_ms": round(float(np.percentile(latency, q)), 1) for q in (50, 90, 99)},
        "longest_ms": round(float(latency.max()), 1),
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
        "errors_5xx": sum(count for status, count in statuses.items() if status >= 500),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="A server under load.")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--soak", type=float, default=0, help="seconds of further load before memory is taken again")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--max-batch", type=int, default=64)
    given = parser.parse_args()
    bodies = molecules()
    server = Server(given.model, given.workers, ["--max-batch", str(given.max_batch)])
    try:
        found: dict[str, Any] = {
            "model": Path(given.model).name,
            "workers": given.workers,
            "max_batch": given.max_batch,
            "start_seconds": round(server.start_seconds, 1),
            "memory_at_start_mib": server.memory(),
        }
        found["one_client"] = asyncio.run(load(server.port, bodies, 1, min(given.seconds, 10)))
        began = os.getloadavg()[0]
        used = server.processor_seconds()
        found["load"] = asyncio.run(load(server.port, bodies, given.clients, given.seconds))
        found["load"]["processor_ms_per_request"] = {
            name: round(1e3 * (after - used[name]) / found["load"]["requests"], 2)
            for name, after in server.processor_seconds().items()
        }
        found["memory_after_load_mib"] = server.memory()
        if given.soak:
            found["soak"] = asyncio.run(load(server.port, bodies, given.clients, given.soak))
            found["memory_after_soak_mib"] = server.memory()
        counters = server.metrics()
        found["requests_per_batch"] = round(
            counters["gcaps_batch_requests_sum"] / max(counters["gcaps_batch_requests_count"], 1), 1
        )
        found["restarts"] = int(counters["gcaps_worker_restarts_total"])
        found["machine"] = {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "load_average_before": round(began, 1),
            "load_average_after": round(os.getloadavg()[0], 1),
        }
    finally:
        found_stop = server.stop()
    found["stop_seconds"] = round(found_stop, 2)
    print(json.dumps(found, indent=1))
    if given.record is not None:
        given.record.parent.mkdir(parents=True, exist_ok=True)
        given.record.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
