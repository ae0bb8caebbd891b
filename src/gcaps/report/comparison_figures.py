"""The pictures of a comparison: what rules add, ranks, cost, curves, reliability, and graphs on a plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from gcaps.evaluation.calibration import Calibration
from gcaps.evaluation.ranks import Ranks
from gcaps.report.chart import Drawing, Scale, padded, plain
from gcaps.report.names import FAMILIES, method_name
from gcaps.report.study import Entry, Study

RULES = (("last", "green", "triangle"), ("gin", "orange", "diamond"), ("best", "red", "cross"))
"""The rules beside honest, with the colour and the mark that stand for each."""
_CURVE = 60
"""Points of a learning curve that are drawn; longer ones are thinned."""
_CLOUD = 400
"""Graphs of a map that are drawn; of more, every so many."""


def rule_gains(study: Study) -> Markup | None:
    """For each method with epochs, how many points each rule adds to the honest number, mean over the data sets."""
    rows: list[tuple[str, dict[str, float]]] = []
    for method in study.methods:
        entries = [study.entry(info.name, method) for info in study.sets]
        known = [entry.protocols for entry in entries if entry.complete and len(entry.protocols) > 1]
        if known:
            gains = {
                rule: float(np.mean([100 * (p[rule].mean - p["honest"].mean) for p in known])) for rule, _, _ in RULES
            }
            rows.append((method, gains))
    if not rows:
        return None
    rows.sort(key=lambda row: -row[1]["best"])
    told = "; ".join(
        f"{method_name(m).short}: {', '.join(f'{r} {g:+.1f}' for r, g in gains.items())}" for m, gains in rows
    )
    picture = Drawing(660, 58 + 26 * len(rows), f"Points that each rule adds to the honest accuracy. {told}.")
    low, high = padded([0.0, *(g for _, gains in rows for g in gains.values())], least=0.5)
    x = Scale(low, high, 108, 640)
    bottom = 8 + 26 * len(rows)
    ticks = x.ticks(7)
    picture.segments([((x(v), 4), (x(v), bottom)) for v in ticks], "grid")
    for v in ticks:
        picture.text(x(v), bottom + 15, f"{v:+g}".replace("-", "−") if v else "0", "middle")
    picture.text((x.start + x.end) / 2, bottom + 34, "points above the honest accuracy", "middle")
    picture.segments([((x(0), 4), (x(0), bottom))], "stroke blue")
    for place, (method, gains) in enumerate(rows):
        y = 21 + 26 * place
        picture.text(x.start - 10, y + 4, plain(method_name(method).short, 16), "end", "ink")
        picture.segments([((x(min(0, *gains.values())), y), (x(max(0, *gains.values())), y))], "thick line")
        for rule, colour, mark in RULES:
            picture.mark(x(gains[rule]), y, mark, colour, 4.5)
        picture.mark(x(0), y, "circle", "blue", 4.5)
    return picture.svg()


def critical_difference_diagram(ranks: Ranks) -> Markup:
    """Average ranks on a line; a bar joins methods closer than Nemenyi's critical difference (Demšar, 2006)."""
    k = len(ranks.methods)
    half = (k + 1) // 2
    deep = 24 + 13 * len(ranks.cliques)
    told = ", ".join(f"{method_name(m).short} {r:.2f}" for m, r in zip(ranks.methods, ranks.average, strict=True))
    label = (
        f"Average ranks over {len(ranks.data)} data sets: {told}. Critical difference {ranks.critical_difference:.2f}."
    )
    picture = Drawing(660, 66 + deep + 22 * half, label)
    x = Scale(1, k, 130, 530)
    top = 58
    picture.segments([((x(1), top), (x(k), top))], "stroke ink")
    picture.segments([((x(v), top), (x(v), top - 6)) for v in range(1, k + 1)], "stroke ink")
    for v in range(1, k + 1):
        picture.text(x(v), top - 11, str(v), "middle")
    span = min(ranks.critical_difference, k - 1)
    ends = [((x(1), 24 + d), (x(1), 16 + d)) for d in (0,)] + [((x(1 + span), 24), (x(1 + span), 16))]
    picture.segments([*ends, ((x(1), 20), (x(1 + span), 20))], "stroke blue")
    beyond = "" if span == ranks.critical_difference else ", wider than the axis"
    picture.text(x(1), 10, f"critical difference {ranks.critical_difference:.2f}{beyond}", "start", "blue")
    for number, (first, last) in enumerate(ranks.cliques):
        y = top + 14 + 13 * number
        picture.segments([((x(ranks.average[first]) - 4, y), (x(ranks.average[last]) + 4, y))], "bar ink")
    for place, (method, rank) in enumerate(zip(ranks.methods, ranks.average, strict=True)):
        left = place < half
        y = top + deep + 22 * (place if left else k - 1 - place)
        side = 122.0 if left else 538.0
        name = method_name(method)
        colour = FAMILIES[name.family][1]
        picture.path([(x(rank), top), (x(rank), y), (side, y)], f"stroke thin {colour}")
        words = f"{plain(name.short, 13)}  {rank:.2f}" if left else f"{rank:.2f}  {plain(name.short, 13)}"
        picture.text(side - 5 if left else side + 5, y + 4, words, "end" if left else "start", "ink")
    return picture.svg()


