"""The graphlet kernel (Shervashidze et al., 2009)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.kernels.base import Bag, FeatureKernel
from gcaps.kernels.hashing import join, mix, sums
from gcaps.kernels.progress import steps
from gcaps.kernels.shortest_path import balanced
from gcaps.kernels.small_graphs import graphlets, is_connected, isomorphism_names

_WORK = 5_000_000


class Graphlet(FeatureKernel):
    """k(G, H) = Σ_g n_g(G) n_g(H), n_g the number of induced subgraphs on ``size`` nodes isomorphic to g.

    Sizes 3 and 4 are counted exactly, by formulas from triangles, 4-cycles and 4-cliques; sizes 5 to 7 are sampled, and
    n_g is the share of the samples times the number of subsets (for ``connected``: just the share). A graph's samples
    depend on ``seed`` and the graph alone. Graphs with fewer nodes than ``size`` have no graphlets.

    Args:
        size: nodes of a graphlet, 3 to 7.
        connected: connected graphlets only. Sampled ones are grown node by node, which favors dense ones.
        samples: graphlets drawn from each graph for sizes 5 to 7.
        seed: decides the samples.
        normalize: divide by √(k(G, G) k(H, H)).
        threads: threads that count.
        verbose: show a progress bar.
    """

    def __init__(
        self,
        size: int = 4,
        *,
        connected: bool = False,
        samples: int = 2000,
        seed: int = 0,
        normalize: bool = False,
        threads: int = 2,
        verbose: bool = False,
    ) -> None:
        self.size, self.connected, self.samples, self.seed = size, connected, samples, seed
        self.normalize, self.threads, self.verbose = normalize, threads, verbose

    def bag(self, graphs: GraphSet) -> Bag:
        """Graphlets up to isomorphism."""
        if not 3 <= self.size <= 7:
            raise ConfigError(f"size must be from 3 to 7, not {self.size}")
        if self.samples < 1:
            raise ConfigError(f"samples must be at least 1, not {self.samples}")
        return self._exact(graphs) if self.size < 5 else self._sampled(graphs)

    def _exact(self, graphs: GraphSet) -> Bag:
        counts = induced_counts(graphs, self.size, self._motifs(graphs))
        codes = np.array(graphlets(self.size)[0])
        names = isomorphism_names(codes, self.size)
        if self.connected:
            keep = is_connected(codes, self.size)
            names, counts = names[keep], counts[:, keep]
        ptr = pointer(np.full(len(graphs), len(names)))
        return Bag(ptr, np.tile(names, len(graphs)), counts.ravel().astype(np.float64))

    def _motifs(self, graphs: GraphSet) -> Ints:
        from gcaps.kernels.motifs import count_motifs

        graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
        rank = np.empty(graphs.num_nodes, dtype=np.int64)
        rank[np.lexsort([graphs.degrees, graph])] = np.arange(graphs.num_nodes)

        def count(part: tuple[int, int]) -> Ints:
            found: Ints = count_motifs(*part, graphs.ptr, graphs.rowptr, graphs.col, rank)
            return found

        portions = balanced(graphs.sizes + graphs.arc_counts, _WORK // 10)
        with ThreadPoolExecutor(self.threads) as pool:
            return np.concatenate(list(steps(pool.map(count, portions), len(portions), "graphlets", self.verbose)))

    def _sampled(self, graphs: GraphSet) -> Bag:
        from gcaps.kernels.motifs import sample_codes

        start = join(sums(mix(graphs.degrees), graphs.ptr), np.full(len(graphs), self.seed))

        def draw(part: tuple[int, int]) -> Array:
            codes = np.empty((part[1] - part[0], self.samples), dtype=np.int64)
            for g in range(*part):
                sample_codes(
                    codes[g - part[0]],
                    g,
                    self.size,
                    self.connected,
                    start[g],
                    graphs.ptr,
                    graphs.rowptr,
                    graphs.col,
                )
            return codes

        portions = balanced(np.full(len(graphs), self.samples), _WORK // 10)
        with ThreadPoolExecutor(self.threads) as pool:
            parts = list(steps(pool.map(draw, portions), len(portions), "graphlets", self.verbose))
        codes = np.concatenate(parts)
        kinds, at = np.unique(codes, return_inverse=True)
        names = isomorphism_names(np.maximum(kinds, 0), self.size)
        drawn = (codes >= 0).sum(axis=1)
        subsets = np.ones(len(graphs))
        if not self.connected:
            for i in range(self.size):
                subsets *= np.maximum(graphs.sizes - i, 0) / (i + 1)
        share = np.divide(subsets, drawn, out=np.zeros(len(graphs)), where=drawn > 0)
        weight = np.where(codes >= 0, share[:, None], 0.0)
        ptr = pointer(np.full(len(graphs), self.samples))
        return Bag(ptr, names[at.ravel()], weight.ravel())


def induced_counts(graphs: GraphSet, size: int, motifs: Ints) -> Ints:
    """[G, kinds] induced subgraphs on 3 or 4 nodes, in the order of :func:`graphlets`.

    Counts of not necessarily induced subgraphs follow from n, m, the degrees and the motifs; the matrix of copies takes
    them to induced ones.
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
    place = {int(name): at for at, name in enumerate(isomorphism_names(np.array(chosen), size))}
    found = np.zeros((len(graphs), len(chosen)), dtype=np.int64)
    for code, count in by_code.items():
        found[:, place[int(isomorphism_names(np.array([code]), size)[0])]] = count
    for j in range(len(chosen) - 1, -1, -1):
        found[:, :j] -= found[:, j : j + 1] * copies[:j, j]
    found[n < size] = 0
    return found


def _choose(n: Ints, k: int) -> Ints:
    out = np.ones_like(n)
    for i in range(k):
        out = out * (n - i) // (i + 1)
    return out
