"""Draw the pictures of docs/capsules.md beside this file, or print the numbers that the page quotes.

python docs/pictures/make_capsules.py                    writes the pictures, the same bytes each time
python docs/pictures/make_capsules.py --print pairs      prints one table
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from capsule_tables import AGGREGATES, SIZES, TABLES, A, B, Neighborhood, components, decoder_errors, density, network
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from style import BLUE, GREEN, INK, LINE, MUTED, ORANGE, PALE, PURPLE, save

from gcaps import theory


def capsules(figure: Figure) -> None:
    """Two neighborhoods that mean, max and sum confuse, and what capsules see of them."""
    figure.set_size_inches(10.4, 6.6)
    (star_a, star_b, sums), (bars, polynomial, kernels) = figure.subplots(2, 3)
    both = ((A, BLUE, "A", -1), (B, ORANGE, "B", 1))
    for axes, (values, colour, name, _) in zip((star_a, star_b), both, strict=True):
        _star(axes, values, colour)
        axes.set_title(f"Neighborhood {name}")
    _grouped(sums, {name: (f(A), f(B)) for name, f in AGGREGATES.items()})
    sums.set_title("Mean, max, sum: no difference")
    moments = np.stack([components("moments, means", values) for values in (A, B)])
    _grouped(bars, {f"p = {p + 1}": (moments[0, p], moments[1, p]) for p in range(4)})
    bars.legend(loc="upper left")
    bars.set_title("Moments: means of xᵖ (Eq. 4)")
    t = np.linspace(-1.35, 2.35, 300)
    for values, colour, name, side in reversed(both):  # A on top, B's double values around it
        polynomial.plot(t, np.prod([t - x for x in values], axis=0), color=colour, ls="-" if name == "A" else "--")
        at, count = np.unique(values, return_counts=True)
        polynomial.scatter(at, np.zeros_like(at), s=50 * count**1.6, color=colour, zorder=3, edgecolor="white", lw=1)
        c = np.linspace(-3.2, 3.2, 300)
        width = float(density(4).log_width[0, 0].detach().exp())
        curve = np.mean([np.exp(-0.5 * ((c - x) / width) ** 2) for x in values], axis=0)
        kernels.plot(c, curve, color=colour, ls="-" if name == "A" else "--", label=name)
        centres = density(4).center[:, 0].detach().numpy()
        heights = components("density", values)
        kernels.scatter(centres, heights, s=46, marker="o" if side < 0 else "s", color=colour, zorder=3)
    polynomial.axhline(0, color=MUTED, lw=0.8, zorder=1)
    polynomial.set_ylim(-2.9, 5.4)
    polynomial.set_title("Polynomial (Eq. 6): roots are the values")
    polynomial.set_xlabel("t")
    kernels.set_ylim(0, 0.82)
    kernels.set_title("Density: read at P = 4 centres")
    kernels.set_xlabel("centre")
    kernels.legend(loc="lower center", ncols=2, reverse=True)


def decoders(figure: Figure) -> None:
    """Why m values need m moments, and how exactly they come back."""
    figure.set_size_inches(10.4, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    t = np.linspace(-1.06, 1.06, 300)
    for values, colour, style, marker in zip(theory.equal_moments(3), (BLUE, ORANGE), ("-", "--"), "os", strict=True):
        left.plot(t, np.prod([t - x for x in values], axis=0), color=colour, ls=style)
        shown = _minus("{" + ", ".join(f"{round(float(x), 2) + 0.0:g}" for x in values) + "}")
        left.scatter(values, np.zeros(3), s=60, marker=marker, color=colour, zorder=3, label=shown)
    left.axhline(0, color=MUTED, lw=0.8, zorder=1)
    left.set_ylim(-0.45, 0.72)
    left.legend(loc="upper left", handletextpad=0.1)
    left.set_title("Two moments fix the shape, the third the height")
    left.set_xlabel("t")
    left.set_ylabel("(t − x₀)(t − x₁)(t − x₂)")
    marks = zip((BLUE, GREEN, ORANGE, PURPLE), "osD^", ("-", "--", ":", "-."), strict=True)
    for (label, error), (colour, marker, style) in zip(decoder_errors().items(), marks, strict=True):
        right.plot(SIZES, np.maximum(error, 1e-17), color=colour, marker=marker, ls=style, ms=6, label=label)
    right.set_yscale("log")
    right.set_xticks(SIZES)
    right.set_ylim(3e-18, 3e10)
    right.set_yticks(10.0 ** np.arange(-16, 1, 4))
    right.minorticks_off()
    right.grid(axis="y", color=LINE, lw=0.6)
    right.legend(loc="upper left", handlelength=2.8, labelspacing=0.35)
    right.set_title("How exactly m values come back from m numbers")
    right.set_xlabel("m, values in the neighborhood")
    right.set_ylabel("median error")


def theorem1(figure: Figure) -> None:
    """Which inputs the middle of a grid depends on."""
    figure.set_size_inches(10.4, 3.15)
    side = 11
    node = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [np.stack([node[:-1].ravel(), node[1:].ravel()]), np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()])], axis=1
    )
    edge_index = torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1))
    middle = side * side // 2
    x = torch.randn(side * side, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cases = [("mean", 1, 1), ("mean", 2, 1), ("mean", 2, 2), ("cayley", 1, 1)]
    row, column = np.divmod(np.arange(side * side), side)
    plots = figure.subplots(1, len(cases))
    for axes, (name, degree, layers) in zip(plots, cases, strict=True):
        influence = theory.input_influence(network(edge_index, degree, layers, "moments", name), x, middle).numpy()
        share = influence / influence.max()
        seen = share > 0
        for k in range(side):  # a grid's edges are its rows and columns
            axes.plot([0, side - 1], [k, k], [k, k], [0, side - 1], color=LINE, lw=0.8, zorder=1)
        axes.scatter(column[~seen], row[~seen], s=52, facecolor="white", edgecolor=LINE, zorder=2)
        points = axes.scatter(
            column[seen],
            row[seen],
            s=58,
            c=np.maximum(share[seen], 1e-5),
            cmap="viridis_r",
            zorder=3,
            norm=LogNorm(1e-5, 1),
        )
        axes.scatter(column[middle], row[middle], s=150, facecolor="none", edgecolor=ORANGE, lw=2, zorder=4)
        axes.set_aspect("equal")
        axes.set_axis_off()
        size = f"K = {degree}, {layers} layer{'s' if layers > 1 else ''}"
        reach = "the whole graph" if name == "cayley" else f"{degree * layers} hop{'s' if degree * layers > 1 else ''}"
        axes.set_title(f"{'Cayley, ' if name == 'cayley' else ''}{size}:\n{reach}")
    bar = figure.colorbar(points, ax=plots, shrink=0.9, aspect=14, pad=0.015)
    bar.set_ticks([1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5], labels=["1", "0.1", "0.01", "0.001", "0.0001", "0.00001"])
    bar.minorticks_off()
    bar.set_label("influence, as a share")
    bar.outline.set_visible(False)


def propositions(figure: Figure) -> None:
    """Max-sort pooling and the covariance on a graph and one that contains it."""
    figure.set_size_inches(10.4, 5.2)
    pair = theory.example_pair()
    place = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 1.0]])
    plots = figure.subplots(2, 3, width_ratios=[1, 1, 1.25])
    results = theory.proposition1(), theory.proposition2()
    for number, (z, edge_index) in enumerate(((pair.z1, pair.edge_index1), (pair.z2, pair.edge_index2))):
        graph, sort, covariance = plots[number]
        for i, j in edge_index.t().tolist():
            graph.plot(*place[[i, j]].T, color=MUTED, lw=1.5, zorder=1)
        for i, (u, v) in enumerate(z.tolist()):
            _node(graph, place[i], str(i), _colour(i))
            right = i == 3  # beside the node, not on its edge
            label = place[i] + ((0.3, 0) if right else (0, -0.3))
            graph.text(*label, f"({u:g}, {v:g})", ha="left" if right else "center", va="center" if right else "top")
        graph.set(xlim=(-0.45, 2.45), ylim=(-0.65, 1.3))
        graph.set_title(("G1, features (column 0, column 1)", "G2 = G1 and node 3")[number])
        readings = (results[0].first, results[0].second)[number]
        for rank in range(3):
            (i,) = readings[2 * rank].nodes
            _node(sort, np.array([0.35, 2 - rank]), str(i), _colour(i))
            sort.text(0.75, 2 - rank, f"place {rank + 1}: node {i}, ({z[i, 0]:g}, {z[i, 1]:g})", va="center")
        sort.set(xlim=(0, 3.2), ylim=(-0.6, 2.6))
        sort.set_title(f"Max-sort of G{number + 1}" + (": all places moved" if number else ""))
        C = np.cov(z.numpy().T, bias=True)
        for a in range(2):
            for b in range(a, 2):
                covariance.add_patch(Rectangle((1.5 * b, 1 - a), 1.44, 0.94, facecolor=PALE, edgecolor=LINE))
                covariance.text(1.5 * b + 0.72, 1.64 - a, f"columns {a}, {b}", ha="center", va="center", color=MUTED)
                covariance.text(1.5 * b + 0.72, 1.3 - a, _minus(f"{C[a, b]:.3f}"), ha="center", va="center", size=13)
        covariance.set(xlim=(-0.05, 3.1), ylim=(-0.3, 2.2))
        covariance.set_title(f"Covariance of G{number + 1}" + (": meanings kept" if number else ""))
        for axes in plots[number]:
            axes.set_axis_off()


def _colour(node: int) -> str:
    return (BLUE, GREEN, PURPLE, ORANGE)[node]


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _node(axes: Axes, at: NDArray[np.float64], text: str, colour: str, size: float = 900) -> None:
    axes.scatter(at[0], at[1], s=size, color=colour, edgecolor="white", lw=1.5, zorder=2)
    axes.text(at[0], at[1], _minus(text), ha="center", va="center", color="white", weight="bold", zorder=3)


def _star(axes: Axes, values: Neighborhood, colour: str) -> None:
    """The node in the middle, its neighbors around it, each with its value."""
    angle = np.pi / 2 + 2 * np.pi * np.arange(len(values) - 1) / (len(values) - 1)
    around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for at, value in zip(around, values[1:], strict=True):
        axes.plot([0, at[0]], [0, at[1]], color=MUTED, lw=1.5, zorder=1)
        _node(axes, at, f"{value:g}", colour, 1500)
    _node(axes, np.zeros(2), f"{values[0]:g}", INK, 1900)
    axes.set(xlim=(-1.3, 1.3), ylim=(-0.85, 1.3), aspect="equal")
    axes.set_axis_off()


def _grouped(axes: Axes, numbers: dict[str, tuple[float, float]]) -> None:
    """Bars for A and B side by side, with their values on top."""
    for side, (colour, hatch, name) in enumerate(((BLUE, "", "A"), (ORANGE, "///", "B"))):
        heights = [pair[side] for pair in numbers.values()]
        place = np.arange(len(numbers)) + (side - 0.5) * 0.4
        drawn = axes.bar(place, heights, 0.36, color=colour, hatch=hatch, edgecolor="white", lw=0, label=name)
        axes.bar_label(drawn, fmt="%g", padding=2, color=INK)
    axes.set_xticks(range(len(numbers)), numbers)
    axes.tick_params(length=0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.margins(y=0.12)


PICTURES: dict[str, Callable[[Figure], None]] = {
    "capsules": capsules,
    "decoders": decoders,
    "theorem1": theorem1,
    "propositions": propositions,
}


def main() -> None:
    """Draw, or print."""
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/capsules.md, or print its numbers.")
    parser.add_argument("--print", choices=TABLES, dest="table", help="print this table and draw nothing")
    parser.add_argument("--to", type=Path, default=Path(__file__).parent, help="folder of the pictures")
    parser.add_argument("--format", choices=("svg", "png"), default="svg")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.table:
        print(TABLES[given.table]())
        return
    for name, draw in PICTURES.items():
        save(draw, given.to / f"{name}.{given.format}")


if __name__ == "__main__":
    main()