def rule_dots(study: Study, data: str) -> Markup | None:
    """A data set's methods from the best honest mean down, each under every rule that it has."""
    entries = study.complete(data)
    if not entries:
        return None
    values = [p.mean for e in entries for p in e.protocols.values()]
    stds = [
        v
        for e in entries
        for v in (
            e.protocols["honest"].mean - e.protocols["honest"].std,
            e.protocols["honest"].mean + e.protocols["honest"].std,
        )
    ]
    low, high = padded([*values, *stds], 0.03)
    told = "; ".join(
        f"{method_name(e.method).short} " + ", ".join(f"{r} {100 * p.mean:.1f}" for r, p in e.protocols.items())
        for e in entries
    )
    bottom = 8 + 24 * len(entries)
    picture = Drawing(660, bottom + 42, f"Accuracy on {data} in percent, by method and rule: {told}.")
    x = Scale(low, high, 108, 640)
    ticks = x.ticks(6)
    picture.segments([((x(v), 4), (x(v), bottom)) for v in ticks], "grid")
    for v in ticks:
        picture.text(x(v), bottom + 15, f"{100 * v:.0f}", "middle")
    picture.text((x.start + x.end) / 2, bottom + 33, "accuracy, percent", "middle")
    for place, entry in enumerate(entries):
        y = 20 + 24 * place
        honest = entry.protocols["honest"]
        picture.text(x.start - 9, y + 4, plain(method_name(entry.method).short, 13), "end", "ink")
        picture.segments([((x(honest.mean - honest.std), y), (x(honest.mean + honest.std), y))], "thick blue faint")
        for rule, colour, mark in RULES:
            if rule in entry.protocols:
                picture.mark(x(entry.protocols[rule].mean), y, mark, colour, 4)
        picture.mark(x(honest.mean), y, "circle", "blue", 4.5)
    return picture.svg()


def cost_scatter(study: Study, data: str, measure: str) -> Markup | None:
    """Honest accuracy against seconds a fold (``seconds``) or highest memory (``peak_mib``) of each method."""
    points = [
        (float(cost), entry.protocols["honest"].mean, entry.method)
        for entry in study.complete(data)
        if (cost := getattr(entry, measure)) is not None and cost > 0
    ]
    if not points:
        return None
    name = "seconds a fold" if measure == "seconds" else "highest memory, MiB"
    told = "; ".join(f"{method_name(m).short} {c:.3g}, {100 * a:.1f} percent" for c, a, m in points)
    picture = Drawing(400, 270, f"Accuracy on {data} against {name}: {told}.")
    low, high = min(p[0] for p in points), max(p[0] for p in points)
    stretch = max((high / low) ** 0.08, 1.25)
    x = Scale(low / stretch, high * stretch, 34, 392, log=True)
    y = Scale(*padded((p[1] for p in points), 0.1, 0.01), 226, 24)
    picture.axes(x, y, (f"{name} (logarithmic)", "accuracy, percent"))
    taken: list[tuple[float, float, float]] = []
    for cost, accuracy, method in sorted(points, key=lambda p: -p[1]):
        known = method_name(method)
        _, colour, mark = FAMILIES[known.family]
        picture.mark(x(cost), y(accuracy), mark, colour, 5)
        taken.append((x(cost) - 6, y(accuracy) + 4, 12))
    for cost, accuracy, method in sorted(points, key=lambda p: -p[1]):
        _place(picture, x(cost), y(accuracy), plain(method_name(method).short, 14), taken)
    return picture.svg()


def _place(picture: Drawing, px: float, py: float, words: str, taken: list[tuple[float, float, float]]) -> None:
    """Write a name beside its mark: to the side, above or below, where it crosses no other name."""
    width = 7.6 * len(words)
    choices = [(px + 9, py + 4), (px - 9 - width, py + 4), (px - width / 2, py - 9), (px - width / 2, py + 17)]
    choices += [(px + 9, py + 4 + shift) for shift in (-12, 12, -24, 24)]
    inside = [(a, b) for a, b in choices if a >= 36 and a + width <= picture.width and 12 <= b <= picture.height - 46]
    free = [(a, b) for a, b in inside if all(a + width < c or a > c + w or abs(b - d) > 11 for c, d, w in taken)]
    a, b = (free or inside or choices)[0]
    taken.append((a, b, width))
    picture.text(a, b, words, "start", "ink")


