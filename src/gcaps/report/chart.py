"""Small line drawings as SVG text, in the page's colours: a page of many data sets holds hundreds of them.

Shapes take their colour from a class (``blue``, ``orange``, …) of the page's style sheet, so one drawing serves light
and dark pages and paper. A curve is one path and a cloud of dots is one path, which keeps pages small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from markupsafe import Markup

Point = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """From values in [low, high] to pixels in [start, end]; the logarithm of values where ``log``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high, value = (
            (math.log10(v) for v in (self.low, self.high, value))
            if self.log
            else (
                self.low,
                self.high,
                value,
            )
        )
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """About so many round values within the scale: 1, 2 or 5 times a power of ten."""
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
    """Bounds of an axis around values: a margin of ``share`` of their range on both sides, ``least`` at least."""
    known = list(values)
    low, high = min(known), max(known)
    margin = max(share * (high - low), least)
    return low - margin, high + margin


@dataclass
class Drawing:
    """An SVG element of a size in CSS pixels, to which shapes are added in painting order."""

    width: float
    height: float
    label: str
    """What a reader who cannot see the picture is told."""
    parts: list[str] = field(default_factory=list)

    def path(self, points: Sequence[Point], kind: str, *, close: bool = False) -> None:
        """A line through points."""
        if points:
            steps = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
            self.parts.append(f'<path class="{kind}" d="M{steps}{"Z" if close else ""}"/>')

    def dots(self, points: Iterable[Point], kind: str, size: float) -> None:
        """Round dots, all of them one path of lines without length."""
        steps = "".join(f"M{_n(x)} {_n(y)}h0" for x, y in points)
        if steps:
            self.parts.append(f'<path class="dots {kind}" stroke-width="{_n(size)}" d="{steps}"/>')

    def segments(self, pairs: Iterable[tuple[Point, Point]], kind: str) -> None:
        """Straight lines, all of them one path."""
        steps = "".join(f"M{_n(a)} {_n(b)}L{_n(c)} {_n(d)}" for (a, b), (c, d) in pairs)
        if steps:
            self.parts.append(f'<path class="{kind}" d="{steps}"/>')

    def mark(self, x: float, y: float, shape: str, kind: str, size: float = 5) -> None:
        """A filled mark: circle, square, diamond, triangle or cross."""
        s = size
        outline = {
            "square": [(-s, -s), (s, -s), (s, s), (-s, s)],
            "diamond": [(0, -1.3 * s), (1.3 * s, 0), (0, 1.3 * s), (-1.3 * s, 0)],
            "triangle": [(0, -1.2 * s), (1.15 * s, 0.9 * s), (-1.15 * s, 0.9 * s)],
        }.get(shape)
        if shape == "cross":
            self.segments([((x - s, y - s), (x + s, y + s)), ((x - s, y + s), (x + s, y - s))], f"stroke {kind}")
        elif outline is None:
            self.parts.append(f'<circle class="fill {kind}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(1.1 * s)}"/>')
        else:
            self.path([(x + dx, y + dy) for dx, dy in outline], f"fill {kind}", close=True)

    def text(self, x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> None:
        """Words whose baseline begins (or ends, or is centred: ``anchor``) at a point."""
        anchors = "" if anchor == "start" else f' text-anchor="{anchor}"'
        kinds = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{_n(x)}" y="{_n(y)}"{anchors}{kinds}>{escape(words)}</text>')

    def axes(self, x: Scale, y: Scale, names: tuple[str, str], *, percent: bool = True, count: int = 5) -> None:
        """Grid, ticks and names of both axes; ``percent``: the upright one shows shares of one as percent."""
        xs, ys = x.ticks(count), y.ticks(count)
        self.segments([((x(v), y.start), (x(v), y.end)) for v in xs], "grid")
        self.segments([((x.start, y(v)), (x.end, y(v))) for v in ys], "grid")
        for v in xs:
            self.text(x(v), y.start + 15, number(v), "middle")
        for v in ys:
            self.text(x.start - 6, y(v) + 4, f"{100 * v:.0f}" if percent else number(v), "end")
        self.text((x.start + x.end) / 2, y.start + 31, names[0], "middle")
        self.text(x.start - 30, y.end - 9, names[1])

    def svg(self) -> Markup:
        """The element."""
        box = f"0 0 {_n(self.width)} {_n(self.height)}"
        head = f'<svg class="chart" viewBox="{box}" role="img" aria-label="{escape(self.label)}"'
        return Markup(f'{head} style="max-width:{_n(1.2 * self.width)}px">{"".join(self.parts)}</svg>')


def plain(text: object, limit: int = 18) -> str:
    """A name fit for a drawing: what cannot be printed replaced, what is too long cut with an ellipsis."""
    clean = "".join(char if char.isprintable() else "�" for char in str(text))
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def number(value: float) -> str:
    """A tick's value as short as it can be read."""
    if value >= 10000:
        return f"{value / 1000:g}k"
    return f"{value:.6g}"


def _n(value: float) -> str:
    """A coordinate to a tenth of a pixel."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text
