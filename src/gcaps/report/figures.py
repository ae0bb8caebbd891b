"""Charts of a report: selection rules, ranks, cost, learning curves, folds, calibration and embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from markupsafe import Markup

from gcaps.evaluation.diagnostics import Calibration
from gcaps.evaluation.metrics import METRICS, Metric
from gcaps.evaluation.published import Published
from gcaps.evaluation.statistics import Ranks
from gcaps.report.chart import Drawing, Scale, clipped, number, padded, signed_number
from gcaps.report.study import FAMILIES, Baseline, Entry, MethodName, Study

RULES = (("last", "green", "triangle"), ("gin", "orange", "diamond"), ("best", "red", "cross"))
"""Color and marker of each rule but honest, which is a blue circle."""
SOURCES = {"paper": ("green", "diamond"), "fair": ("purple", "square"), "honest": ("orange", "square")}
"""Color and marker of each source of published results."""
SMALL, LARGE = (300.0, 190.0), (440.0, 270.0)
"""Sizes of a chart in a grid of methods and of one that is alone."""
_PIXELS_PER_EPOCH = 7
"""Learning curves with more epochs than this allows are thinned."""
_MAP_POINTS = 400
"""Embeddings of more graphs are thinned to at most this many dots."""


def rule_gains(study: Study) -> Markup | None:
    """Return the points each rule adds to the honest accuracy, by method, averaged over the data sets."""
    rows: list[tuple[MethodName, dict[str, float]]] = []
    for label, name in study.names.items():
        entries = [entry for entry in study.entries.values() if entry.label == label and entry.complete]
        known = [entry.protocols for entry in entries if len(entry.protocols) > 1]
        if known:
            gains = {r: float(np.mean([100 * (p[r].mean - p["honest"].mean) for p in known])) for r, _, _ in RULES}
            rows.append((name, gains))
    if not rows:
        return None
    rows.sort(key=lambda row: -row[1]["best"])
    listing = "; ".join(f"{name.short}: {', '.join(f'{r} {g:+.1f}' for r, g in gains.items())}" for name, gains in rows)
    bottom = 8 + 26 * len(rows)
    picture = Drawing(660, bottom + 50, f"Points that each rule adds to the honest accuracy. {listing}.")
    x = Scale(*padded([0.0, *(g for _, gains in rows for g in gains.values())], least=0.5), 108, 640)
    picture.row_axis(x, bottom, "points above the honest accuracy", lambda v: f"{v:+g}".replace("-", "−") if v else "0")
    picture.segments([((x(0), 4), (x(0), bottom))], "stroke blue")
    for place, (name, gains) in enumerate(rows):
        y = 21 + 26 * place
        picture.text(x.start - 10, y + 4, clipped(name.short, 16), "end", "ink")
        picture.segments([((x(min(0, *gains.values())), y), (x(max(0, *gains.values())), y))], "thick line")
        for rule, color, mark in RULES:
            picture.mark(x(gains[rule]), y, mark, color, 4.5)
        picture.mark(x(0), y, "circle", "blue", 4.5)
    return picture.svg()


def critical_difference_diagram(ranks: Ranks, names: Mapping[str, MethodName]) -> Markup:
    """Return average ranks on a line; bars join methods within Nemenyi's critical difference (Demšar, 2006)."""
    k = len(ranks.methods)
    half = (k + 1) // 2
    deep = 24 + 13 * len(ranks.cliques)
    listing = ", ".join(f"{names[m].short} {r:.2f}" for m, r in zip(ranks.methods, ranks.average, strict=True))
    label = f"Average ranks over {len(ranks.data)} data sets: {listing}. "
    picture = Drawing(660, 66 + deep + 22 * half, label + f"Critical difference {ranks.critical_difference:.2f}.")
    x = Scale(1, k, 130, 530)
    top = 58
    picture.segments([((x(1), top), (x(k), top))], "stroke ink")
    picture.segments([((x(v), top), (x(v), top - 6)) for v in range(1, k + 1)], "stroke ink")
    for v in range(1, k + 1):
        picture.text(x(v), top - 11, str(v), "middle")
    span = min(ranks.critical_difference, k - 1)
    ends = [((x(v), 24), (x(v), 16)) for v in (1, 1 + span)]
    picture.segments([*ends, ((x(1), 20), (x(1 + span), 20))], "stroke blue")
    beyond = "" if span == ranks.critical_difference else ", wider than the axis"
    picture.text(x(1), 10, f"critical difference {ranks.critical_difference:.2f}{beyond}", "start", "blue")
    for row, (first, last) in enumerate(ranks.cliques):
        y = top + 14 + 13 * row
        picture.segments([((x(ranks.average[first]) - 4, y), (x(ranks.average[last]) + 4, y))], "bar ink")
    for place, (method, rank) in enumerate(zip(ranks.methods, ranks.average, strict=True)):
        left = place < half
        y = top + deep + 22 * (place if left else k - 1 - place)
        side = 122.0 if left else 538.0
        name = names[method]
        picture.path([(x(rank), top), (x(rank), y), (side, y)], f"stroke thin {FAMILIES[name.family][1]}")
        words = f"{clipped(name.short, 13)}  {rank:.2f}" if left else f"{rank:.2f}  {clipped(name.short, 13)}"
        picture.text(side - 5 if left else side + 5, y + 4, words, "end" if left else "start", "ink")
    return picture.svg()


