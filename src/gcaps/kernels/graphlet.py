"""Graphlet kernel (Shervashidze et al., 2009)."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb

import numpy as np
from numba import njit

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, join, mix, sums
from gcaps.errors import ConfigError
from gcaps.kernels.base import FeatureKernel, SubstructureCounts, map_threads, mix64, split_work

_WORK = 500_000
"""Nodes and arcs, or samples, of the graphs of one task."""


class Graphlet(FeatureKernel):
    """Graphlet kernel: k(G, H) = Σ_g n_g(G) n_g(H), n_g the number of induced subgraphs isomorphic to graphlet g.

    Sizes 3 and 4 are counted exactly, by formulas from triangles, 4-cycles and 4-cliques; sizes 5 to 7 are sampled, and
    n_g is the share of the samples times the number of subsets (for ``connected``: the share). The samples of a graph
    depend on ``random_state`` and that graph alone. Graphs with fewer nodes than ``size`` have no graphlets.

    Args:
        size: nodes of a graphlet, 3 to 7.
        connected: count connected graphlets only. Sampled ones are grown node by node, which favors dense ones.
        samples: graphlets drawn from each graph for sizes 5 to 7.
        random_state: seed of the samples.
        normalize: divide by √(k(G, G) k(H, H)).
        n_jobs: number of threads.
        verbose: show a progress bar.
    """

    def __init__(
        self,
        size: int = 4,
        *,
        connected: bool = False,
        samples: int = 2000,
        random_state: int = 0,
        normalize: bool = True,
        n_jobs: int | None = 2,
        verbose: bool = False,
    ) -> None:
        self.size, self.connected, self.samples, self.random_state = size, connected, samples, random_state
        self.normalize, self.n_jobs, self.verbose = normalize, n_jobs, verbose

    def count_substructures(self, graphs: GraphSet) -> SubstructureCounts:
        """Count graphlets up to isomorphism."""
        if not 3 <= self.size <= 7:
            raise ConfigError(f"size must be from 3 to 7, not {self.size}")
        if self.samples < 1:
            raise ConfigError(f"samples must be at least 1, not {self.samples}")
        return self._exact(graphs) if self.size < 5 else self._sampled(graphs)

    def _exact(self, graphs: GraphSet) -> SubstructureCounts:
        counts = induced_counts(graphs, self.size, self._motifs(graphs))
        codes = np.array(graphlets(self.size)[0])
        hashes = isomorphism_hashes(codes, self.size)
        if self.connected:
            keep = is_connected(codes, self.size)
            hashes, counts = hashes[keep], counts[:, keep]
        ptr = pointer(np.full(len(graphs), len(hashes)))
        return SubstructureCounts(ptr, np.tile(hashes, len(graphs)), counts.ravel().astype(np.float64))

    def _motifs(self, graphs: GraphSet) -> Ints:
        graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
        rank = np.empty(graphs.num_nodes, dtype=np.int64)
        rank[np.lexsort([graphs.degrees, graph])] = np.arange(graphs.num_nodes)

        def count(part: tuple[int, int]) -> Ints:
            found: Ints = count_motifs(*part, graphs.ptr, graphs.rowptr, graphs.col, rank)
            return found

        parts = split_work(graphs.sizes + graphs.arc_counts, _WORK)
        return np.concatenate(map_threads(count, parts, "graphlets", self.n_jobs, self.verbose))

    def sampled_nodes(self, graph: GraphSet) -> tuple[Array, Ints]:
        """Return the codes [samples] drawn from a set of one graph, −1 for none, and their nodes [samples, size]."""
        codes, nodes = np.empty(self.samples, dtype=np.int64), np.zeros((self.samples, self.size), dtype=np.int64)
        arrays = graph.ptr, graph.rowptr, graph.col
        sample_codes(codes, nodes, 0, self.size, self.connected, self._start(graph)[0], *arrays)
        return codes, nodes

    def _start(self, graphs: GraphSet) -> Hashes:
        """[G] state of the random number generator, from the degrees of each graph."""
        return join(sums(mix(graphs.degrees), graphs.ptr), np.full(len(graphs), self.random_state))

    def _sampled(self, graphs: GraphSet) -> SubstructureCounts:
        start, no_nodes = self._start(graphs), np.zeros((0, self.size), dtype=np.int64)
        arrays = graphs.ptr, graphs.rowptr, graphs.col

        def draw(part: tuple[int, int]) -> Array:
            codes = np.empty((part[1] - part[0], self.samples), dtype=np.int64)
            for g in range(*part):
                sample_codes(codes[g - part[0]], no_nodes, g, self.size, self.connected, start[g], *arrays)
            return codes

        parts = split_work(np.full(len(graphs), self.samples), _WORK)
        codes = np.concatenate(map_threads(draw, parts, "graphlets", self.n_jobs, self.verbose))
        kinds, at = np.unique(codes, return_inverse=True)
        hashes = isomorphism_hashes(np.maximum(kinds, 0), self.size)
        drawn = (codes >= 0).sum(axis=1)
        subsets = np.ones(len(graphs))
        if not self.connected:
            for i in range(self.size):
                subsets *= np.maximum(graphs.sizes - i, 0) / (i + 1)
        share = np.divide(subsets, drawn, out=np.zeros(len(graphs)), where=drawn > 0)
        weight = np.where(codes >= 0, share[:, None], 0.0)
        ptr = pointer(np.full(len(graphs), self.samples))
        return SubstructureCounts(ptr, hashes[at.ravel()], weight.ravel())


def induced_counts(graphs: GraphSet, size: int, motifs: Ints) -> Ints:
    """Count the induced subgraphs on 3 or 4 nodes, [G, kinds], in the order of :func:`graphlets`.

    Counts of not necessarily induced subgraphs follow from n, m, the degrees and the motifs [G, 5] of
    :func:`count_motifs`; the matrix of copies converts them to counts of induced ones.
    """
    n, m, d = graphs.sizes, graphs.arc_counts // 2, graphs.degrees
    triangles, diamonds, tailed, cycles, cliques = motifs.T

    def nodes(values: Array) -> Ints:
        found: Ints = np.add.reduceat(values, graphs.ptr[:-1])
        return found

    wedges = nodes(d * (d - 1) // 2)
    if size == 3:
        by_code = {0: _choose(n, 3), 1: m * (n - 2), 3: wedges, 7: triangles}
    else:
        source = np.repeat(np.arange(graphs.num_nodes), d)
        other = d[graphs.col + np.repeat(graphs.ptr[:-1], graphs.arc_counts)]
        arcs = np.zeros(graphs.num_nodes, dtype=np.int64)
        np.add.at(arcs, source, (d[source] - 1) * (other - 1))
        path = nodes(arcs) // 2 - 3 * triangles
        by_code = {
            0b000000: _choose(n, 4),
            0b000001: m * _choose(n - 2, 2),
            0b000011: wedges * (n - 3),
            0b100001: m * (m - 1) // 2 - wedges,
            0b001011: triangles * (n - 3),
            0b000111: nodes(d * (d - 1) * (d - 2) // 6),
            0b101001: path,
            0b001111: tailed,
            0b110011: cycles,
            0b011111: diamonds,
            0b111111: cliques,
        }
    chosen, copies = graphlets(size)
    position = {int(value): at for at, value in enumerate(isomorphism_hashes(np.array(chosen), size))}
    found = np.zeros((len(graphs), len(chosen)), dtype=np.int64)
    for code, count in by_code.items():
        found[:, position[int(isomorphism_hashes(np.array([code]), size)[0])]] = count
    for j in range(len(chosen) - 1, -1, -1):
        found[:, :j] -= found[:, j : j + 1] * copies[:j, j]
    found[n < size] = 0
    return found


def _choose(n: Ints, k: int) -> Ints:
    """Binomial coefficient."""
    out = np.ones_like(n)
    for i in range(k):
        out = out * (n - i) // (i + 1)
    return out


def adjacency_of(codes: Array, k: int) -> Ints:
    """Decode graphs on k nodes, [n], to adjacency matrices, [n, k, k].

    A code has one bit for each pair of nodes, in the order (0, 1), (0, 2), …, (k−2, k−1), set where they are adjacent.
    """
    i, j = np.triu_indices(k, 1)
    bits = (codes[:, None] >> np.arange(len(i))) & 1
    A = np.zeros((len(codes), k, k), dtype=np.int64)
    A[:, i, j] = A[:, j, i] = bits
    return A


def isomorphism_hashes(codes: Array, k: int) -> Hashes:
    """Return hashes [n] that are equal for isomorphic graphs and, for k ≤ 7, different for all others.

    Nodes are distinguished by their numbers of closed walks and by two color refinements with the matrix of walk
    counts; the tests check this on the atlas of all graphs with up to seven nodes.
    """
    A = adjacency_of(codes, k)
    power, pair = A, np.zeros(A.shape, dtype=np.uint64)
    for _ in range(k):
        pair = join(pair.ravel(), power.ravel()).reshape(A.shape)
        power = power @ A
    color = mix(np.diagonal(pair, axis1=1, axis2=2).ravel()).reshape(len(codes), k)
    for _ in range(2):
        seen = join(pair.ravel(), np.repeat(color[:, None, :], k, axis=1).ravel()).reshape(A.shape)
        color = join(color.ravel(), seen.sum(axis=2, dtype=np.uint64).ravel()).reshape(len(codes), k)
    return join(np.full(len(codes), k), color.sum(axis=1, dtype=np.uint64))


def is_connected(codes: Array, k: int) -> Array:
    """Return whether each of the graphs on k nodes is connected, [n]."""
    reach = adjacency_of(codes, k) + np.eye(k, dtype=np.int64)
    for _ in range(max(1, (k - 1).bit_length())):
        reach = np.minimum(reach @ reach, 1)
    return np.asarray(reach.all(axis=(1, 2)))


@cache
def graphlets(k: int) -> tuple[tuple[int, ...], Ints]:
    """Return one code for each graph on k ≤ 4 nodes up to isomorphism, by number of edges, and the matrix of copies.

    Entry (i, j) of that matrix is the number of spanning subgraphs of graph j isomorphic to graph i: it converts
    induced counts to counts of not necessarily induced subgraphs, and is upper triangular.
    """
    codes = np.arange(1 << comb(k, 2))
    hashes = isomorphism_hashes(codes, k)
    size = np.array([int(code).bit_count() for code in codes])
    kinds: dict[int, int] = {}
    for code in codes[np.argsort(size, kind="stable")]:
        kinds.setdefault(int(hashes[code]), int(code))
    chosen = list(kinds.values())
    number = {value: at for at, value in enumerate(kinds)}
    copies = np.zeros((len(chosen), len(chosen)), dtype=np.int64)
    for j, code in enumerate(chosen):
        bits = [b for b in range(comb(k, 2)) if code >> b & 1]
        for edges in range(len(bits) + 1):
            for part in combinations(bits, edges):
                copies[number[int(hashes[sum(1 << b for b in part)])], j] += 1
    return tuple(chosen), copies


@njit(cache=True, nogil=True)
def count_motifs(first: int, last: int, ptr: Array, rowptr: Array, col: Array, rank: Array) -> Ints:
    """Count triangles, Σ_e C(t_e, 2), Σ_v t_v (d_v − 2), 4-cycles and 4-cliques of the graphs first..last−1.

    t_e and t_v are the numbers of triangles at an edge and at a node. ``rank`` [N] orders each graph's nodes by degree:
    every motif is found once, at its highest or lowest node, so that hubs cost no more than their smaller neighbors.

    Returns:
        [graphs, 5]
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
            # 4-cycles with highest node u: pairs of paths u – v – w of lower nodes
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
            # adjacency of the higher neighbors of u, as bits
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
def _ones(x: np.uint64) -> int:
    """Return the number of bits that are set."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56)))


@njit(cache=True, nogil=True)
def sample_codes(
    out: Array, nodes: Array, g: int, k: int, connected: bool, state: np.uint64, ptr: Array, rowptr: Array, col: Array
) -> None:
    """Fill ``out`` with codes of induced subgraphs on k random nodes of graph g; −1 if there are too few nodes.

    Nodes are drawn uniformly, or with ``connected`` one by one among the neighbors of those drawn before.

    Args:
        out: [samples] int64.
        nodes: [samples, k] int64, filled with the nodes of each sample where it has rows.
        g, k: graph and number of nodes.
        connected: draw connected subgraphs.
        state: uint64, state of the random number generator (SplitMix64).
        ptr, rowptr, col: arrays of the GraphSet.
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
            pick = np.int64((mix64(state) >> np.uint64(11)) % np.uint64(pool))
            state += np.uint64(0x9E3779B97F4A7C15)
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
                if size == k and _adjacent(chosen[i], chosen[j], base, rowptr, col):
                    code |= np.int64(1) << np.int64(bit)
                bit += 1
        out[s] = code if size == k else -1
        if len(nodes):
            nodes[s] = chosen
        for i in range(size):
            seen[chosen[i]] = False
        for i in range(reached):
            seen[border[i]] = False


@njit(cache=True, nogil=True)
def _adjacent(u: int, v: int, base: int, rowptr: Array, col: Array) -> bool:
    """Search v in the sorted neighbors of u."""
    low, high = rowptr[base + u], rowptr[base + u + 1]
    while low < high:
        middle = (low + high) // 2
        if col[middle] < v:
            low = middle + 1
        else:
            high = middle
    return bool(low < rowptr[base + u + 1] and col[low] == v)
