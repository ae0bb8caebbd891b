"""Capsule functions: error of `polynomial`, and time of each compared with `moments`.

    python benchmarks/capsules.py [--short] [--json FILE]

Errors: relative error of E_j = e_j / C(m, j) of m values against exact rational arithmetic, by gcaps in float32
(products of the factors 1 + x t) and by Newton's identities from power sums, the usual method, in float32 and in
float64. Sums of positive values do not cancel, so their errors are those of the method. Values from N(0, 1) cancel;
where E_j is near 0 no float32 method is exact, which shows in the worst of many channels.

Speed: one training step (forward and backward) of a layer 64 → 32 of degree 1 on 32 graphs of NCI1 (of MUTAG if NCI1 is
not in GCAPS_DATA). Capsule functions take turns, and medians count.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import gcaps
from gcaps.batching import BatchSource
from gcaps.data.catalog import find
from gcaps.nn import CAPSULES, GraphCapsuleConv, batch_filter, symmetric_means

HIGHEST = 8
WIDTH = 160
"""Columns of the tables where there is no terminal."""


def exact(values: Tensor) -> list[Fraction]:
    """E_1..E_8 of a few floats, as rationals; 0 beyond their number."""
    e = [Fraction(1)] + [Fraction(0)] * HIGHEST
    for x in map(Fraction, values.tolist()):
        for j in range(HIGHEST, 0, -1):
            e[j] += x * e[j - 1]
    return [e[j] / (math.comb(len(values), j) or 1) for j in range(1, HIGHEST + 1)]


def by_products(values: Tensor) -> Tensor:
    """[8, c] by gcaps."""
    return symmetric_means(values, torch.tensor([0, len(values)]), HIGHEST)[:, 0]


def by_newton(values: Tensor) -> Tensor:
    """[8, c] j e_j = Σ_i (−1)^(i−1) e_{j−i} p_i with the power sums p_i."""
    p = [(values**i).sum(0) for i in range(HIGHEST + 1)]
    e = [torch.ones_like(p[0])]
    for j in range(1, HIGHEST + 1):
        e.append(sum((-1) ** (i - 1) * e[j - i] * p[i] for i in range(1, j + 1)) / j)
    return torch.stack([e[j] / float(math.comb(len(values), j) or 1) for j in range(1, HIGHEST + 1)])


VALUES: dict[str, Callable[[Tensor], Tensor]] = {
    "U(0.5, 1.5)": lambda normal: 0.5 + torch.special.ndtr(normal),
    "exp N(0, 2²)": lambda normal: torch.exp(2 * normal),
    "N(0, 1)": lambda normal: normal,
}
"""Functions of standard normal values: similar values, values of very different sizes, values of both signs."""

METHODS: dict[str, Callable[[Tensor], Tensor]] = {
    "gcaps float32": by_products,
    "Newton float32": by_newton,
    "Newton float64": lambda values: by_newton(values.double()),
}


def errors(sizes: list[int], channels: int) -> list[dict[str, Any]]:
    """Median and worst error of each method over channels, for every kind of values, size m and j ≤ m."""
    generator = torch.Generator().manual_seed(0)
    rows = []
    for kind, draw in VALUES.items():
        for m in sizes:
            values = draw(torch.randn(m, channels, generator=generator))
            truth = [exact(column) for column in values.T]
            for method, compute in METHODS.items():
                found = compute(values)
                for j in range(1, min(m, HIGHEST) + 1):
                    off = [float(abs(Fraction(found[j - 1, c].item()) / truth[c][j - 1] - 1)) for c in range(channels)]
                    row = {"values": kind, "m": m, "j": j, "method": method}
                    rows.append(row | {"median": statistics.median(off), "worst": max(off)})
    return rows


def error_table(rows: list[dict[str, Any]]) -> Table:
    """One row for each kind of values, m and method; "median worst" in the columns of E_1..E_8."""
    table = Table("values", "m", "method", title="relative error of E_j: median and worst over channels")
    for j in range(1, HIGHEST + 1):
        table.add_column(f"E_{j}", justify="right")
    cells: dict[tuple[str, int, str], list[str]] = {}
    for row in rows:
        both = " ".join(f"{row[key]:.0e}".replace("e-0", "e-").replace("e+0", "e+") for key in ("median", "worst"))
        cells.setdefault((row["values"], row["m"], row["method"]), []).append(both)
    for (kind, m, method), line in cells.items():
        table.add_row(kind, str(m), method, *line, end_section=method == list(METHODS)[-1])
    return table


def speed(sizes: list[int], repeats: int) -> list[dict[str, Any]]:
    """Seconds of a training step with each capsule function, and the ratio to `moments`."""
    graphs = gcaps.load("NCI1" if find("NCI1") else "MUTAG")
    chosen = np.random.default_rng(0).permutation(len(graphs))[:32]
    batch = BatchSource(graphs, np.zeros((graphs.num_nodes, 1))).take(chosen)
    M = batch_filter("laplacian", batch)
    x = torch.randn(len(batch.x), 64, generator=torch.Generator().manual_seed(0))
    rows = []
    for P in sizes:
        steps = {name: training_step(GraphCapsuleConv(64, 32, P, 1, name), x, M) for name in CAPSULES}
        seconds: dict[str, list[float]] = {name: [] for name in steps}
        for repeat in range(repeats + 3):
            for name, step in steps.items():
                began = time.perf_counter()
                step()
                if repeat >= 3:  # the first few are for warming up
                    seconds[name].append(time.perf_counter() - began)
        medians = {name: statistics.median(some) for name, some in seconds.items()}
        rows += [
            {
                "data": graphs.name,
                "nodes": len(x),
                "edges": len(batch.col) // 2,
                "P": P,
                "capsule": name,
                "seconds": median,
                "ratio": median / medians["moments"],
            }
            for name, median in medians.items()
        ]
    return rows


def training_step(layer: GraphCapsuleConv, x: Tensor, M: Any) -> Callable[[], None]:
    """Forward and backward pass, with a gradient at the input as in a deep network."""
    x = x.clone().requires_grad_()

    def step() -> None:
        layer.zero_grad()
        x.grad = None
        layer(x, M).square().mean().backward()

    return step


def speed_table(rows: list[dict[str, Any]]) -> Table:
    """One row for each capsule function, two columns for each P."""
    data, nodes, edges = (rows[0][key] for key in ("data", "nodes", "edges"))
    table = Table("capsule", title=f"a training step, 64 → 32, 32 graphs of {data} ({nodes} nodes, {edges} edges)")
    for P in sorted({row["P"] for row in rows}):
        table.add_column(f"P = {P}, ms", justify="right")
        table.add_column("times moments", justify="right")
    for name in CAPSULES:
        own = sorted((row for row in rows if row["capsule"] == name), key=lambda row: row["P"])
        cells = [text for row in own for text in (f"{1e3 * row['seconds']:.2f}", f"{row['ratio']:.2f}")]
        table.add_row(name, *cells)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="fewer sizes, channels and repeats")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.short:
        exactness, timing = errors([3, 10, 100], channels=4), speed([2, 4], repeats=20)
    else:
        exactness, timing = errors([1, 2, 3, 5, 10, 30, 100, 300, 1000], channels=16), speed([2, 4], repeats=100)
    console = Console()
    console = console if console.is_terminal else Console(width=WIDTH)
    console.print(error_table(exactness))
    console.print(speed_table(timing))
    if options.json:
        figures = {"torch": torch.__version__, "processor": platform.machine(), "errors": exactness, "speed": timing}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
