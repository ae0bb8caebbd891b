"""Draw docs/pictures/molecules.svg from results/times/molecules.json: errors and training times beside chemprop's.

python docs/pictures/make_molecules.py                   writes the picture, the same bytes for the same results
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import BLUE, GREEN, INK, LINE, MUTED, ORANGE, save

RECORD = Path(__file__).parents[2] / "results" / "times" / "molecules.json"
DATA = ("FreeSolv", "ESOL", "Lipophilicity", "BBBP", "BACE", "Tox21", "HIV")
METHODS = {
    "forest": ("ECFP4 + forest", GREEN, "s"),
    "gcaps": ("gcaps, one network", BLUE, "o"),
    "ensemble": ("gcaps, ensemble", ORANGE, "D"),
}
"""Label, color and marker of each method."""


def rows() -> dict[tuple[str, str], dict[str, list[dict[str, Any]]]]:
    """Cells of each method on the divisions that chemprop has too, by table and split."""
    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    cells = json.loads(RECORD.read_text(encoding="utf-8"))
    compared = {(c["data"], c["split"], c["seed"]) for c in cells if c["method"] == "chemprop"}
    for cell in cells:
        if (cell["data"], cell["split"], cell["seed"]) in compared:
            found[cell["data"], cell["split"]][cell["method"]].append(cell)
    order = [(data, split) for data in DATA for split in ("random", "scaffold")]
    return {row: found[row] for row in reversed(order) if row in found}


def error(cells: list[dict[str, Any]]) -> float:
    """Mean RMSE, or mean of 1 − ROC AUC."""
    return fmean(1 - cell["value"] if cell["metric"] == "ROC AUC" else cell["value"] for cell in cells)


def draw(figure: Figure) -> None:
    """A row for each table and split: errors in percent of chemprop's, and how many times as long chemprop trains."""
    figure.set_size_inches(8.6, 5.2)
    errors, times = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    found = rows()
    for at, cells in enumerate(found.values()):
        for method, (_, color, marker) in METHODS.items():
            if len(cells[method]) != len(cells["chemprop"]):
                continue
            less = 100 * (error(cells[method]) / error(cells["chemprop"]) - 1)
            errors.plot(less, at, marker, color=color, ms=7, zorder=3)
            cost = [fmean(c["train"]["cpu"] for c in cells[m]) for m in ("chemprop", method)]
            times.plot(cost[0] / cost[1], at, marker, color=color, ms=7, zorder=3)
    for axes in (errors, times):
        finish(axes, len(found))
    for label, color, marker in METHODS.values():
        errors.plot([], [], marker, color=color, ms=7, label=label)
    errors.axvline(0, color=MUTED, lw=1)
    errors.set_yticks(range(len(found)), [f"{data}, {split}" for data, split in found], color=INK)
    errors.set_xlabel("error above chemprop's, % (left is better)")
    errors.legend(loc="lower right")
    times.set_xscale("log")
    times.axvline(1, color=MUTED, lw=1)
    times.set_xticks([0.2, 1, 5, 25], ["1/5", "1", "5", "25"])
    times.minorticks_off()
    times.set_xlabel("chemprop's training time / own")


def finish(axes: Axes, count: int) -> None:
    """Draw a line for each row."""
    for at in range(count):
        axes.axhline(at, color=LINE, lw=0.6, zorder=0)
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description="Draw docs/pictures/molecules.svg from the record.")
    parser.add_argument("--to", type=Path, default=Path(__file__).with_name("molecules.svg"))
    given = parser.parse_args()
    save(draw, given.to)


if __name__ == "__main__":
    main()
