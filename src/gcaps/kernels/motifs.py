"""Triangles, 4-cycles and 4-cliques of every graph, counted by formulas and ordered neighborhoods."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def count_motifs(first, last, ptr, rowptr, col, rank):  # type: ignore[no-untyped-def]
    """[graphs, 5] of the graphs first..last−1: triangles, Σ_e C(t_e, 2), Σ_v t_v (d_v − 2), 4-cycles, 4-cliques.

    t_e and t_v are the triangles at an edge and at a node. ``rank`` [N] orders each graph's nodes by degree: every
    motif is found once, at its highest or lowest node, so that hubs cost no more than their smaller neighbors.
    """
    out = np.zeros((last - first, 5), dtype=np.int64)
    largest = 1
    for g in range(first, last):
        largest = max(largest, ptr[g + 1] - ptr[g])
    mark = np.full(largest, -1, dtype=np.int64)
    paths = np.zeros(largest, dtype=np.int64)
    at_node = np.zeros(largest, dtype=np.int64)
    up = np.empty(largest, dtype=np.int64)
    bits = np.zeros(1, dtype=np.uint64)
    for g in range(first, last):
        base = ptr[g]
        n = ptr[g + 1] - base
        at_node[:n] = 0
        triangles = cycles = cliques = 0
        at_edge = np.zeros(rowptr[base + n] - rowptr[base], dtype=np.int64)
        shift = rowptr[base]
        for u in range(n):
            # 4-cycles whose highest node is u: pairs of paths u – v – w below u
            for a in range(rowptr[base + u], rowptr[base + u + 1]):
                v = col[a]
                if rank[base + v] < rank[base + u]:
                    for b in range(rowptr[base + v], rowptr[base + v + 1]):
                        w = col[b]
                        if rank[base + w] < rank[base + u]:
                            cycles += paths[w]
                            paths[w] += 1
            for a in range(rowptr[base + u], rowptr[base + u + 1]):
                v = col[a]
                if rank[base + v] < rank[base + u]:
                    for b in range(rowptr[base + v], rowptr[base + v + 1]):
                        paths[col[b]] = 0
            # adjacency among the higher neighbors of u, as bits
            d = 0
            for a in range(rowptr[base + u], rowptr[base + u + 1]):
                v = col[a]
                if rank[base + v] > rank[base + u]:
                    up[d] = a
                    mark[v] = d
                    d += 1
            words = (d + 63) // 64
            if d * words > len(bits):
                bits = np.zeros(2 * d * words, dtype=np.uint64)
            for i in range(d):
                v = col[up[i]]
                for b in range(rowptr[base + v], rowptr[base + v + 1]):
                    w = col[b]
                    j = mark[w]
                    if j >= 0 and rank[base + w] > rank[base + v]:
                        bits[i * words + j // 64] |= np.uint64(1) << np.uint64(j % 64)
                        triangles += 1
                        at_node[u] += 1
                        at_node[v] += 1
                        at_node[w] += 1
                        at_edge[up[i] - shift] += 1
                        at_edge[up[j] - shift] += 1
                        at_edge[b - shift] += 1
            for i in range(d):
                for word in range(words):
                    rest = bits[i * words + word]
                    while rest:
                        low = rest & (~rest + np.uint64(1))
                        j = word * 64 + _ones(low - np.uint64(1))
                        rest ^= low
                        for k in range(words):
                            cliques += _ones(bits[i * words + k] & bits[j * words + k])
            bits[: d * words] = 0
            for i in range(d):
                mark[col[up[i]]] = -1
        diamonds = tailed = 0
        for t in at_edge:
            diamonds += t * (t - 1) // 2
        for v in range(n):
            tailed += at_node[v] * (rowptr[base + v + 1] - rowptr[base + v] - 2)
        out[g - first] = triangles, diamonds, tailed, cycles, cliques
    return out


@njit(cache=True, nogil=True)
def _ones(x):  # type: ignore[no-untyped-def]
    """Bits that are set."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def sample_codes(out, g, k, connected, state, ptr, rowptr, col):  # type: ignore[no-untyped-def]
    """Fill ``out`` with codes of induced subgraphs on k random nodes of graph g; −1 where there is none.

    Uniformly among all k-subsets, or with ``connected`` by growing: a random node, then again and again a random one
    of the nodes next to those chosen.
    """
    base = ptr[g]
    n = ptr[g + 1] - base
    chosen = np.empty(k, dtype=np.int64)
    border = np.empty(n, dtype=np.int64)
    seen = np.zeros(n, dtype=np.bool_)
    for s in range(len(out)):
        size = reached = 0
        pool = n
        while size < k and pool > 0:
            state += np.uint64(0x9E3779B97F4A7C15)
            z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z ^= z >> np.uint64(31)
            pick = np.int64((z >> np.uint64(11)) % np.uint64(pool))
            if connected and size > 0:
                v = border[pick]
                border[pick] = border[reached - 1]
                reached -= 1
            else:
                v = pick
                if seen[v]:
                    if n < k:
                        break
                    continue
                seen[v] = True
            chosen[size] = v
            size += 1
            if connected:
                for a in range(rowptr[base + v], rowptr[base + v + 1]):
                    w = col[a]
                    if not seen[w]:
                        seen[w] = True
                        border[reached] = w
                        reached += 1
                pool = reached
        code = np.int64(0)
        bit = 0
        for i in range(k):
            for j in range(i + 1, k):
                if size == k and _joined(chosen[i], chosen[j], base, rowptr, col):
                    code |= np.int64(1) << np.int64(bit)
                bit += 1
        out[s] = code if size == k else -1
        for i in range(size):
            seen[chosen[i]] = False
        for i in range(reached):
            seen[border[i]] = False
    return state


@njit(cache=True, nogil=True)
def _joined(u, v, base, rowptr, col):  # type: ignore[no-untyped-def]
    low, high = rowptr[base + u], rowptr[base + u + 1]
    while low < high:
        middle = (low + high) // 2
        if col[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low < rowptr[base + u + 1] and col[low] == v
