"""Counters of a server in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

import psutil

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64)


class Histogram:
    """Counts of values up to some bounds.

    Args:
        bounds: ascending.
    """

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str = "") -> list[str]:
        """Return the lines of this histogram."""
        found, sum_, comma = [], 0, "," if labels else ""
        for bound, count in zip((*map(_number, self.bounds), "+Inf"), self.counts, strict=True):
            sum_ += count
            found.append(f'{name}_bucket{{{labels}{comma}le="{bound}"}} {sum_}')
        shown = f"{{{labels}}}" if labels else ""
        return [*found, f"{name}_sum{shown} {self.total:.6f}", f"{name}_count{shown} {sum_}"]


class Metrics:
    """Counters and histograms of the server."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: dict[str, Histogram] = {}
        self.batches = Histogram(SIZES)
        self.graphs = self.timeouts = self.restarts = 0

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self.requests[path, status] += 1
        self.seconds.setdefault(path, Histogram(SECONDS)).add(seconds)

    def text(self, version: str, waiting: int, workers: Iterable[int]) -> str:
        """Return all counters.

        Args:
            version: of gcaps.
            waiting: number of requests that wait or are being answered.
            workers: process identifiers of the workers.
        """
        pids = list(workers)
        lines = [
            *_head("gcaps_info", "gauge", "version of gcaps"),
            f'gcaps_info{{version="{version}"}} 1',
            *_head("gcaps_requests_total", "counter", "answers by endpoint and status"),
            *(
                f'gcaps_requests_total{{path="{path}",status="{status}"}} {count}'
                for (path, status), count in sorted(self.requests.items())
            ),
            *_head("gcaps_request_seconds", "histogram", "time from a request to its answer"),
            *(
                line
                for path, found in sorted(self.seconds.items())
                for line in found.lines("gcaps_request_seconds", f'path="{path}"')
            ),
            *_head("gcaps_batch_requests", "histogram", "requests that were predicted together"),
            *self.batches.lines("gcaps_batch_requests"),
        ]
        for name, kind, words, value in (
            ("gcaps_graphs_total", "counter", "graphs that were predicted or explained", self.graphs),
            ("gcaps_timeouts_total", "counter", "requests that took too long", self.timeouts),
            ("gcaps_worker_restarts_total", "counter", "workers that were replaced", self.restarts),
            ("gcaps_waiting_requests", "gauge", "requests that wait or are worked on", waiting),
            ("gcaps_workers", "gauge", "workers that are ready", len(pids)),
            ("gcaps_resident_bytes", "gauge", "memory of the listening process", psutil.Process().memory_info().rss),
        ):
            lines += [*_head(name, kind, words), f"{name} {value}"]
        lines += _head("gcaps_worker_resident_bytes", "gauge", "memory of each worker, with what workers share")
        for pid in pids:
            try:
                lines.append(f'gcaps_worker_resident_bytes{{pid="{pid}"}} {psutil.Process(pid).memory_info().rss}')
            except psutil.Error:
                continue
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]


def _number(value: float) -> str:
    return f"{value:g}"
