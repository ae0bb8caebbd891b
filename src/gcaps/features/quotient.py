"""Connected components and twins of all graphs of a set, which make the computation of harmonic distances smaller.

Twins are nodes with the same weighted neighbors, adjacent (members of a clique) or not (leaves of a hub). A class of m
twins acts as one node whose conductances are m times as large, and the distance between nodes of different classes is

    S(x, y) = S'(class of x, class of y) + s_x + s_y,    s = (1 − 1/m) / (d + w),

where d is the strength of a twin and w the weight between twins (0 if they are not adjacent). Twins of one class have
distance 2 / (d + w).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from gcaps.data.arrays import Floats, Ints, Ints32, counting_argsort, pointer
from gcaps.data.graphset import GraphSet

F = TypeVar("F", bound=Callable[..., Any])
_compiler: Any = njit(cache=True, nogil=True, error_model="numpy")


def compiled(function: F) -> F:
    """Compile a function on its first call, without holding the GIL, and cache the machine code on disk."""
    made: F = _compiler(function)
    return made


class Quotient(NamedTuple):
    """N nodes as K classes of twins in P connected components; classes of a component are consecutive."""

    component_ptr: Ints
    """[P+1] component p owns the classes component_ptr[p] … component_ptr[p+1]−1; ordered by graph."""
    nodes_in_component: Ints
    """[P]"""
    graph: Ints
    """[P] graph of each component."""
    class_of: Ints
    """[N] class of each node."""
    head: Ints
    """[K] one node of each class."""
    size: Ints
    """[K] number of nodes m of each class."""
    spread: Floats
    """[K] s; 0 for a class of one node."""
    within: Floats
    """[K] distance between twins; 0 for a class of one node."""


class Network(NamedTuple):
    """Compressed sparse rows of all graphs; arrays are views where possible."""

    rowptr: Ints
    """[N+1]"""
    first: Ints
    """[N] first node of each node's graph."""
    col: Ints32
    """[E] target of each arc, numbered from ``first``."""
    weight: Floats
    """[E] float64; empty if all weights are 1."""


def network_of(graphs: GraphSet) -> Network:
    """Return the arcs of a set."""
    weight = np.zeros(0) if graphs.edge_weight is None else graphs.edge_weight
    # writable, since numba would compile its loops again for read-only arrays, as mapped ones are
    return Network(
        np.require(graphs.rowptr, np.int64, ["C", "W"]),
        np.repeat(graphs.ptr[:-1], graphs.sizes),
        np.require(graphs.col, np.int32, ["C", "W"]),
        np.require(weight, np.float64, ["C", "W"]),
    )


def quotient(network: Network, ptr: Ints, collapse: bool = True) -> Quotient:
    """Find components and twins of the graphs with nodes ``ptr`` [G+1].

    Without ``collapse`` every node is a class of its own.
    """
    num_nodes = len(network.rowptr) - 1
    component = components(*network)
    count = int(component.max(initial=-1)) + 1
    head = np.arange(num_nodes)
    if collapse:
        arc_hash = neighborhood_hashes(*network)
        head = twins(*network, arc_hash, np.argsort(arc_hash, kind="stable"))
    heads = np.flatnonzero(head == np.arange(num_nodes))
    heads = heads[counting_argsort(component[heads], count)]
    number = np.empty(num_nodes, dtype=np.int64)
    number[heads] = np.arange(len(heads))
    class_of = number[head]
    size = np.bincount(class_of, minlength=len(heads))
    stiffness = np.where(size == 1, np.inf, twin_stiffness(*network, head, heads))
    component_of = component[heads]
    graph = np.searchsorted(ptr, heads, side="right") - 1
    component_ptr = pointer(np.bincount(component_of, minlength=count))
    return Quotient(
        component_ptr,
        np.bincount(component, minlength=count),
        graph[component_ptr[:-1]],
        class_of,
        heads,
        size,
        (1 - 1 / size) / stiffness,
        2 / stiffness,
    )


@compiled
def mixed(value: Any) -> Any:
    """Finaliser of SplitMix64 for one number, as :func:`gcaps.data.hashing.mix` for arrays."""
    z = uint64(value) + uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@compiled
def weight_at(weight: Floats, arc: int) -> float:
    """Weight of an arc; 1 without weights."""
    return weight[arc] if len(weight) else 1.0


@compiled
def arc_value(node: int, weight: float) -> Any:
    """Hash of an arc to ``node``."""
    return mixed(uint64(node) + mixed(uint64(np.float64(weight).view(np.uint64))))