def axis_text(metric: Metric) -> Callable[[float], str]:
    """Return how values of a metric are written at an axis."""
    return (lambda v: signed_number(100 * v)) if metric.percent else signed_number


def axis_title(metric: Metric) -> str:
    """Return the title of an axis."""
    return f"{metric.title}, percent" if metric.percent else metric.title


def _spoken(metric: Metric) -> str:
    return f"{metric.title[:1].upper()}{metric.title[1:]}"


def _axis(values: Sequence[float], metric: Metric, share: float, least: float = 0.02) -> tuple[float, float]:
    """Return the limits of an axis; the least margin of 0.02 is that of a share of one."""
    size = max(map(abs, values))
    return padded(values, share, least if not metric.unit else max(0.02 * size, 1e-12))


def rule_dots(entries: Sequence[Entry], baseline: Baseline | None, others: Sequence[Published] = ()) -> Markup | None:
    """Return the metric of complete entries under every rule, one row each, and of published results below them."""
    if not entries:
        return None
    metric = entries[0].metric
    known = [(row, row.mean, row.std or 0.0) for row in others if row.mean is not None]
    honest = [entry.protocols["honest"] for entry in entries]
    ends = [value for p in honest for value in (p.mean - p.std, p.mean + p.std)]
    ends += [value for _, mean, std in known for value in (mean - std, mean + std)]
    values = [*ends, *(p.mean for e in entries for p in e.protocols.values())]
    listing = "; ".join(
        [
            f"{e.name.short} " + ", ".join(f"{r} {metric.text(p.mean, digits=1)}" for r, p in e.protocols.items())
            for e in entries
        ]
        + [f"{row.method} published {100 * mean:.1f}" for row, mean, _ in known]
    )
    gap = 10 if known else 0
    bottom = 8 + 24 * (len(entries) + len(known)) + gap
    unit = " in percent" if metric.percent else ""
    picture = Drawing(660, bottom + 42, f"{_spoken(metric)} on {entries[0].data}{unit}, by method and rule: {listing}.")
    shown = [*values, *([] if baseline is None else [baseline.value])]
    x = Scale(*_axis(shown, metric, 0.03), 172 if known else 108, 640)
    picture.row_axis(x, bottom, axis_title(metric), axis_text(metric))
    if baseline is not None:
        picture.segments([((x(baseline.value), 4), (x(baseline.value), bottom))], "stroke thin muted dashed")
    for place, (entry, summary) in enumerate(zip(entries, honest, strict=True)):
        y = 20.0 + 24 * place
        picture.text(x.start - 9, y + 4, clipped(entry.name.short, 13), "end", "ink")
        picture.segments([((x(summary.mean - summary.std), y), (x(summary.mean + summary.std), y))], "thick blue faint")
        for rule, color, mark in RULES:
            if rule in entry.protocols:
                picture.mark(x(entry.protocols[rule].mean), y, mark, color, 4)
        picture.mark(x(summary.mean), y, "circle", "blue", 4.5)
    for place, (row, mean, std) in enumerate(known):
        y = 20.0 + gap + 24 * (len(entries) + place)
        color, mark = SOURCES[row.source]
        picture.text(x.start - 9, y + 4, clipped(row.method, 25), "end")
        picture.segments([((x(mean - std), y), (x(mean + std), y))], f"thick {color} faint")
        picture.mark(x(mean), y, mark, color, 4)
    return picture.svg()


