"""Graph kernels: equality with GraKeL's Gram matrices and speed against it; time and memory on whole data sets.

    python benchmarks/kernels.py                                  # equality and speed, MUTAG and NCI1
    python benchmarks/kernels.py --short                          # the same on MUTAG only
    python benchmarks/kernels.py table --data NCI1 DD --to FILE   # every kernel on whole sets, resumable
    python benchmarks/kernels.py wwl --data MUTAG ENZYMES         # against the authors' package wwl, igraph and pot

Sets other than MUTAG need GCAPS_DATA. Slow kernels of GraKeL run on the first graphs of a set and are extrapolated: by
the number of pairs, MLG from two runs by the number of graphs and of pairs. GraKeL's fast random walks stop at a loose
tolerance; there, Gram matrices are compared with those of its slow ones, on 15 small graphs.

Times are processor seconds, added up over threads, so that other load on the computer matters little; `table` also
records wall-clock seconds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grakel
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls

import gcaps
from gcaps.data.graphset import GraphSet
from gcaps.files import write_json
from gcaps.kernels import (
    ContinuousWassersteinWL,
    DeepGraphKernel,
    Graphlet,
    MultiscaleLaplacian,
    RandomWalk,
    ReturnProbability,
    ShortestPath,
    WassersteinWL,
    WeisfeilerLehman,
    WLOptimalAssignment,
)

WIDTH = 110
SETS = (
    *("PTC", "PROTEINS", "NCI1", "NCI109", "DD", "ENZYMES"),
    *("COLLAB", "IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY", "REDDIT-MULTI-5K"),
)
PLAIN: dict[str, Any] = {"edge_labels": False, "normalize": False}
"""As GraKeL's kernels are by default."""
WHOLE: dict[str, Callable[[], Any]] = {
    "WL, h = 4": lambda: WeisfeilerLehman(4, **PLAIN),
    "WL-OA, h = 4": lambda: WLOptimalAssignment(4, **PLAIN),
    "WWL, h = 4": lambda: WassersteinWL(4),
    "RetGK": lambda: ReturnProbability(),
    "SP": lambda: ShortestPath(normalize=False),
    "GK, size 4": lambda: Graphlet(4, normalize=False),
    "GK, size 7": lambda: Graphlet(7, normalize=False),
    "RW, λ = 0.01": lambda: RandomWalk(1e-2, labels=False, diverging="damp", **PLAIN),
    "RW with labels, λ = 0.01": lambda: RandomWalk(1e-2, diverging="damp", **PLAIN),
    "DGK (WL, h = 3)": lambda: DeepGraphKernel("wl", **PLAIN),
    "MLG, 2 levels": lambda: MultiscaleLaplacian(2),
}
"""One setting of each kernel, for whole sets."""

SLOW = {
    "RW, λ = 0.01": lambda: grakel.RandomWalk(lamda=1e-2, method_type="baseline"),
    "RW with labels, λ = 0.01": lambda: grakel.RandomWalkLabeled(lamda=1e-2, method_type="baseline"),
}
"""GraKeL's exact random walks, by matrix inversion."""


def grakel_graphs(graphs: GraphSet, one_hot: bool = False) -> list[list[Any]]:
    """Convert graphs to GraKeL's input; MLG needs labels as vectors."""
    found = []
    kinds = np.unique(graphs.node_labels)
    for graph in graphs:
        A = np.zeros((graph.num_nodes, graph.num_nodes))
        A[tuple(graph.edge_index)] = 1
        labels: dict[int, Any] = dict(enumerate(graph.node_labels[:, 0].tolist()))
        if one_hot:
            labels = {v: tuple((kinds == label).astype(float)) for v, label in labels.items()}
        found.append([A, labels, dict.fromkeys(map(tuple, graph.edge_index.T.tolist()), 0)])
    return found


