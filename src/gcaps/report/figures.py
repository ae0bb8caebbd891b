"""The pictures of a report: how it learned, how the folds fared, how much the rule matters, where it errs.

Each function gives one SVG element; a picture that the result has nothing to show in is None.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from gcaps.evaluation.published import Published
from gcaps.evaluation.result import Result
from gcaps.report import aggregate
from gcaps.report.chart import plain
from gcaps.report.svg import BLUE, GREEN, INK, LINE, MUTED, ON_BLUE, ORANGE, PURPLE, SURFACE, render

WIDTH = 480.0
_LIMIT = 12
"""Classes up to which a confusion matrix carries its numbers."""
_ROUND = [1, 2, 5, 10]
"""Steps between ticks that one can read off without counting."""


def loss_curve(result: Result) -> str | None:
    """Training loss by epoch, mean over the folds."""
    losses = [fold.train_loss for fold in result.folds]
    if not any(losses):
        return None

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        _curve(axes, losses, ORANGE, "-", "training")
        _epochs(axes, result)
        axes.set_ylabel("training loss")
        axes.set_ylim(bottom=0)

    means = _by_epoch(losses).mean(axis=0)
    label = f"Training loss by epoch: from {means[0]:.3f} to {means[-1]:.3f}, mean over the folds."
    return render("loss", label, (WIDTH, 300), draw)


def accuracy_curve(result: Result) -> str | None:
    """Accuracy by epoch on the graphs trained on, on those held out, and where there is one on the inner validation."""
    kinds = [
        ([fold.train_accuracy for fold in result.folds], ORANGE, "--", "training"),
        ([fold.validation_accuracy for fold in result.folds], PURPLE, ":", "validation"),
        ([fold.test_accuracy for fold in result.folds], BLUE, "-", "test"),
    ]
    kinds = [kind for kind in kinds if any(kind[0])]
    if not kinds:
        return None

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for values, colour, dash, name in kinds:
            _curve(axes, values, colour, dash, name)
        _epochs(axes, result)
        axes.set_ylabel("accuracy")
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.legend(loc="lower right", ncols=len(kinds), bbox_to_anchor=(1, 1), borderaxespad=0.2, handlelength=1.8)

    ends = ", ".join(f"{name} {100 * _by_epoch(values).mean(axis=0)[-1]:.1f} percent" for values, _, _, name in kinds)
    return render("accuracy", f"Accuracy by epoch, mean over the folds; at the last epoch {ends}.", (WIDTH, 300), draw)


def fold_dots(result: Result) -> str:
    """Accuracy of each fold under the honest rule, with the mean, its deviation and the majority class."""
    accuracies = [fold.accuracy for fold in result.folds]
    honest, base = result.protocols["honest"], aggregate.baseline(result)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        if len(accuracies) > 1:
            axes.axhspan(honest.mean - honest.std, honest.mean + honest.std, color=BLUE, alpha=0.13, linewidth=0)
        axes.axhline(honest.mean, color=BLUE, linewidth=1.4)
        axes.axhline(base.share, color=MUTED, linewidth=1.2, linestyle="--")
        places = [fold.fold for fold in result.folds]
        axes.plot(places, accuracies, "o", color=BLUE, markeredgecolor=SURFACE, markersize=9, clip_on=False)
        edge = axes.get_yaxis_transform()
        axes.text(1.01, honest.mean, "mean", color=BLUE, va="center", transform=edge)
        if abs(honest.mean - base.share) > 0.015:
            axes.text(1.01, base.share, "majority", color=MUTED, va="center", transform=edge)
        axes.set_xlabel("fold")
        axes.set_xlim(min(places) - 0.6, max(places) + 0.6)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True, min_n_ticks=1))
        axes.grid(axis="x", visible=False)
        axes.set_ylabel("test accuracy")
        low, high = min(*accuracies, base.share), max(*accuracies, base.share)
        axes.set_ylim(max(low - 0.06, -0.02), min(high + 0.06, 1.02))
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))

    label = (
        f"Test accuracy of {len(accuracies)} folds: from {100 * min(accuracies):.1f} to {100 * max(accuracies):.1f} "
        f"percent, mean {100 * honest.mean:.1f}; always answering the majority class gives {100 * base.share:.1f}."
    )
    return render("folds", label, (WIDTH, 300), draw)


def protocol_dots(result: Result, others: Sequence[Published] = ()) -> str:
    """Our number under every rule, one above the other, and below them what was published."""
    rows: list[tuple[str, float, float, str, str]] = []
    for name, summary in result.protocols.items():
        honest = name == "honest"
        rows.append((plain(name), summary.mean, summary.std, BLUE if honest else ORANGE, "o" if honest else "X"))
    ours = len(rows)
    marks = {"paper": (GREEN, "D"), "fair": (PURPLE, "s")}
    for row in others:
        if row.mean is not None:
            rows += [(plain(row.method, 26), row.mean, row.std or 0.0, *marks[row.source])]
    honest_mean, base = result.protocols["honest"].mean, aggregate.baseline(result).share

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.axvline(base, color=MUTED, linewidth=1.2, linestyle="--")
        axes.axvline(honest_mean, color=BLUE, linewidth=1.2, alpha=0.55)
        places = [place + (0.7 if place >= ours else 0) for place in range(len(rows))]
        for place, (_, mean, std, colour, mark) in zip(places, rows, strict=True):
            axes.plot([mean - std, mean + std], [place, place], color=colour, linewidth=2.2, alpha=0.45)
            axes.plot([mean], [place], mark, color=colour, markeredgecolor=SURFACE, markersize=9)
            axes.text(1.02, place, f"{100 * mean:.1f}", va="center", ha="left", transform=axes.get_yaxis_transform())
        if len(rows) > ours:
            axes.axhline(ours - 0.15, color=LINE, linewidth=1)
        axes.set_yticks(places, [row[0] for row in rows])
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.set_ylim(places[-1] + 0.7, -0.7)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("accuracy (mean ± standard deviation over the folds)")
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=_ROUND))

    label = (
        "Accuracy by rule and as published: " + ", ".join(f"{row[0]} {100 * row[1]:.1f} percent" for row in rows) + "."
    )
    return render("protocols", label, (660, 80 + 21 * len(rows)), draw)


def confusion_matrix(result: Result) -> str:
    """True against predicted class: in each cell the count and its share of the true class, which is also the shade."""
    counts, names = aggregate.confusion(result), [plain(name, 12) for name in aggregate.class_names(result)]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size = len(names)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for (true, guess), share in np.ndenumerate(shares):
            # rectangles, not an image: the shade is an opacity, so it follows the page into dark mode
            if share > 0:
                axes.bar(guess, 1, 1, bottom=true - 0.5, color=BLUE, alpha=float(share), linewidth=0)
            if size <= _LIMIT:
                big = 15 if size <= 4 else 11
                colour = ON_BLUE if share > 0.55 else INK
                _centred(axes, str(counts[true, guess]), (guess, true), 0.5 * big, colour, big)
                _centred(axes, f"{100 * share:.0f}%", (guess, true), -0.7 * big, colour, 0.8 * big)
        for edge in np.arange(size + 1) - 0.5:
            axes.plot([edge, edge], [-0.5, size - 0.5], color=LINE, linewidth=0.8)
            axes.plot([-0.5, size - 0.5], [edge, edge], color=LINE, linewidth=0.8)
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_xlim(-0.52, size - 0.48)
        axes.set_ylim(size - 0.48, -0.52)
        step = max(1, -(-size // _LIMIT))
        ticks = list(range(0, size, step))
        wide = sum(len(names[tick]) for tick in ticks) > 44
        axes.set_xticks(
            ticks, [names[tick] for tick in ticks], rotation=40 if wide else 0, ha="right" if wide else "center"
        )
        axes.set_yticks(ticks, [names[tick] for tick in ticks])
        axes.tick_params(length=0, labelcolor=INK)
        axes.set_xlabel("predicted class")
        axes.set_ylabel("true class")

    right = ", ".join(f"{name}: {share:.0%}" for name, share in zip(names, np.diag(shares), strict=True))
    label = f"Confusion matrix of {int(counts.sum())} tested graphs. Share recognised of each class: {right}."
    return render("confusion", label, (WIDTH, 340) if size <= 4 else (660, 480), draw)


def probability_histogram(result: Result) -> str | None:
    """How sure the model was of its answers, right and wrong ones apart."""
    if not aggregate.has_scores(result):
        return None
    probabilities, right = aggregate.winners(result)
    low = 1 / max(len(aggregate.class_names(result)), 2)
    bins = np.linspace(low, 1, 11)
    clipped = np.clip(probabilities, low, 1)
    wrong_counts, right_counts = np.histogram(clipped[~right], bins)[0], np.histogram(clipped[right], bins)[0]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        width, middles = 0.92 * float(bins[1] - bins[0]), (bins[:-1] + bins[1:]) / 2
        axes.bar(middles, right_counts, width, color=BLUE, alpha=0.85, label="right")
        axes.bar(middles, -wrong_counts, width, color=ORANGE, alpha=0.9, label="wrong")
        axes.axhline(0, color=MUTED, linewidth=1)
        axes.set_xlim(low, 1)
        top = max(int(right_counts.max()), 1)
        axes.set_ylim(-1.25 * max(int(wrong_counts.max()), 0.12 * top), 1.12 * top)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
        axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.0f}")
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.grid(axis="x", visible=False)
        axes.set_xlabel("probability of the chosen class")
        axes.set_ylabel("graphs")
        axes.legend(loc="lower right", ncols=2, bbox_to_anchor=(1, 1), borderaxespad=0.2, handlelength=1.2)

    means = [
        f"{100 * chosen.mean():.0f} percent" if len(chosen) else "none" for chosen in (clipped[right], clipped[~right])
    ]
    label = f"Probability of the chosen class; mean for right answers: {means[0]}, for wrong answers: {means[1]}."
    return render("probability", label, (WIDTH, 340), draw)


def _by_epoch(values: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """[fold, epoch]; a fold that stopped early keeps its last value, so that the mean is always over all folds."""
    longest = max(len(row) for row in values)
    return np.array([[*row, *[row[-1]] * (longest - len(row))] for row in values if len(row)], dtype=np.float64)


def _centred(axes: Axes, text: str, place: tuple[int, int], lift: float, colour: str, size: float) -> None:
    """Text at a place in data coordinates, ``lift`` pixels above it."""
    axes.annotate(
        text, place, (0, lift), textcoords="offset points", ha="center", va="center", color=colour, fontsize=size
    )


def _curve(axes: Axes, values: Sequence[Sequence[float]], colour: str, dash: str, name: str) -> None:
    table = _by_epoch(values)
    epochs, mean, std = np.arange(1, table.shape[1] + 1), table.mean(axis=0), table.std(axis=0)
    axes.fill_between(epochs, mean - std, mean + std, color=colour, alpha=0.16, linewidth=0)
    axes.plot(epochs, mean, color=colour, linestyle=dash, marker="o" if len(epochs) == 1 else "", label=name)


def _epochs(axes: Axes, result: Result) -> None:
    """Mark the epochs whose models the honest rule used, on the axis of epochs."""
    axes.set_xlabel("epoch (▲ used by the honest rule)")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True, min_n_ticks=1, steps=_ROUND))
    if max(len(fold.train_loss) for fold in result.folds) == 1:
        axes.set_xticks([1])
    chosen = sorted({fold.epoch for fold in result.folds})
    for epoch in chosen:
        axes.axvline(epoch, color=INK, linewidth=1, alpha=0.6 if len(chosen) == 1 else 0.25)
    axes.plot(
        chosen, [0] * len(chosen), "^", color=INK, markersize=8, clip_on=False, transform=axes.get_xaxis_transform()
    )