def cost_scatter(entries: Sequence[Entry], measure: str) -> Markup | None:
    """Return the headline metric against seconds per fold (``seconds``) or peak memory (``peak_mib``)."""
    points = [
        (float(cost), entry.protocols["honest"].mean, entry.name)
        for entry in entries
        if (cost := getattr(entry, measure)) is not None and cost > 0
    ]
    if not points:
        return None
    title = "seconds per fold" if measure == "seconds" else "peak memory, MiB"
    metric = entries[0].metric
    unit = " percent" if metric.percent else ""
    listing = "; ".join(f"{n.short} {cost:.3g}, {metric.text(value, digits=1)}{unit}" for cost, value, n in points)
    picture = Drawing(400, 270, f"{_spoken(metric)} on {entries[0].data} against {title}: {listing}.")
    low, high = min(p[0] for p in points), max(p[0] for p in points)
    stretch = max((high / low) ** 0.08, 1.25)
    x = Scale(low / stretch, high * stretch, 34, 392, log=True)
    y = Scale(*_axis([p[1] for p in points], metric, 0.1, 0.01), 226, 24)
    picture.axes(x, y, (f"{title} (logarithmic)", axis_title(metric)), axis_text(metric))
    taken: list[tuple[float, float, float]] = []
    points.sort(key=lambda point: -point[1])
    for cost, value, name in points:
        _, color, mark = FAMILIES[name.family]
        picture.mark(x(cost), y(value), mark, color, 5)
        taken.append((x(cost) - 6, y(value) + 4, 12))
    for cost, value, name in points:
        _place(picture, x(cost), y(value), clipped(name.short, 14), taken)
    return picture.svg()


def _place(picture: Drawing, px: float, py: float, words: str, taken: list[tuple[float, float, float]]) -> None:
    """Add a name beside its marker, where it overlaps no other name."""
    width = 7.6 * len(words)
    choices = [(px + 9, py + 4), (px - 9 - width, py + 4), (px - width / 2, py - 9), (px - width / 2, py + 17)]
    choices += [(px + 9, py + 4 + shift) for shift in (-12, 12, -24, 24)]
    choices += [(min(px, picture.width) - width, py + shift) for shift in (-9, 17, -21, 29)]
    inside = [(a, b) for a, b in choices if a >= 36 and a + width <= picture.width and 12 <= b <= picture.height - 46]
    free = [(a, b) for a, b in inside if all(a + width < c or a > c + w or abs(b - d) > 11 for c, d, w in taken)]
    a, b = (free or inside or choices)[0]
    taken.append((a, b, width))
    picture.text(a, b, words, "start", "ink")


def score_curves(entry: Entry, bounds: tuple[float, float], size: tuple[float, float] = SMALL) -> Markup | None:
    """Return the score by epoch, mean over the folds: training dashed, validation dotted, test solid with a band.

    The score is the accuracy, or R² of regression targets.
    """
    rows = {
        "training": [fold.train_score for fold in entry.folds if fold.train_score],
        "validation": [fold.validation_score for fold in entry.folds if fold.validation_score],
        "test": [fold.test_score for fold in entry.folds if fold.test_score],
    }
    if not rows["test"] or not rows["training"]:
        return None
    metric = curve_metric(entry)
    unit = " percent" if metric.percent else ""
    last = {key: float(_by_epoch(row).mean(axis=0)[-1]) for key, row in rows.items() if row}
    ends = ", ".join(f"{metric.text(value, digits=1)}{unit} on {key} graphs" for key, value in last.items())
    label = f"{entry.name.short} on {entry.data}: {metric.title} by epoch, at the last epoch {ends}."
    kinds = {"training": "orange dashed", "validation": "purple dotted", "test": "blue"}
    series = {kinds[key]: row for key, row in rows.items() if row}
    title = clipped(entry.name.short, 30) if size == SMALL else axis_title(metric)
    return _curves(entry, title, label, series, bounds, size, None if metric.percent else axis_text(metric))