def peers(graphs: GraphSet) -> dict[str, tuple[Any, Callable[[], Any], int, str]]:
    """By kernel: ours, GraKeL's, the number of graphs GraKeL's runs on, and differences of the definitions."""
    kinds = len(np.unique(graphs.node_labels))
    return {
        "WL, h = 4": (WeisfeilerLehman(4, **PLAIN), lambda: grakel.WeisfeilerLehman(n_iter=4), len(graphs), ""),
        "WL-OA, h = 4": (
            WLOptimalAssignment(4, **PLAIN),
            lambda: grakel.WeisfeilerLehmanOptimalAssignment(n_iter=4),
            min(len(graphs), 500),
            "",
        ),
        "SP": (ShortestPath(normalize=False), lambda: grakel.ShortestPath(), len(graphs), ""),
        "RW, λ = 0.01": (
            RandomWalk(1e-2, labels=False, tol=1e-12, **PLAIN),
            lambda: grakel.RandomWalk(lamda=1e-2),
            min(len(graphs), 60),
            "",
        ),
        "RW with labels, λ = 0.01": (
            RandomWalk(1e-2, tol=1e-12, **PLAIN),
            lambda: grakel.RandomWalkLabeled(lamda=1e-2),
            min(len(graphs), 40),
            "GraKeL adds node pairs with different labels as walks of length 0",
        ),
        "MLG, 0 levels": (
            MultiscaleLaplacian(0, rank=kinds),
            lambda: grakel.MultiscaleLaplacian(
                L=0, heta=0.1, gamma=0.1, P=kinds, n_samples=2000, random_state=0, normalize=True
            ),
            min(len(graphs), 40),
            "normalized: GraKeL leaves out the factor ½ in ½S⁻¹ + ½S'⁻¹, a constant at 0 levels, another γ above",
        ),
        "MLG, 2 levels": (
            MultiscaleLaplacian(2, samples=50),
            lambda: grakel.MultiscaleLaplacian(L=2, heta=0.1, gamma=0.1, P=10, n_samples=50, random_state=0),
            min(len(graphs), 12),
            "other reference nodes, and as above: values are not comparable",
        ),
    }


def relative(found: Any, expected: Any) -> float:
    """Largest |found − expected| / |expected|; the absolute difference where 0 is expected."""
    difference = np.abs(found - expected)
    return float(np.max(np.divide(difference, np.abs(expected), out=difference.copy(), where=expected != 0)))


def extrapolated(runs: dict[int, float], total: int) -> float:
    """Seconds for ``total`` graphs, from the seconds for fewer: linear in pairs, from two runs also in graphs."""
    work = np.array([[n, n * (n + 1) / 2] for n in runs])
    seconds = np.array(list(runs.values()))
    each, pair = nnls(work, seconds)[0] if len(runs) == 2 else (0.0, seconds[0] / work[0, 1])
    return float(each * total + pair * total * (total + 1) / 2)


