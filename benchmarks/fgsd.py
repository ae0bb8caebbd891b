"""FGSD features: exactness, invariance, speed against the usual ways, memory, and the sketch of large graphs.

    python benchmarks/fgsd.py [--sections exactness speed sketch] [--sets NAME ...] [--peer-share 0.05]
                              [--graphs grid power-law] [--sizes N ...] [--short] [--json FILE]

Exactness: largest deviation of harmonic distances from numpy's pinv, relative to the largest distance of the graph, for
graphs of at most 1,500 nodes (a third of the graphs of larger sets), and number of graphs whose histograms change by a
single bit when their nodes are renumbered (all graphs).

Speed: histograms of every node of every graph (``FGSD().fit`` and ``.transform``), and the distances alone, compared
with ``numpy.linalg.pinv(hermitian=True)`` of each graph's Laplacian and with one LAPACK Cholesky inverse (dpotrf,
dpotri) of each component's, the limit for dense methods; neither computes a distance or a histogram. On large sets they
run on a random share of the graphs and are scaled by Σ n³; they too process one graph per processor at a time. Memory
is the peak of a separate process (Linux).

Sketch: seconds from 10⁴ to 10⁶ nodes on square grids and on power-law graphs (preferential attachment, 4 edges a node),
the slope of log time over log nodes, and the distance of histograms (32 bins) from the exact ones where these are
computed: the mean over nodes of Σ |share − exact share|, and the same for exact distances to as many sampled partners.

Data sets are searched for in the folders of GCAPS_DATA; missing ones are skipped.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from numba import get_num_threads
from rich.console import Console
from rich.table import Table
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits

import gcaps
from gcaps.data.catalog import find
from gcaps.data.graphset import GraphSet
from gcaps.features import FGSD
from gcaps.features.histograms import Distances
from gcaps.testing import hostile_graphs, permute_nodes

SMALL = ("PTC", "ENZYMES", "IMDB-BINARY")
SETS = (*SMALL, "IMDB-MULTI", "NCI1", "NCI109", "PROTEINS", "DD", "COLLAB", "REDDIT-BINARY", "REDDIT-MULTI-5K")
TIMED = ("NCI1", "COLLAB", "DD", "REDDIT-BINARY")
LARGEST = 1500
CHEAP = 2e10
"""Σ n³ up to which pinv and Cholesky run on all graphs."""
WIDTH = 150
Row = dict[str, Any]


def shapes() -> GraphSet:
    """Trees, cliques, cactus graphs, weighted random graphs, and pairs of them that are not connected."""
    rng = np.random.default_rng(0)
    graphs = [nx.random_labeled_tree(n, seed=n) for n in range(5, 200, 20)]
    graphs += [nx.complete_graph(n) for n in range(2, 80, 9)]
    for n in range(3, 9):
        cactus = nx.cycle_graph(n)
        for start in range(n):
            nx.add_cycle(cactus, [start, *range(100 * (start + 1), 100 * (start + 1) + n)])
        graphs.append(nx.convert_node_labels_to_integers(cactus))
    graphs += [nx.gnp_random_graph(n, 0.1, seed=n) for n in range(10, 200, 20)]
    graphs += [nx.disjoint_union(a, b) for a, b in zip(graphs[:-1:3], graphs[1::3], strict=False)]
    for graph in graphs:
        weights = rng.uniform(0.1, 10, graph.number_of_edges())
        nx.set_edge_attributes(graph, dict(zip(graph.edges, weights, strict=True)), "weight")
    return GraphSet.from_networkx(graphs, y=[i % 2 for i in range(len(graphs))], name="shapes, weighted")


def laplacian(graphs: GraphSet, number: int) -> np.ndarray:
    graph = graphs[number]
    weight = np.ones(graph.edge_index.shape[1]) if graph.edge_weight is None else graph.edge_weight
    L = np.zeros((graph.num_nodes, graph.num_nodes))
    L[graph.edge_index[0], graph.edge_index[1]] = -weight
    np.fill_diagonal(L, -L.sum(axis=1))
    return L


def deviation(graphs: GraphSet, number: int) -> float:
    """From pinv of each component, relative to the graph's largest distance."""
    L = laplacian(graphs, number)
    A = -L
    np.fill_diagonal(A, 0)
    S = gcaps.features.harmonic_distances(A)
    worst, largest = 0.0, 1e-300
    left = np.ones(len(L), dtype=bool)
    while left.any():
        nodes = np.flatnonzero(np.isfinite(S[np.argmax(left)]))
        left[nodes] = False
        part = L[np.ix_(nodes, nodes)]
        P = np.linalg.pinv(part, hermitian=True, rtol=len(nodes) * 1e-15)
        expected = np.diag(P)[:, None] + np.diag(P) - 2 * P
        worst = max(worst, float(np.abs(expected - S[np.ix_(nodes, nodes)]).max()))
        largest = max(largest, float(expected.max()))
    return worst / largest