def curve_metric(entry: Entry) -> Metric:
    """Return the metric that learning curves show."""
    return METRICS["r2" if entry.folds and entry.folds[0].task == "regression" else "accuracy"]


def loss_curve(entry: Entry, size: tuple[float, float] = SMALL) -> Markup | None:
    """Return training loss by epoch, mean over the folds with one standard deviation as a band."""
    rows = [fold.train_loss for fold in entry.folds if fold.train_loss]
    if not rows:
        return None
    table = _by_epoch(rows)
    mean = table.mean(axis=0)
    label = f"{entry.name.short} on {entry.data}: training loss by epoch, from {mean[0]:.3f} to {mean[-1]:.3f}."
    top = float((mean + table.std(axis=0)).max())
    title = clipped(entry.name.short, 30) if size == SMALL else "training loss"
    return _curves(entry, title, label, {"orange": rows}, (0.0, 1.05 * max(top, 1e-9)), size, number)


def _curves(
    entry: Entry,
    title: str,
    label: str,
    series: Mapping[str, Sequence[Sequence[float]]],
    bounds: tuple[float, float],
    size: tuple[float, float],
    y_text: Callable[[float], str] | None = None,
) -> Markup:
    """Draw curves by their class; the band is of the last one, triangles are epochs chosen before the last."""
    picture = Drawing(*size, label)
    tables = {kind: _by_epoch(rows) for kind, rows in series.items()}
    longest = max(table.shape[1] for table in tables.values())
    x = Scale(min(1, longest - 1), longest, 42, size[0] - 8)
    y = Scale(*bounds, size[1] - 38, 24)
    picture.axes(x, y, ("epoch", ""), y_text, count=min(5, longest))
    picture.text(42, 12, title, "start", "title")
    for kind, table in tables.items():
        count = min(table.shape[1], int(size[0] / _PIXELS_PER_EPOCH))
        keep = np.unique(np.linspace(0, table.shape[1] - 1, count).round().astype(int))
        places = [x(float(epoch) + 1) for epoch in keep]
        mean, std = table.mean(axis=0)[keep], table.std(axis=0)[keep]
        if kind == list(tables)[-1] and (size != SMALL or len(tables) > 1):
            upper, lower = (np.clip(mean + sign * std, *bounds).tolist() for sign in (1, -1))
            edge = [(a, y(b)) for a, b in zip(places, upper, strict=True)]
            edge += [(a, y(b)) for a, b in reversed(list(zip(places, lower, strict=True)))]
            picture.path(edge, f"band {kind}", close=True)
        line = [(a, y(float(b))) for a, b in zip(places, np.clip(mean, *bounds), strict=True)]
        picture.path(line, f"stroke {kind}")
        if len(line) == 1:
            picture.dots(line, kind, 6)
    for epoch in sorted({fold.epoch for fold in entry.folds if fold.epoch < len(fold.train_loss)}):
        picture.mark(x(epoch), y.start, "triangle", "ink", 3.5)
    return picture.svg()


def curve_bounds(entries: Sequence[Entry]) -> tuple[float, float]:
    """Return limits of the axis of learning curves that all methods of a data set share."""
    values = [v for entry in entries for fold in entry.folds for v in (*fold.test_score, *fold.train_score)]
    low = float(np.quantile(values, 0.01)) if values else 0.0
    if any(curve_metric(entry).name == "r2" for entry in entries):  # the first epochs can be far below zero
        return max(low - 0.05, -1.0), 1.0
    return max(low - 0.05, 0.0), 1.0


