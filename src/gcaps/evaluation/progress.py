"""Progress of a comparison: cells done, running and failed, and time left; plain lines where there is no terminal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from gcaps.evaluation.metrics import metric_for
from gcaps.evaluation.outcome import Cell, Outcome
from gcaps.evaluation.runner import Report
from gcaps.terminal import Terminal


@contextmanager
def comparison_progress(console: Console | None = None) -> Iterator[Report]:
    """Yield a report for :func:`gcaps.compare`: a bar on a terminal, elsewhere a line for each cell."""
    shown = console or Terminal(stderr=True)
    if not shown.is_terminal:
        yield Lines(shown)
        return
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=shown) as bar:
        yield Bar(bar)


class Tally:
    """Counts cells and estimates the time that the open ones will take."""

    def __init__(self) -> None:
        self.workers = 1
        self._open: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.failed = self.total = self.there = 0

    def begin(self, cells: list[Cell], there: list[Outcome], workers: int) -> None:
        """``cells`` are about to be run by so many workers; ``there`` were done before."""
        self.workers, self.total, self.there = workers, len(cells) + len(there), len(there)
        self._open.update((cell.data, cell.label) for cell in cells)
        for outcome in there:
            self._add(outcome)

    def cell(self, outcome: Outcome) -> None:
        """A cell is done, or has failed."""
        self._open[outcome.data, outcome.label] -= 1
        self._add(outcome)

    def _add(self, outcome: Outcome) -> None:
        self.failed += outcome.status != "done"
        self._seconds[outcome.data, outcome.label].append(outcome.seconds)

    @property
    def open(self) -> int:
        """Cells that are not done yet."""
        return self._open.total()

    def seconds_left(self) -> float | None:
        """Estimate by the mean time of the same data set and row, else of all; None before the first cell is done."""
        known = {group: sum(times) / len(times) for group, times in self._seconds.items()}
        if not known:
            return None
        average = sum(known.values()) / len(known)
        return sum(count * known.get(group, average) for group, count in self._open.items()) / self.workers

    def __str__(self) -> str:
        left = self.seconds_left()
        running = f"{min(self.workers, self.open)} running"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{running}{failed}, {'?' if left is None else timedelta(seconds=round(left))} left"


class Bar:
    """A bar that moves with each cell."""

    def __init__(self, bar: Progress) -> None:
        self._bar, self._tally = bar, Tally()
        self._task = bar.add_task("reading the data", total=None)

    def begin(self, cells: list[Cell], there: list[Outcome], workers: int) -> None:
        """``cells`` are about to be run by so many workers; ``there`` were done before."""
        self._tally.begin(cells, there, workers)
        self._show()

    def cell(self, outcome: Outcome) -> None:
        """A cell is done; a failure stays on the screen."""
        self._tally.cell(outcome)
        if outcome.status != "done":
            self._bar.console.print(line(outcome), highlight=False, markup=False)
        self._show()

    def _show(self) -> None:
        done = self._tally.total - self._tally.open
        self._bar.update(self._task, total=self._tally.total, completed=done, description=str(self._tally))


class Lines:
    """A line for each cell."""

    def __init__(self, console: Console) -> None:
        self._console, self._tally = console, Tally()

    def begin(self, cells: list[Cell], there: list[Outcome], workers: int) -> None:
        """``cells`` are about to be run by so many workers; ``there`` were done before."""
        self._tally.begin(cells, there, workers)
        self._print(f"{len(cells)} cells to run, {len(there)} there already, {workers} at a time")

    def cell(self, outcome: Outcome) -> None:
        """A cell is done, or has failed."""
        self._tally.cell(outcome)
        tally = self._tally
        self._print(f"{tally.total - tally.open}/{tally.total}  {line(outcome)}  ({tally})")

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def line(outcome: Outcome, metric: str | None = None) -> str:
    """Describe an outcome in one line, with its ``metric``, by default that of its task."""
    name = f"{outcome.data} {outcome.label} seed {outcome.seed} fold {outcome.fold}"
    if outcome.result is None:
        found = f"{outcome.status}: {outcome.error}"
    else:
        shown = metric_for(outcome.result.task, metric)
        value = shown.text(outcome.result.value(shown.name), digits=1)
        found = f"{value}%" if shown.percent else f"{shown.title} {value}"
    return f"{name}: {found} in {outcome.seconds:,.1f} s"
