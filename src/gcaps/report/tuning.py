"""A page about a search over settings: the best trial, importances, history and all trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from gcaps.config import CONFIGS
from gcaps.config.spaces import Choice, Range
from gcaps.evaluation.tuning_study import TuningStudy, changed_settings, settings_toml
from gcaps.report.chart import Drawing, Point, Scale, clipped, number, padded, signed_number
from gcaps.report.figures import axis_text, axis_title
from gcaps.report.template import environment
from gcaps.tuning.importance import importances
from gcaps.tuning.search import Trial
from gcaps.version import __version__

WIDE = (430.0, 260.0)
"""Width and height of the history in CSS pixels."""
AXES = 8
"""Settings with an axis in the parallel coordinates, the most important ones."""
COLORS = 5
"""Steps of the color scale."""
LINES = 500
"""Trials that are drawn in the parallel coordinates."""


@dataclass(frozen=True)
class SettingRow:
    """A row of the table of settings."""

    name: str
    meaning: str
    searched: str
    default: str
    best: str
    changed: bool


@dataclass(frozen=True)
class TrialRow:
    """A row of the table of trials."""

    trial: Trial
    value: str
    settings: list[str]
    seconds: str
    best: bool


def tuning_page(study: TuningStudy) -> str:
    """Return a search as one self-contained HTML page."""
    shares = importances(study.plan.space, study.trials)
    best = study.best if study.done else None
    states = {
        state: sum(one.state == state for one in study.trials) for state in ("done", "pruned", "failed", "running")
    }
    default = study.default
    gain = None
    if best is not None and default is not None and best.value is not None and default.value is not None:
        gain = study.metric.difference(best.value - default.value, 2, like=best.value)
    return (
        environment()
        .get_template("tuning.html.j2")
        .render(
            study=study,
            plan=study.plan,
            metric=study.metric,
            best=best,
            best_value="–" if best is None or best.value is None else study.metric.text(best.value),
            default_value="–" if default is None or default.value is None else study.metric.text(default.value),
            gain=gain,
            spread=_spread(best),
            states=states,
            seconds=sum(trial.seconds for trial in study.trials),
            history=history_chart(study),
            importance=importance_chart(shares) if shares else None,
            coordinates=parallel_coordinates(study, list(shares) or list(study.plan.space)),
            settings=_setting_rows(study, best),
            trials=_trial_rows(study, best),
            toml=settings_toml(study) if best is not None else "",
            version=__version__,
        )
    )


def _spread(best: Trial | None) -> float | None:
    """Return the standard deviation of the best trial's inner folds."""
    return float(np.std(best.folds)) if best is not None and len(best.folds) > 1 else None


def history_chart(study: TuningStudy) -> Markup | None:
    """Return the value of each trial, the best so far, and the default's value; None where there are no values."""
    shown = [trial for trial in study.trials if trial.value is not None and trial.state in ("done", "pruned")]
    if not shown:
        return None
    metric = study.metric
    values = [float(trial.value or 0.0) for trial in shown]
    least = 0.01 if not metric.unit else 0.02 * max(abs(value) for value in values) + 1e-12
    width, height = WIDE
    x = Scale(-0.5, max(len(study.trials) - 0.5, 1.0), 52, width - 10)
    y = Scale(*padded(values, 0.08, least), height - 38, 24)
    best: list[tuple[int, float]] = []
    for trial in shown:
        if trial.state == "done" and (not best or metric.better(float(trial.value or 0.0), best[-1][1])):
            best.append((trial.number, float(trial.value or 0.0)))
    label = f"{axis_title(metric)} of {len(shown)} trials on inner folds; best so far: " + "; ".join(
        f"trial {place}: {metric.text(value)}" for place, value in best
    )
    picture = Drawing(width, height, label)
    picture.axes(x, y, ("trial", axis_title(metric)), axis_text(metric))
    if (default := study.default) is not None and default.value is not None:
        picture.segments([((x.start, y(default.value)), (x.end, y(default.value)))], "stroke thin muted dashed")
    corners: list[Point] = []
    for place, value in best:
        corners += [(x(place), corners[-1][1])] if corners else []
        corners.append((x(place), y(value)))
    if corners:
        picture.path([*corners, (x.end, corners[-1][1])], "stroke orange")
    size = 6.5 if len(shown) < 100 else 4.0
    for state, kind in (("pruned", "muted faint"), ("done", "blue")):
        at = [(x(t.number), y(float(t.value or 0.0))) for t in shown if t.state == state]
        picture.dots(at, kind, size)
    return picture.svg()


def importance_chart(shares: dict[str, float]) -> Markup:
    """Return a bar for each setting, the most important first."""
    row, left = 22.0, 118.0
    width, height = 420.0, 12 + row * len(shares) + 40
    label = "Importance of settings in percent: " + ", ".join(f"{n} {100 * s:.0f}" for n, s in shares.items())
    picture = Drawing(width, height, label)
    x = Scale(0, 1.08 * max(*shares.values(), 0.01), left, width - 42)
    picture.row_axis(x, height - 38, "share of the explained variance, %", lambda v: f"{100 * v:.0f}")
    for place, (name, share) in enumerate(shares.items()):
        middle = 14 + row * place
        picture.text(left - 8, middle + 4, clipped(name, 18), "end", "ink")
        bar = [(left, middle - 6), (x(share), middle - 6), (x(share), middle + 6), (left, middle + 6)]
        picture.path(bar, "fill blue", close=True)
        picture.text(x(share) + 5, middle + 4, f"{100 * share:.0f}")
    return picture.svg()


