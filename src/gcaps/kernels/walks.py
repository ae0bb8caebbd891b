"""Common walks of labelled graphs: power iteration on the matched node pairs of the product graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gcaps.data.arrays import Array, Floats, Ints, Ints32, pointer
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, mix, neighbors_of_set, rows


class Unions(NamedTuple):
    """Disjoint unions of several graphs each, with the nodes of each union sorted by label and degree.

    A run is the nodes of one union with the same label and degree. Nodes are counted within their union.
    """

    ptr: Ints
    """[U+1, 3] first graph, node and run of each union: it owns the graphs ptr[u, 0] … ptr[u+1, 0]−1, and so on."""
    graph: Ints
    """[N] graph of each node, counted within the union."""
    runs: Ints
    """[R, 5] label, first node, number of nodes, degree and first arc of each run. The arcs of a run are ordered by
    their position at the node: first arcs of all nodes, then second arcs, …; labels ascend within a union."""
    kind: Ints32
    """[E] label of each arc; zero if arcs have none."""
    slot: Array
    """[E] kind · n + neighbor in a union of n nodes."""
    weight: Floats
    """[E] edge weights, or [0] if all are one."""


def number_labels(sets: list[GraphSet], labels: bool, edge_labels: bool) -> tuple[list[tuple[Ints, Ints]], bool]:
    """Number the labels of nodes and arcs 0, 1, …, consistently over all sets.

    Returns:
        For each set the numbers of its nodes [N] and arcs [E]; and whether every arc has the label of its reverse.
    """
    nodes = [_label_hashes(s.node_labels if labels else None, s.num_nodes) for s in sets]
    arcs = [_label_hashes(s.edge_labels if edge_labels else None, len(s.col)) for s in sets]
    of_nodes, of_arcs = np.unique(np.concatenate(nodes)), np.unique(np.concatenate(arcs))
    found = [(np.searchsorted(of_nodes, n), np.searchsorted(of_arcs, a)) for n, a in zip(nodes, arcs, strict=True)]
    mirrored = True
    for graphs, (_, kind) in zip(sets, found, strict=True):
        reverse = np.argsort(neighbors_of_set(graphs), kind="stable")  # arcs are sorted by source, then target
        mirrored &= bool((kind[reverse] == kind).all())
    return found, mirrored


def _label_hashes(labels: Ints | None, count: int) -> Hashes:
    return mix(np.zeros(count, dtype=np.int64)) if labels is None else rows(labels)


def unite(graphs: GraphSet, graph_ptr: Ints, label: Ints, kind: Ints) -> Unions:
    """Form the union of the graphs graph_ptr[u] … graph_ptr[u+1]−1 for every u, with the given labels [N] and [E]."""
    ptr = graphs.ptr[graph_ptr]
    union = np.repeat(np.arange(len(graph_ptr) - 1), np.diff(ptr))
    degree = graphs.degrees
    order = np.lexsort([degree, label, union])
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - ptr[union]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(union) > 0) | (np.diff(label[order]) != 0) | (np.diff(degree[order]) != 0)
    first = np.flatnonzero(new)
    size, each = np.diff(np.append(first, len(order))), degree[order][first]
    run = np.repeat(np.arange(len(first)), size * each)
    arc = pointer(size * each)[:-1]
    within = np.arange(len(run)) - arc[run]
    source = order[first[run] + within % size[run]]
    chosen = graphs.rowptr[source] + within // size[run]
    neighbor = place[neighbors_of_set(graphs)[chosen]]
    weight = np.zeros(0) if graphs.edge_weight is None else graphs.edge_weight[chosen].astype(np.float64)
    start = first - ptr[union[first]]
    return Unions(
        ptr=np.stack([graph_ptr, ptr, pointer(np.bincount(union[first], minlength=len(graph_ptr) - 1))], axis=1),
        graph=np.repeat(np.arange(len(graphs)), graphs.sizes)[order] - graph_ptr[union],
        runs=np.stack([label[order][first], start, size, each, arc], axis=1),
        kind=kind[chosen].astype(np.int32),
        slot=(kind[chosen] * np.diff(ptr)[union[source]] + neighbor).astype(np.uint32),
        weight=weight,
    )


def matched_walks(
    G: Unions,
    H: Unions,
    rows: tuple[int, int],
    union: int,
    root: tuple[Floats, Floats],
    bound: tuple[Floats, Floats],
    mirrored: bool,
    tol: float,
) -> Floats:
    """Return Σ_k (s_d(g) s_d(h))^k · number of label-matched walks of length k, [D, rows, columns].

    Args:
        G, H: unions of one graph each, and of several.
        rows: range of graphs of G, [first, last).
        union: union of H whose graphs are the columns.
        root: for G and for H the roots s of D decays, [D, graphs].
        bound: for G and for H upper bounds on the spectral radii, [graphs]; s(g) s(h) times both must be below 1.
        mirrored: whether every arc has the label of its reverse.
        tol: relative size of the truncated rest of a series.
    """
    columns = slice(*H.ptr[union : union + 2, 0])
    others = root[1][:, columns]
    out: Array = np.zeros((len(others), rows[1] - rows[0], others.shape[1]))
    y = np.zeros((int(H.kind.max(initial=0)) + 1) * int(np.diff(H.ptr[union : union + 2, 1])[0]))
    scratch = np.empty((5, np.diff(G.ptr[:, 1]).max()), dtype=np.int64)
    _power_iteration(out, y, scratch, G, H, rows, union, root[0], others, bound[0], bound[1][columns], mirrored, tol)
    return out


@njit(cache=True, nogil=True)
def _power_iteration(
    out: Array,
    y: Array,
    scratch: Array,
    G: Unions,
    H: Unions,
    rows: tuple[int, int],
    union: int,
    root_g: Array,
    root_h: Array,
    bound_g: Array,
    bound_h: Array,
    mirrored: bool,
    tol: float,
) -> None:
    """Fill ``out`` of :func:`matched_walks`; ``y`` is zero before and after, ``scratch`` is working memory.

    x_k(v, w), for a node v of g and a node w of h, is the weighted number of matched walks of length k that begin at
    (v, w); x_0 = 1. If the product graph is symmetric, the terms of lengths 2k−1 and 2k are ⟨x_{k−1}, x_k⟩ and
    ⟨x_k, x_k⟩: half as many steps as the series has terms, and t_{j+1} ≤ r t_j for even j, where r is the decay times
    both spectral radii. Otherwise the terms are Σ x_k, and the rest is at most |x_0| |x_k| (r + r² + …).
    """
    g_ptr, g_runs, g_kind, g_slot, g_weight = G.ptr, G.runs, G.kind, G.slot, G.weight
    h_ptr, h_runs, h_slot, h_weight = H.ptr, H.runs, H.slot, H.weight
    first, last = rows
    n = h_ptr[union + 1, 1] - h_ptr[union, 1]
    owner = H.graph[h_ptr[union, 1] : h_ptr[union + 1, 1]]
    decays, _, count = out.shape
    begin, width, at, low, high = scratch
    x = z = np.empty(0)
    scale, odd, even = np.empty(n), np.zeros(n), np.zeros(n)
    begun, total, rest, ratio, top = np.empty((5, count))
    power = np.empty((decays, count))
    for j in range(count):
        top[j] = root_h[:, j].max()
    for w in range(n):
        scale[w] = top[owner[w]]
    for g in range(first, last):
        # node v of g matches width[v] nodes of the union from begin[v], the runs low[v] … high[v]−1; x[at[v]] … their x
        m = g_ptr[g + 1, 1] - g_ptr[g, 1]
        own = root_g[:, g].max()
        nodes = 0
        r = h_ptr[union, 2]
        begun[:] = 0.0
        for a in range(g_ptr[g, 2], g_ptr[g + 1, 2]):
            while r < h_ptr[union + 1, 2] and h_runs[r, 0] < g_runs[a, 0]:
                r += 1
            end, wide = r, 0
            while end < h_ptr[union + 1, 2] and h_runs[end, 0] == g_runs[a, 0]:
                wide += h_runs[end, 2]
                end += 1
            start = h_runs[r, 1] if wide else 0
            for w in range(start, start + wide):
                begun[owner[w]] += g_runs[a, 2]
            for v in range(g_runs[a, 1], g_runs[a, 1] + g_runs[a, 2]):
                begin[v], width[v], at[v], low[v], high[v] = start, wide, nodes, r, end
                nodes += wide
        if nodes > len(x):
            x, z = np.empty(nodes), np.empty(nodes)
        x[:nodes] = 1.0
        for j in range(count):
            ratio[j] = own * top[j] * bound_g[g] * bound_h[j]
            total[j] = rest[j] = begun[j]
            for d in range(decays):
                power[d, j] = 1.0
                out[d, g - first, j] = begun[j]
        while True:
            going = False
            for j in range(count):
                going |= rest[j] * ratio[j] > tol * (1.0 - ratio[j]) * total[j]
            if not going:
                break
            for a in range(g_ptr[g, 2], g_ptr[g + 1, 2]):
                size = g_runs[a, 2]
                for v in range(g_runs[a, 1], g_runs[a, 1] + size):
                    if width[v] == 0:
                        continue
                    # along the arcs of g into y, which has an entry for each node w and arc label
                    arc = g_runs[a, 4] + v - g_runs[a, 1]
                    for e in range(arc, arc + size * g_runs[a, 3], size):
                        u = np.int64(g_slot[e]) - g_kind[e] * m
                        to = g_kind[e] * n + begin[u]
                        if to < len(y):
                            factor = own * g_weight[e] if len(g_weight) else own
                            _add(y[to : to + width[u]], factor, x[at[u] : at[u] + width[u]])
                    # then along those of the union
                    here, w = z[at[v] : at[v] + width[v]], begin[v]
                    here[:] = 0.0
                    for r in range(low[v], high[v]):
                        part = here[h_runs[r, 1] - w : h_runs[r, 1] - w + h_runs[r, 2]]
                        for e in range(h_runs[r, 4], h_runs[r, 4] + h_runs[r, 2] * h_runs[r, 3], h_runs[r, 2]):
                            _gather(part, y, h_slot[e:], h_weight[e:] if len(h_weight) else h_weight)
                    _sum(here, x[at[v] : at[v] + width[v]], scale[w:], odd[w:], even[w:], mirrored)
                    for e in range(arc, arc + size * g_runs[a, 3], size):
                        u = np.int64(g_slot[e]) - g_kind[e] * m
                        to = g_kind[e] * n + begin[u]
                        if to < len(y):
                            y[to : to + width[u]] = 0.0
            x, z = z, x
            for j in range(count):
                rest[j] = 0.0
            for w in range(n):
                j = owner[w]
                rest[j] += even[w]
                for d in range(decays):
                    share = root_g[d, g] * root_h[d, j] / (own * top[j])
                    out[d, g - first, j] += power[d, j] * share * odd[w]
                    if mirrored:
                        out[d, g - first, j] += power[d, j] * share * share * even[w]
                total[j] += odd[w] + even[w] if mirrored else odd[w]
                odd[w] = even[w] = 0.0
            for j in range(count):
                for d in range(decays):
                    share = root_g[d, g] * root_h[d, j] / (own * top[j])
                    power[d, j] *= share * share if mirrored else share
                if not mirrored:
                    rest[j] = np.sqrt(begun[j] * rest[j])


@njit(cache=True, nogil=True)
def _add(y: Array, factor: float, x: Array) -> None:
    for i in range(len(x)):
        y[i] += factor * x[i]


@njit(cache=True, nogil=True)
def _gather(z: Array, y: Array, slot: Array, weight: Array) -> None:
    if len(weight):
        for i in range(len(z)):
            z[i] += weight[i] * y[slot[i]]
    else:
        for i in range(len(z)):
            z[i] += y[slot[i]]


@njit(cache=True, nogil=True)
def _sum(z: Array, x: Array, scale: Array, odd: Array, even: Array, mirrored: bool) -> None:
    for i in range(len(z)):
        z[i] *= scale[i]
        even[i] += z[i] * z[i]
        odd[i] += z[i] * x[i] if mirrored else z[i]
