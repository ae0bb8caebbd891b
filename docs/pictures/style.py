"""What the pictures of the documentation have in common: colours, type, lines, and how they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib.style
from matplotlib.figure import Figure

INK, MUTED, LINE, PALE = "#1b1f24", "#59626d", "#c5ccd3", "#eef1f4"
BLUE, ORANGE, GREEN, PURPLE = "#0068a9", "#b95000", "#007a59", "#994c7f"
"""Okabe and Ito's hues, darkened for contrast: colour-blind readers can tell them apart."""

STYLE: dict[str, object] = {
    "svg.hashsalt": "gcaps",
    "font.size": 11,
    "axes.titlesize": 11.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 9,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "axes.edgecolor": LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.facecolor": "white",
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "legend.frameon": False,
    "lines.linewidth": 2,
}


def save(draw: Callable[[Figure], None], file: Path) -> None:
    """Write what ``draw`` puts on a figure; the same picture gives the same bytes."""
    with matplotlib.style.context(STYLE, after_reset=True):
        figure = Figure(layout="constrained", dpi=110)
        draw(figure)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
