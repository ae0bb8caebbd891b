"""Distribution of the targets of a data set: a histogram of numbers, bars of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Array, Floats
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Classes, missing
from gcaps.evaluation.metrics import METRICS
from gcaps.evaluation.plan import PlannedData
from gcaps.report.chart import Drawing, Scale, clipped, padded, signed_number

MAX_HISTOGRAMS = 4
"""Histograms of more targets are not shown."""
MAX_ROWS = 30
"""Bars of more classes or binary targets are not shown."""
BINS = 24


class TargetChart(NamedTuple):
    """A chart and what it shows."""

    picture: Markup
    caption: str


def target_charts(graphs: GraphSet, planned: PlannedData) -> list[TargetChart]:
    """Return the distribution of each target over all graphs of a set.

    Args:
        graphs: the set.
        planned: its task, and the names of its targets and classes.
    """
    assert graphs.y is not None, "a comparison has targets"
    table = graphs.y.reshape(len(graphs), -1)
    names = [*planned.targets, *(f"y{t}" for t in range(len(planned.targets), table.shape[1]))]
    if planned.task == "regression":
        return [
            value_histogram(name, table[:, t].astype(np.float64))
            for t, name in enumerate(names[: min(MAX_HISTOGRAMS, table.shape[1])])
        ]
    if not planned.classes:
        return []
    codes = Classes(np.asarray(planned.classes)).encode(table)
    if planned.task == "classification":
        return [class_bars(names[0], [str(name) for name in planned.classes], codes[:, 0])]
    return [binary_bars(names[: min(MAX_ROWS, table.shape[1])], codes, [str(name) for name in planned.classes])]


def value_histogram(name: str, y: Floats) -> TargetChart:
    """Return a histogram of one numeric target; missing values are counted in the caption."""
    known = y[~missing(y)]
    text = METRICS["mae"].text
    if not len(known):
        return TargetChart(Markup(""), f"{name}: no value is known")
    low, middle, high = (text(float(v)) for v in (known.min(), np.median(known), known.max()))
    caption = f"{name}: {len(known):,} values from {low} to {high}, median {middle}, standard deviation "
    caption += text(float(known.std())) + (f"; {len(y) - len(known):,} missing" if len(known) < len(y) else "")
    picture = Drawing(380, 230, f"Distribution of {caption}.")
    counts, edges = np.histogram(known, bins=BINS)
    x = Scale(*padded(edges.tolist(), 0.01, 1e-9), 46, 372)
    y_scale = Scale(0, 1.08 * max(int(counts.max()), 1), 192, 24)
    picture.axes(x, y_scale, (clipped(name, 48), "molecules"), signed_number)
    picture.bars(x, y_scale, edges.tolist(), counts.tolist(), "blue")
    return TargetChart(picture.svg(), caption)


def class_bars(name: str, classes: Sequence[str], codes: Array) -> TargetChart:
    """Return a bar for each class; graphs without a class are counted in the caption."""
    counts = np.bincount(codes[codes >= 0], minlength=len(classes)).tolist()
    unknown = int((codes < 0).sum())
    caption = f"{name}: {', '.join(f'{c} {n:,}' for c, n in list(zip(classes, counts, strict=True))[:MAX_ROWS])}"
    caption += f"; {unknown:,} missing" if unknown else ""
    rows = [(clipped(c, 16), [(n, "blue")]) for c, n in zip(classes, counts, strict=True)]
    return TargetChart(_row_bars(rows[:MAX_ROWS], f"Molecules by class. {caption}."), caption)


def binary_bars(names: Sequence[str], codes: Array, classes: Sequence[str]) -> TargetChart:
    """Return a bar for each of several binary targets: second class, first class, missing."""
    rows, words = [], []
    for t, name in enumerate(names):
        first, second, absent = (int((codes[:, t] == code).sum()) for code in (0, 1, -1))
        rows.append((clipped(name, 16), [(second, "orange"), (first, "blue"), (absent, "line")]))
        words.append(f"{name}: {second} are {classes[1]}, {first} are {classes[0]}, {absent} missing")
    caption = (
        f"Molecules by target: orange {classes[1]}, blue {classes[0]}, grey missing; the number is that of {classes[1]}"
    )
    caption += f"; the first {len(names)} of {codes.shape[1]} targets" if len(names) < codes.shape[1] else ""
    return TargetChart(_row_bars(rows, f"{caption}. {'; '.join(words)}."), caption)


def _row_bars(rows: Sequence[tuple[str, list[tuple[int, str]]]], label: str) -> Markup:
    """Return named rows of bars, each made of parts with a number and a color."""
    bottom = 8 + 22 * len(rows)
    picture = Drawing(440, bottom + 42, label)
    x = Scale(0, 1.12 * max([sum(n for n, _ in parts) for _, parts in rows] + [1]), 116, 430)
    picture.row_axis(x, bottom, "molecules", lambda v: f"{v:,.0f}")
    for place, (name, parts) in enumerate(rows):
        top, start = 11 + 22 * place, 0
        picture.text(x.start - 8, top + 11, name, "end", "ink")
        for count, kind in parts:
            if count:
                a, b = x(start), x(start + count)
                picture.path([(a, top), (b, top), (b, top + 14), (a, top + 14)], f"fill {kind}", close=True)
            start += count
        if parts[0][0] and len(parts) > 1:
            picture.text(x(start) + 5, top + 11, f"{parts[0][0]:,}", "start", "ink")
        elif len(parts) == 1:
            picture.text(x(start) + 5, top + 11, f"{parts[0][0]:,}")
    return picture.svg()
