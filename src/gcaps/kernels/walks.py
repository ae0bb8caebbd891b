"""Walks of two graphs that read the same labels: power iteration on the matched node pairs of the product graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gcaps.data.arrays import Array, Floats, Ints, Ints32, pointer
from gcaps.data.graphset import GraphSet
from gcaps.kernels.hashing import Names, join, neighbors_of_set, rows


class Typed(NamedTuple):
    """A set's nodes and arcs, grouped by label within each graph.

    An arc's type is its label and those of both ends. A node's rank counts the nodes of the same graph and label.
    """

    label_ptr: Ints
    """[G+1] graph g owns the label groups label_ptr[g] …"""
    label: Ints
    """[·] the group's label, ascending within a graph."""
    size: Ints
    """[·] how many nodes the group has."""
    type_ptr: Ints
    """[G+1] graph g owns the type groups type_ptr[g] …"""
    type: Ints
    """[·] the group's type, ascending within a graph."""
    source_group: Ints
    """[·] the label group, counted within the graph, of the arcs' sources."""
    target_group: Ints
    """[·] likewise of their targets."""
    arc_ptr: Ints
    """[·+1] type group t owns the arcs arc_ptr[t] …"""
    source: Ints32
    """[E] the source's rank."""
    target: Ints32
    """[E] the target's rank."""
    forward: Array
    """[E] true for one of the two arcs of each edge: the other one is served along with it."""
    weight: Floats
    """[E], or [0]: all one."""


def typed(sets: list[GraphSet], edge_labels: bool) -> list[Typed]:
    """Group the sets' nodes and arcs; the same labels and types have the same numbers in all sets."""
    names = [rows(s.node_labels) for s in sets if s.node_labels is not None]
    arcs = [_arc_names(s, name, edge_labels) for s, name in zip(sets, names, strict=True)]
    labels, types = np.unique(np.concatenate(names)), np.unique(np.concatenate(arcs))
    weighted = any(s.edge_weight is not None for s in sets)
    return [
        _typed(s, np.searchsorted(labels, n), np.searchsorted(types, a), weighted)
        for s, n, a in zip(sets, names, arcs, strict=True)
    ]


def _arc_names(graphs: GraphSet, name: Names, edge_labels: bool) -> Names:
    source = np.repeat(name, graphs.degrees)
    found = join(source, name[neighbors_of_set(graphs)])
    return join(found, rows(graphs.edge_labels)) if edge_labels and graphs.edge_labels is not None else found


def _typed(graphs: GraphSet, label: Ints, kind: Ints, weighted: bool) -> Typed:
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    order, group, start = _groups(graph, label)
    rank = np.empty(len(label), dtype=np.int64)
    rank[order] = np.arange(len(label)) - start[group]
    group_of = np.empty(len(label), dtype=np.int64)
    group_of[order] = group
    label_ptr = pointer(np.bincount(graph[order][start], minlength=len(graphs)))
    source, target = np.repeat(np.arange(graphs.num_nodes), graphs.degrees), neighbors_of_set(graphs)
    arc_order, _, arc_start = _groups(graph[source], kind)
    first = arc_order[arc_start]
    owner = graph[source[first]]
    weight = np.ones(len(source)) if graphs.edge_weight is None else graphs.edge_weight
    return Typed(
        label_ptr=label_ptr,
        label=label[order][start],
        size=np.diff(np.append(start, len(label))),
        type_ptr=pointer(np.bincount(owner, minlength=len(graphs))),
        type=kind[first],
        source_group=group_of[source[first]] - label_ptr[owner],
        target_group=group_of[target[first]] - label_ptr[owner],
        arc_ptr=np.append(arc_start, len(source)),
        source=rank[source[arc_order]].astype(np.int32),
        target=rank[target[arc_order]].astype(np.int32),
        forward=(group_of[source] * len(label) + source < group_of[target] * len(label) + target)[arc_order],
        weight=weight[arc_order].astype(np.float64) if weighted else np.zeros(0),
    )


def _groups(graph: Ints, kind: Ints) -> tuple[Ints, Ints, Ints]:
    """The order by (graph, kind), the group of each place in it, and where each group begins."""
    order = np.lexsort([kind, graph])
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(graph[order]) > 0) | (np.diff(kind[order]) > 0)
    return order, np.cumsum(new) - 1, np.flatnonzero(new)


def matched_walks(
    out: Array, left: Typed, right: Typed, pairs: tuple[Ints, Ints], root: tuple[Floats, Floats], bound: Any, tol: float
) -> None:
    """out[d, p] = Σ_k (s_d(G) s_d(H))^k · number of label-matched walks of length k, for the pairs p = (G, H).

    Args:
        out: [D, P] filled.
        left, right: the sets of G and H.
        pairs: [P] graphs of ``left`` and [P] of ``right``.
        root: [D, G] and [D, H] the root of the decay, for each of D decays.
        bound: [G] and [H] the graphs' spectral radii or bounds on them; s(G) s(H) times both must be below 1.
        tol: relative to the sum, the rest that may be left out.
    """
    run: Any = _matched
    run(out, *left, *right, *pairs, *root, *bound, tol)