def compare(name: str, graphs: GraphSet, kernel: str) -> dict[str, Any]:
    """Time for all graphs, and the largest relative difference of the Gram matrix on the graphs of GraKeL's run."""
    ours, theirs, count, remark = peers(graphs)[kernel]
    ours.fit_transform(graphs.subset(range(4)))  # compiles, or reads the compiler's cache
    K, times = None, []
    while not times or (sum(times) < 5 and len(times) < 5):
        began = time.process_time()
        K = ours.fit_transform(graphs)
        times.append(time.process_time() - began)
    seconds = statistics.median(times)
    given = grakel_graphs(graphs.subset(range(count)), one_hot=kernel.startswith("MLG"))
    began = time.process_time()
    expected = theirs().fit_transform(given)
    runs = {count: time.process_time() - began}
    if kernel.startswith("MLG") and count < len(graphs):
        began = time.process_time()
        theirs().fit_transform(given[: count // 2])
        runs[count // 2] = time.process_time() - began
    peer = extrapolated(runs, len(graphs))
    which = np.arange(count)
    if kernel in SLOW:
        which = np.flatnonzero(graphs.sizes <= 20)[:15]
        expected = SLOW[kernel]().fit_transform(grakel_graphs(graphs.subset(which)))
    if kernel.startswith("RW with"):
        n = graphs.sizes[which]
        expected = expected - (np.outer(n, n) - WeisfeilerLehman(0).fit_transform(graphs.subset(which)))
    return {
        "data": name,
        "kernel": kernel,
        "seconds": seconds,
        "grakel_seconds": peer,
        "grakel_graphs": count,
        "graphs": len(graphs),
        "ratio": peer / seconds,
        "difference": None if kernel == "MLG, 2 levels" else relative(K[np.ix_(which, which)], expected),
        "remark": remark,
    }


def wasserstein(name: str, graphs: int = 60) -> list[dict[str, Any]]:
    """Distances of the Wasserstein Weisfeiler-Lehman kernels against public code, on the first graphs.

    With labels, the authors' package. Its scheme for attributes fails with NumPy 2; there, the solver that it calls, on
    our vectors of nodes. No package on PyPI has RetGK or LTP.
    """
    import igraph
    import ot
    from wwl import pairwise_wasserstein_distance

    some = gcaps.load(name)
    some = some.subset(range(min(graphs, len(some))))
    given = [igraph.Graph(graph.num_nodes, graph.edge_index.T.tolist()).simplify() for graph in some]
    for graph, own in zip(given, some, strict=True):
        graph.vs["label"] = own.node_labels[:, 0].tolist()
    labels, attributes = WassersteinWL(3), ContinuousWassersteinWL(3, n_jobs=1)

    def package() -> Any:
        return pairwise_wasserstein_distance(given, num_iterations=3)

    def solver() -> Any:
        points = np.split(attributes.fit(some).vectors(some), some.ptr[1:-1])
        D = np.zeros((len(points), len(points)))
        for i, x in enumerate(points):
            for j in range(i):
                D[i, j] = D[j, i] = ot.emd2([], [], ot.dist(x, points[j], metric="euclidean"))
        return D

    found = []
    for kernel, ours, theirs in (("WWL, h = 3", labels, package), ("WWL of attributes, h = 3", attributes, solver)):
        made: Any = ours
        type(made).train_distances([made], some)  # compile
        spent: dict[str, list[float]] = {"ours": [], "theirs": []}
        for _ in range(3):
            began = time.process_time()
            D = type(made).train_distances([made], some)[0]
            spent["ours"].append(time.process_time() - began)
            began = time.process_time()
            expected = theirs()
            spent["theirs"].append(time.process_time() - began)
        seconds = {side: statistics.median(times) for side, times in spent.items()}
        row = {"data": name, "kernel": kernel, "graphs": len(some), **seconds}
        gap = float(np.abs(D - expected).max())
        found.append(row | {"ratio": seconds["theirs"] / seconds["ours"], "difference": gap})
    return found


def _whole(name: str, kernel: str, conn: Any) -> None:
    graphs = gcaps.load(name)
    made = WHOLE[kernel]()
    made.fit_transform(graphs.subset(range(4)))  # compiles, or reads the compiler's cache
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, worked = time.perf_counter(), time.process_time()
    K = made.fit_transform(graphs)
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = {"peak_mib": peak / 1024, "before_mib": before / 1024}
    conn.send({"seconds": seconds, "cpu_seconds": worked, **memory, "finite": bool(np.isfinite(K).all())})


def whole_set(name: str, kernel: str) -> dict[str, Any]:
    """One kernel on one set, in a separate process, to measure its peak memory."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_whole, args=(name, kernel, send))
    process.start()
    send.close()
    try:
        measured = receive.recv()
    except EOFError:
        measured = {"seconds": None, "failed": True}
    process.join()
    return {"data": name, "kernel": kernel, **measured}


def table(names: list[str], kernels: list[str], file: Path, recorded: bool) -> list[dict[str, Any]]:
    """Every kernel on every set; measurements in ``file`` are reused, and with ``recorded`` nothing is run."""
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    known = {(row["data"], row["kernel"]): row for row in before}
    rows = []
    for key in ((name, kernel) for kernel in kernels for name in names):
        if key not in known and recorded:
            continue
        rows.append(known[key] if key in known else whole_set(*key))
        if key not in known and rows[-1]["seconds"] is not None:
            known[key] = rows[-1]
            write_json(file, list(known.values()))
    return rows


def comparison_table(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Comparison with GraKeL: header, and a row for each set and kernel."""
    found = [["data", "kernel", "gcaps, s", "GraKeL, s", "times faster", "largest relative difference"]]
    for row in rows:
        part = "" if row["grakel_graphs"] == row["graphs"] else f" (from {row['grakel_graphs']} graphs)"
        difference = "–" if row["difference"] is None else f"{row['difference']:.0e}"
        cells = (f"{row['seconds']:.2f}", f"{row['grakel_seconds']:,.1f}{part}", f"{row['ratio']:,.0f}", difference)
        found.append([row["data"], row["kernel"], *cells])
    return found


def whole_table(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Time and memory: header, and a row for each set."""
    kernels = list(dict.fromkeys(row["kernel"] for row in rows))
    found = [["data", *kernels]]
    for name in dict.fromkeys(row["data"] for row in rows):
        cells = {row["kernel"]: row for row in rows if row["data"] == name}
        found.append([name, *(cell(cells.get(kernel)) for kernel in kernels)])
    return found


def cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    if row["seconds"] is None:
        return "failed"
    digits = 2 if row["cpu_seconds"] < 1 else 1 if row["cpu_seconds"] < 100 else 0
    return f"{row['cpu_seconds']:,.{digits}f} / {row['peak_mib']:,.0f}"


def show(console: Console, title: str, rows: list[list[str]], markdown: bool) -> None:
    if markdown:
        rule = ["---"] * len(rows[0])
        print("\n".join("| " + " | ".join(cells) + " |" for cells in [rows[0], rule, *rows[1:]]))
        return
    shown = Table(title=title)
    for number, column in enumerate(rows[0]):
        shown.add_column(column, justify="left" if number == 0 else "right")
    for cells in rows[1:]:
        shown.add_row(*cells)
    console.print(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", nargs="*", help="grakel, wwl, table (default: grakel)")
    parser.add_argument("--short", action="store_true", help="MUTAG only")
    parser.add_argument("--data", nargs="*", help="sets (default: MUTAG and NCI1; for table the paper's eleven)")
    parser.add_argument("--kernels", nargs="*", help="kernels, as the tables name them (default: all)")
    parser.add_argument("--to", type=Path, default=Path("kernel-times.json"), help="file of the table's measurements")
    parser.add_argument("--recorded", action="store_true", help="table: run nothing, show the measurements of the file")
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sections = options.section or ["grakel"]
    console = Console()
    console = console if console.is_terminal else Console(width=WIDTH)
    figures: dict[str, Any] = {}
    if "grakel" in sections:
        names = ["MUTAG"] if options.short else options.data or ["MUTAG", "NCI1"]
        figures["grakel"] = []
        for name in names:
            graphs = gcaps.load(name)
            for kernel in peers(graphs):
                if not options.kernels or kernel in options.kernels:
                    figures["grakel"].append(compare(name, graphs, kernel))
        title = "Gram matrices: gcaps against GraKeL, processor seconds"
        show(console, title, comparison_table(figures["grakel"]), options.markdown)
        for remark in dict.fromkeys(f"{r['kernel']}: {r['remark']}" for r in figures["grakel"] if r["remark"]):
            console.print(remark)
    if "wwl" in sections:
        figures["wwl"] = [row for name in options.data or ["MUTAG"] for row in wasserstein(name)]
        heads = ["data", "kernel", "graphs", "ours", "theirs", "ratio", "difference"]
        cells = [
            [f"{row[h]:.3g}" if isinstance(row[h], float) else str(row[h]) for h in heads] for row in figures["wwl"]
        ]
        show(console, "Wasserstein distances: gcaps against wwl, processor seconds", [heads, *cells], options.markdown)
    if "table" in sections:
        names, kernels = options.data or list(SETS), options.kernels or list(WHOLE)
        figures["table"] = table(names, kernels, options.to, options.recorded)
        title = "Processor seconds and peak memory (MiB) of whole sets"
        show(console, title, whole_table(figures["table"]), options.markdown)
    if options.json:
        write_json(options.json, figures)


if __name__ == "__main__":
    main()