def exactness(sets: list[GraphSet], short: bool) -> list[Row]:
    rows = []
    for graphs in sets:
        rng = np.random.default_rng(0)
        some = np.flatnonzero(graphs.sizes <= (200 if short else LARGEST))
        if graphs.name not in (*SMALL, "hostile", "hostile, weighted", "shapes, weighted") or short:
            some = rng.choice(some, min(len(graphs) // 3, 20) if short else len(graphs) // 3, replace=False)
        moved, order = permute_nodes(graphs)
        fgsd = FGSD(scale="count").fit(graphs)
        differs = (fgsd.transform(graphs)[order] != fgsd.transform(moved)).any(axis=1)
        changed = len(np.unique(np.repeat(np.arange(len(graphs)), graphs.sizes)[differs]))
        worst = max(deviation(graphs, int(g)) for g in some)
        row = {"data": graphs.name, "graphs": len(graphs), "compared": len(some), "deviation": worst}
        rows.append(row | {"changed": changed, "range changed": FGSD().fit(moved).range_ != fgsd.range_})
    return rows


def timed(call: Callable[..., Any], *given: Any) -> float:
    began = time.perf_counter()
    call(*given)
    return time.perf_counter() - began


def timed_peer(call: Callable[[np.ndarray], Any], matrices: list[np.ndarray]) -> float:
    """Time ``call`` on matrices, one per processor at a time, with one BLAS thread each."""
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(get_num_threads()) as pool:
        return timed(list, pool.map(call, matrices))


def component_matrices(L: np.ndarray) -> list[np.ndarray]:
    """L + J/n of every component, whose inverse is L⁺ but for J/n."""
    count, component = connected_components(csr_array(L), directed=False)
    parts = [np.flatnonzero(component == c) for c in range(count)]
    return [np.asfortranarray(L[np.ix_(nodes, nodes)] + 1 / len(nodes)) for nodes in parts]


def cholesky_inverse(L: np.ndarray) -> None:
    dpotri(dpotrf(L, lower=1, clean=0, overwrite_a=1)[0], lower=1, overwrite_c=1)


def all_distances(graphs: GraphSet) -> None:
    Distances(graphs)._sweep(lambda *_: None)


def speed(names: list[str], share: float) -> list[Row]:
    FGSD(cache=False).fit_transform(hostile_graphs(16, largest=90))  # compile
    rows = []
    for name in names:
        graphs = gcaps.load(name)
        fgsd = FGSD(cache=False)
        fit = timed(fgsd.fit, graphs)
        transform = timed(fgsd.transform, graphs)
        distances = timed(all_distances, graphs)
        rng = np.random.default_rng(0)
        cubes = graphs.sizes.astype(float) ** 3
        own_share = 1.0 if cubes.sum() < CHEAP else share
        some = np.sort(rng.choice(len(graphs), max(1, round(own_share * len(graphs))), replace=False))
        scale = float(cubes.sum() / cubes[some].sum())
        matrices = [laplacian(graphs, int(g)) for g in some]
        by_pinv = scale * timed_peer(partial(np.linalg.pinv, hermitian=True), matrices)
        parts = [part for L in matrices for part in component_matrices(L)]
        by_cholesky = scale * timed_peer(cholesky_inverse, parts)
        row = {"data": name, "fit": fit, "transform": transform, "distances": distances, "peers on": len(some)}
        row |= {"pinv": by_pinv, "cholesky": by_cholesky, "times pinv": by_pinv / (fit + transform)}
        rows.append(row | {"times cholesky": by_cholesky / distances, "peak MiB": peak(name)})
    return rows


def peak(name: str) -> int:
    """MiB of a process that loads a set and makes its features."""
    program = (
        "import gcaps; from gcaps.features import FGSD; "
        f"FGSD(cache=False).fit_transform(gcaps.load({name!r})); "
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"  # getrusage counts the parent's too
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(run.stdout) // 1024


def grid(n: int) -> GraphSet:
    side = round(n**0.5)
    i = np.arange(side * side).reshape(side, side)
    source = np.concatenate([i[:, :-1].ravel(), i[:-1].ravel()])
    return one_graph("grid", side * side, source, np.concatenate([i[:, 1:].ravel(), i[1:].ravel()]))


def power_law(n: int, each: int = 4) -> GraphSet:
    """Preferential attachment: an edge of a new node goes to a random end of an existing edge."""
    rng = np.random.default_rng(0)
    ends = np.zeros(2 * n * each, dtype=np.int64)
    ends[::2] = np.repeat(np.arange(n), each)
    at = (rng.random(n * each) * 2 * each * np.repeat(np.arange(n), each)).astype(np.int64)
    target = at.tolist()
    known = ends.tolist()
    for edge in range(each, n * each):
        known[2 * edge + 1] = known[target[edge]]
    return one_graph("power law", n, ends[::2], np.array(known)[1::2])


def one_graph(name: str, n: int, source: np.ndarray, target: np.ndarray) -> GraphSet:
    kept = source != target
    A = csr_array((np.ones(kept.sum()), (source[kept], target[kept])), shape=(n, n))
    A = csr_array(A + A.T)
    A.sort_indices()
    col = A.indices.astype(np.int32)
    return GraphSet(name=name, ptr=np.array([0, n]), rowptr=A.indptr.astype(np.int64), col=col)


LARGE = {"grid": grid, "power-law": power_law}


def share_error(found: np.ndarray, truth: np.ndarray) -> float:
    shares = [counts / counts.sum(axis=1, keepdims=True) for counts in (found, truth)]
    return float(np.abs(shares[0] - shares[1]).sum(axis=1).mean())


def sketches(kinds: list[str], sizes: list[int], exact_up_to: int) -> list[Row]:
    FGSD(method="sketch", partners=8).fit_transform(grid(400))  # compile
    rows = []
    for make in [LARGE[kind] for kind in kinds]:
        for n in sizes:
            graphs = make(n)
            rough = FGSD(scale="count", method="sketch", cache=False)
            exact = FGSD(scale="count", method="exact", memory=64 << 30, cache=False)
            row: Row = {"graph": graphs.name, "nodes": graphs.num_nodes, "edges": graphs.num_edges}
            if n <= exact_up_to:
                exact.fit(graphs)
            rough.range_, rough.edges_ = getattr(exact, "range_", 1.0), np.zeros(0)
            began = time.perf_counter()
            found = rough.transform(graphs)
            row["sketch s"] = time.perf_counter() - began
            if n <= exact_up_to:
                began = time.perf_counter()
                truth = exact.transform(graphs)
                row["exact s"] = time.perf_counter() - began
                row["L1"] = share_error(found, truth)
                row["L1 of sampling"] = share_error(sampled(truth, rough.partners), truth)
            rows.append(row)
        own = [row for row in rows if row["graph"] == graphs.name]
        slope = np.polyfit(np.log([r["nodes"] for r in own]), np.log([r["sketch s"] for r in own]), 1)[0]
        for row in own:
            row["slope"] = float(slope)
    return rows


def sampled(counts: np.ndarray, partners: int) -> np.ndarray:
    """Histograms of exact distances to that many random partners."""
    rng = np.random.default_rng(0)
    p = counts.astype(np.float64)
    return rng.multinomial(partners, p / p.sum(axis=1, keepdims=True)).astype(np.float64)


def table(title: str, rows: list[Row]) -> Table:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    made = Table(*columns, title=title)
    for row in rows:
        cells = [row.get(key, "") for key in columns]
        made.add_row(*(f"{c:.3g}" if isinstance(c, float) else f"{c:,}" if type(c) is int else str(c) for c in cells))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="+", default=["exactness", "speed", "sketch"])
    parser.add_argument("--sets", nargs="+", help="data sets; by default all of the section that are found")
    parser.add_argument(
        "--peer-share", type=float, default=0.05, help="share of the graphs that pinv and Cholesky run on"
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[10**4, 31623, 10**5, 316228, 10**6])
    parser.add_argument("--graphs", nargs="+", choices=LARGE, default=list(LARGE), help="of the sketches")
    parser.add_argument("--short", action="store_true", help="small sets, few graphs, sketches up to 10⁵ nodes")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    console = Console()
    console = console if console.is_terminal else Console(width=WIDTH)
    figures: dict[str, Any] = {"numpy": np.__version__, "processor": platform.machine()}
    chosen = options.sets or (["MUTAG", *SMALL] if options.short else SETS)
    present = [name for name in chosen if name == "MUTAG" or find(name)]
    if "exactness" in options.sections:
        sets = [hostile_graphs(64), shapes(), *map(gcaps.load, present)]
        figures["exactness"] = exactness(sets, options.short)
        console.print(table("deviation from pinv, and graphs that renumbering changes", figures["exactness"]))
    if "speed" in options.sections:
        timed_sets = present if options.sets or options.short else [name for name in TIMED if name in present]
        figures["speed"] = speed(timed_sets, 1.0 if options.short else options.peer_share)
        console.print(table("seconds for whole sets", figures["speed"]))
    if "sketch" in options.sections:
        sizes = [2500, 10**4, 40000] if options.short else options.sizes
        figures["sketch"] = sketches(options.graphs, sizes, 2500 if options.short else 10**4)
        console.print(table("sketch of large graphs", figures["sketch"]))
    console.print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MiB")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