@njit(cache=True, nogil=True)
def _matched(  # type: ignore[no-untyped-def]
    out,
    g_label_ptr,
    g_label,
    g_size,
    g_type_ptr,
    g_type,
    g_source_group,
    g_target_group,
    g_arc_ptr,
    g_source,
    g_target,
    g_forward,
    g_weight,
    h_label_ptr,
    h_label,
    h_size,
    h_type_ptr,
    h_type,
    h_source_group,
    h_target_group,
    h_arc_ptr,
    h_source,
    h_target,
    h_forward,
    h_weight,
    pair_g,
    pair_h,
    root_g,
    root_h,
    bound_g,
    bound_h,
    tol,
):
    decays = len(out)
    weighted = len(g_weight) > 0
    x = np.ones(1)
    y = np.ones(1)
    begin = np.empty(1, dtype=np.int64)
    common_g = np.empty(1, dtype=np.int64)
    common_h = np.empty(1, dtype=np.int64)
    power = np.empty(decays)
    step = np.empty(decays)
    for p in range(len(pair_g)):
        g, h = pair_g[p], pair_h[p]
        decay = 0.0
        for d in range(decays):
            decay = max(decay, root_g[d, g] * root_h[d, h])
        for d in range(decays):
            step[d] = root_g[d, g] * root_h[d, h] / decay if decay > 0 else 0.0
            power[d] = 1.0
        # matched node pairs of label group a: begin[a] + rank in G · size in H + rank in H
        groups = g_label_ptr[g + 1] - g_label_ptr[g]
        if groups > len(begin):
            begin = np.empty(groups, dtype=np.int64)
        nodes = 0
        b = h_label_ptr[h]
        for a in range(groups):
            label = g_label[g_label_ptr[g] + a]
            while b < h_label_ptr[h + 1] and h_label[b] < label:
                b += 1
            begin[a] = nodes
            if b < h_label_ptr[h + 1] and h_label[b] == label:
                nodes += g_size[g_label_ptr[g] + a] * h_size[b]
        # arc types of both
        most = g_type_ptr[g + 1] - g_type_ptr[g]
        if most > len(common_g):
            common_g = np.empty(most, dtype=np.int64)
            common_h = np.empty(most, dtype=np.int64)
        shared = 0
        t = h_type_ptr[h]
        for s in range(g_type_ptr[g], g_type_ptr[g + 1]):
            while t < h_type_ptr[h + 1] and h_type[t] < g_type[s]:
                t += 1
            if t < h_type_ptr[h + 1] and h_type[t] == g_type[s]:
                common_g[shared], common_h[shared] = s, t
                shared += 1
        for d in range(decays):
            out[d, p] = nodes
        if nodes > len(x):
            x = np.ones(nodes)
            y = np.ones(nodes)
        x[:nodes] = 1.0
        ratio = decay * bound_g[g] * bound_h[h]
        total = float(nodes)
        k = 0
        while shared > 0:
            k += 1
            y[:nodes] = 0.0
            for c in range(shared):
                s, t = common_g[c], common_h[c]
                from_begin, to_begin = begin[g_source_group[s]], begin[g_target_group[s]]
                from_size = h_size[h_label_ptr[h] + h_source_group[t]]
                to_size = h_size[h_label_ptr[h] + h_target_group[t]]
                for e in range(g_arc_ptr[s], g_arc_ptr[s + 1]):
                    if not g_forward[e]:
                        continue
                    at = from_begin + g_source[e] * from_size
                    to = to_begin + g_target[e] * to_size
                    if weighted:
                        for f in range(h_arc_ptr[t], h_arc_ptr[t + 1]):
                            factor = g_weight[e] * h_weight[f]
                            y[at + h_source[f]] += factor * x[to + h_target[f]]
                            y[to + h_target[f]] += factor * x[at + h_source[f]]
                    else:
                        for f in range(h_arc_ptr[t], h_arc_ptr[t + 1]):
                            y[at + h_source[f]] += x[to + h_target[f]]
                            y[to + h_target[f]] += x[at + h_source[f]]
            x, y = y, x
            term = 0.0
            for i in range(nodes):
                x[i] *= decay
                term += x[i]
            total += term
            for d in range(decays):
                power[d] *= step[d]
                out[d, p] += power[d] * term
            # t_{k+1} ≤ r t_k and t_{k+2} ≤ r² t_k for even k: the product graph is symmetric
            if k % 2 == 0 and term * ratio <= tol * (1.0 - ratio) * total:
                break
