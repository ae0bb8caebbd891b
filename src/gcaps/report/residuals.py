"""Errors of regressors: predicted against true values, residuals, and the graphs with the largest errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Floats
from gcaps.evaluation.metrics import METRICS
from gcaps.report.chart import Drawing, Scale, clipped, padded, signed_number
from gcaps.report.study import Entry, MethodName

MAX_ERRORS = 10
"""Number of largest errors that are listed."""
MAX_TARGETS = 4
"""Charts of more targets are not shown."""
_MAX_DOTS = 1500
"""Scatter plots of more graphs are thinned to at most this many dots."""


@dataclass(frozen=True)
class LargeError:
    """A test graph whose predicted value is far from the true one."""

    graph: int
    fold: int
    target: str
    truth: str
    prediction: str
    error: str


@dataclass(frozen=True)
class MethodResiduals:
    """Predicted and true values of one method, all folds together."""

    name: MethodName
    scatters: list[tuple[str, Markup]]
    """Predicted against true values, by target."""
    histograms: list[tuple[str, Markup]]
    """Residuals, by target."""
    largest: list[LargeError]
    """Errors that are largest relative to the spread of their target, each graph once."""


def method_residuals(entry: Entry, targets: Sequence[str], *, detailed: bool) -> MethodResiduals:
    """Collect the charts and the largest errors of a method."""
    parts = [fold.arrays() for fold in entry.folds]
    truth, values = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    size = (380.0, 300.0) if detailed else (250.0, 210.0)
    chosen = list(enumerate(targets))[:MAX_TARGETS]
    known = ~np.isnan(truth)
    return MethodResiduals(
        name=entry.name,
        scatters=[
            (name, predicted_scatter(entry, name, truth[known[:, t], t], values[known[:, t], t], size))
            for t, name in chosen
        ],
        histograms=[
            (name, residual_histogram(entry, name, (values - truth)[known[:, t], t], size)) for t, name in chosen
        ],
        largest=_largest(entry, targets, truth, values),
    )


def _largest(entry: Entry, targets: Sequence[str], truth: Floats, values: Floats) -> list[LargeError]:
    graphs = [(graph, fold.fold) for fold in entry.folds for graph in fold.test]
    spread = np.nanstd(truth, axis=0)
    relative = np.abs(values - truth) / np.where(spread > 0, spread, 1.0)
    relative = np.where(np.isnan(relative), -1.0, relative)
    found: dict[int, LargeError] = {}
    for place in np.argsort(-relative.max(axis=1), kind="stable"):
        graph, fold = graphs[place]
        target = int(relative[place].argmax())
        if graph in found or relative[place, target] < 0:
            continue
        true, guess = float(truth[place, target]), float(values[place, target])
        text = METRICS["mae"].text
        shown = text(true), text(guess), METRICS["mae"].difference(guess - true)
        found[graph] = LargeError(graph, fold, targets[target], *shown)
        if len(found) == MAX_ERRORS:
            break
    return list(found.values())


def predicted_scatter(entry: Entry, target: str, truth: Floats, values: Floats, size: tuple[float, float]) -> Markup:
    """Return predicted against true values of one target; on the diagonal they are equal."""
    error = float(np.sqrt(np.mean((values - truth) ** 2)))
    label = (
        f"{entry.name.short} on {entry.data}: predicted against true {target} of {len(truth)} test graphs; "
        f"root mean squared error {METRICS['rmse'].text(error)}."
    )
    picture = Drawing(*size, label)
    low, high = padded([*truth.tolist(), *values.tolist()], 0.04, 1e-9)
    x, y = Scale(low, high, 46, size[0] - 8), Scale(low, high, size[1] - 38, 24)
    picture.axes(x, y, (f"true {clipped(target, 24)}", "predicted"), signed_number, count=5)
    picture.segments([((x(low), y(low)), (x(high), y(high)))], "stroke thin muted dashed")
    step = -(-len(truth) // _MAX_DOTS)
    pairs = zip(truth[::step].tolist(), values[::step].tolist(), strict=True)
    picture.dots([(x(a), y(b)) for a, b in pairs], "blue faint" if len(truth) > 300 else "blue", 4)
    return picture.svg()


def residual_histogram(entry: Entry, target: str, residuals: Floats, size: tuple[float, float]) -> Markup:
    """Return a histogram of predicted minus true values of one target."""
    mean, deviation = METRICS["mae"].difference(float(residuals.mean())), METRICS["rmse"].text(float(residuals.std()))
    label = f"{entry.name.short} on {entry.data}: residuals of {target}, mean {mean}, standard deviation {deviation}."
    picture = Drawing(*size, label)
    reach = float(max(np.abs(residuals).max(), 1e-9))
    counts, edges = np.histogram(residuals, bins=21, range=(-reach, reach))
    x = Scale(-1.02 * reach, 1.02 * reach, 46, size[0] - 8)
    y = Scale(0, 1.08 * max(int(counts.max()), 1), size[1] - 38, 24)
    picture.axes(x, y, (f"predicted − true {clipped(target, 24)}", "graphs"), signed_number, count=5)
    picture.bars(x, y, edges.tolist(), counts.tolist(), "blue")
    picture.segments([((x(0), y.start), (x(0), y.end))], "stroke thin muted dashed")
    return picture.svg()