def learning_curves(entry: Entry, bounds: tuple[float, float]) -> Markup | None:
    """Mean accuracy by epoch over the folds: training dashed, test solid, with one deviation as a band."""
    test = [fold.test_accuracy for fold in entry.folds if fold.test_accuracy]
    train = [fold.train_accuracy for fold in entry.folds if fold.train_accuracy]
    if not test or not train:
        return None
    epochs, mean, std = _thinned(test)
    _, rising, _ = _thinned(train)
    name = method_name(entry.method).short
    label = (
        f"{name} on {entry.data}: accuracy by epoch, at the last one {100 * rising[-1]:.1f} percent on training and "
        f"{100 * mean[-1]:.1f} percent on test graphs."
    )
    picture = Drawing(300, 190, label)
    x, y = Scale(min(epochs[0], epochs[-1] - 1), epochs[-1], 38, 292), Scale(*bounds, 152, 24)
    picture.axes(x, y, ("epoch", ""), count=4)
    picture.text(38, 12, plain(name, 30), "start", "title")
    upper = [(x(e), y(min(m + s, bounds[1]))) for e, m, s in zip(epochs, mean, std, strict=True)]
    lower = [(x(e), y(max(m - s, bounds[0]))) for e, m, s in zip(epochs, mean, std, strict=True)]
    picture.path([*upper, *reversed(lower)], "band blue", close=True)
    for values, kind in ((rising, "stroke orange dashed"), (mean, "stroke blue")):
        picture.path([(x(e), y(v)) for e, v in zip(epochs, values, strict=True)], kind)
    if len(epochs) == 1:
        picture.dots([(x(epochs[0]), y(mean[0]))], "blue", 6)
    return picture.svg()


def curve_bounds(entries: Sequence[Entry]) -> tuple[float, float]:
    """One upright axis for the curves of a data set."""
    values = [v for entry in entries for fold in entry.folds for v in (*fold.test_accuracy, *fold.train_accuracy)]
    low = float(np.quantile(values, 0.01)) if values else 0.0
    return max(low - 0.05, 0.0), 1.0


def _thinned(rows: Sequence[Sequence[float]]) -> tuple[list[int], list[float], list[float]]:
    """Epochs, mean and deviation over the folds; a fold that stopped early keeps its last value."""
    longest = max(len(row) for row in rows)
    table = np.array([[*row, *[row[-1]] * (longest - len(row))] for row in rows], dtype=np.float64)
    keep = np.unique(np.linspace(0, longest - 1, min(longest, _CURVE)).round().astype(int))
    return (keep + 1).tolist(), table.mean(axis=0)[keep].tolist(), table.std(axis=0)[keep].tolist()


def reliability_plot(entry: Entry, found: Calibration) -> Markup:
    """How often answers are right against how probable the method called them; the diagonal is perfect."""
    told = "; ".join(f"{100 * b.probability:.0f}: {100 * b.accuracy:.0f}" for b in found.curve)
    picture = Drawing(
        190,
        172,
        f"Reliability of {method_name(entry.method).short} on {entry.data}, probability and share right: {told}.",
    )
    x, y = Scale(0, 1, 34, 182), Scale(0, 1, 136, 8)
    for v in (0.0, 0.5, 1.0):
        picture.segments([((x(v), y(0)), (x(v), y(1))), ((x(0), y(v)), (x(1), y(v)))], "grid")
        picture.text(x(v), 150, f"{100 * v:.0f}", "middle")
        picture.text(29, y(v) + 4, f"{100 * v:.0f}", "end")
    picture.text((x(0) + x(1)) / 2, 166, "probability given, %", "middle")
    picture.segments([((x(0), y(0)), (x(1), y(1)))], "stroke thin muted dashed")
    line = [(x(b.probability), y(b.accuracy)) for b in found.curve]
    # a handful of answers makes a dot, but no line
    picture.path([place for place, part in zip(line, found.curve, strict=True) if part.count >= 5], "stroke blue")
    total = sum(b.count for b in found.curve)
    for (px, py), part in zip(line, found.curve, strict=True):
        picture.dots([(px, py)], "blue", 4 + 9 * (part.count / total) ** 0.5)
    return picture.svg()


def embedding_map(entry: Entry, labels: Mapping[int, int], classes: Sequence[str]) -> Markup | None:
    """The graphs on the plane of their vectors' two main directions; colour is the class, test graphs are large."""
    if entry.embedding is None:
        return None
    places, tested = entry.embedding
    step = -(-len(places) // _CLOUD)
    chosen = [g for g in range(len(places)) if g in labels and g % step == 0]
    if not chosen:
        return None
    xs, ys = [places[g][0] for g in chosen], [places[g][1] for g in chosen]
    name = method_name(entry.method).short
    picture = Drawing(
        300,
        250,
        f"{len(chosen)} graphs of {entry.data} on the two main directions of their vectors in {name}, by class.",
    )
    reach = 1e-9 + max(max(xs) - min(xs), max(ys) - min(ys))
    x = Scale(*padded(xs, 0, 1e-6 + 0.02 * reach), 10, 290)
    y = Scale(*padded(ys, 0, 1e-6 + 0.02 * reach), 240, 28)
    picture.text(10, 14, plain(name, 30), "start", "title")
    for inside, kind, size in ((False, "faint", 5.0), (True, "", 7.5)):
        for number in range(len(classes)):
            here = [g for g in chosen if labels[g] == number and (g in tested) is inside]
            picture.dots([(x(places[g][0]), y(places[g][1])) for g in here], f"k{number % 8} {kind}".strip(), size)
    return picture.svg()
