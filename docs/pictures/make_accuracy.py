"""Draw docs/pictures/accuracy.svg from the records results/default.json and own.json: points above or below the paper.

python docs/pictures/make_accuracy.py                    writes the picture, the same bytes for the same results
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from matplotlib.figure import Figure
from style import BLUE, INK, LINE, MUTED, ORANGE, save

from gcaps.evaluation.published import best_known, published

ROOT = Path(__file__).parents[2]
DATA = (
    *("PTC", "PROTEINS", "NCI1", "NCI109", "DD", "ENZYMES"),
    *("COLLAB", "IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY", "REDDIT-MULTI-5K"),
)


def ours(kind: str, data: str) -> tuple[float, float]:
    """Honest accuracy over ten folds and the standard error of this mean, percent; nan where nothing is recorded."""
    page = json.loads((ROOT / "results" / f"{kind}.json").read_text(encoding="utf-8"))
    found = next((row["protocols"]["honest"] for row in page["results"] if row["data"] == data), None)
    if found is None:
        return math.nan, math.nan
    return 100 * found["mean"], 100 * found["std"] / len(found["folds"]) ** 0.5


def draw(figure: Figure) -> None:
    """A row for each set; 0 is what the paper reports."""
    known = {data: 100 * row.mean for data in DATA if (row := best_known(data)) is not None and row.mean is not None}
    paper = {
        data: 100 * next(row.mean for row in published(data) if row.method == "GCAPS-CNN" and row.mean is not None)
        for data in known
    }
    order = sorted(known, key=lambda data: ours("default", data)[0] - paper[data])
    figure.set_size_inches(8.6, 4.9)
    axes = figure.subplots()
    axes.axvline(0, color=MUTED, lw=1)
    for at, data in enumerate(order):
        axes.axhline(at, color=LINE, lw=0.6, zorder=0)
        mean, error = ours("default", data)
        label = None if at else "gcaps, default"
        axes.errorbar(mean - paper[data], at, xerr=error, fmt="o", color=BLUE, ms=8, lw=1.6, zorder=3, label=label)
        axes.plot(known[data] - paper[data], at, "|", color=INK, ms=15, mew=2.2, zorder=2)
    own = [(ours("own", data)[0] - paper[data], at) for at, data in enumerate(order)]
    axes.plot(*zip(*own, strict=True), "D", color=ORANGE, ms=6.5, zorder=4, label="gcaps, tuned per data set")
    axes.plot([], [], "|", color=INK, ms=13, mew=2.2, label="best known, honest")
    axes.set_yticks(range(len(order)), [f"{data}  {paper[data]:.1f}" for data in order], color=INK)
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("points above the paper's accuracy (next to the name); bars: standard errors")
    axes.legend(loc="lower right")


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description="Draw docs/pictures/accuracy.svg from the records.")
    parser.add_argument("--to", type=Path, default=Path(__file__).with_name("accuracy.svg"))
    given = parser.parse_args()
    save(draw, given.to)


if __name__ == "__main__":
    main()