def parallel_coordinates(study: TuningStudy, names: Sequence[str]) -> Markup | None:
    """Return a line for each trial through its settings and its value, colored by the value; the best is thick."""
    done = study.done
    names = [name for name in names if name in study.plan.space][:AXES]
    if len(done) < 3 or not names:
        return None
    metric = study.metric
    values = np.array([metric.sign * float(trial.value or 0.0) for trial in done])
    order = np.argsort(values, kind="stable")
    if len(done) > LINES:
        order = order[-LINES:]
    cuts = np.quantile(values, np.arange(1, COLORS) / COLORS)
    width, height, top, bottom = 900.0, 310.0, 40.0, 295.0
    gap = (width - 120) / len(names)
    xs = [50 + gap * place for place in range(len(names) + 1)]
    listing = f"settings {', '.join(names)}, and {metric.title}"
    picture = Drawing(width, height, f"Parallel coordinates of {len(done)} trials: {listing}.")
    axes = [_Axis(study.plan.space[name], bottom, top) for name in names]
    shown = [float(trial.value or 0.0) for trial in done]
    scale = Scale(*padded(shown, 0.03, 1e-9 + 1e-3 * abs(max(shown))), bottom, top)
    best = study.best
    for place in [int(one) for one in order if done[int(one)].number != best.number]:
        picture.path(_line(done[place], names, axes, xs, scale), f"stroke thin q{np.searchsorted(cuts, values[place])}")
    picture.path(_line(best, names, axes, xs, scale), "thick orange")
    for x, name, axis in zip(xs[:-1], names, axes, strict=True):
        picture.segments([((x, top), (x, bottom))], "edge")
        picture.text(x, top - 20, clipped(name, 16), "middle", "title")
        for at, words in axis.marks():
            picture.text(x + 5, at + 4, clipped(words, 13), kind="ink halo")
    picture.segments([((xs[-1], top), (xs[-1], bottom))], "edge")
    picture.text(xs[-1], top - 20, clipped(metric.title, 18), "middle", "title")
    text = axis_text(metric)
    for tick in scale.ticks(5):
        picture.text(xs[-1] + 6, scale(tick) + 4, text(tick), kind="ink")
    return picture.svg()


class _Axis:
    """The axis of a setting."""

    def __init__(self, dimension: Range | Choice, bottom: float, top: float) -> None:
        self._dimension = dimension
        if isinstance(dimension, Choice):
            last = max(dimension.count - 1, 1)
            self._scale = Scale(-0.25, last + 0.25, bottom, top)
        else:
            low, high = float(dimension.low), float(dimension.high)
            margin = (high / low) ** 0.03 if dimension.log else 0.03 * (high - low)
            ends = (low / margin, high * margin) if dimension.log else (low - margin, high + margin)
            self._scale = Scale(*ends, bottom, top, log=dimension.log)

    def __call__(self, value: Any) -> float | None:
        """Return the height of a value; None where it is outside the space."""
        try:
            label = self._dimension.label_of(value)
        except ValueError:
            return None
        if isinstance(self._dimension, Choice):
            return self._scale(next(i for i, one in enumerate(self._dimension.values) if _same(one, value)))
        return self._scale(float(label))  # type: ignore[arg-type]

    def marks(self) -> list[tuple[float, str]]:
        """Return heights and words."""
        if isinstance(self._dimension, Choice):
            labels = ["none" if one is None else _word(one) for one in self._dimension.labels]
            return [(self._scale(place), words) for place, words in enumerate(labels)][:14]
        ticks = [v for v in self._scale.ticks(5) if self._dimension.low <= v <= self._dimension.high]
        if self._dimension.integer:
            ticks = [v for v in ticks if math.isclose(v, round(v))]
        return [(self._scale(value), signed_number(value)) for value in ticks]


def _same(one: Any, other: Any) -> bool:
    plain = [list(value) if isinstance(value, tuple) else value for value in (one, other)]
    return bool(plain[0] == plain[1]) and isinstance(one, bool) == isinstance(other, bool)


def _line(trial: Trial, names: Sequence[str], axes: Sequence[_Axis], xs: Sequence[float], scale: Scale) -> list[Point]:
    places = [(x, axis(trial.changes[name])) for x, name, axis in zip(xs, names, axes, strict=False)]
    return [*((x, y) for x, y in places if y is not None), (xs[-1], scale(float(trial.value or 0.0)))]


def _setting_rows(study: TuningStudy, best: Trial | None) -> list[SettingRow]:
    kind = CONFIGS[study.plan.method]
    fixed = changed_settings(study.plan.method, study.plan.settings)
    rows = []
    for name in [*study.plan.space, *(name for name in fixed if name not in study.plan.space)]:
        field = kind.model_fields[name]
        before = kind.parse({}).to_dict()[name]
        now = study.plan.settings[name] if best is None or name not in best.changes else best.changes[name]
        searched = str(study.plan.space[name]) if name in study.plan.space else "given"
        rows.append(
            SettingRow(name, field.description or "", searched, _word(before), _word(now), not _same(before, now))
        )
    return rows


def _trial_rows(study: TuningStudy, best: Trial | None) -> list[TrialRow]:
    return [
        TrialRow(
            trial,
            "" if trial.value is None else study.metric.text(trial.value),
            [_word(trial.changes[name]) if name in trial.changes else "" for name in study.plan.space],
            f"{trial.seconds:.1f}",
            best is not None and trial.number == best.number,
        )
        for trial in study.trials
    ]


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return "+".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else number(value) if isinstance(value, int) else str(value)
