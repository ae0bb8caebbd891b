"""Axes, shapes and text of small charts, written as SVG.

Shapes take their color from a class (``blue``, ``orange``, …) of the page's style sheet, so one drawing works in light
and dark mode and in print. A curve is one path and so is a scatter of dots, which keeps pages with hundreds of charts
small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from markupsafe import Markup

from gcaps.escaping import visible

Point = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """Linear or logarithmic map from values in [low, high] to pixels in [start, end]."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Return about ``count`` values within the scale that are 1, 2 or 5 times a power of ten."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for factors in ((1, 2, 5), (1, 3), (1,)):
                found = [f * 10.0**power for power in powers for f in factors]
                found = [value for value in found if self.low <= value * (1 + 1e-9) and value <= self.high * (1 + 1e-9)]
                if len(found) <= count + 1:
                    break
            if len(found) > 2:
                return found
        rough = (self.high - self.low) / max(count, 1)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(f * power for f in (1, 2, 5, 10) if f * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def padded(values: Iterable[float], share: float = 0.06, least: float = 0.02) -> tuple[float, float]:
    """Return axis limits around values, with a margin of ``share`` of their range but at least ``least``."""
    values = list(values)
    low, high = min(values), max(values)
    margin = max(share * (high - low), least)
    return low - margin, high + margin


@dataclass
class Drawing:
    """SVG element of a given size in CSS pixels; shapes are painted in the order they are added."""

    width: float
    height: float
    label: str
    """Text alternative for screen readers."""
    parts: list[str] = field(default_factory=list)

    def path(self, points: Sequence[Point], kind: str, *, close: bool = False) -> None:
        """Add a line through points."""
        if points:
            steps = "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points)
            self.parts.append(f'<path class="{kind}" d="M{steps}{"Z" if close else ""}"/>')

    def dots(self, points: Iterable[Point], kind: str, size: float) -> None:
        """Add round dots as one path of zero-length lines."""
        steps = "".join(f"M{coordinate(x)} {coordinate(y)}h0" for x, y in points)
        if steps:
            self.parts.append(f'<path class="dots {kind}" stroke-width="{coordinate(size)}" d="{steps}"/>')

    def segments(self, pairs: Iterable[tuple[Point, Point]], kind: str) -> None:
        """Add straight lines as one path."""
        steps = "".join(f"M{coordinate(a)} {coordinate(b)}L{coordinate(c)} {coordinate(d)}" for (a, b), (c, d) in pairs)
        if steps:
            self.parts.append(f'<path class="{kind}" d="{steps}"/>')

    def mark(self, x: float, y: float, shape: str, kind: str, size: float = 5) -> None:
        """Add a marker: circle, square, diamond, triangle or cross."""
        s = size
        outline = {
            "square": [(-s, -s), (s, -s), (s, s), (-s, s)],
            "diamond": [(0, -1.3 * s), (1.3 * s, 0), (0, 1.3 * s), (-1.3 * s, 0)],
            "triangle": [(0, -1.2 * s), (1.15 * s, 0.9 * s), (-1.15 * s, 0.9 * s)],
        }.get(shape)
        if shape == "cross":
            self.segments([((x - s, y - s), (x + s, y + s)), ((x - s, y + s), (x + s, y - s))], f"stroke {kind}")
        elif outline is None:
            self.parts.append(
                f'<circle class="fill {kind}" cx="{coordinate(x)}" cy="{coordinate(y)}" r="{coordinate(1.1 * s)}"/>'
            )
        else:
            self.path([(x + dx, y + dy) for dx, dy in outline], f"fill {kind}", close=True)

    def bars(self, x: Scale, y: Scale, edges: Sequence[float], tops: Sequence[float], kind: str) -> None:
        """Add the bars of a histogram, from zero to ``tops`` [n] between neighboring ``edges`` [n+1]."""
        for left, right, top in zip(edges[:-1], edges[1:], tops, strict=True):
            if top:
                a, b = x(left) + 0.6, x(right) - 0.6
                self.path([(a, y(0)), (a, y(top)), (b, y(top)), (b, y(0))], f"fill {kind}", close=True)

    def text(self, x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> None:
        """Add text; ``anchor`` is the end of its baseline (start, middle, end) at the point."""
        anchors = "" if anchor == "start" else f' text-anchor="{anchor}"'
        kinds = f' class="{kind}"' if kind else ""
        shown = escape(visible(words))
        self.parts.append(f'<text x="{coordinate(x)}" y="{coordinate(y)}"{anchors}{kinds}>{shown}</text>')

    def axes(
        self, x: Scale, y: Scale, titles: tuple[str, str], y_text: Callable[[float], str] | None = None, count: int = 5
    ) -> None:
        """Add grid, ticks and titles of both axes; without ``y_text``, y values are shares of one in percent."""
        xs, ys = x.ticks(count), y.ticks(5)
        self.segments([((x(v), y.start), (x(v), y.end)) for v in xs], "grid")
        self.segments([((x.start, y(v)), (x.end, y(v))) for v in ys], "grid")
        for v in xs:
            self.text(x(v), y.start + 15, number(v), "middle")
        for v in ys:
            self.text(x.start - 6, y(v) + 4, number(100 * v) if y_text is None else y_text(v), "end")
        self.text((x.start + x.end) / 2, y.start + 31, titles[0], "middle")
        self.text(x.start - 30, y.end - 9, titles[1])

    def row_axis(self, x: Scale, bottom: float, title: str, text: Callable[[float], str]) -> None:
        """Add the horizontal axis of a chart whose rows are methods."""
        ticks = x.ticks(7)
        self.segments([((x(v), 4), (x(v), bottom)) for v in ticks], "grid")
        for v in ticks:
            self.text(x(v), bottom + 15, text(v), "middle")
        self.text((x.start + x.end) / 2, bottom + 33, title, "middle")

    def svg(self) -> Markup:
        """Return the element."""
        box = f"0 0 {coordinate(self.width)} {coordinate(self.height)}"
        head = f'<svg class="chart" viewBox="{box}" role="img" aria-label="{escape(visible(self.label))}"'
        return Markup(f'{head} style="max-width:{coordinate(1.2 * self.width)}px">{"".join(self.parts)}</svg>')


def clipped(text: object, limit: int = 18) -> str:
    """Replace characters that cannot be printed and cut text longer than ``limit`` with an ellipsis."""
    clean = "".join(char if char.isprintable() else "�" for char in str(text))
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def number(value: float) -> str:
    """Format the value of a tick."""
    if value >= 10000:
        return f"{value / 1000:g}k"
    return f"{value:.6g}"


def signed_number(value: float) -> str:
    """Format the value of a tick that may be negative."""
    return number(value).replace("-", "−")


def coordinate(value: float) -> str:
    """Format a coordinate to a tenth of a pixel."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text
