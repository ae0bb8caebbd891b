"""Learning curves of a comparison: the headline metric against the number of training graphs, as table and chart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from rich.table import Table
from rich.text import Text

from gcaps.evaluation.metrics import Metric
from gcaps.evaluation.result import Summary
from gcaps.report.chart import Drawing, Scale, clipped, padded
from gcaps.report.figures import LARGE, axis_text, axis_title
from gcaps.report.study import FAMILIES, Entry, MethodName, Study
from gcaps.report.summary import spread


@dataclass(frozen=True)
class Curve:
    """The learning curve of one method on one data set."""

    name: MethodName
    label: str
    points: list[tuple[int, Summary]]
    """Number of training graphs and the headline metric, ascending; the last point has all of them."""


@dataclass(frozen=True)
class CurveSection:
    """The learning curves of a data set on a page."""

    methods: list[MethodName]
    rows: list[tuple[int, list[str]]]
    """By number of training graphs, the metric of each method."""
    picture: Markup


def learning_curves(study: Study, data: str) -> list[Curve]:
    """Return the curves of the methods of a data set that were also trained on parts of the training graphs."""
    found = []
    for entry in study.of_set(data):
        smaller = study.smaller.get((data, entry.label), [])
        points = [(_train_size(one), one.honest) for one in (*smaller, entry) if one.honest is not None]
        if smaller and points:
            found.append(Curve(entry.name, entry.label, [(size, value) for size, value in points if value is not None]))
    return found


def _train_size(entry: Entry) -> int:
    """Mean number of training graphs of the folds, rounded."""
    return round(float(np.mean([fold.train_size or 0 for fold in entry.folds])))


def curve_section(study: Study, data: str) -> CurveSection | None:
    """Return what a page shows of the learning curves of a data set; None where there are none."""
    curves, metric = learning_curves(study, data), study.metric(data)
    if not curves:
        return None
    return CurveSection([curve.name for curve in curves], _rows(curves, metric), _chart(curves, metric, data))


def curve_table(study: Study, data: str) -> Table | None:
    """Return the learning curves of a data set for the terminal: a row for each size, a column for each method."""
    curves, metric = learning_curves(study, data), study.metric(data)
    if not curves:
        return None
    table = Table(box=None, pad_edge=False)
    table.add_column("training graphs", justify="right")
    for curve in curves:
        alone = f"{data}, {metric.heading}" if study.single else curve.label
        table.add_column(Text(alone), justify="right")
    for size, values in _rows(curves, metric):
        table.add_row(f"{size:,}", *values)
    return table


def _rows(curves: list[Curve], metric: Metric) -> list[tuple[int, list[str]]]:
    sizes = sorted({size for curve in curves for size, _ in curve.points})
    known = [dict(curve.points) for curve in curves]
    return [(n, [spread(one[n], metric=metric) if n in one else "–" for one in known]) for n in sizes]


def _chart(curves: list[Curve], metric: Metric, data: str) -> Markup:
    """Draw the mean of each curve, with one standard deviation as bars, over a logarithmic number of graphs."""
    ends = [v for c in curves for _, p in c.points for v in (p.mean - p.std, p.mean + p.std)]
    sizes = [size for curve in curves for size, _ in curve.points]
    listing = "; ".join(
        f"{c.name.short} " + ", ".join(f"{size}: {metric.text(p.mean, digits=1)}" for size, p in c.points)
        for c in curves
    )
    width, height = LARGE
    picture = Drawing(width + 70, height, f"{metric.title} on {data} by number of training graphs: {listing}.")
    least = 0.02 if not metric.unit else max(0.02 * max(map(abs, ends)), 1e-12)
    y = Scale(*padded(ends, least=least), height - 40, 22)
    x = Scale(min(sizes) / 1.1, max(sizes) * 1.1, 52, width - 20, log=True)
    picture.axes(x, y, ("training graphs", axis_title(metric)), axis_text(metric))
    for curve in curves:
        _, color, mark = FAMILIES[curve.name.family]
        places = [(x(size), y(p.mean)) for size, p in curve.points]
        bars = [((x(n), y(p.mean - p.std)), (x(n), y(p.mean + p.std))) for n, p in curve.points if p.std > 0]
        picture.segments(bars, f"stroke thin {color}")
        picture.path(places, f"stroke {color}")
        for place in places:
            picture.mark(*place, mark, color, 4)
        picture.text(places[-1][0] + 9, places[-1][1] + 4, clipped(curve.name.short, 12), "start", "ink")
    return picture.svg()