@compiled
def neighborhood_hashes(rowptr: Ints, first: Ints, col: Ints32, weight: Floats) -> NDArray[np.uint64]:
    """[N] sum of the hashes of each node's arcs."""
    out = np.zeros(len(rowptr) - 1, dtype=np.uint64)
    for v in range(len(rowptr) - 1):
        total = uint64(0)
        for arc in range(rowptr[v], rowptr[v + 1]):
            total += arc_value(first[v] + col[arc], weight_at(weight, arc))
        out[v] = total
    return out


@compiled
def components(rowptr: Ints, first: Ints, col: Ints32, weight: Floats) -> Ints:
    """[N] connected component of each node, numbered in the order of their first nodes."""
    num_nodes = len(rowptr) - 1
    out = np.full(num_nodes, -1)
    waiting = np.empty(num_nodes, dtype=np.int64)
    count = 0
    for v in range(num_nodes):
        if out[v] >= 0:
            continue
        out[v], waiting[0], left = count, v, 1
        while left:
            left -= 1
            x = waiting[left]
            for arc in range(rowptr[x], rowptr[x + 1]):
                y = first[x] + col[arc]
                if out[y] < 0:
                    out[y] = count
                    waiting[left] = y
                    left += 1
        count += 1
    return out


@compiled
def are_twins(rowptr: Ints, col: Ints32, weight: Floats, x: int, y: int, first: int) -> bool:
    """Whether x and y of the graph that begins at ``first`` have the same weighted neighbors apart from each other."""
    a, b = rowptr[x], rowptr[y]
    last_a, last_b = rowptr[x + 1], rowptr[y + 1]
    while True:
        if a < last_a and col[a] == y - first:
            a += 1
        if b < last_b and col[b] == x - first:
            b += 1
        if a == last_a or b == last_b:
            return bool(a == last_a and b == last_b)
        if col[a] != col[b] or weight_at(weight, a) != weight_at(weight, b):
            return False
        a, b = a + 1, b + 1


@compiled
def twins(rowptr: Ints, first: Ints, col: Ints32, weight: Floats, arc_hash: NDArray[np.uint64], by_hash: Ints) -> Ints:
    """[N] first node of each node's class of twins; ``by_hash`` is a stable argsort of the hashes."""
    num_nodes = len(rowptr) - 1
    head = np.arange(num_nodes)
    for place in range(1, num_nodes):
        v, before = by_hash[place], by_hash[place - 1]
        if arc_hash[v] == arc_hash[before] and rowptr[v] < rowptr[v + 1]:
            u = head[before]
            if first[u] == first[v] and are_twins(rowptr, col, weight, u, v, first[v]):
                head[v] = u
    for v in range(num_nodes):
        for arc in range(rowptr[v], rowptr[v + 1]):
            u = first[v] + col[arc]
            if u >= v:
                break
            w = weight_at(weight, arc)
            if (
                head[u] == u
                and arc_hash[v] - arc_value(u, w) == arc_hash[u] - arc_value(v, w)
                and are_twins(rowptr, col, weight, u, v, first[v])
            ):
                head[v] = u
                break
    return head


@compiled
def twin_stiffness(rowptr: Ints, first: Ints, col: Ints32, weight: Floats, head: Ints, heads: Ints) -> Floats:
    """[K] d + w of each class."""
    out = np.empty(len(heads))
    for number in range(len(heads)):
        x = heads[number]
        total, between = 0.0, 0.0
        for arc in range(rowptr[x], rowptr[x + 1]):
            w = weight_at(weight, arc)
            total += w
            if head[first[x] + col[arc]] == x:
                between = w
        out[number] = total + between
    return out


@compiled
def graph_keys(ptr: Ints, rowptr: Ints, first: Ints, col: Ints32, weight: Floats) -> NDArray[np.uint64]:
    """[G, 2] 128-bit hash of each graph's structure as stored, independent of its position in the set."""
    out = np.zeros((len(ptr) - 1, 2), dtype=np.uint64)
    for g in range(len(out)):
        for v in range(ptr[g], ptr[g + 1]):
            own = uint64(v - ptr[g])
            total = own
            for arc in range(rowptr[v], rowptr[v + 1]):
                total += arc_value(col[arc], weight_at(weight, arc))
            out[g, 0] += mixed(mixed(total) + own)
            out[g, 1] += mixed(mixed(total ^ uint64(0x5DEECE66D)) - own)
    return out