def _by_epoch(rows: Sequence[Sequence[float]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return [fold, epoch]; a fold that stopped early is continued with its last value."""
    longest = max(len(row) for row in rows)
    return np.array([[*row, *[row[-1]] * (longest - len(row))] for row in rows], dtype=np.float64)


def fold_values(entry: Entry, baseline: Baseline | None) -> Markup:
    """Return the headline metric of each fold, with mean, standard deviation and the baseline."""
    honest, metric = entry.protocols["honest"], entry.metric
    values = list(entry.values.values())
    unit = " percent" if metric.percent else ""
    low, mean, high = (metric.text(v, digits=1) for v in (min(values), honest.mean, max(values)))
    label = (
        f"Test {metric.title} of {len(values)} folds of {entry.name.short} on {entry.data}: from {low} to "
        f"{high}{unit}, mean {mean}"
    )
    label += "." if baseline is None else f"; {baseline.title} {metric.text(baseline.value, digits=1)}."
    picture = Drawing(*LARGE, label)
    x = Scale(-0.6, len(values) - 0.4, 42, LARGE[0] - 62)
    bottom, top = _axis([*values, *([] if baseline is None else [baseline.value])], metric, 0.06)
    if metric.percent:
        bottom, top = max(bottom, -0.02), min(top, 1.02)
    y = Scale(bottom, top, LARGE[1] - 38, 24)
    ticks = y.ticks(5)
    picture.segments([((x.start, y(v)), (x.end, y(v))) for v in ticks], "grid")
    for v in ticks:
        picture.text(x.start - 6, y(v) + 4, axis_text(metric)(v), "end")
    for place, (_, fold) in enumerate(entry.values):
        if place % -(-len(values) // 12) == 0:
            picture.text(x(place), y.start + 15, str(fold), "middle")
    several = len({seed for seed, _ in entry.values}) > 1
    picture.text((x.start + x.end) / 2, y.start + 31, "fold of each seed" if several else "fold", "middle")
    picture.text(x.start - 30, y.end - 9, f"test {axis_title(metric)}")
    upper, lower = y(min(honest.mean + honest.std, y.high)), y(max(honest.mean - honest.std, y.low))
    if len(values) > 1:
        picture.path([(x.start, upper), (x.end, upper), (x.end, lower), (x.start, lower)], "band blue", close=True)
    picture.segments([((x.start, y(honest.mean)), (x.end, y(honest.mean)))], "stroke blue")
    picture.text(x.end + 6, y(honest.mean) + 4, "mean", "start", "blue")
    if baseline is not None:
        picture.segments([((x.start, y(baseline.value)), (x.end, y(baseline.value)))], "stroke thin muted dashed")
        if abs(y(honest.mean) - y(baseline.value)) > 13:
            picture.text(x.end + 6, y(baseline.value) + 4, baseline.title.split()[0])
    for place, value in enumerate(values):
        picture.mark(x(place), y(value), "circle", "blue", 4.5)
    return picture.svg()


def reliability_plot(entry: Entry, found: Calibration, scale: float = 1.0) -> Markup:
    """Return the accuracy of predictions against their probability; the diagonal is perfect calibration."""
    listing = "; ".join(f"{100 * b.probability:.0f}: {100 * b.accuracy:.0f}" for b in found.curve)
    label = f"Reliability of {entry.name.short} on {entry.data}, probability and share correct: {listing}."
    width, height = 190 * scale, 172 * scale
    picture = Drawing(width, height, label)
    x, y = Scale(0, 1, 34, width - 8), Scale(0, 1, height - 36, 8)
    for v in (0.0, 0.5, 1.0):
        picture.segments([((x(v), y(0)), (x(v), y(1))), ((x(0), y(v)), (x(1), y(v)))], "grid")
        picture.text(x(v), height - 22, f"{100 * v:.0f}", "middle")
        picture.text(29, y(v) + 4, f"{100 * v:.0f}", "end")
    picture.text((x(0) + x(1)) / 2, height - 6, "probability, %", "middle")
    picture.segments([((x(0), y(0)), (x(1), y(1)))], "stroke thin muted dashed")
    line = [(x(b.probability), y(b.accuracy)) for b in found.curve]
    # bins with few predictions are too noisy to be joined by a line
    picture.path([place for place, part in zip(line, found.curve, strict=True) if part.count >= 5], "stroke blue")
    total = sum(b.count for b in found.curve)
    for place, part in zip(line, found.curve, strict=True):
        picture.dots([place], "blue", 4 + 9 * (part.count / total) ** 0.5)
    return picture.svg()


def probability_histogram(entry: Entry, classes: int) -> Markup:
    """Return a histogram of the probability of the predicted class, correct above the axis and wrong below."""
    answers = [
        (row[guess], guess == true)
        for fold in entry.folds
        for row, guess, true in zip(fold.scores, fold.predictions, fold.y, strict=True)
    ]
    correct = np.array([right for _, right in answers], dtype=bool)
    low = 1 / max(classes, 2)
    p = np.array([value for value, _ in answers], dtype=np.float64).clip(low, 1)
    bins = np.linspace(low, 1, 11)
    above, below = (np.histogram(p[which], bins)[0] for which in (correct, ~correct))
    means = [f"{100 * p[which].mean():.0f} percent" if which.any() else "none" for which in (correct, ~correct)]
    label = f"Probability of the predicted class; mean for correct predictions: {means[0]}, for wrong ones: {means[1]}."
    picture = Drawing(300, 260, label)
    x = Scale(100 * low, 100, 42, 292)
    top = max(int(above.max()), 1)
    y = Scale(-1.25 * max(int(below.max()), 0.12 * top), 1.08 * top, 222, 24)
    picture.axes(x, y, ("probability of the predicted class, %", "graphs"), lambda v: f"{abs(v):g}")
    for counts, kind, sign in ((above, "blue", 1), (below, "orange", -1)):
        for left, right, count in zip(100 * bins[:-1], 100 * bins[1:], counts.tolist(), strict=True):
            if count:
                a, b, tip = x(float(left)) + 0.8, x(float(right)) - 0.8, y(sign * count)
                picture.path([(a, y(0)), (a, tip), (b, tip), (b, y(0))], f"fill {kind}", close=True)
    picture.segments([((x.start, y(0)), (x.end, y(0)))], "stroke thin muted")
    return picture.svg()


def embedding_map(
    entry: Entry,
    truth: Mapping[int, int],
    classes: Sequence[str],
    size: tuple[float, float] = SMALL,
    group: str = "class",
) -> Markup | None:
    """Return the graphs on the first two principal components of their embeddings, colored by class or group."""
    if entry.embedding is None:
        return None
    places, tested = entry.embedding
    step = -(-len(places) // _MAP_POINTS)
    chosen = [g for g in range(len(places)) if g in truth and g % step == 0]
    if not chosen:
        return None
    xs, ys = [places[g][0] for g in chosen], [places[g][1] for g in chosen]
    name = entry.name.short
    label = f"{len(chosen)} graphs of {entry.data} on the first two principal components of {name}, by {group}."
    width, height = size[0], 1.3 * size[1]
    picture = Drawing(width, height, label)
    reach = 1e-9 + max(max(xs) - min(xs), max(ys) - min(ys))
    x = Scale(*padded(xs, 0, 1e-6 + 0.02 * reach), 10, width - 10)
    y = Scale(*padded(ys, 0, 1e-6 + 0.02 * reach), height - 10, 28)
    picture.text(10, 14, clipped(name, 30), "start", "title")
    for inside, kind, dot in ((False, "faint", 5.0), (True, "", 7.5)):
        for code in range(len(classes)):
            here = [g for g in chosen if truth[g] == code and (g in tested) is inside]
            picture.dots([(x(places[g][0]), y(places[g][1])) for g in here], f"k{code % 8} {kind}".strip(), dot)
    return picture.svg()
